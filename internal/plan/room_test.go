package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func resources(cpu, memory, pods string) corev1.ResourceList {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	if pods != "" {
		list[corev1.ResourcePods] = resource.MustParse(pods)
	}
	return list
}

const asking = `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{` +
	`"initContainers":[{"name":"init","resources":{"requests":{"memory":"2Gi"}}}],"containers":[` +
	`{"name":"web","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}},{"name":"log","resources":{"requests":{"cpu":"100m"}}}]}}}}`

func TestDivisionByRoom(t *testing.T) {
	const aggregated, capacity = v1alpha1.DivisionPreferenceAggregated, v1alpha1.DivisionPreferenceAvailableCapacity
	for name, c := range map[string]struct {
		preference v1alpha1.DivisionPreference
		template   string
		total      int32
		free       map[string]corev1.ResourceList
		current    map[string]int32
		want       map[string]int32
	}{
		// A pod takes 600m and, for its init container, 2Gi: room for 10 and 5.
		"in proportion to what is free": {capacity, asking, 6,
			map[string]corev1.ResourceList{"m1": resources("6", "40Gi", ""), "m2": resources("6", "10Gi", ""), "m3": resources("0", "10Gi", "")},
			nil, map[string]int32{"m1": 4, "m2": 2}},
		"all on the one with most": {aggregated, asking, 6,
			map[string]corev1.ResourceList{"m1": resources("6", "40Gi", ""), "m2": resources("6", "10Gi", ""), "m3": resources("6", "10Gi", "")},
			nil, map[string]int32{"m1": 6}},
		"pods are counted too": {aggregated, asking, 6,
			map[string]corev1.ResourceList{"m1": resources("6", "40Gi", "4"), "m2": resources("6", "10Gi", "3"), "m3": resources("0", "0", "")},
			nil, map[string]int32{"m1": 4, "m2": 2}},
		"who asks for nothing fits anywhere": {aggregated, deployment, 6,
			map[string]corev1.ResourceList{"m1": resources("0", "0", ""), "m2": resources("0", "0", "9"), "m3": resources("0", "0", "8")},
			nil, map[string]int32{"m1": 6}},
		"what runs stays": {capacity, asking, 6,
			map[string]corev1.ResourceList{"m1": resources("60", "400Gi", ""), "m2": resources("0", "0", ""), "m3": resources("0", "0", "")},
			map[string]int32{"m2": 4, "m3": 2}, map[string]int32{"m2": 4, "m3": 2}},
		"more goes where there is room": {capacity, asking, 8,
			map[string]corev1.ResourceList{"m1": resources("60", "400Gi", ""), "m2": resources("0", "0", ""), "m3": resources("0", "0", "")},
			map[string]int32{"m2": 4, "m3": 2}, map[string]int32{"m1": 2, "m2": 4, "m3": 2}},
		"back from zero to where the object is": {aggregated, asking, 2,
			map[string]corev1.ResourceList{"m1": resources("60", "400Gi", ""), "m2": resources("6", "40Gi", ""), "m3": resources("0", "0", "")},
			map[string]int32{"m2": 0}, map[string]int32{"m2": 2}},
		"unless it has no room": {aggregated, asking, 12,
			map[string]corev1.ResourceList{"m1": resources("60", "400Gi", ""), "m2": resources("6", "40Gi", ""), "m3": resources("0", "0", "")},
			map[string]int32{"m2": 0}, map[string]int32{"m1": 12}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := targetsByRoom(t, c.template, c.preference, c.total, c.free, c.current)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func targetsByRoom(t *testing.T, template string, preference v1alpha1.DivisionPreference, total int32,
	free map[string]corev1.ResourceList, current map[string]int32,
) (map[string]int32, error) {
	t.Helper()
	p, err := New(workload(template, func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Replicas = &total
		fw.Spec.Placement.Division = &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Preference: preference}
	}), kinds)
	if err != nil {
		t.Fatal(err)
	}
	var clusters []backends.Cluster
	for _, c := range fleet.Clusters {
		c.Free = free[c.Name]
		clusters = append(clusters, c)
	}
	targets, err := p.Targets(backends.Fleet{Clusters: clusters}, []string{"m1", "m2", "m3"}, current)
	got := map[string]int32{}
	for _, target := range targets {
		got[target.Cluster] = *target.Replicas
	}
	return got, err
}

func TestNoRoom(t *testing.T) {
	small := map[string]corev1.ResourceList{"m1": resources("6", "40Gi", ""), "m2": resources("0", "0", ""), "m3": resources("0", "0", "")}
	_, err := targetsByRoom(t, asking, v1alpha1.DivisionPreferenceAggregated, 11, small, nil)
	if backends.CodeOf(err) != backends.CodeNoCapacity || !strings.Contains(err.Error(), "11 more replicas are wanted, and the 3 chosen clusters have room for 10") {
		t.Error(err)
	}
	p, err := New(workload(asking, nil), kinds)
	if err != nil {
		t.Fatal(err)
	}
	if room, err := p.room(backends.Cluster{Allocatable: resources("6", "40Gi", "")}, 3); err != nil || room != 7 {
		t.Errorf("of 10 pods of which 3 run there is room for %d, %v", room, err)
	}
	delete(small, "m2")
	_, err = targetsByRoom(t, asking, v1alpha1.DivisionPreferenceAggregated, 1, small, nil)
	if backends.CodeOf(err) != backends.CodeNoCapacity || !strings.Contains(err.Error(), `does not know what is free on cluster "m2"`) {
		t.Error(err)
	}
}

// TestByRoom: only where replicas are divided, and not by weights.
func TestByRoom(t *testing.T) {
	prefers := func(preference v1alpha1.DivisionPreference) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) {
			divided(6)(fw)
			fw.Spec.Placement.Division.Preference = preference
		}
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.FleetWorkload)
		want   bool
	}{
		"duplicated":         {duplicated(6), false},
		"by weights":         {prefers(v1alpha1.DivisionPreferenceWeighted), false},
		"by what is free":    {prefers(v1alpha1.DivisionPreferenceAvailableCapacity), true},
		"on few, if they do": {prefers(v1alpha1.DivisionPreferenceAggregated), true},
	} {
		p, err := New(workload(asking, test.change), kinds)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.ByRoom(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
		if p.Replicas = nil; p.ByRoom() {
			t.Errorf("%s: without replicas, too", name)
		}
	}
}
