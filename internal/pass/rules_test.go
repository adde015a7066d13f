package pass

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/tenancy"
)

// widgets is what a pass knows of a described kind on 1,000 clusters, each of which reports a list of so many elements.
func widgets(t *testing.T, rule string, elements int) (*backends.Observation, In, func(*In, Reads)) {
	t.Helper()
	kinds, err := interpreter.New(interpreter.Description{Group: "example.io", Version: "v1", Kind: "Widget", Resource: "widgets", Scope: "Namespaced",
		Health: interpreter.Health{Degraded: rule, Healthy: "true"}})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]any, elements)
	for i := range list {
		list[i] = int64(i)
	}
	fleet, seen := &backends.Fleet{}, backends.Observation{Found: true, Selection: backends.Selection{Settled: true}}
	for i := range 1000 {
		name := fmt.Sprintf("m%04d", i)
		fleet.Clusters = append(fleet.Clusters, backends.Cluster{Name: name, Ready: metav1.ConditionTrue})
		seen.Selection.Clusters = append(seen.Selection.Clusters, name)
		seen.Clusters = append(seen.Clusters, backends.ClusterObservation{Cluster: name, Applied: metav1.ConditionTrue, Current: true,
			Status: map[string]any{"generation": int64(1), "list": list, "cluster": name}})
	}
	in := In{
		Settings: Settings{Kinds: kinds, MaxRemovalPercent: 50, Tenancy: tenancy.Everything()}, Rivals: &[]Rival{}, Namespace: &Namespace{},
		Now: time.Unix(0, 0), FleetWorkload: &v1alpha1.FleetWorkload{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Generation: 1},
			Spec: v1alpha1.FleetWorkloadSpec{Backend: "one", Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}},
				Template: runtime.RawExtension{Raw: []byte(`{"apiVersion":"example.io/v1","kind":"Widget","spec":{}}`)}},
		},
	}
	return &seen, in, func(in *In, reads Reads) {
		for _, read := range reads.Sides {
			side := &Side{Features: backends.Features{}, Fleet: fleet}
			if read.Query != nil {
				side.Observed = &seen
			}
			in.Sides[read.Backend] = side
		}
		for _, access := range reads.Access {
			in.Access[access] = Answer{Allowed: true}
		}
	}
}

// TestRulesThatCostTooMuchAreSaid (laws 4, 10 and 11): a decision about 1,000 clusters asks rules for no more than they may cost together.
// The condition names the rule, as field and as value, the limit and the remedy; it says the same in the next pass; and no cluster's report is
// read twice.
func TestRulesThatCostTooMuchAreSaid(t *testing.T) {
	const dear = "object.status.list.exists(a, object.status.list.exists(b, a + b < 0 && a < b))"
	for name, test := range map[string]struct {
		elements int
		health   metav1.ConditionStatus
		untold   bool
		says     []string
	}{
		"short lists": {3, metav1.ConditionTrue, false, []string{"healthy on 1000 clusters"}},
		"lists that are dear on many clusters": {60, metav1.ConditionUnknown, true, []string{
			`: kinds[0].health.degraded "` + dear[:64] + `..." in the operator's configuration: it was not asked here: on the clusters before, the kind's rules have cost the ` +
				"500000 units that they may cost on all together; go through shorter lists there, or have the kind's controller write less into the status, m"}},
		"lists that are dear on each": {1000, metav1.ConditionUnknown, true, []string{
			`m0000: kinds[0].health.degraded "` + dear[:64] + `..." in the operator's configuration: it costs more here than the 50000 units that a rule may cost on one ` +
				"cluster; go through shorter lists there, or have the kind's controller write less into the status, m0001: "}},
	} {
		seen, in, read := widgets(t, dear, test.elements)
		d, _ := Rehearse(in, read)
		for i := range seen.Clusters {
			seen.Clusters[i].Revision = d.Revision()
		}
		said := ""
		for range 2 {
			d, problem := Rehearse(in, read)
			if problem != nil {
				t.Fatalf("%s: %+v", name, problem)
			}
			in.FleetWorkload.Status = d.Conclude(map[string]Outcome{"one": {Progress: backends.Progress{Done: true}}}).Status
			condition := meta.FindStatusCondition(in.FleetWorkload.Status.Conditions, v1alpha1.ConditionHealthy)
			if condition == nil || condition.Status != test.health || said != "" && said != condition.Message {
				t.Fatalf("%s: %+v, after %q", name, condition, said)
			}
			said = condition.Message
			for _, words := range test.says {
				if !strings.Contains(said, words) {
					t.Errorf("%s: no %q in %q", name, words, said)
				}
			}
			asked, untold := 0, 0
			for _, state := range d.read {
				if strings.Contains(state.Message, "it was not asked here") {
					untold++
				} else {
					asked++
				}
			}
			if asked == 0 || asked+untold != 1000 || (untold > 0) != test.untold {
				t.Errorf("%s: rules were asked on %d clusters, and not on %d", name, asked, untold)
			}
		}
	}
}
