package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

var aliases = Aliases{{"karmada": "m1", "ocm": "one"}, {"karmada": "m2", "ocm": "two", "edge": "zwei"}}

func TestAliases(t *testing.T) {
	for _, test := range []struct{ backend, name, want string }{
		{"ocm", "m1", "one"}, {"ocm", "one", "one"}, {"karmada", "zwei", "m2"}, {"edge", "m1", "m1"}, {"ocm", "m3", "m3"},
	} {
		if got := aliases.On(test.backend, test.name); got != test.want {
			t.Errorf("%s on %s is %s, not %s", test.name, test.backend, got, test.want)
		}
	}
	if err := aliases.Check("x"); err != nil {
		t.Error(err)
	}
	for want, wrong := range map[string]Aliases{
		"stands for another cluster": {{"a": "m1", "b": "m2"}, {"a": "m3", "b": "m1"}},
		"two backends or more":       {{"a": "m1"}},
	} {
		if err := wrong.Check("x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

func TestNamesAreWrittenAsTheBackendHasThem(t *testing.T) {
	m1 := func() *v1alpha1.ClusterSelector {
		return &v1alpha1.ClusterSelector{Names: []string{"m1", "m3"}, Exclude: []string{"m2"}}
	}
	fw := workload(deployment, func(fw *v1alpha1.FleetWorkload) {
		s := &fw.Spec
		s.Placement.Clusters, s.Placement.Paused = m1(), m1()
		s.Placement.Groups = []v1alpha1.ClusterGroup{{Name: "g", Clusters: m1()}}
		s.Placement.Division = &v1alpha1.Division{Weights: []v1alpha1.ClusterWeight{{Clusters: m1(), Weight: ptr(int32(1))}}}
		s.Overrides = []v1alpha1.Override{{Clusters: m1()}, {}}
		s.Migration = &v1alpha1.MigrationStrategy{Waves: []v1alpha1.MigrationWave{{Clusters: m1()}, {Size: ptr(intstr.FromInt32(1))}}}
	})
	there := aliases.Written(fw, "ocm")
	selectors := selectorsOf(&there.Spec)
	if len(selectors) != 6 {
		t.Errorf("%d selectors", len(selectors))
	}
	for _, s := range selectors {
		if s.Names[0] != "one" || s.Names[1] != "m3" || s.Exclude[0] != "two" {
			t.Errorf("%+v", s)
		}
	}
	if fw.Spec.Placement.Clusters.Names[0] != "m1" {
		t.Error("the original has changed")
	}
	if Aliases(nil).Written(fw, "ocm") != fw {
		t.Error("it was copied without need")
	}
}
