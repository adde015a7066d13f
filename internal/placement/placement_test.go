package placement_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/placement"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// fleet is six clusters in three regions, five zones and two providers.
func fleet() []backends.Cluster {
	at := func(name, provider, region, zone string) backends.Cluster {
		return backends.Cluster{
			Name: name, Ready: metav1.ConditionTrue, ReadySince: now.Add(-time.Hour), Labels: map[string]string{"tier": name[:1]},
			Attributes: map[v1alpha1.Attribute]string{
				v1alpha1.AttributeProvider: provider, v1alpha1.AttributeRegion: region, v1alpha1.AttributeZone: zone,
			},
		}
	}
	return []backends.Cluster{
		at("a1", "aws", "eu", "1"), at("a2", "aws", "eu", "2"), at("a3", "gcp", "eu", "1"),
		at("b1", "aws", "us", "1"), at("b2", "gcp", "us", "2"), at("c1", "gcp", "asia", "1"),
	}
}

type world struct {
	spec string
	// running, lost, lately lost, and tainted clusters by name, separated by spaces.
	running, lost, lately, tainted, evicted, unsupported string
	// undated are lost, nobody knows since when; missing are chosen though they do not match any more.
	undated, missing string
	// numbered have a number of their own.
	numbered   string
	group      string
	duplicated bool
}

func (w world) choose(t *testing.T) (placement.Choice, error) {
	t.Helper()
	var p v1alpha1.Placement
	if err := yaml.UnmarshalStrict([]byte(w.spec), &p); err != nil {
		t.Fatal(err)
	}
	s := placement.Situation{Running: map[string]bool{}, Group: w.group, Divided: !w.duplicated, MaxLostPercent: 50, Now: now}
	for _, name := range strings.Fields(w.running) {
		s.Running[name] = true
	}
	for _, c := range fleet() {
		in := func(list string) bool { return slices.Contains(strings.Fields(list), c.Name) }
		switch {
		case in(w.lost):
			c.Ready, c.ReadySince = metav1.ConditionUnknown, now.Add(-301*time.Second)
		case in(w.undated):
			c.Ready, c.ReadySince = metav1.ConditionFalse, time.Time{}
		case in(w.lately):
			c.Ready, c.ReadySince = metav1.ConditionFalse, now.Add(-100*time.Second)
		case in(w.tainted):
			c.Taints = []backends.Taint{{Key: "dedicated", Value: "db", Effect: backends.TaintNoSchedule}}
		case in(w.evicted):
			c.Taints = []backends.Taint{{Key: "broken", Effect: backends.TaintNoExecute, Added: now.Add(-100 * time.Second)}}
		}
		if in(w.unsupported) {
			s.Chosen.Unsupported = map[string]string{c.Name: "without the kind"}
		}
		s.Fleet.Clusters = append(s.Fleet.Clusters, c)
	}
	var err error
	if s.Chosen.Clusters, err = s.Fleet.Select(placement.Selectors(p)...); err != nil {
		t.Fatal(err)
	}
	pauses, err := placement.NewPauses(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Fleet.Clusters {
		if pauses.Has(c) {
			s.Paused = append(s.Paused, c.Name)
			if s.Running[c.Name] {
				s.Pinned = append(s.Pinned, c.Name)
			}
		}
	}
	s.Numbered = strings.Fields(w.numbered)
	s.Missing = strings.Fields(w.missing)
	s.Chosen.Clusters = append(s.Chosen.Clusters, s.Missing...)
	return placement.Choose(p, s)
}

func TestChoose(t *testing.T) {
	const failover, two = `clusters: {}, failover: {}`, `clusters: {}, numberOfClusters: 2`
	groups := `groups: [{name: eu, clusters: {names: [a1, a2]}}, {name: us, clusters: {names: [b1, b2]}}]`
	for name, c := range map[string]struct {
		world
		want string
		// says is in the message; again is when to look again.
		says  string
		again time.Duration
	}{
		"all":                  {world: world{spec: `{clusters: {}}`}, want: "a1 a2 a3 b1 b2 c1"},
		"names":                {world: world{spec: `{clusters: {names: [b1, a1]}}`}, want: "a1 b1"},
		"none matches":         {world: world{spec: `{clusters: {selector: {matchLabels: {a: b}}}}`}, want: ""},
		"lost and new":         {world: world{spec: `{clusters: {}}`, lost: "a1"}, want: "a2 a3 b1 b2 c1", says: "left out: a1: not ready"},
		"lost and running":     {world: world{spec: `{clusters: {}}`, lost: "a1", running: "a1"}, want: "a1 a2 a3 b1 b2 c1"},
		"tainted":              {world: world{spec: `{clusters: {}}`, tainted: "a1 b1"}, want: "a2 a3 b2 c1", says: "a1, b1: tainted"},
		"tainted and running":  {world: world{spec: `{clusters: {}}`, tainted: "a1", running: "a1"}, want: "a1 a2 a3 b1 b2 c1"},
		"evicting and running": {world: world{spec: `{clusters: {}}`, evicted: "a1", running: "a1"}, want: "a1 a2 a3 b1 b2 c1"},
		"evicting and new":     {world: world{spec: `{clusters: {}}`, evicted: "a1"}, want: "a2 a3 b1 b2 c1", says: "a1: tainted"},
		"missing and running":  {world: world{spec: `{clusters: {names: [a1]}}`, missing: "b1", running: "a1 b1"}, want: "a1 b1"},
		"as many as are named": {world: world{spec: `{clusters: {}}`, lost: "a1 a2 a3 b1 b2"}, want: "c1", says: "left out: a1, a2, a3, b1, b2: not ready"},
		"more than are named":  {world: world{spec: `{clusters: {}}`, lost: "a1 a2 a3 b1 b2 c1"}, want: "", says: "left out: a1, a2, a3, b1, b2 and 1 more: not ready"},
		"paused and new":       {world: world{spec: `{clusters: {}, paused: {names: [a1, x]}}`, running: "a2"}, want: "a2 a3 b1 b2 c1", says: "a1: paused by spec.placement.paused"},
		"paused and running":   {world: world{spec: `{clusters: {}, paused: {}}`, running: "a2 c1"}, want: "a2 c1", says: "a1, a3, b1, b2: paused"},
		"paused counts":        {world: world{spec: `{` + two + `, paused: {names: [c1]}}`, running: "a1 a2 c1"}, want: "a1 c1"},
		"paused and lost":      {world: world{spec: `{` + failover + `, paused: {names: [a1]}}`, lost: "a1 a2", running: "a1 a2 a3"}, want: "a1 a3 b1 b2 c1; a2"},
		"nobody but those with numbers of their own": {
			world: world{spec: `{clusters: {names: [a1, a2]}, failover: {}}`, lost: "a2", running: "a1 a2", numbered: "a1"}, want: "a1 a2"},
		"lost with a number of its own": {
			world: world{spec: `{clusters: {names: [a1, a2]}, failover: {}}`, lost: "a2", running: "a1 a2", numbered: "a2"}, want: "a1; a2"},
		"nobody but paused ones": {world: world{spec: `{clusters: {names: [a1, a2]}, failover: {}, paused: {names: [a1]}}`, lost: "a2", running: "a1 a2"}, want: "a1 a2"},
		"paused, and the group is lost": {
			world: world{spec: `{` + groups + `, failover: {}, paused: {names: [a1]}}`, group: "eu", lost: "a2", running: "a1 a2"}, want: "us: b1 b2; a2",
		},
		"a spread without the paused one": {
			world: world{spec: `{clusters: {}, spread: [{by: Region, maxGroups: 1}], paused: {names: [c1]}}`, running: "a1 a2 c1"}, want: "c1",
		},
		"tolerated":              {world: world{spec: `{clusters: {}, tolerations: [{key: dedicated, value: db}]}`, tainted: "a1"}, want: "a1 a2 a3 b1 b2 c1"},
		"another value":          {world: world{spec: `{clusters: {}, tolerations: [{key: dedicated, value: x}]}`, tainted: "a1"}, want: "a2 a3 b1 b2 c1"},
		"any value":              {world: world{spec: `{clusters: {}, tolerations: [{key: dedicated, operator: Exists}]}`, tainted: "a1"}, want: "a1 a2 a3 b1 b2 c1"},
		"any taint":              {world: world{spec: `{clusters: {}, tolerations: [{operator: Exists}]}`, tainted: "a1", evicted: "a2"}, want: "a1 a2 a3 b1 b2 c1"},
		"without the kind":       {world: world{spec: `{clusters: {}}`, unsupported: "a1"}, want: "a2 a3 b1 b2 c1", says: "a1: without the kind"},
		"a number":               {world: world{spec: `{` + two + `}`}, want: "a1 a2"},
		"a number, sticky":       {world: world{spec: `{` + two + `}`, running: "b2 c1"}, want: "b2 c1"},
		"a number, one more":     {world: world{spec: `{` + two + `}`, running: "c1"}, want: "a1 c1"},
		"two regions":            {world: world{spec: `{clusters: {}, spread: [{by: Region, maxGroups: 2}]}`}, want: "a1 a2 a3 b1 b2"},
		"two regions, sticky":    {world: world{spec: `{clusters: {}, spread: [{by: Region, maxGroups: 2}]}`, running: "c1 b1"}, want: "b1 b2 c1"},
		"regions, few clusters":  {world: world{spec: `{clusters: {}, numberOfClusters: 3, spread: [{by: Region, minGroups: 3}]}`}, want: "a1 b1 c1"},
		"evenly":                 {world: world{spec: `{clusters: {}, spread: [{by: Region, maxGroups: 2}, {by: Cluster, maxGroups: 4}]}`}, want: "a1 a2 b1 b2"},
		"one region, two clouds": {world: world{spec: `{clusters: {}, numberOfClusters: 2, spread: [{by: Region, maxGroups: 1}, {by: Provider, minGroups: 2}]}`}, want: "a1 a3"},
		// asia comes first by what runs, and has but one zone.
		"another region will do": {world: world{spec: `{clusters: {}, spread: [{by: Region, maxGroups: 1}, {by: Zone, minGroups: 2}]}`, running: "c1"}, want: "a1 a2 a3"},
		"zones of regions":       {world: world{spec: `{clusters: {}, spread: [{by: Zone, minGroups: 5}]}`}, want: "a1 a2 a3 b1 b2 c1"},
		"by label":               {world: world{spec: `{clusters: {}, spread: [{by: Label, label: tier, maxGroups: 1}]}`}, want: "a1 a2 a3"},
		"the label is missing":   {world: world{spec: `{clusters: {}, spread: [{by: Label, label: none}]}`}, want: "", says: "has no label none"},

		"failover":                   {world: world{spec: `{` + failover + `}`, running: "a1 a2", lost: "a1"}, want: "a2 a3 b1 b2 c1; a1"},
		"failover, not yet":          {world: world{spec: `{` + failover + `}`, running: "a1", lately: "a1"}, want: "a1 a2 a3 b1 b2 c1", again: 200 * time.Second},
		"failover, sooner":           {world: world{spec: `{clusters: {}, failover: {tolerationSeconds: 100}}`, running: "a1", lately: "a1"}, want: "a2 a3 b1 b2 c1; a1"},
		"failover, nothing instead":  {world: world{spec: `{clusters: {names: [a1]}, failover: {}}`, running: "a1", lost: "a1"}, want: "a1"},
		"failover, duplicated":       {world: world{spec: `{` + failover + `}`, running: "a1 a2", lost: "a1", duplicated: true}, want: "a1 a2 a3 b1 b2 c1"},
		"failover, a spare":          {world: world{spec: `{` + two + `, failover: {}}`, running: "a1 a2", lost: "a1", duplicated: true}, want: "a2 a3; a1"},
		"failover, two, one spare":   {world: world{spec: `{clusters: {names: [a1, a2, a3]}, numberOfClusters: 2, failover: {}}`, running: "a1 a2", lost: "a1 a2", duplicated: true}, want: "a2 a3; a1"},
		"failover, replaced already": {world: world{spec: `{` + two + `, failover: {}}`, running: "a2 a3 c1", lost: "c1"}, want: "a2 a3; c1"},
		"failover, regions kept":     {world: world{spec: `{clusters: {}, failover: {}, spread: [{by: Region, minGroups: 3}]}`, running: "c1", lost: "c1"}, want: "a1 a2 a3 b1 b2 c1"},
		"failover, too many at once": {world: world{spec: `{` + failover + `}`, running: "a1 a2", lost: "a1 a2 a3 b1"}, want: "a1 a2 b2 c1", says: "failover waits"},
		"failover, half at once":     {world: world{spec: `{` + failover + `}`, running: "a1", lost: "a1 a2 a3"}, want: "b1 b2 c1; a1"},
		"failover, only lost ones":   {world: world{spec: `{clusters: {names: [a1, a2]}, failover: {}}`, running: "a1 a2", lost: "a1 a2"}, want: "a1 a2"},
		"failover, no better ones":   {world: world{spec: `{clusters: {names: [a1, a2, a3]}, numberOfClusters: 2, failover: {}}`, running: "a1 a2 a3", lost: "a1 a2 a3", duplicated: true}, want: "a1 a2; a3"},
		"failover, since unknown":    {world: world{spec: `{` + failover + `}`, running: "a1", undated: "a1"}, want: "a1 a2 a3 b1 b2 c1"},
		"failover, at once":          {world: world{spec: `{clusters: {}, failover: {tolerationSeconds: 0}}`, running: "a1", undated: "a1"}, want: "a2 a3 b1 b2 c1; a1"},
		"failover, the first end":    {world: world{spec: `{` + failover + `, tolerations: [{key: broken, operator: Exists, tolerationSeconds: 150}]}`, running: "a1 a2", lately: "a1", evicted: "a2"}, want: "a1 a2 a3 b1 b2 c1", again: 50 * time.Second},
		"failover, evicted":          {world: world{spec: `{clusters: {}, failover: {tolerationSeconds: 60}}`, running: "a1", evicted: "a1"}, want: "a2 a3 b1 b2 c1; a1"},
		"failover, evicted later":    {world: world{spec: `{` + failover + `}`, running: "a1", evicted: "a1"}, want: "a1 a2 a3 b1 b2 c1", again: 200 * time.Second},
		"failover, tolerated":        {world: world{spec: `{` + failover + `, tolerations: [{key: broken, operator: Exists}]}`, running: "a1", evicted: "a1"}, want: "a1 a2 a3 b1 b2 c1"},
		"failover, long enough":      {world: world{spec: `{` + failover + `, tolerations: [{key: broken, operator: Exists, tolerationSeconds: 99}]}`, running: "a1", evicted: "a1"}, want: "a2 a3 b1 b2 c1; a1"},

		"the first group":           {world: world{spec: `{` + groups + `}`}, want: "eu: a1 a2"},
		"the second group":          {world: world{spec: `{` + groups + `}`, lost: "a1", tainted: "a2"}, want: "us: b1 b2"},
		"the group that has it":     {world: world{spec: `{` + groups + `}`, group: "us", running: "b1"}, want: "us: b1 b2"},
		"missing in its group":      {world: world{spec: `{` + groups + `}`, group: "us", missing: "c1", running: "b1 c1"}, want: "us: b1 b2 c1"},
		"missing in another group":  {world: world{spec: `{` + groups + `}`, group: "us", missing: "c1", running: "b1 c1", lost: "b1 b2 c1"}, want: "us: b1 c1", says: "b2: not ready"},
		"a group that is gone":      {world: world{spec: `{` + groups + `}`, group: "asia"}, want: "eu: a1 a2"},
		"a lost group stays":        {world: world{spec: `{` + groups + `}`, group: "eu", running: "a1 a2", lost: "a1 a2"}, want: "eu: a1 a2"},
		"a lost group fails over":   {world: world{spec: `{` + groups + `, failover: {}}`, group: "eu", running: "a1 a2", lost: "a1 a2"}, want: "us: b1 b2; a1 a2"},
		"both groups are lost":      {world: world{spec: `{groups: [{name: eu, clusters: {names: [a1]}}, {name: us, clusters: {names: [b1]}}], failover: {}}`, group: "eu", running: "a1", lost: "a1 b1"}, want: "eu: a1"},
		"back to an earlier group":  {world: world{spec: `{` + groups + `, failover: {}}`, group: "us", running: "b1 b2", lost: "b1 b2"}, want: "eu: a1 a2; b1 b2"},
		"a group too small":         {world: world{spec: `{groups: [{name: one, clusters: {names: [a1]}}, {name: two, clusters: {names: [b1, c1]}}], spread: [{by: Cluster, minGroups: 2}]}`}, want: "two: b1 c1"},
		"a lost part of the group":  {world: world{spec: `{` + groups + `, failover: {}}`, group: "eu", running: "a1 a2", lost: "a1"}, want: "eu: a2; a1"},
		"left in the former group":  {world: world{spec: `{` + groups + `, failover: {}}`, group: "us", running: "a1 b1 b2", lost: "a1"}, want: "us: b1 b2; a1"},
		"no group can take it":      {world: world{spec: `{` + groups + `}`, tainted: "a1 a2 b1 b2"}, want: ": ", says: "left out: a1, a2: tainted"},
		"a group without the label": {world: world{spec: `{groups: [{name: x, clusters: {selector: {matchLabels: {a: b}}}}, {name: all, clusters: {}}]}`}, want: "all: a1 a2 a3 b1 b2 c1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.choose(t)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(got.Clusters, " ")
			if len(got.GivenUp) > 0 {
				text += "; " + strings.Join(got.GivenUp, " ")
			}
			if strings.Contains(c.spec, "groups:") {
				text = got.Group + ": " + text
			}
			if text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
			if !strings.Contains(got.Message, c.says) || got.RequeueAfter != c.again {
				t.Errorf("message %q, again %s", got.Message, got.RequeueAfter)
			}
		})
	}
}

func TestNotMet(t *testing.T) {
	for spec, says := range map[string]string{
		`{clusters: {}, spread: [{by: Region, minGroups: 4}]}`:                                                    `spec.placement.spread[0].minGroups "4": the clusters that can be taken, a1, a2, a3, b1, b2 and 1 more, have 3 different values of region`,
		`{clusters: {}, numberOfClusters: 2, spread: [{by: Provider, minGroups: 2}, {by: Region, minGroups: 3}]}`: `spec.placement.spread[1].minGroups "3"`,
		`{clusters: {names: [a1]}, spread: [{by: Cluster, minGroups: 2}]}`:                                        `spec.placement.spread[0].minGroups "2"`,
	} {
		_, err := world{spec: spec}.choose(t)
		if backends.CodeOf(err) != backends.CodePlacementNotMet || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// TestChoiceHolds: a choice meets its bounds, and is made again when it runs, in whatever order clusters are listed.
func TestChoiceHolds(t *testing.T) {
	for seed := range int64(3000) {
		random := rand.New(rand.NewSource(seed))
		w := world{spec: randomSpec(random), duplicated: random.Intn(2) == 0}
		for _, c := range fleet() {
			switch random.Intn(6) {
			case 0:
				w.lost += " " + c.Name
			case 1:
				w.tainted += " " + c.Name
			}
			if random.Intn(3) == 0 {
				w.running += " " + c.Name
			}
		}
		first, err := w.choose(t)
		if backends.CodeOf(err) == backends.CodePlacementNotMet {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range first.Clusters {
			if !slices.Contains(strings.Fields(w.running), name) && (strings.Contains(w.lost, name) || strings.Contains(w.tainted, name)) {
				t.Fatalf("seed %d: %s is taken anew, %+v", seed, name, w)
			}
			if slices.Contains(first.GivenUp, name) {
				t.Fatalf("seed %d: %s is taken and given up", seed, name)
			}
		}
		again := func(c placement.Choice) placement.Choice {
			w.running, w.group = strings.Join(append(slices.Clone(c.Clusters), c.GivenUp...), " "), c.Group
			next, err := w.choose(t)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return next
		}
		second := again(first)
		for _, name := range first.Clusters {
			if !strings.Contains(w.lost, name) && !slices.Contains(second.Clusters, name) {
				t.Fatalf("seed %d: %s runs well and is left, %+v", seed, name, w)
			}
		}
		// Lost clusters that nothing can take the place of may change places once.
		third := again(second)
		if diff := cmp.Diff(second.Clusters, third.Clusters); diff != "" {
			t.Fatalf("seed %d: not sticky: %s\n%+v", seed, diff, w)
		}
	}
}

func randomSpec(random *rand.Rand) string {
	spec := `{clusters: {}`
	if random.Intn(2) == 0 {
		spec += fmt.Sprintf(", numberOfClusters: %d", 1+random.Intn(6))
	}
	if random.Intn(2) == 0 {
		spec += ", failover: {}"
	}
	var spread []string
	for _, by := range []string{"Region", "Zone", "Provider", "Cluster"} {
		if random.Intn(3) == 0 {
			low := 1 + random.Intn(2)
			spread = append(spread, fmt.Sprintf("{by: %s, minGroups: %d, maxGroups: %d}", by, low, low+random.Intn(3)))
		}
	}
	return spec + ", spread: [" + strings.Join(spread, ", ") + "]}"
}

// TestNothingIsSaidOfOthersLost: that failover waits concerns those only whose clusters are lost.
func TestNothingIsSaidOfOthersLost(t *testing.T) {
	got, err := world{spec: `{clusters: {names: [a1]}, failover: {}}`, running: "a1", lost: "a2 a3 b1 b2"}.choose(t)
	if err != nil || got.Message != "" {
		t.Errorf("%q, %v", got.Message, err)
	}
}

// TestSelectors: a backend is asked for each group's clusters, and for all where nothing is selected.
func TestSelectors(t *testing.T) {
	a, b := &v1alpha1.ClusterSelector{Names: []string{"a"}}, &v1alpha1.ClusterSelector{Names: []string{"b"}}
	wrong := &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}
	for name, c := range map[string]struct {
		placement v1alpha1.Placement
		want      []v1alpha1.ClusterSelector
		refused   string
	}{
		"one":            {v1alpha1.Placement{Clusters: a}, []v1alpha1.ClusterSelector{*a}, ""},
		"nothing":        {v1alpha1.Placement{}, []v1alpha1.ClusterSelector{{}}, ""},
		"groups":         {v1alpha1.Placement{Groups: []v1alpha1.ClusterGroup{{Clusters: a}, {}, {Clusters: b}}}, []v1alpha1.ClusterSelector{*a, {}, *b}, ""},
		"a wrong one":    {v1alpha1.Placement{Clusters: wrong}, nil, "spec.placement.clusters: the selector"},
		"a wrong group":  {v1alpha1.Placement{Groups: []v1alpha1.ClusterGroup{{Clusters: a}, {Clusters: wrong}}}, nil, "spec.placement.groups[1].clusters: the selector"},
		"what is enough": {v1alpha1.Placement{Clusters: requiring(placement.MaxRequirements)}, []v1alpha1.ClusterSelector{*requiring(placement.MaxRequirements)}, ""},
		"one too many":   {v1alpha1.Placement{Clusters: requiring(placement.MaxRequirements + 1)}, nil, `spec.placement "10001": the label selectors have too many`},
		"one too many with a weight": {
			v1alpha1.Placement{Clusters: requiring(placement.MaxRequirements), Division: &v1alpha1.Division{Weights: []v1alpha1.ClusterWeight{{Clusters: requiring(3)}}}},
			nil, `spec.placement "10003": the label selectors have too many`,
		},
	} {
		err := placement.CheckSelectors(c.placement)
		if (err == nil) != (c.refused == "") || err != nil && !strings.HasPrefix(err.Error(), c.refused) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, placement.Selectors(c.placement)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// requiring is a selector of so many expressions and values: a label, an expression, and its values.
func requiring(n int) *v1alpha1.ClusterSelector {
	values := make([]string, n-2)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	return &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{
		MatchLabels:      map[string]string{"x": "y"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: values}},
	}}
}
