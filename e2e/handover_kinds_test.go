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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// described are lives of kinds that are not built in.
func described() []life {
	return []life{
		{name: "budget", apiVersion: "policy/v1", kind: "PodDisruptionBudget", spec: `{minAvailable: 1, selector: {matchLabels: {app: none}}}`,
			steps: map[string]change{"create": {health: healthy, counts: "-/-/0/-/-"}}},
	}
}

// firstStep is the step that a life begins with.
func (l life) firstStep() string {
	for _, name := range stepNames {
		if l.starts(name) {
			return name
		}
	}
	return ""
}

// Every kind changes hands as a Deployment does. A sample has half of the kinds, each in one direction.
var _ = Describe("A hand-over of every kind", Label("handover", "kinds", "karmada", "ocm", "sweep"), long, func() {
	It("changes nothing on members, either way", func(ctx SpecContext) {
		_, err := world.kubectlWith(ctx, otherKindsRole, lab.Karmada, "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_, err := world.kubectlWith(ctx, otherKindsRole, lab.Karmada, "delete", "-f", "-")
			Expect(err).NotTo(HaveOccurred())
		})
		o, _ := ownOperator(ctx, "kinds", operatorOptions{everywhere: true, kinds: []any{describedBudget}})
		o.start(ctx)
		var convoys []*convoy
		ways := deal("ways", deal("kinds", append(lives(), described()...))[0])
		for i, b := range backends {
			c := &convoy{backend: b, namespace: newNamespace(ctx, "kinds")}
			for _, l := range ways[i] {
				c.all = append(c.all, &livedOn{life: l, backend: b, fw: l.fleetWorkload(c.namespace, b)})
			}
			convoys = append(convoys, c)
		}
		all := named(convoys)
		for _, step := range []string{"create", "update"} {
			// What gets a sidecar comes after what gives it.
			begin := slices.DeleteFunc(slices.Clone(all), func(r *livedOn) bool { return !r.starts(step) })
			for _, r := range begin {
				r.take(ctx, step)
			}
			are(ctx, begin, func(*livedOn) string { return "" })
		}
		for _, r := range named(convoys, "sidecarset") {
			r.steps["create"] = change{health: healthy, counts: "2/2/2/2/-"}
		}
		are(ctx, all, func(*livedOn) string { return "" })
		for _, c := range convoys {
			c.setOut(ctx)
		}
		// One convoy goes each way; what comes back is a scenario of its own.
		began := time.Now()
		turn(ctx, all...)
		are(ctx, all, (*livedOn).notArrived)
		traceless(ctx, all)
		AddReportEntry("arrived", fmt.Sprintf("%d workloads in %s", len(all), time.Since(began).Round(time.Millisecond)))
		noBindings(ctx, convoys)
		for _, c := range convoys {
			c.unharmed(ctx)
		}
	}, SpecTimeout(20*time.Minute))
})

// deal deals kinds out to two halves. One that gets something from another kind goes with it, and both are in both.
func deal(name string, all []life) [2][]life {
	isPair := func(l life) bool { return l.name == "sidecarset" || l.name == "injected" }
	dealt := halves(name, slices.DeleteFunc(slices.Clone(all), isPair))
	together := slices.DeleteFunc(slices.Clone(all), func(l life) bool { return !isPair(l) })
	for i := range dealt {
		dealt[i] = slices.Concat(dealt[i], together)
	}
	return dealt
}

// are waits until all are as their first step wants it, and lacks nothing else.
func are(ctx context.Context, all []*livedOn, lacks func(*livedOn) string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var lacking []string
		for _, r := range all {
			g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(r.fw), r.fw)).To(Succeed())
			problem := lacks(r)
			if problem == "" {
				problem = r.missing(r.firstStep())
			}
			if problem != "" {
				lacking = append(lacking, fmt.Sprintf("%s from %s: %s", r.name, r.backend, problem))
			}
		}
		g.Expect(strings.Join(lacking, "\n")).To(BeEmpty())
	}).WithContext(ctx).WithTimeout(4 * readyTimeout).WithPolling(time.Second).Should(Succeed())
}

// notArrived says that a workload is not on the backend that its spec names; it is empty when it is.
func (r *livedOn) notArrived() string {
	m := r.fw.Status.Migration
	if r.fw.Status.Backend == r.fw.Spec.Backend && m != nil && m.Phase == "" && m.History[0].To == r.fw.Spec.Backend {
		return ""
	}
	return "not there yet\n" + describe(r.fw)
}

// noBindings wants Karmada to have no binding of a cluster-scoped workload that is not on it: they have no label of ours.
func noBindings(ctx context.Context, convoys []*convoy) {
	GinkgoHelper()
	bindings, err := list(ctx, controlOf("karmada"), clusterBindingGVK)
	Expect(err).NotTo(HaveOccurred())
	for _, c := range convoys {
		if c.all[0].fw.Status.Backend == "karmada" {
			continue
		}
		for _, b := range bindings {
			name, _, _ := unstructured.NestedString(b.Object, "spec", "resource", "name")
			Expect(name).NotTo(ContainSubstring(c.namespace))
		}
	}
}
