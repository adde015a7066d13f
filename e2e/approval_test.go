//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// needsApproval wants a change to wait for approval, and to come to this.
func needsApproval(ctx context.Context, fw *v1alpha1.FleetWorkload, says string) {
	GinkgoHelper()
	eventually(ctx, fw, readyTimeout, func(g Gomega) {
		g.Expect(isObserved(fw)).To(BeTrue())
		ready := condition(fw, v1alpha1.ConditionReady)
		g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonAwaitingApproval), describe(fw))
		g.Expect(fw.Status.Change).NotTo(BeNil())
		g.Expect(fw.Status.Change.Approval).NotTo(BeEmpty(), describe(fw))
		g.Expect(fw.Status.Change.Message).To(Equal(says), describe(fw))
	})
}

// A change waits until a person has approved what it comes to.
var _ = forEach("A change that needs approval", func(backend string, k kind) {
	It("is carried out as it was approved, and waits on when it comes to something else by then", Label("law1", "law2", "edits"), func(ctx SpecContext) {
		sharedOperator(ctx)
		m, program := world.members, buildKubectlFW(ctx)
		fw := workload(makeNamespace(ctx, "approval"), "web", backend, k, 2)
		fw.Spec.Approval, fw.Spec.Placement.Clusters = v1alpha1.ApprovalPolicyManual, on(m...)
		create(ctx, fw)
		plan := func(args ...string) (string, int) {
			GinkgoHelper()
			out, errOut, err := commandLine(ctx, program, fw, append([]string{"plan", fw.Name}, args...)...)
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return out, exit.ExitCode()
			}
			Expect(err).NotTo(HaveOccurred(), errOut)
			return out, 0
		}

		By("the first creation")
		needsApproval(ctx, fw, "Create on "+m[0]+", "+m[1]+", "+m[2])
		Consistently(func() map[string]string { return podUIDs(ctx, fw) }).WithContext(ctx).WithTimeout(hold).Should(BeEmpty())
		out, code := plan()
		Expect(code).To(Equal(2), out)
		Expect(out).To(MatchRegexp(`(?m)^` + m[1] + ` +create +2 +-$`))
		out, code = plan("--approve")
		Expect(code).To(Equal(0), out)
		becomesReady(ctx, fw)
		pods, before := podUIDs(ctx, fw), specs(ctx, fw, k)
		unchanged := func() {
			GinkgoHelper()
			nothingRemoved(ctx, fw, k, pods, before)
		}

		By("another image, on fewer clusters")
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
			setImage(fw, imageNew)
			fw.Spec.Placement.Clusters = on(m[0], m[1])
		})
		needsApproval(ctx, fw, "Remove on "+m[2]+", Update on "+m[0]+", "+m[1])
		unchanged()
		stale := fw.Status.Change.Approval
		out, code = plan()
		Expect(code).To(Equal(2), out)
		Expect(out).To(MatchRegexp(`(?m)^  template: .*` + imageOld + " -> " + imageNew + "$"))
		Expect(out).To(HaveSuffix(" --change " + stale + "\n"))

		By("an approval of what it came to before")
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Placement.Clusters = on(m[0])
			fw.Annotations = map[string]string{v1alpha1.AnnotationApproveChange: stale}
		})
		needsApproval(ctx, fw, "Remove on "+m[1]+", "+m[2]+", Update on "+m[0])
		unchanged()
		Expect(fw.Status.Change.Approval).NotTo(Equal(stale))
		Expect(condition(fw, v1alpha1.ConditionReady).Message).To(ContainSubstring("what was approved (" + stale + ": Remove on " + m[2] + ", Update on " +
			m[0] + ", " + m[1] + ") is no longer what would be done, as the spec was edited since"))
		_, errOut, err := commandLine(ctx, program, fw, "approve", fw.Name, "--change", stale)
		Expect(err).To(HaveOccurred())
		Expect(errOut).To(ContainSubstring("the change that waits is " + fw.Status.Change.Approval))

		By("it is given up")
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
			setImage(fw, imageOld)
			fw.Spec.Placement.Clusters = on(m...)
		})
		becomesReady(ctx, fw)
		unchanged()

		By("it is scaled, which waits for nobody")
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(3)) })
		becomesReady(ctx, fw)
		Expect(podUIDs(ctx, fw)).To(HaveLen(3 * len(m)))

		By("it is approved, and carried out")
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
			setImage(fw, imageNew)
			fw.Spec.Placement.Clusters = on(m[0], m[1])
		})
		needsApproval(ctx, fw, "Remove on "+m[2]+", Update on "+m[0]+", "+m[1])
		_, errOut, err = commandLine(ctx, program, fw, "approve", fw.Name, "--change", fw.Status.Change.Approval)
		Expect(err).NotTo(HaveOccurred(), errOut)
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {3, imageNew, "info"}, m[1]: {3, imageNew, "info"}})
		out, code = plan()
		Expect(code).To(Equal(0), out)
		Expect(out).To(ContainSubstring("no change waits for approval"))

		By("a hand-over")
		pods, before = podUIDs(ctx, fw), specs(ctx, fw, k)
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = otherBackend(backend) })
		needsApproval(ctx, fw, "Move on "+m[0]+", "+m[1])
		unchanged()
		out, code = plan("--approve")
		Expect(code).To(Equal(0), out)
		becomesMoved(ctx, fw, otherBackend(backend))
		Expect(podUIDs(ctx, fw)).To(Equal(pods))
		remove(ctx, fw)
	})
})
