//go:build e2e

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// rebuilt makes workloads anew from what a Git repository or a backup has of them. No finalizer has run, and no status is left.
func rebuilt(ctx context.Context, all ...*livedOn) {
	GinkgoHelper()
	for _, r := range all {
		edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) { fw.Finalizers = nil })
		Expect(hub().Delete(ctx, r.fw)).To(Succeed())
	}
	for _, r := range all {
		before := r.fw
		Eventually(func() error {
			return hub().Get(ctx, client.ObjectKeyFromObject(before), &v1alpha1.FleetWorkload{})
		}).WithContext(ctx).Should(MatchError(ContainSubstring("not found")))
		r.fw = &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: before.Namespace, Name: before.Name}, Spec: before.Spec}
		create(ctx, r.fw)
		Expect(r.fw.UID).NotTo(Equal(before.UID))
	}
}

// seenThrough approves whatever a hand-over asks for, until it is over.
func seenThrough(ctx context.Context, all ...*livedOn) {
	GinkgoHelper()
	for _, r := range all {
		eventually(ctx, r.fw, 2*readyTimeout, func(g Gomega) {
			if m := r.fw.Status.Migration; m != nil && m.Approval != "" && r.fw.Annotations[v1alpha1.AnnotationApproveMigration] != m.Approval {
				before := r.fw.DeepCopy()
				r.fw.Annotations = map[string]string{v1alpha1.AnnotationApproveMigration: m.Approval}
				g.Expect(hub().Patch(ctx, r.fw, client.MergeFrom(before))).To(Succeed())
			}
			g.Expect(r.fw.Status.Backend).To(Equal(r.fw.Spec.Backend))
			g.Expect(r.fw.Status.Migration).To(HaveValue(HaveField("Phase", BeEmpty())))
		})
	}
	arrive(ctx, all...)
}

var _ = Describe("A management cluster that was rebuilt", Label("rebuilt", "handover", "karmada", "ocm"), func() {
	It("takes its fleets again, at rest and while they change hands, and no other installation does", func(ctx SpecContext) {
		stranger, _ := ownOperator(ctx, "stranger", operatorOptions{everywhere: true, installation: "another"})
		o, _ := ownOperator(ctx, "rebuilt", operatorOptions{everywhere: true})
		o.start(ctx)
		convoys := newConvoys(ctx, "rebuilt", onTwo("rests"), onTwo("begins"), onTwo("waits"), onTwo("returns"))
		all, rests := named(convoys), named(convoys, "rests")
		turn(ctx, named(convoys, "waits", "returns")...)
		asks(ctx, 1, named(convoys, "waits", "returns")...) // one cluster is the target's, the other one the source's
		turn(ctx, named(convoys, "begins", "returns")...)
		o.stop(ctx)

		rebuilt(ctx, all...)
		stranger.start(ctx)
		for _, r := range all {
			Expect(becomesStalled(ctx, r.fw, v1alpha1.ReasonNameConflict)).To(ContainSubstring("installation: " + installation))
		}
		stranger.stop(ctx)

		o.start(ctx)
		for _, r := range rests {
			becomesReady(ctx, r.fw)
			Expect(r.fw.Status.Identity).To(Equal(identity(r.fw)))
			Expect(r.fw.Status.Migration).To(BeNil())
		}
		seenThrough(ctx, named(convoys, "begins", "waits", "returns")...)
		for _, c := range convoys {
			c.unharmed(ctx)
		}
		for _, r := range rests { // it is served again
			edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
			becomesReady(ctx, r.fw)
		}
	}, SpecTimeout(8*time.Minute))
})
