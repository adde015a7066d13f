package migration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	pointer "k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"web"}},` +
	`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"nginx:1"}]}}}}`

func fleet(clusters ...backends.Cluster) backends.Fleet { return backends.Fleet{Clusters: clusters} }

func cluster(name, identity, tier string) backends.Cluster {
	return backends.Cluster{
		Name: name, Identity: identity, Labels: map[string]string{"tier": tier}, Ready: metav1.ConditionTrue,
	}
}

// candidate runs on m1 and m2.
func candidate(t *testing.T, change func(*v1alpha1.FleetWorkloadSpec), target backends.Fleet) Candidate {
	t.Helper()
	fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	fw.Spec = v1alpha1.FleetWorkloadSpec{
		Backend: "b", Template: runtime.RawExtension{Raw: []byte(deployment)},
		Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}},
	}
	if change != nil {
		change(&fw.Spec)
	}
	kinds, err := interpreter.New()
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(fw, kinds)
	if err != nil {
		t.Fatal(err)
	}
	var aliases plan.Aliases
	if _, is := target.Get("zwei"); is {
		aliases = plan.Aliases{{"a": "m2", "b": "zwei"}}
	}
	there, err := p.With(aliases.Written(fw, "b"))
	if err != nil {
		t.Fatal(err)
	}
	source := fleet(cluster("m1", "1", "x"), cluster("m2", "2", "y"), cluster("m3", "3", "y"))
	targets, err := p.Targets(source, []string{"m1", "m2"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	features := backends.Features{backends.FeatureModes: true}
	return Candidate{
		Source: Side{Name: "a", Features: features, Fleet: source}, Target: Side{Name: "b", Features: features, Fleet: target},
		Plan: p, There: there, Aliases: aliases, Targets: targets, Strategy: fw.Spec.Migration,
	}
}

// TestTwoOfOneTypeLeaveTheSameMarks: whose an object is could not be told on a member.
func TestTwoOfOneTypeLeaveTheSameMarks(t *testing.T) {
	for name, test := range map[string]struct {
		source, target backends.Feature
		problem        string
	}{
		"two Karmadas":  {backends.FeatureKarmadaMarks, backends.FeatureKarmadaMarks, "backends a and b are both of type Karmada"},
		"two hubs":      {backends.FeatureOCMMarks, backends.FeatureOCMMarks, "backends a and b are both of type OCM"},
		"one of each":   {backends.FeatureKarmadaMarks, backends.FeatureOCMMarks, ""},
		"nobody's mark": {"", "", ""},
	} {
		c := candidate(t, nil, fleet(cluster("m1", "1", "x"), cluster("m2", "2", "y")))
		c.Source.Features = backends.Features{backends.FeatureModes: true, test.source: true}
		c.Target.Features = backends.Features{backends.FeatureModes: true, test.target: true}
		_, problems := c.Validate()
		if got := strings.Join(problems, "; "); !strings.Contains(got, test.problem) || (got == "") != (test.problem == "") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestValidate(t *testing.T) {
	lost := cluster("m2", "2", "y")
	lost.Ready = metav1.ConditionFalse
	for name, test := range map[string]struct {
		change   func(*v1alpha1.FleetWorkloadSpec)
		target   backends.Fleet
		names    string
		problems []string
	}{
		"the same names":      {nil, fleet(cluster("m1", "1", "x"), cluster("m2", "2", "y")), "m1 m2", nil},
		"no identities":       {nil, fleet(cluster("m1", "", "x"), cluster("m2", "", "y")), "m1 m2", nil},
		"names that differ":   {nil, fleet(cluster("one", "1", "x"), cluster("two", "2", "y")), "one two", nil},
		"names changed round": {nil, fleet(cluster("m2", "1", "x"), cluster("m1", "2", "y")), "m2 m1", nil},
		"one missing":         {nil, fleet(cluster("m1", "1", "x")), "m1", []string{"cluster m2 is not known to backend b"}},
		"another one of its name": {
			nil, fleet(cluster("m1", "1", "x"), cluster("m2", "9", "y")), "m1", []string{"cluster m2 is not known to backend b"},
		},
		"one not ready": {nil, fleet(cluster("m1", "1", "x"), lost), "m1 m2", []string{"cluster m2 is not ready on backend b"}},
		"all at once": {
			nil, fleet(lost), "m2", []string{"cluster m1 is not known to backend b", "cluster m2 is not ready on backend b"},
		},
		"the placement names it": {
			func(s *v1alpha1.FleetWorkloadSpec) { s.Placement.Clusters.Names = []string{"m1", "m2"} },
			fleet(cluster("m1", "1", "x"), cluster("two", "2", "y")), "m1 two",
			[]string{"spec.placement does not choose cluster two", "names clusters that backend b does not know: m2"},
		},
		"it has an alias": {
			func(s *v1alpha1.FleetWorkloadSpec) {
				s.Placement.Clusters.Names = []string{"m1", "m2"}
				s.Overrides = []v1alpha1.Override{{
					Clusters: &v1alpha1.ClusterSelector{Names: []string{"m2"}},
					Labels:   &v1alpha1.MetadataOverride{Set: map[string]string{"a": "b"}},
				}}
			},
			fleet(cluster("m1", "", "x"), cluster("zwei", "", "y")), "m1 zwei", nil,
		},
		"its alias is another cluster": {nil, fleet(cluster("m1", "1", "x"), cluster("zwei", "9", "y")), "m1", []string{"cluster m2 is not known"}},
		"an override by a label": {
			func(s *v1alpha1.FleetWorkloadSpec) {
				s.Overrides = []v1alpha1.Override{{
					Clusters: &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "y"}}},
					Labels:   &v1alpha1.MetadataOverride{Set: map[string]string{"a": "b"}},
				}}
			},
			fleet(cluster("m1", "1", "x"), cluster("m2", "2", "x")), "m1 m2",
			[]string{"spec.overrides make another manifest of cluster m2 on backend b"},
		},
		"other weights there, while replicas stay": {
			func(s *v1alpha1.FleetWorkloadSpec) {
				tier := func(tier string, weight int32) v1alpha1.ClusterWeight {
					return v1alpha1.ClusterWeight{Weight: &weight, Clusters: &v1alpha1.ClusterSelector{
						Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}},
					}}
				}
				s.Replicas = pointer.To(int32(8))
				s.Placement.Division = &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Weights: []v1alpha1.ClusterWeight{tier("x", 3), tier("y", 1)}}
			},
			fleet(cluster("m1", "1", "y"), cluster("m2", "2", "x")), "m1 m2", nil,
		},
		"a kind without replicas": {
			func(s *v1alpha1.FleetWorkloadSpec) {
				s.Template.Raw = []byte(strings.Replace(deployment, "Deployment", "DaemonSet", 1))
			},
			fleet(cluster("m1", "1", "x"), cluster("m2", "2", "y")), "m1 m2", nil,
		},
		"an override by a label, on the first one": {
			func(s *v1alpha1.FleetWorkloadSpec) {
				s.Overrides = []v1alpha1.Override{{
					Clusters: &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "x"}}},
					Labels:   &v1alpha1.MetadataOverride{Set: map[string]string{"a": "b"}},
				}}
			},
			fleet(cluster("m1", "1", "y"), cluster("m2", "2", "y")), "m1 m2",
			[]string{"spec.overrides make another manifest of cluster m1 on backend b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			clusters, problems := candidate(t, test.change, test.target).Validate()
			var names []string
			for _, c := range clusters {
				names = append(names, NameOnTarget(c))
			}
			if got := strings.Join(names, " "); got != test.names {
				t.Errorf("clusters are %s, want %s", got, test.names)
			}
			if len(problems) != len(test.problems) {
				t.Fatalf("problems are %q, want %q", problems, test.problems)
			}
			for i, want := range test.problems {
				if !strings.Contains(problems[i], want) {
					t.Errorf("problem %q, want %q", problems[i], want)
				}
			}
		})
	}
}

func TestWavesTakeClustersInOrder(t *testing.T) {
	of := func(waves ...v1alpha1.MigrationWave) *v1alpha1.MigrationStrategy {
		return &v1alpha1.MigrationStrategy{Waves: waves}
	}
	named := func(names ...string) v1alpha1.MigrationWave {
		return v1alpha1.MigrationWave{Clusters: &v1alpha1.ClusterSelector{Names: names}}
	}
	for want, strategy := range map[string]*v1alpha1.MigrationStrategy{
		"1 1 1": nil,
		"1 2 2": of(v1alpha1.MigrationWave{Size: pointer.To(intstr.FromInt32(1))}),
		"1 1 2": of(v1alpha1.MigrationWave{Size: pointer.To(intstr.FromString("50%"))}),
		"2 1 3": of(named("m2"), v1alpha1.MigrationWave{Size: pointer.To(intstr.FromInt32(1))}),
		"2 2 1": of(named("m3"), v1alpha1.MigrationWave{Size: pointer.To(intstr.FromString("100%"))}),
	} {
		c := Candidate{
			Source:   Side{Fleet: fleet(cluster("m1", "", ""), cluster("m2", "", ""), cluster("m3", "", ""))},
			Strategy: strategy,
		}
		clusters := []v1alpha1.MigrationClusterStatus{{Name: "m1"}, {Name: "m2"}, {Name: "m3"}}
		c.assignWaves(clusters)
		var got []string
		for _, cluster := range clusters {
			got = append(got, fmt.Sprint(*cluster.Wave))
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("waves are %v, want %s", got, want)
		}
	}
}

func TestAWaveIsFoundByItsNumber(t *testing.T) {
	waves := []Wave{{Soak: 1}, {Soak: 2}, {Soak: 3}}
	for number, want := range map[int32]time.Duration{1: 1, 2: 2, 3: 3, 0: 1, 4: 3} {
		if got := WaveOf(waves, number).Soak; got != want {
			t.Errorf("wave %d is the one with soak %d, want %d", number, got, want)
		}
	}
}
