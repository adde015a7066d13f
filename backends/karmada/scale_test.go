package karmada

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// thousand is a workload on a thousand clusters with ten sets of overrides.
func thousand(b *testing.B) (backends.Desired, *rendered, currentState, backends.Fleet) {
	b.Helper()
	var shares []share
	var names []string
	for i := range 1000 {
		s := share{cluster: fmt.Sprintf("m%04d", i), replicas: int32(1 + i%7), greeting: fmt.Sprint("hola", i%10)}
		shares, names = append(shares, s), append(names, s.cluster)
	}
	d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, shares...)
	want, err := render(d, currentState{})
	if err != nil {
		b.Fatal(err)
	}
	live := currentState{template: want.template, policy: want.policy, override: want.override, binding: &workv1alpha2.ResourceBinding{}}
	for _, s := range shares {
		manifest := d.Targets[len(live.works)].Manifest
		raw, err := manifest.MarshalJSON()
		if err != nil {
			b.Fatal(err)
		}
		w := workOf(s.cluster, raw)
		live.works = append(live.works, w)
		live.binding.Spec.Clusters = append(live.binding.Spec.Clusters, workv1alpha2.TargetCluster{Name: s.cluster, Replicas: s.replicas})
	}
	return d, want, live, fleetOf(metav1.ConditionTrue, names...)
}

func BenchmarkRender1000(b *testing.B) {
	d, _, _, _ := thousand(b)
	for b.Loop() {
		if _, err := render(d, currentState{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecideNothing1000(b *testing.B) {
	d, want, live, _ := thousand(b)
	for b.Loop() {
		decide(d, want, live)
	}
}

func BenchmarkTranslate1000(b *testing.B) {
	d, _, live, fleet := thousand(b)
	for b.Loop() {
		translate(d.Query, live, fleet)
	}
}
