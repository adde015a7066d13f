package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// numbered gives clusters a number of their own by an override.
func numbered(n int32, names ...string) v1alpha1.Override {
	return v1alpha1.Override{Clusters: &v1alpha1.ClusterSelector{Names: names}, Replicas: &n}
}

// with makes several changes.
func with(change func(*v1alpha1.FleetWorkload), overrides ...v1alpha1.Override) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		if change != nil {
			change(fw)
		}
		fw.Spec.Overrides = append(fw.Spec.Overrides, overrides...)
	}
}

func duplicated(n int32) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = &n }
}

// TestClustersHaveTheirOwnNumbers: theirs instead of spec.replicas, or before the rest of it is divided.
func TestClustersHaveTheirOwnNumbers(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.FleetWorkload)
		chosen string
		pinned int32
		most   map[string]int32
		want   map[string]int32
		// refused are parts of the message.
		refused []string
	}{
		"duplicated": {change: with(duplicated(2), numbered(5, "m2")), want: map[string]int32{"m1": 2, "m2": 5, "m3": 2}},
		"duplicated, and all have theirs": {
			change: with(duplicated(2), numbered(5, "m1", "m2", "m3")), want: map[string]int32{"m1": 5, "m2": 5, "m3": 5}},
		"the later override wins": {
			change: with(duplicated(2), numbered(5, "m1", "m2"), numbered(1, "m2")), want: map[string]int32{"m1": 5, "m2": 1, "m3": 2}},
		"without spec.replicas":      {change: with(nil, numbered(3, "m1")), want: map[string]int32{"m1": 3, "m2": 1, "m3": 1}},
		"divided":                    {change: with(divided(9), numbered(5, "m2")), want: map[string]int32{"m1": 2, "m2": 5, "m3": 2}},
		"divided by weights":         {change: with(divided(9, weight(3, "m1"), weight(1)), numbered(1, "m2")), want: map[string]int32{"m1": 6, "m2": 1, "m3": 2}},
		"none keeps its object":      {change: with(divided(9), numbered(0, "m2")), want: map[string]int32{"m1": 5, "m2": 0, "m3": 4}},
		"nothing is left for others": {change: with(divided(5), numbered(5, "m2")), want: map[string]int32{"m2": 5}},
		"all of it":                  {change: with(divided(6), numbered(2, "m1", "m2", "m3")), want: map[string]int32{"m1": 2, "m2": 2, "m3": 2}},
		"not chosen":                 {change: with(divided(6), numbered(9, "m2")), chosen: "m1 m3", want: map[string]int32{"m1": 3, "m3": 3}},
		"beside what is paused":      {change: with(divided(9), numbered(4, "m2")), chosen: "m1 m2", pinned: 3, want: map[string]int32{"m1": 2, "m2": 4}},
		"paused ones keep too many":  {change: with(divided(9), numbered(4, "m2")), chosen: "m1 m2", pinned: 8, want: map[string]int32{"m2": 4}},
		"the rest is for one that is paused": {
			change: with(divided(9), numbered(4, "m2")), chosen: "m2", pinned: 2, want: map[string]int32{"m2": 4}},
		"about to be left": {
			change: with(divided(9), numbered(5, "m2")), most: map[string]int32{"m2": 1, "m3": 0}, want: map[string]int32{"m1": 4, "m2": 1, "m3": 4}},
		"about to be left, with more than that": {
			change: with(divided(9), numbered(5, "m2")), most: map[string]int32{"m2": 6}, want: map[string]int32{"m1": 2, "m2": 5, "m3": 2}},
		"more than there are": {
			change: with(divided(6), numbered(4, "m1"), numbered(3, "m2")),
			refused: []string{`spec.overrides[].replicas "7": the numbers of chosen clusters (m1 4, m2 3) add up to 7`, "more than spec.replicas",
				"set spec.replicas to 7 or more"}},
		"nobody for the rest": {
			change: with(divided(9), numbered(2, "m1", "m2", "m3")), refused: []string{`"6"`, "the remaining 3 of spec.replicas", "set spec.replicas to 6"}},
		"none at all": {change: with(divided(0), numbered(1, "m1")), refused: []string{"more than spec.replicas"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(workload(deployment, test.change), kinds)
			if err != nil {
				t.Fatal(err)
			}
			chosen := []string{"m1", "m2", "m3"}
			if test.chosen != "" {
				chosen = strings.Fields(test.chosen)
			}
			targets, err := p.Beside(test.pinned).NoMore(test.most).Targets(fleet, chosen, nil)
			var refusal *backends.Error
			for _, part := range test.refused {
				if !errors.As(err, &refusal) || refusal.Code != backends.CodeInvalidOverride || !strings.Contains(err.Error()+refusal.Remedy, part) {
					t.Errorf("got %v, want %q", err, part)
				}
			}
			if test.refused != nil {
				return
			}
			got := map[string]int32{}
			for _, target := range targets {
				got[target.Cluster] = *target.Replicas
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

// TestNumbersAreListedAsFarAsThereIsRoom: of how many clusters a message has none is said.
func TestNumbersAreListedAsFarAsThereIsRoom(t *testing.T) {
	for clusters, want := range map[int]string{10: "m0008 1, m0009 1)", 11: "m0009 1, and 1 more)"} {
		many, names := fleetOf(clusters)
		p, err := New(workload(deployment, with(divided(99), numbered(1, names...))), kinds)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Shares(many, names, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %d: %v", clusters, err)
		}
	}
}

// TestNumbersBesideRoom: what is left of the total is divided by the room of the other clusters.
func TestNumbersBesideRoom(t *testing.T) {
	p, err := New(workload(asking, with(func(fw *v1alpha1.FleetWorkload) {
		divided(6)(fw)
		fw.Spec.Placement.Division.Preference = v1alpha1.DivisionPreferenceAggregated
	}, numbered(2, "m1"))), kinds)
	if err != nil {
		t.Fatal(err)
	}
	roomy := backends.Fleet{Clusters: []backends.Cluster{
		{Name: "m1"}, {Name: "m2", Free: resources("6", "40Gi", "")}, {Name: "m3", Free: resources("60", "400Gi", "")},
	}}
	shares, err := p.Shares(roomy, []string{"m1", "m2", "m3"}, map[string]int32{"m1": 4, "m2": 1})
	if diff := cmp.Diff(map[string]int32{"m1": 2, "m2": 4, "m3": 0}, shares); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// TestAnOwnNumberIsAnEditOfTheDivision: it asks for no cluster to be left, and changes no manifest but by the number.
func TestAnOwnNumberIsAnEditOfTheDivision(t *testing.T) {
	type said struct{ clusters, division, revision string }
	asked := func(overrides ...v1alpha1.Override) said {
		p, err := New(workload(deployment, with(divided(6), overrides...)), kinds)
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.Asked()
		if err != nil {
			t.Fatal(err)
		}
		return said{a.Clusters, a.Division, p.Revision}
	}
	none, seen := asked(), map[string]bool{}
	for _, overrides := range [][]v1alpha1.Override{nil, {numbered(0, "m1")}, {numbered(1, "m1")}, {numbered(1, "m2")}, {numbered(1, "m1", "m2")}} {
		is := asked(overrides...)
		if is.clusters != none.clusters || is.revision != none.revision || seen[is.division] {
			t.Errorf("%v: %v", overrides, is)
		}
		seen[is.division] = true
	}
	if asked(numbered(1, "m1", "m2")) != asked(numbered(3, "m2"), numbered(1, "m1"), numbered(1, "m2")) {
		t.Error("the same numbers are not the same")
	}
	labels := numbered(1, "m1")
	labels.Labels = &v1alpha1.MetadataOverride{Set: map[string]string{"a": "b"}}
	bare := labels
	bare.Replicas = nil
	if with, without := asked(labels), asked(bare); with.revision != without.revision || with.revision == none.revision {
		t.Errorf("with labels: %v, and without the number %v", with, without)
	}
}

// TestNumbersAreThoseOfNames (law 9): a backend that calls a cluster otherwise gives it the same.
func TestNumbersAreThoseOfNames(t *testing.T) {
	fw := workload(deployment, with(duplicated(1), numbered(4, "m2")))
	p, err := New(fw, kinds)
	if err != nil {
		t.Fatal(err)
	}
	there, err := p.With(Aliases{{"b": "m2", "c": "two"}}.Written(fw, "c"))
	if err != nil {
		t.Fatal(err)
	}
	here, _ := p.Asked()
	asked, err := there.Asked()
	if err != nil || asked.Division != here.Division || there.Numbered("m2") || !there.Numbered("two") || there.Each("two") != 4 || there.Each("m1") != 1 {
		t.Errorf("%v %v, and here %v", err, asked, here)
	}
}

// TestNumbersOfAKindWithout (law 10): they would have no effect.
func TestNumbersOfAKindWithout(t *testing.T) {
	for _, template := range []string{sidecars, `{"apiVersion":"apps/v1","kind":"DaemonSet"}`} {
		_, err := New(workload(template, with(nil, v1alpha1.Override{}, numbered(3, "m1"))), kinds)
		var refusal *backends.Error
		if !errors.As(err, &refusal) || refusal.Field != "spec.overrides[1].replicas" || refusal.Value != "3" || refusal.Remedy == "" {
			t.Errorf("%v", err)
		}
	}
}
