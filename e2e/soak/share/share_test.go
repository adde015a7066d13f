// SPDX-License-Identifier: Apache-2.0

package share

import (
	"maps"
	"slices"
	"testing"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

var web = history.Key{Namespace: "shop", Name: "web"}

// facts are three clusters; those named have the label of web.
func facts(labelled ...string) history.Facts {
	f := history.Facts{}
	for _, name := range []string{"a", "b", "c"} {
		f[name] = history.Cluster{Joined: true, Labels: map[history.Key]bool{web: slices.Contains(labelled, name)}}
	}
	return f
}

func TestDivide(t *testing.T) {
	for name, c := range map[string]struct {
		total   int
		weights map[string]int
		want    Shares
	}{
		"evenly":                               {9, map[string]int{"a": 1, "b": 1, "c": 1}, Shares{"a": 3, "b": 3, "c": 3}},
		"the remainder to smaller names":       {8, map[string]int{"a": 1, "b": 1, "c": 1}, Shares{"a": 3, "b": 3, "c": 2}},
		"in proportion":                        {12, map[string]int{"a": 2, "b": 1}, Shares{"a": 8, "b": 4}},
		"one at least, as long as there are":   {10, map[string]int{"a": 98, "b": 1, "c": 1}, Shares{"a": 8, "b": 1, "c": 1}},
		"the heavier first when there are few": {2, map[string]int{"a": 1, "b": 5, "c": 3}, Shares{"b": 1, "c": 1}},
		"nothing without a weight":             {5, map[string]int{"a": 1, "b": 0}, Shares{"a": 5}},
		"fewer replicas win a tie":             {3, map[string]int{"a": 3, "b": 1}, Shares{"a": 2, "b": 1}},
		"nobody to give to":                    {3, nil, Shares{}},
		"nothing to give":                      {0, map[string]int{"a": 1}, Shares{}},
	} {
		if got := Divide(c.total, c.weights); !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// One replica more never takes one from a cluster: that is why a suspended scale-up removes nothing.
func TestDivideIsMonotone(t *testing.T) {
	weights := map[string]int{"a": 7, "b": 3, "c": 1, "d": 1}
	before := Shares{}
	for total := range 60 {
		after := Divide(total, weights)
		if gone, _ := Removed(before, after); gone != 0 {
			t.Fatalf("%d replicas: %v after %v", total, after, before)
		}
		before = after
	}
}

func TestChosen(t *testing.T) {
	left := facts("a", "c")
	left["c"] = history.Cluster{Labels: map[history.Key]bool{web: true}}
	for name, c := range map[string]struct {
		selection history.Selection
		facts     history.Facts
		want      []string
	}{
		"all":             {history.Selection{}, facts(), []string{"a", "b", "c"}},
		"named":           {history.Selection{Names: []string{"c", "a"}}, facts(), []string{"a", "c"}},
		"excluded":        {history.Selection{Exclude: []string{"b"}}, facts(), []string{"a", "c"}},
		"by label":        {history.Selection{ByLabel: true}, facts("b"), []string{"b"}},
		"not joined":      {history.Selection{}, left, []string{"a", "b"}},
		"label, but left": {history.Selection{ByLabel: true}, left, []string{"a"}},
	} {
		if got := Chosen(web, c.selection, c.facts); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestCases(t *testing.T) {
	lost := facts()
	lost["b"] = history.Cluster{Joined: true, Lost: true}
	lost["c"] = history.Cluster{Joined: true, Tainted: true}
	runsOn := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	spec := history.Spec{Replicas: 6, Divided: true}
	if got := Cases(web, spec, lost, lost, runsOn("b", "c")); len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("clusters keep what they run: %v", got)
	}
	got := Cases(web, spec, lost, lost, runsOn("c"))
	if len(got) != 2 || !slices.Equal(got[0], []string{"b"}) || len(got[1]) != 0 {
		t.Errorf("one that runs nothing may be left out: %v", got)
	}
	if got := Of(web, spec, Without(lost, got[0])); !maps.Equal(got, Shares{"a": 3, "c": 3}) {
		t.Errorf("without it: %v", got)
	}
	if got := Cases(web, spec, lost, lost, runsOn()); len(got) != 4 {
		t.Errorf("two may be left out: %v", got)
	}
	back := facts("a", "b", "c")
	back["b"] = history.Cluster{Joined: true}
	for name, got := range map[string][][]string{"before": Cases(web, spec, lost, back, runsOn("c")), "after": Cases(web, spec, back, lost, runsOn("c"))} {
		if len(got) != 2 || !slices.Equal(got[0], []string{"b"}) || len(got[1]) != 0 {
			t.Errorf("one that could not be had %s may be left out: %v", name, got)
		}
	}
}

func TestAsked(t *testing.T) {
	spec := history.Spec{Replicas: 6, Divided: true, Clusters: history.Selection{ByLabel: true}}
	if got, held := Asked(web, spec, facts("a", "b", "c"), facts("a", "b")); held || !maps.Equal(got, Shares{"a": 3, "b": 3}) {
		t.Errorf("a third may go: %v %v", got, held)
	}
	if got, held := Asked(web, spec, facts("a", "b", "c"), facts("a")); !held || !maps.Equal(got, Shares{"a": 2, "b": 2, "c": 2}) {
		t.Errorf("two thirds may not: %v %v", got, held)
	}
}

func TestHeld(t *testing.T) {
	for name, c := range map[string]struct {
		before, after Shares
		want          bool
	}{
		"half may go":              {Shares{"a": 3, "b": 3}, Shares{"a": 3}, false},
		"more than half may not":   {Shares{"a": 1, "b": 1, "c": 4}, Shares{"a": 3, "b": 3}, true},
		"shares that fall count":   {Shares{"a": 6}, Shares{"a": 2, "b": 2, "c": 2}, true},
		"nobody is left":           {Shares{"a": 1}, Shares{}, true},
		"there was nothing":        {Shares{}, Shares{}, false},
		"more is not held":         {Shares{"a": 1}, Shares{"a": 4}, false},
		"a walk is measured whole": {Shares{"a": 2, "b": 2, "c": 2}, Shares{"a": 6}, true},
	} {
		if got := Held(c.before, c.after); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestBase(t *testing.T) {
	spec := history.Spec{Replicas: 6, Divided: true, Clusters: history.Selection{ByLabel: true}}
	other, more, image, weights := spec, spec, spec, spec
	weights.Weights = map[string]int{"a": 2, "b": 1, "c": 1}
	other.Clusters.Exclude, more.Replicas, image.Pods.Image = []string{"d"}, 9, "2.0"
	all, two, one := facts("a", "b", "c"), facts("a", "b"), facts("a")
	for name, c := range map[string]struct {
		after     history.Spec
		now, want history.Facts
	}{
		"an edit of clusters counts from now on":      {other, two, two},
		"another number excuses no cluster":           {more, two, all},
		"nor do other weights":                        {weights, two, all},
		"another image excuses nothing":               {image, two, all},
		"an edit does not let go what is held":        {other, one, all},
		"nor does an edit of anything else meanwhile": {image, one, all},
	} {
		got := Base(web, spec, c.after, all, c.now)
		if !slices.Equal(Chosen(web, spec.Clusters, got), Chosen(web, spec.Clusters, c.want)) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// Other weights divide over the clusters that have joined, too.
func TestBaseAfterAJoin(t *testing.T) {
	spec := history.Spec{Replicas: 7, Divided: true, Clusters: history.Selection{ByLabel: true}, Weights: map[string]int{"a": 1, "b": 5}}
	after := spec
	after.Weights = map[string]int{"a": 5, "b": 5}
	got := Base(web, spec, after, facts("b"), facts("a", "b"))
	if chosen := Chosen(web, spec.Clusters, got); !slices.Equal(chosen, []string{"a", "b"}) {
		t.Errorf("measured by %v", chosen)
	}
}
