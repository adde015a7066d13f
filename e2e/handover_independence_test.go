//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

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

// gadgets is a kind that members do not have by themselves, and the right to carry it through Karmada.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.e2e.fleetworkload.io}
spec:
  group: e2e.fleetworkload.io
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-gadgets}
rules:
- {apiGroups: [e2e.fleetworkload.io], resources: [gadgets], verbs: [get, list, watch, create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-gadgets}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-gadgets}
subjects: [{kind: ServiceAccount, name: fleetworkload, namespace: fleetworkload-system}]
`

var (
	gadget        = kind{gvk: schema.GroupVersionKind{Group: "e2e.fleetworkload.io", Version: "v1", Kind: "Gadget"}}
	definitionGVK = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// The definition of a kind takes every object of the kind along. Whoever has brought it to the members decides.
var _ = Describe("A workload whose kind came to the members through a backend", Label("handover", "karmada", "ocm"), func() {
	It("does not leave that backend before its kind may stay", func(ctx SpecContext) {
		name, karmada := world.members[0], controlOf("karmada")
		_, err := world.kubectlWith(ctx, gadgets, lab.Karmada, "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_, err := world.kubectlWith(ctx, gadgets, lab.Karmada, "delete", "-f", "-")
			Expect(err).NotTo(HaveOccurred())
			for _, name := range world.members {
				forgotten(ctx, name, "gadgets."+gadget.gvk.Group)
				gone(ctx, member(name), definitionGVK, "", "gadgets."+gadget.gvk.Group)
			}
		}, NodeTimeout(4*time.Minute))
		policy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"resourceSelectors": []any{map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": definitionGVK.Kind, "name": "gadgets." + gadget.gvk.Group}},
			"placement":         map[string]any{"clusterAffinity": map[string]any{"clusterNames": anyOf(world.members)}},
		}}}
		policy.SetGroupVersionKind(policyGVK.GroupVersion().WithKind("ClusterPropagationPolicy"))
		policy.SetName("e2e-gadgets")
		Expect(karmada.Create(ctx, policy)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { gone(ctx, karmada, policy.GroupVersionKind(), "", policy.GetName()) }, NodeTimeout(time.Minute))

		o, namespace := ownOperator(ctx, "gadgets", operatorOptions{
			allowedKinds: []any{map[string]any{"group": gadget.gvk.Group, "kind": gadget.gvk.Kind}},
		})
		o.start(ctx)
		fw := create(ctx, &v1alpha1.FleetWorkload{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gadget"},
			Spec: v1alpha1.FleetWorkloadSpec{
				Backend: "karmada", Placement: v1alpha1.Placement{Clusters: on(name)},
				Template: runtime.RawExtension{Raw: []byte(`{"apiVersion":"e2e.fleetworkload.io/v1","kind":"Gadget","spec":{"size":1}}`)},
			},
		})
		r := carried(fw, gadget)
		var before types.UID
		Eventually(func(g Gomega) {
			for _, name := range world.members {
				_, err := list(ctx, member(name), gadget.gvk)
				g.Expect(err).NotTo(HaveOccurred())
			}
			made, err := object(ctx, member(name), gadget, client.ObjectKeyFromObject(fw))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(made).NotTo(BeNil())
			worked := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":1}}`)) // nobody else works on it
			g.Expect(member(name).Status().Patch(ctx, made, worked)).To(Succeed())
			before = made.GetUID()
		}).WithContext(ctx).WithTimeout(readyTimeout).Should(Succeed())
		becomesReady(ctx, fw)
		moves := func(owner string, stay func()) {
			turn(ctx, r)
			left := otherBackend(fw.Spec.Backend)
			Expect(becomesStalled(ctx, fw, v1alpha1.ReasonMigrationNotPossible)).To(ContainSubstring(
				"CustomResourceDefinition gadgets.e2e.fleetworkload.io is from backend " + left + " (" + owner))
			stay()
			arrive(ctx, r)
			ended(v1alpha1.MigrationPhaseCompleted, r)
			Expect(r.objects(ctx)[name].GetUID()).To(Equal(before))
		}

		By("from Karmada")
		moves("ClusterPropagationPolicy e2e-gadgets)", func() {
			patch := []byte(`{"spec":{"preserveResourcesOnDeletion":true}}`)
			Expect(karmada.Patch(ctx, policy, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
		})
		gone(ctx, karmada, policy.GroupVersionKind(), "", policy.GetName())
		Expect(r.objects(ctx)[name].GetUID()).To(Equal(before))

		By("from OCM")
		definition := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(strings.Split(gadgets, "---")[0]), &definition.Object)).To(Succeed())
		work := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"workload": map[string]any{"manifests": []any{definition.Object}}}}}
		work.SetGroupVersionKind(manifestWorkGVK)
		work.SetNamespace(name)
		work.SetName("e2e-gadgets")
		Expect(hub().Create(ctx, work)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { gone(ctx, hub(), manifestWorkGVK, name, work.GetName()) }, NodeTimeout(time.Minute))
		moves("ManifestWork "+name+" e2e-gadgets)", func() {
			patch := []byte(`{"spec":{"deleteOption":{"propagationPolicy":"Orphan"}}}`)
			Expect(hub().Patch(ctx, work, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
		})
		gone(ctx, hub(), manifestWorkGVK, name, work.GetName())
		Expect(r.objects(ctx)[name].GetUID()).To(Equal(before))
	}, SpecTimeout(12*time.Minute))
})

// forgotten waits until Karmada has no Work for a member that carries an object of that name: while there is one, Karmada makes the object
// again when somebody deletes it on the member (recreateResourceIfNeeded in its pkg/controllers/status/work_status_controller.go).
func forgotten(ctx context.Context, member, name string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		works, err := list(ctx, controlOf("karmada"), workGVK, client.InNamespace("karmada-es-"+member))
		g.Expect(err).NotTo(HaveOccurred())
		for _, work := range works {
			manifests, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
			for _, manifest := range manifests {
				carried, _, _ := unstructured.NestedString(manifest.(map[string]any), "metadata", "name")
				g.Expect(carried).NotTo(Equal(name), work.GetName())
			}
		}
	}).WithTimeout(readyTimeout).Should(Succeed())
}
