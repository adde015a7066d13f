//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// gadgetCRD is a kind that not all clusters serve.
const gadgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// gadgetOldVersion is added where a cluster has another release of what serves the kind.
const gadgetOldVersion = `
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

const gadgetRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-gadgets}
rules:
- {apiGroups: [GROUP], resources: [gadgets], verbs: [get, list, watch, create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-gadgets}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-gadgets}
subjects: [{kind: ServiceAccount, name: fleetworkload, namespace: fleetworkload-system}]
`

// A kind that some clusters do not serve.
var _ = Describe("A cluster that does not serve the kind", Label("placement", "karmada", "ocm"), long, func() {
	It("gets nothing, says so, and gets it when it does", func(ctx SpecContext) {
		m := world.members
		gadget := newGadget("unfit")
		group := gadget.gvk.Group
		applied := func(control, manifest string) {
			GinkgoHelper()
			applied(ctx, gadget, control, manifest)
		}
		applied(lab.Karmada, gadgetCRD)
		applied(lab.Karmada, gadgetRole)
		applied(m[0], gadgetCRD)
		applied(m[1], gadgetCRD+gadgetOldVersion)
		o, namespace := ownOperator(ctx, "unfit", operatorOptions{
			allowedKinds: []any{map[string]any{"group": gadget.gvk.Group, "kind": gadget.gvk.Kind}},
		})
		o.start(ctx)
		made := func(name, backend string, placement v1alpha1.Placement) *v1alpha1.FleetWorkload {
			return create(ctx, gadgetWorkload(namespace, name+"-"+backend, backend, gadget, placement))
		}
		var all, one, none []*v1alpha1.FleetWorkload
		for _, b := range backends {
			all = append(all, made("all", b, v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}}))
			one = append(one, made("one", b, v1alpha1.Placement{Clusters: on(m[1], m[2]), NumberOfClusters: ptr(int32(1))}))
			none = append(none, made("none", b, v1alpha1.Placement{Clusters: on(m[2])}))
		}
		for i := range backends {
			has := func(fw *v1alpha1.FleetWorkload, clusters ...string) {
				GinkgoHelper()
				eventually(ctx, fw, 2*time.Minute, func(g Gomega) {
					g.Expect(isObserved(fw)).To(BeTrue())
					g.Expect(rowNames(fw)).To(Equal(clusters))
					for _, r := range fw.Status.Clusters {
						g.Expect(r.Applied).To(Equal(metav1.ConditionTrue))
						g.Expect(r.Revision).To(Equal(fw.Status.Revision))
					}
				})
			}
			has(all[i], m[0], m[1])
			Expect(condition(all[i], v1alpha1.ConditionScheduled).Message).To(ContainSubstring(m[2] + ": without " + group + "/v1 Gadget"))
			eventually(ctx, all[i], readyTimeout, func(g Gomega) {
				g.Expect(condition(all[i], v1alpha1.ConditionHealthy).Message).To(
					ContainSubstring("it is served as v1 on " + m[0] + ", as v1 and v1beta1 on " + m[1]))
			})
			has(one[i], m[1])
			message := becomesStalled(ctx, none[i], v1alpha1.ReasonKindNotServed)
			Expect(message).To(And(ContainSubstring(m[2]), ContainSubstring("install its CRD")))
		}
		By("being quiet meanwhile")
		converged(ctx, o)
		o.journal.Reset()
		Consistently(o.journal.Entries).WithContext(ctx).WithTimeout(hold).Should(BeEmpty())

		By("serving the kind later")
		applied(m[2], gadgetCRD)
		for i := range backends {
			for _, fw := range []*v1alpha1.FleetWorkload{all[i], none[i]} {
				eventuallyPresent(ctx, member(m[2]), gadget, client.ObjectKeyFromObject(fw), 5*time.Minute)
			}
			Expect(rowNames(one[i])).To(Equal([]string{m[1]}))
		}
		every := slices.Concat(all, one, none)
		for _, fw := range every {
			remove(ctx, fw)
		}
		for _, fw := range every {
			nothingLeft(ctx, fw, gadget)
		}
	}, SpecTimeout(15*time.Minute))
})

// The same, where the operator may send the CRD.
var _ = Describe("A cluster that lacks a CRD", Label("placement", "ocm"), long, func() {
	It("gets it when that is configured, and keeps it", func(ctx SpecContext) {
		const backend = "shipping"
		gadget, m := newGadget(backend), world.members
		o, namespace := ownOperator(ctx, backend, operatorOptions{
			allowedKinds: []any{map[string]any{"group": gadget.gvk.Group, "kind": gadget.gvk.Kind}},
			more:         []any{anotherHub(backend, map[string]any{"clusterSets": []string{"global"}, "shipDefinitions": true})},
		})
		o.start(ctx)
		fw := create(ctx, gadgetWorkload(namespace, "web", backend, gadget, v1alpha1.Placement{Clusters: on(m[0])}))
		eventually(ctx, fw, 60*time.Second, func(g Gomega) {
			g.Expect(condition(fw, v1alpha1.ConditionScheduled).Message).To(ContainSubstring("create it there"))
		})
		applied(ctx, gadget, lab.Hub, gadgetCRD)
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Annotations = map[string]string{"example.com/look": "again"} })
		eventuallyPresent(ctx, member(m[0]), gadget, client.ObjectKeyFromObject(fw), 7*time.Minute)
		remove(ctx, fw)
		left, err := labelled(ctx, hub(), ofWorkload(fw))
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty())
		_, err = world.kubectl(ctx, m[0], "get", "crd", "gadgets."+gadget.gvk.Group)
		Expect(err).NotTo(HaveOccurred())
		_, err = world.kubectl(ctx, m[0], "delete", "crd", "gadgets."+gadget.gvk.Group)
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(15*time.Minute))
})

// newGadget is a kind of a group of its own: OCM's agents remember what a cluster has served once.
func newGadget(name string) kind {
	group := fmt.Sprintf("%s%d.example.com", name, GinkgoRandomSeed())
	return kind{label: "gadget", gvk: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"}}
}

func gadgetWorkload(namespace, name, backend string, k kind, placement v1alpha1.Placement) *v1alpha1.FleetWorkload {
	raw := fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Gadget","spec":{"size":1}}`, k.gvk.Group)
	return &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.FleetWorkloadSpec{Backend: backend, Placement: placement, Template: runtime.RawExtension{Raw: []byte(raw)}},
	}
}

// applied applies a manifest to a control plane until the spec ends.
func applied(ctx context.Context, k kind, control, manifest string) {
	GinkgoHelper()
	manifest = strings.ReplaceAll(manifest, "GROUP", k.gvk.Group)
	_, err := world.kubectlWith(ctx, manifest, control, "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		_, err := world.kubectlWith(ctx, manifest, control, "delete", "--ignore-not-found", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
	})
}

func rowNames(fw *v1alpha1.FleetWorkload) []string {
	var names []string
	for _, r := range fw.Status.Clusters {
		names = append(names, r.Name)
	}
	return names
}

func eventuallyPresent(ctx context.Context, c *cluster, k kind, key client.ObjectKey, timeout time.Duration) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		obj, err := object(ctx, c, k, key)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(obj).NotTo(BeNil(), "%s %s on %s", k.gvk.Kind, key, c.name)
	}).WithContext(ctx).WithTimeout(timeout).Should(Succeed())
}
