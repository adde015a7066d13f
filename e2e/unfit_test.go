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
var _ = Describe("A cluster that does not serve the kind", Label("placement", "karmada", "ocm"), func() {
	It("gets nothing, says so, and gets it when it does", func(ctx SpecContext) {
		m := world.members
		// OCM's agents remember what a cluster has served once, so each run has a group of its own.
		group := fmt.Sprintf("e2e%d.example.com", GinkgoRandomSeed())
		gadget := kind{label: "gadget", gvk: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"}}
		applied := func(control, manifest string) {
			GinkgoHelper()
			manifest = strings.ReplaceAll(manifest, "GROUP", group)
			_, err := world.kubectlWith(ctx, manifest, control, "apply", "-f", "-")
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func(ctx SpecContext) {
				_, err := world.kubectlWith(ctx, manifest, control, "delete", "--ignore-not-found", "-f", "-")
				Expect(err).NotTo(HaveOccurred())
			})
		}
		applied(lab.Karmada, gadgetCRD)
		applied(lab.Karmada, gadgetRole)
		applied(m[0], gadgetCRD)
		applied(m[1], gadgetCRD)
		o, namespace := ownOperator(ctx, "unfit", operatorOptions{
			allowedKinds: []any{map[string]any{"group": gadget.gvk.Group, "kind": gadget.gvk.Kind}},
		})
		o.start(ctx)
		made := func(name, backend string, placement v1alpha1.Placement) *v1alpha1.FleetWorkload {
			return create(ctx, &v1alpha1.FleetWorkload{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + backend},
				Spec: v1alpha1.FleetWorkloadSpec{
					Backend: backend, Placement: placement,
					Template: runtime.RawExtension{Raw: []byte(`{"apiVersion":"` + group + `/v1","kind":"Gadget","spec":{"size":1}}`)},
				},
			})
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
	}, SpecTimeout(10*time.Minute))
})

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
