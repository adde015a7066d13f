//go:build e2e

package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// otherKindsRole is what an administrator adds on Karmada beside the kinds' description.
const otherKindsRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-other-kinds}
rules:
- {apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-other-kinds}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-other-kinds}
subjects: [{kind: ServiceAccount, name: fleetworkload, namespace: fleetworkload-system}]
`

// describedBudget is a kind of which the operator knows nothing but what its configuration says.
var describedBudget = map[string]any{
	"group": "policy", "version": "v1", "kind": "PodDisruptionBudget", "resource": "poddisruptionbudgets",
	"status": []any{
		map[string]any{"name": "observedGeneration", "path": "status.observedGeneration", "type": "long"},
		map[string]any{"name": "ready", "path": "status.currentHealthy", "type": "int"},
	},
	"feedback": []any{map[string]any{"name": "least", "path": "spec.minAvailable"}},
	"health": map[string]any{
		"suspended": "object.spec.minAvailable == 0",
		"healthy":   "status.observedGeneration > 0 && object.spec.minAvailable > 0",
	},
}

var _ = Describe("Kinds that are not built in", Label("kinds"), func() {
	It("are carried when they are described or allowed, with the same status on both backends", func(ctx SpecContext) {
		_, err := world.kubectlWith(ctx, otherKindsRole, lab.Karmada, "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_, err := world.kubectlWith(ctx, otherKindsRole, lab.Karmada, "delete", "-f", "-")
			Expect(err).NotTo(HaveOccurred())
		})
		o, namespace := ownOperator(ctx, "otherkinds", operatorOptions{
			kinds: []any{describedBudget}, allowedKinds: []any{map[string]any{"kind": "ConfigMap"}},
		})
		o.start(ctx)
		both := func(name, template string) []*v1alpha1.FleetWorkload {
			var all []*v1alpha1.FleetWorkload
			for _, b := range backends {
				all = append(all, create(ctx, &v1alpha1.FleetWorkload{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + b},
					Spec: v1alpha1.FleetWorkloadSpec{
						Backend: b, Template: runtime.RawExtension{Raw: []byte(template)},
						Placement: v1alpha1.Placement{Clusters: on(world.members[:2]...)},
					},
				}))
			}
			return all
		}
		same := func(pair []*v1alpha1.FleetWorkload, health v1alpha1.Health, message string) {
			GinkgoHelper()
			for _, fw := range pair {
				eventually(ctx, fw, readyTimeout, func(g Gomega) {
					g.Expect(isObserved(fw)).To(BeTrue())
					g.Expect(fw.Status.Clusters).To(HaveLen(2))
					for _, row := range fw.Status.Clusters {
						g.Expect(row.Health).To(Equal(health), row.Message)
						g.Expect(row.Message).To(ContainSubstring(message))
						g.Expect(row.Applied).To(Equal(metav1.ConditionTrue))
						g.Expect(row.Revision).To(Equal(fw.Status.Revision))
					}
				})
			}
			Eventually(func(g Gomega) {
				for _, fw := range pair {
					g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(fw), fw)).To(Succeed())
				}
				g.Expect(strings.ReplaceAll(comparable(pair[0]), pair[0].Name, pair[1].Name)).To(Equal(comparable(pair[1])))
			}).WithContext(ctx).Should(Succeed())
		}

		budgets := both("budget", `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"none"}}}}`)
		settings := both("settings", `{"apiVersion":"v1","kind":"ConfigMap","data":{"mode":"on"}}`)
		same(budgets, healthy, "")
		same(settings, healthy, "") // there is nothing that could run
		for _, fw := range budgets {
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
				fw.Spec.Template.Raw = []byte(strings.Replace(string(fw.Spec.Template.Raw), `"minAvailable":1`, `"minAvailable":0`, 1))
			})
		}
		same(budgets, suspended, "the rule for suspended holds")
		for _, fw := range append(budgets, settings...) {
			remove(ctx, fw)
		}
	})
})
