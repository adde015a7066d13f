//go:build e2e

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// byHand changes the object on a member as kubectl edit does.
func byHand(ctx context.Context, cluster string, fw *v1alpha1.FleetWorkload, k kind, change func(obj *unstructured.Unstructured)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		obj, err := object(ctx, member(cluster), k, client.ObjectKeyFromObject(fw))
		if err != nil {
			return err
		}
		Expect(obj).NotTo(BeNil(), "%s on %s", k.gvk.Kind, cluster)
		change(obj)
		return member(cluster).Update(ctx, obj, client.FieldOwner("kubectl-edit"))
	})).To(Succeed())
}

func scaledTo(replicas int64) func(obj *unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		GinkgoHelper()
		Expect(unstructured.SetNestedField(obj.Object, replicas, "spec", "replicas")).To(Succeed())
	}
}

var _ = Describe("Somebody who changes the object on a member", Label("laws", "drift"), func() {
	for _, backend := range backends {
		It("is told of on "+backend+", and nobody is when the FleetWorkload changes", Label(backend), long, func(ctx SpecContext) {
			o := sharedOperator(ctx)
			namespace, m := newNamespace(ctx, "drift"), world.members
			all := map[*v1alpha1.FleetWorkload]kind{}
			for name, k := range map[string]kind{"web": deployment, "clones": cloneSet} {
				all[create(ctx, workload(namespace, name, backend, k, 2))] = k
			}
			ready := func() {
				GinkgoHelper()
				for fw := range all {
					becomesReady(ctx, fw)
				}
			}
			told := func() string { return kubectl(ctx, "events", "-n", namespace) }
			counted := func() float64 {
				GinkgoHelper()
				families, err := o.measures()
				Expect(err).NotTo(HaveOccurred())
				return measure(families, "fleetworkload_drift_total")
			}
			before := counted()
			// Half a minute, in which a report may be behind what the backend has written.
			nothing := func(more float64) {
				GinkgoHelper()
				Consistently(counted).WithContext(ctx).WithTimeout(35*time.Second).WithPolling(time.Second).Should(Equal(before+more), told)
			}
			ready()
			for fw := range all {
				edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
			}
			ready()
			for fw := range all {
				edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { *fw.Spec.Replicas = 3 })
			}
			ready()
			nothing(0)
			Expect(told()).NotTo(ContainSubstring("ChangedOnCluster"))

			for fw, k := range all {
				byHand(ctx, m[0], fw, k, scaledTo(5))
				if backend == "ocm" {
					agentLooks(ctx, only(ctx, fw, manifestWork, client.InNamespace(m[0])))
				}
			}
			Eventually(counted).WithContext(ctx).WithTimeout(readyTimeout).Should(Equal(before+2), told)
			for fw, k := range all {
				words := "cluster " + m[0] + ": somebody else has changed the object there: generation "
				if backend == "ocm" {
					words = "cluster " + m[0] + `: somebody else has changed the object there, and it is put back: conflict with "kubectl-edit" using ` +
						k.gvk.GroupVersion().String() + ": .spec.replicas"
				}
				Eventually(func() string { return kubectl(ctx, "events", "-n", namespace, "--for", "fleetworkload/"+fw.Name) }).
					WithContext(ctx).Should(ContainSubstring(words))
			}
			ready()
			for fw, k := range all {
				obj, err := object(ctx, member(m[0]), k, client.ObjectKeyFromObject(fw))
				Expect(err).NotTo(HaveOccurred())
				Expect(obj.Object["spec"]).To(HaveKeyWithValue("replicas", int64(3)))
			}
			nothing(2)

			var moving []*livedOn
			for fw, k := range all {
				moving = append(moving, carried(fw, k))
			}
			turn(ctx, moving...)
			arrive(ctx, moving...)
			for fw := range all {
				edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageOld) })
			}
			ready()
			nothing(2)
		})
	}
})
