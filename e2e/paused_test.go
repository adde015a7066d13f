//go:build e2e

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// standing is what must not change of an object on a cluster that is paused.
type standing struct {
	uid        types.UID
	generation int64
	pods       map[string]string
}

// standingOn is how the workload stands on one member.
func standingOn(ctx context.Context, fw *v1alpha1.FleetWorkload, k kind, name string) standing {
	GinkgoHelper()
	obj, err := object(ctx, member(name), k, client.ObjectKeyFromObject(fw))
	Expect(err).NotTo(HaveOccurred())
	Expect(obj).NotTo(BeNil(), "%s on %s", fw.Name, name)
	return standing{obj.GetUID(), obj.GetGeneration(), of(name, podUIDs(ctx, fw))}
}

// A cluster that is paused is left as it is, and the others go on.
var _ = forEach("A paused cluster", func(backend string, k kind) {
	var (
		fw     *v1alpha1.FleetWorkload
		before standing
		old    string
	)

	BeforeAll(func(ctx SpecContext) {
		sharedOperator(ctx)
		m := world.members
		Expect(len(m)).To(BeNumerically(">=", 3))
		fw = workload(newNamespace(ctx, "paused"), "web", backend, k, 6)
		fw.Spec.Placement.Clusters = on(m[0], m[1], m[2])
		fw.Spec.Placement.Division = divided()
		create(ctx, fw)
		becomesReady(ctx, fw)
		before, old = standingOn(ctx, fw, k, m[1]), fw.Status.Revision
		Expect(before.pods).To(HaveLen(2))
	})

	It("changes nothing by itself", func(ctx SpecContext) {
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Paused = on(world.members[1]) })
		becomesReady(ctx, fw)
		Expect(row(fw, world.members[1]).Paused).To(Equal(metav1.ConditionTrue))
		Expect(row(fw, world.members[1]).Health).To(Equal(v1alpha1.HealthHealthy))
		Expect(standingOn(ctx, fw, k, world.members[1])).To(Equal(before))
	})

	It("is left as it is while the others follow", func(ctx SpecContext) {
		m := world.members
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
			setImage(fw, imageNew)
			fw.Spec.Replicas = ptr(int32(10))
		})
		eventually(ctx, fw, readyTimeout, func(g Gomega) {
			ready := condition(fw, v1alpha1.ConditionReady)
			g.Expect(ready.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonPaused), ready.Message)
			g.Expect(ready.Message).To(ContainSubstring(m[1]))
			g.Expect(condition(fw, v1alpha1.ConditionReconciling).Status).To(Equal(metav1.ConditionFalse))
		})
		runs(ctx, fw, k, map[string]want{m[0]: {4, imageNew, "info"}, m[1]: {2, imageOld, "info"}, m[2]: {4, imageNew, "info"}})
		Expect(row(fw, m[1]).Revision).To(Equal(old))
		Expect(row(fw, m[1]).Health).To(Equal(v1alpha1.HealthSuspended))
		Expect(row(fw, m[0]).Revision).To(Equal(fw.Status.Revision))
		Consistently(func() standing { return standingOn(ctx, fw, k, m[1]) }).
			WithContext(ctx).WithTimeout(hold).Should(Equal(before))
	})

	It("follows once it is paused no longer", func(ctx SpecContext) {
		m := world.members
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Paused = nil })
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {4, imageNew, "info"}, m[1]: {3, imageNew, "info"}, m[2]: {3, imageNew, "info"}})
		Expect(row(fw, m[1]).Paused).To(BeEmpty())
		Expect(standingOn(ctx, fw, k, m[1]).uid).To(Equal(before.uid))
	})

	It("goes with its FleetWorkload", func(ctx SpecContext) {
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Paused = on(world.members[1]) })
		becomesReady(ctx, fw)
		remove(ctx, fw)
		for _, name := range world.members[:3] {
			eventuallyAbsent(ctx, member(name), k, client.ObjectKeyFromObject(fw))
		}
	})
}, Label("paused"), Ordered)
