//go:build e2e

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// numbered gives a cluster a number of its own, instead of the one that it had.
func numbered(n int32, name string) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Overrides = []v1alpha1.Override{{Name: "own", Clusters: on(name), Replicas: &n}}
	}
}

// describeNumbers is about a cluster that an override gives a number of its own, wherever the workload moves.
func describeNumbers(backend string) {
	var (
		fw     *v1alpha1.FleetWorkload
		stays  map[string]string
		counts = func(ctx context.Context, numbers ...int32) {
			GinkgoHelper()
			wants := map[string]want{}
			for i, n := range numbers {
				wants[world.members[i]] = want{int(n), imageOld, "info"}
			}
			runs(ctx, fw, cloneSet, wants)
		}
		kept = func(ctx context.Context) {
			GinkgoHelper()
			now := podUIDs(ctx, fw)
			for pod, uid := range stays {
				Expect(now).To(HaveKeyWithValue(pod, uid), "what nobody asked to go")
			}
			stays = now
		}
	)

	BeforeAll(func(ctx SpecContext) {
		sharedOperator(ctx)
		m := world.members
		Expect(len(m)).To(BeNumerically(">=", 3))
		fw = workload(newNamespace(ctx, "numbers"), "web", backend, cloneSet, 8)
		fw.Spec.Placement.Clusters = on(m[0], m[1], m[2])
		fw.Spec.Placement.Division = divided()
		numbered(4, m[0])(fw)
		create(ctx, fw)
	})

	It("runs it, and the others what is left", func(ctx SpecContext) {
		becomesReady(ctx, fw)
		counts(ctx, 4, 2, 2)
		stays = podUIDs(ctx, fw)
	})

	It("has it on the other backend, with the same pods", func(ctx SpecContext) { movesUnnoticed(ctx, fw) })

	It("follows the number, in one change", func(ctx SpecContext) {
		edit(ctx, fw, numbered(6, world.members[0]))
		becomesReady(ctx, fw)
		counts(ctx, 6, 1, 1)
		Expect(fw.Status.Revision).NotTo(BeEmpty())
		stays = podUIDs(ctx, fw)
	})

	It("is told what does not go together, and nothing is changed", func(ctx SpecContext) {
		edit(ctx, fw, numbered(9, world.members[0]))
		Expect(becomesStalled(ctx, fw, v1alpha1.ReasonInvalidOverride)).To(And(
			ContainSubstring("spec.overrides[].replicas"), ContainSubstring("more than spec.replicas")))
		Consistently(func() map[string]string { return podUIDs(ctx, fw) }).WithContext(ctx).WithTimeout(hold).Should(Equal(stays))
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(11)) })
		becomesReady(ctx, fw)
		counts(ctx, 9, 1, 1)
		kept(ctx)
	})

	It("gets its share again", func(ctx SpecContext) {
		revision := fw.Status.Revision
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Overrides, fw.Spec.Replicas = nil, ptr(int32(9)) })
		becomesReady(ctx, fw)
		counts(ctx, 3, 3, 3)
		Expect(fw.Status.Revision).To(Equal(revision))
		stays = podUIDs(ctx, fw)
	})

	It("runs it beside duplicated ones", func(ctx SpecContext) {
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
			numbered(5, world.members[1])(fw)
			fw.Spec.Placement.Division, fw.Spec.Replicas = nil, ptr(int32(3))
		})
		becomesReady(ctx, fw)
		counts(ctx, 3, 5, 3)
		kept(ctx)
		Expect(*fw.Status.Scale.Replicas).To(BeEquivalentTo(3))
	})

	It("has it where it came from, with the same pods", func(ctx SpecContext) {
		movesUnnoticed(ctx, fw)
		counts(ctx, 3, 5, 3)
		remove(ctx, fw)
	})
}

// movesUnnoticed changes backends, and no pod notices.
func movesUnnoticed(ctx context.Context, fw *v1alpha1.FleetWorkload) {
	GinkgoHelper()
	before, pods := podUIDs(ctx, fw), watchPods(fw.Namespace)
	r := carried(fw, cloneSet)
	turn(ctx, r)
	arrive(ctx, r)
	becomesReady(ctx, fw)
	pods.undisturbed(0)
	Expect(podUIDs(ctx, fw)).To(Equal(before))
}

var _ = Describe("A cluster with a number of its own", Label("numbers", "handover", "karmada", "ocm"), func() {
	for _, b := range backends {
		Context("from "+b, Ordered, func() { describeNumbers(b) })
	}
})
