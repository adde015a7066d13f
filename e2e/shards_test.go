//go:build e2e

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// labelShard has a namespace served by who serves the shard.
func labelShard(ctx context.Context, namespace, shard string) {
	GinkgoHelper()
	kubectl(ctx, "label", "namespace", namespace, "fleetworkload.io/shard="+shard, "--overwrite")
}

var _ = Describe("Operators that share namespaces by a label", Label("laws", "law6", "karmada", "ocm"), func() {
	It("serve their own, and go on with what they get, without touching a pod", func(ctx SpecContext) {
		shard := func(name, selector string) (o *operator, namespace string) {
			return ownOperator(ctx, name, operatorOptions{everywhere: true, selector: selector, lease: name})
		}
		rest, restNamespace := shard("rest", "fleetworkload.io/shard notin (a)")
		a, namespaceA := shard("a", "fleetworkload.io/shard=a")
		DeferCleanup(labelShard, namespaceA, "a")
		labelShard(ctx, namespaceA, "a")
		a.start(ctx)
		inRest := create(ctx, workload(restNamespace, "web", "ocm", cloneSet, 2))
		inA := create(ctx, workload(namespaceA, "web", "karmada", cloneSet, 2))
		becomesReady(ctx, inA)
		refresh(ctx, inRest)
		Expect(inRest.Finalizers).To(BeEmpty())
		Expect(inRest.Status.Conditions).To(BeEmpty())
		rest.start(ctx)
		becomesReady(ctx, inRest)

		By("moving a namespace from one to the other")
		pods := podUIDs(ctx, inA)
		labelShard(ctx, namespaceA, "none")
		a.stop(ctx)
		edit(ctx, inA, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr[int32](3) })
		becomesReady(ctx, inA)
		for pod, uid := range pods {
			Expect(podUIDs(ctx, inA)).To(HaveKeyWithValue(pod, uid))
		}

		By("and back")
		rest.stop(ctx)
		labelShard(ctx, namespaceA, "a")
		a.start(ctx)
		edit(ctx, inRest, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr[int32](3) })
		edit(ctx, inA, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr[int32](4) })
		becomesReady(ctx, inA)
		refresh(ctx, inRest)
		Expect(isObserved(inRest)).To(BeFalse())
		rest.start(ctx)
		becomesReady(ctx, inRest)
	})
})
