//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

const (
	cloneSetCustomization  = "fleetworkload.clonesets.apps.kruise.io.v1alpha1"
	daemonSetCustomization = "fleetworkload.daemonsets.apps.kruise.io.v1alpha1"
	foreignCustomization   = "somebody-elses"
)

// advancedDaemonSet is a FleetWorkload of the kind whose interpreters these specs take apart.
func advancedDaemonSet(namespace string) *v1alpha1.FleetWorkload {
	return &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agent"},
		Spec: v1alpha1.FleetWorkloadSpec{
			Backend: "karmada", Placement: v1alpha1.Placement{Clusters: on(world.members[0])},
			Template: runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"DaemonSet","spec":{
				"selector":{"matchLabels":{"app":"agent"}},"template":{"metadata":{"labels":{"app":"agent"}},
				"spec":{"containers":[{"name":"web","image":"` + imageOld + `"}]}}}}`)},
		},
	}
}

func customization(name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("config.karmada.io/v1alpha1")
	obj.SetKind("ResourceInterpreterCustomization")
	obj.SetName(name)
	return obj
}

func scripts(ctx context.Context, name string) map[string]any {
	GinkgoHelper()
	obj := customization(name)
	Expect(client.IgnoreNotFound(world.clusters[lab.Karmada].Get(ctx, client.ObjectKeyFromObject(obj), obj))).To(Succeed())
	found, _, err := unstructured.NestedMap(obj.Object, "spec", "customizations")
	Expect(err).NotTo(HaveOccurred())
	return found
}

var _ = Describe("Interpreters on Karmada", Label("kinds", "karmada"), Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		sharedOperator(ctx)
		karmada := world.clusters[lab.Karmada]
		// No FleetWorkload has this kind now, so that the operator does not put it back.
		Expect(client.IgnoreNotFound(karmada.Delete(ctx, customization(daemonSetCustomization)))).To(Succeed())
		theirs := customization(foreignCustomization)
		theirs.Object["spec"] = map[string]any{
			"target": map[string]any{"apiVersion": "apps.kruise.io/v1alpha1", "kind": "DaemonSet"},
			"customizations": map[string]any{"healthInterpretation": map[string]any{
				"luaScript": "function InterpretHealth(observedObj)\n  return true\nend\n",
			}},
		}
		Eventually(func() error { return karmada.Create(ctx, theirs.DeepCopy()) }).WithContext(ctx).Should(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(karmada.Delete(ctx, customization(foreignCustomization)))).To(Succeed())
		})
	})

	It("leave alone what is somebody else's, say so, and take its place when it goes", func(ctx SpecContext) {
		fw := create(ctx, advancedDaemonSet(newNamespace(ctx, "interpreters")))
		becomesReady(ctx, fw)
		Expect(condition(fw, v1alpha1.ConditionHealthy).Message).To(ContainSubstring(
			"ResourceInterpreterCustomization " + foreignCustomization + ", which is not the operator's, decides InterpretHealth of DaemonSet"))
		Expect(scripts(ctx, daemonSetCustomization)).To(And(HaveKey("statusReflection"), Not(HaveKey("healthInterpretation"))))
		Expect(scripts(ctx, foreignCustomization)).To(HaveLen(1))

		Expect(world.clusters[lab.Karmada].Delete(ctx, customization(foreignCustomization))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(scripts(ctx, daemonSetCustomization)).To(HaveKey("healthInterpretation"))
		}).WithContext(ctx).Should(Succeed())
		eventually(ctx, fw, readyTimeout, func(g Gomega) {
			g.Expect(condition(fw, v1alpha1.ConditionHealthy).Message).NotTo(ContainSubstring(foreignCustomization))
			g.Expect(isReady(fw)).To(BeTrue())
		})
		remove(ctx, fw)
	})

	It("come back when somebody deletes them", func(ctx SpecContext) {
		fw := create(ctx, advancedDaemonSet(newNamespace(ctx, "interpreters")))
		becomesReady(ctx, fw)
		Expect(world.clusters[lab.Karmada].Delete(ctx, customization(daemonSetCustomization))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(scripts(ctx, daemonSetCustomization)).To(HaveKey("healthInterpretation"))
		}).WithContext(ctx).Should(Succeed())
		remove(ctx, fw)
	})
})

// Workloads are shown as they are without our interpreters too, as far as Karmada brings back what ours would.
var _ = Describe("Interpreters on Karmada, when asked for less", Label("kinds", "karmada"), func() {
	for mode, names := range map[string][]string{
		"None": {"deployment", "cloneset", "asts", "ads"},
		// Of UnitedDeployment Karmada's own is taken for none.
		"Missing": {"deployment", "cloneset", "uniteddeployment"},
	} {
		It("are not there: "+mode, func(ctx SpecContext) {
			o, namespace := ownOperator(ctx, "interpreters-"+strings.ToLower(mode), operatorOptions{interpreters: mode})
			// As the documentation says it.
			_, err := world.kubectl(ctx, lab.Karmada, "delete", "ric", "-l", "fleetworkload.io/managed-by=fleetworkload")
			Expect(err).NotTo(HaveOccurred())
			o.start(ctx)
			var lived []*livedOn
			for _, l := range lives() {
				if slices.Contains(names, l.name) {
					lived = append(lived, &livedOn{life: l, backend: "karmada", fw: l.fleetWorkload(namespace, "karmada")})
				}
			}
			Expect(lived).To(HaveLen(len(names)))
			for _, step := range []string{"create", "update", "partition", "release", "stuck"} {
				for _, r := range lived {
					r.take(ctx, step)
				}
				for _, r := range lived {
					if _, takes := r.steps[step]; takes {
						eventually(ctx, r.fw, 2*readyTimeout, func(g Gomega) { g.Expect(r.missing(step)).To(BeEmpty()) })
					}
				}
			}
			Expect(installed(ctx)).To(Equal(map[string][]string{
				"None":    {},
				"Missing": {cloneSetCustomization, "fleetworkload.uniteddeployments.apps.kruise.io.v1alpha1"},
			}[mode]))
			if mode == "Missing" {
				Expect(scripts(ctx, cloneSetCustomization)).To(And(HaveLen(1), HaveKey("retention")), "all that Karmada has none of for a CloneSet")
			}
		})
	}
})

// installed are the names of the operator's customizations.
func installed(ctx context.Context) []string {
	GinkgoHelper()
	ours, err := list(ctx, world.clusters[lab.Karmada], customization("").GroupVersionKind(),
		client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator})
	Expect(err).NotTo(HaveOccurred())
	names := []string{}
	for _, obj := range ours {
		names = append(names, obj.GetName())
	}
	return names
}

// Karmada's bindings are named after kind and name, without the API group. Two workloads that meet there must not fight:
// the later one is refused until the other one is gone. On OCM both run, if only their pods' names differ, which those of
// StatefulSets do not.
var _ = Describe("A set of Kubernetes and one of OpenKruise of the same name", Label("kinds"), func() {
	sets := func(namespace, backend, kind string) (native, advanced *v1alpha1.FleetWorkload) {
		GinkgoHelper()
		for _, l := range lives() {
			if l.kind == kind {
				fw := l.fleetWorkload(namespace, backend)
				l.merge(fw, change{set: `{template: {metadata: {labels: {app: ` + l.name + `}}}}`, image: "1"})
				fw.Spec.Template.Raw = withName(fw.Spec.Template.Raw, "same")
				if l.apiVersion == "apps/v1" {
					native = fw
				} else {
					advanced = fw
				}
			}
		}
		return native, advanced
	}

	It("run side by side on ocm", Label("ocm"), func(ctx SpecContext) {
		sharedOperator(ctx)
		native, advanced := sets(newNamespace(ctx, "same"), "ocm", "DaemonSet")
		becomesReady(ctx, create(ctx, native), create(ctx, advanced))
	})

	It("do not fight on karmada", Label("karmada"), func(ctx SpecContext) {
		sharedOperator(ctx)
		native, advanced := sets(newNamespace(ctx, "same"), "karmada", "StatefulSet")
		becomesReady(ctx, create(ctx, native))
		create(ctx, advanced)
		Expect(becomesStalled(ctx, advanced, v1alpha1.ReasonNameConflict)).To(And(
			ContainSubstring("apps/v1 StatefulSet same"), ContainSubstring("give this workload another name")))
		Consistently(func(g Gomega) {
			refresh(ctx, native)
			g.Expect(isReady(native)).To(BeTrue())
		}).WithContext(ctx).WithTimeout(hold).Should(Succeed())
		remove(ctx, native)
		becomesReady(ctx, advanced)
	})
})
