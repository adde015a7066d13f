package pass

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/tenancy"
)

// Clusters that a namespace may not use are left out of what is chosen; one that is named, decided or there holds everything as it is.
func TestClustersOutsideTheSets(t *testing.T) {
	for name, test := range map[string]struct {
		sets []string
		// change is to the FleetWorkload, whose placement chooses m1 and m2; of these m1 is in the set shop.
		names  []string
		runsOn string
		// chosen are the clusters that are gone on with; refused is part of what is said instead.
		chosen  string
		note    string
		refused string
	}{
		"without a word of sets":     {nil, nil, "", "m1 m2", "", ""},
		"one is outside":             {[]string{"shop"}, nil, "", "m1", "does without them: m2", ""},
		"one is outside and named":   {[]string{"shop"}, []string{"m1", "m2"}, "", "", "", `spec.placement "m2" is not allowed`},
		"one is outside and runs it": {[]string{"shop"}, nil, "m2", "", "", `spec.placement "m2" is not allowed`},
		"what is inside runs it":     {[]string{"shop"}, nil, "m1", "m1", "does without them: m2", ""},
		"all are outside":            {[]string{}, nil, "", "", "does without them: m1, m2", ""},
	} {
		d := moving(t)
		terms, err := tenancy.Tenancy{Rules: []tenancy.Rule{{Name: "r", ClusterSets: test.sets}}}.Of("shop", nil)
		if err != nil {
			t.Fatal(err)
		}
		fleet := backends.Fleet{Clusters: []backends.Cluster{{Name: "m1", Labels: map[string]string{tenancy.LabelClusterSet: "shop"}}, {Name: "m2"}}}
		d.terms, d.fleet, d.record.placement, d.observed = terms, &fleet, nil, &backends.Observation{}
		d.work.query.Selectors = []v1alpha1.ClusterSelector{{Names: test.names}}
		if test.runsOn != "" {
			d.observed.Clusters = []backends.ClusterObservation{{Cluster: test.runsOn}}
		}
		selection := backends.Selection{Settled: true, Clusters: []string{"m1", "m2"}}
		err = d.bound(&selection)
		var why *stalled
		if test.refused != "" {
			if !errors.As(err, &why) || why.reason != v1alpha1.ReasonNotAllowed || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || strings.Join(selection.Clusters, " ") != test.chosen {
			t.Errorf("%s: it goes on with %q, %v", name, selection.Clusters, err)
		}
		if noted := slices.ContainsFunc(d.travel.notes, func(n string) bool { return test.note != "" && strings.Contains(n, test.note) }); noted != (test.note != "") {
			t.Errorf("%s: it notes %q", name, d.travel.notes)
		}
	}
	// What was decided and is not there yet is as good as there.
	d := moving(t)
	terms, err := tenancy.Tenancy{Rules: []tenancy.Rule{{Name: "r", ClusterSets: []string{}}}}.Of("shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	d.terms, d.observed = terms, &backends.Observation{}
	d.record.placement = &v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{{Name: "m1"}}}
	selection := backends.Selection{Settled: true, Clusters: []string{"m1"}}
	if err := d.bound(&selection); err == nil {
		t.Error("what was decided is left out")
	}
}

// A pass sends nothing to them.
func TestAPassIsBoundToTheSets(t *testing.T) {
	for name, test := range map[string]struct {
		sets, names []string
		sent        string
		refused     bool
	}{
		"without a word of sets":     {nil, nil, "m1 m2", false},
		"with one":                   {[]string{"shop"}, nil, "m1", false},
		"with one, and one is named": {[]string{"shop"}, []string{"m1", "m2"}, "", true},
	} {
		d := moving(t)
		fw := d.in.FleetWorkload.DeepCopy()
		fw.Status, fw.Spec.Backend, fw.Spec.Placement.Clusters.Names = v1alpha1.FleetWorkloadStatus{}, "one", test.names
		fleet := *d.fleet
		fleet.Clusters = slices.Clone(fleet.Clusters)
		fleet.Clusters[0].Labels = map[string]string{tenancy.LabelClusterSet: "shop"}
		settings := d.in.Settings
		settings.Tenancy = tenancy.Tenancy{Rules: []tenancy.Rule{{Name: "r", ClusterSets: test.sets}}}
		d, problem := Rehearse(In{Settings: settings, FleetWorkload: fw, Now: d.now.Time, Rivals: &[]Rival{}, Namespace: &Namespace{}}, func(in *In, reads Reads) {
			for _, read := range reads.Sides {
				in.Sides[read.Backend] = &Side{Features: backends.Features{}, Fleet: &fleet, Observed: &backends.Observation{
					Selection: backends.Selection{Settled: true, Clusters: []string{"m1", "m2"}},
				}}
			}
		})
		var sent []string
		for _, order := range d.Orders {
			if order.Apply != nil {
				sent = names(order.Apply.Targets)
			}
		}
		if strings.Join(sent, " ") != test.sent || (problem != nil) != test.refused {
			t.Errorf("%s: it sends to %q, %v, %v", name, sent, d.err, problem)
		}
	}
}

// TestAMoveOutOfTheSetsIsAProblem: the same cluster may be in another set on the backend that it moves to.
func TestAMoveOutOfTheSetsIsAProblem(t *testing.T) {
	for name, test := range map[string]struct {
		sets   []string
		labels string
		want   bool
	}{
		"without a word of sets": {nil, "", false},
		"in the set there too":   {[]string{"shop"}, "shop", false},
		"in another set there":   {[]string{"shop"}, "lab", true},
		"in none there":          {[]string{"shop"}, "", true},
	} {
		d := beginningTo(t, "two")
		terms, err := tenancy.Tenancy{Rules: []tenancy.Rule{{Name: "r", ClusterSets: test.sets}}}.Of("shop", nil)
		if err != nil {
			t.Fatal(err)
		}
		d.terms, d.in.Preflight, d.begins = terms, &Preflight{}, &beginning{next: d.thoughtOf()}
		d.observed.Clusters = reports(d, "m1", "m2")
		for _, side := range d.in.Sides {
			side.Fleet = &backends.Fleet{Clusters: slices.Clone(side.Fleet.Clusters)}
		}
		d.in.Sides["two"].Fleet.Clusters[0].Labels = map[string]string{tenancy.LabelClusterSet: "shop"}
		d.in.Sides["two"].Fleet.Clusters[1].Labels = map[string]string{tenancy.LabelClusterSet: test.labels}
		if err := d.examine(); err != nil {
			t.Fatal(err)
		}
		told := slices.ContainsFunc(d.begins.next.Problems, func(p string) bool {
			return strings.HasPrefix(p, `backend "two": spec.placement "m2" is not allowed`)
		})
		if told != test.want {
			t.Errorf("%s: %q", name, d.begins.next.Problems)
		}
	}
}

// TestAHandOverOutOfTheSetsStandsStill: with its clock, whichever backend has the cluster in another set by now.
func TestAHandOverOutOfTheSetsStandsStill(t *testing.T) {
	for name, test := range map[string]struct {
		source, target string
		held           bool
	}{"as it began": {"shop", "shop", false}, "another set on the source": {"lab", "shop", true}, "another set on the target": {"shop", "lab", true}} {
		d := moving(t)
		d.work.kind = d.work.plan.Kind
		d.in.Namespace, d.in.Tenancy = &Namespace{}, tenancy.Tenancy{Rules: []tenancy.Rule{{Name: "r", ClusterSets: []string{"shop"}}}}
		in := func(set string) backends.Fleet {
			labels := map[string]string{tenancy.LabelClusterSet: set}
			return backends.Fleet{Clusters: []backends.Cluster{{Name: "m1", Labels: labels}, {Name: "m2", Labels: labels}}}
		}
		d.handOver.source.fleet, d.handOver.target.fleet = in(test.source), in(test.target)
		err := d.admit()
		if held := err != nil && strings.Contains(err.Error(), `"m1, m2" is not allowed`); held != test.held || (d.record.migration.FrozenSince != nil) != held {
			t.Errorf("%s: %v, frozen since %v", name, err, d.record.migration.FrozenSince)
		}
	}
}
