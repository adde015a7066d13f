//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// Karmada makes the namespaces of its control plane on every member, and takes them away when its own go: with every pod in them.
var _ = Describe("A workload that has left Karmada", Label("handover", "karmada", "ocm"), func() {
	It("stays when Karmada's namespace goes", func(ctx SpecContext) {
		sharedOperator(ctx)
		moved := func(namespace, backend string) *livedOn {
			fw := workload(namespace, "web", backend, cloneSet, 4)
			fw.Spec.Placement.Clusters, fw.Spec.Placement.Division = on(world.members[:2]...), divided()
			return carried(fw, cloneSet)
		}
		stays := func(namespace, backend string) *livedOn {
			fw := workload(namespace, "stays", backend, cloneSet, 1)
			fw.Spec.Placement.Clusters = on(world.members[0])
			return carried(fw, cloneSet)
		}
		convoys := newConvoys(ctx, "left", moved, stays)
		all := named(convoys, "web")
		turn(ctx, all...)
		arrive(ctx, all...)
		ended(v1alpha1.MigrationPhaseCompleted, all...)
		for _, r := range all {
			Expect(condition(r.fw, v1alpha1.ConditionIndependent).Status).To(Equal(metav1.ConditionTrue), describe(r.fw))
		}
		for _, c := range convoys {
			if c.backend != "karmada" {
				continue
			}
			for _, name := range world.members[:2] {
				namespace := &corev1.Namespace{}
				Expect(member(name).Get(ctx, types.NamespacedName{Name: c.namespace}, namespace)).To(Succeed())
				Expect(namespace.Labels).NotTo(HaveKey("karmada.io/managed"), name)
			}
			c.unharmed(ctx)
			pods := podUIDs(ctx, c.all[0].fw)
			By("what stays on Karmada is still carried out there")
			edit(ctx, c.all[1].fw, func(fw *v1alpha1.FleetWorkload) { *fw.Spec.Replicas = 2 })
			becomesReady(ctx, c.all[1].fw)
			Expect(hub().Delete(ctx, c.all[1].fw)).To(Succeed())
			goneWithin(ctx, c.all[1].fw, deleteTimeout)

			By("the namespace goes on Karmada")
			karmada := world.clusters[lab.Karmada]
			Expect(karmada.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}})).To(Succeed())
			Eventually(ctx, func(g Gomega) {
				err := karmada.Get(ctx, types.NamespacedName{Name: c.namespace}, &corev1.Namespace{})
				g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "it is still there: %v", err)
				for _, name := range world.members[:2] {
					works, err := list(ctx, karmada, workGVK, client.InNamespace("karmada-es-"+name))
					g.Expect(err).NotTo(HaveOccurred())
					for _, work := range works {
						g.Expect(work.GetName()).NotTo(HavePrefix(c.namespace + "-"))
					}
				}
			}).WithTimeout(readyTimeout).Should(Succeed())
			Expect(podUIDs(ctx, c.all[0].fw)).To(Equal(pods))
			edit(ctx, c.all[0].fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
			becomesReady(ctx, c.all[0].fw)
		}
	})

	It("stays when its cluster is unjoined from Karmada", func(ctx SpecContext) {
		cluster := world.members[2]
		alias := "alias-" + cluster
		o, _ := ownOperator(ctx, "unjoin", operatorOptions{everywhere: true, aliases: []any{map[string]string{"karmada": alias, "ocm": cluster}}})
		renamed(ctx, cluster, alias, "example.com/unjoined")
		o.start(ctx)
		fw := workload(newNamespace(ctx, "unjoin"), "web", "karmada", cloneSet, 2)
		fw.Spec.Placement.Clusters = on(alias)
		r := carried(fw, cloneSet)
		becomesReady(ctx, create(ctx, fw))
		pods := podUIDs(ctx, fw)
		Expect(pods).To(HaveLen(2))
		turn(ctx, r)
		arrive(ctx, r)
		karmada, other := controlOf("karmada"), &unstructured.Unstructured{}
		other.SetGroupVersionKind(clusterGVK)
		other.SetName(alias)
		Expect(karmada.Delete(ctx, other)).To(Succeed())
		Eventually(ctx, func() bool { return apierrors.IsNotFound(karmada.Get(ctx, client.ObjectKey{Name: alias}, other)) }).
			WithTimeout(readyTimeout).Should(BeTrue())
		Expect(podUIDs(ctx, fw)).To(Equal(pods))
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
		becomesReady(ctx, fw)
	})
})
