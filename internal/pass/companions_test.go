package pass

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// needOf is a need for an object of the core group.
func needOf(kind, name string) plan.Need {
	return plan.Need{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Name: name}
}

// TestWhatIsTakenForANeed: what is there travels, what must not is noted, what is missing is remembered, and what cannot be read ends it.
func TestWhatIsTakenForANeed(t *testing.T) {
	object := func(kind, secretType string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "type": secretType, "metadata": map[string]any{"name": "key", "namespace": "shop"},
		}}
	}
	for name, test := range map[string]struct {
		object Object
		travel travel
		failed string
	}{
		"it is there":    {Object{Found: object("Secret", "Opaque")}, travel{companions: make([]backends.Companion, 1)}, ""},
		"it is a token":  {Object{Found: object("Secret", "kubernetes.io/service-account-token")}, travel{notes: make([]string, 1)}, ""},
		"it is missing":  {Object{}, travel{lacking: make([]plan.Need, 1)}, ""},
		"it is not read": {Object{Err: errors.New("away")}, travel{}, "spec.dependencies: away"},
	} {
		d := moving(t)
		err := d.take(needOf("Secret", "key"), test.object)
		got := d.travel
		if len(got.companions) != len(test.travel.companions) || len(got.notes) != len(test.travel.notes) || len(got.lacking) != len(test.travel.lacking) {
			t.Errorf("%s: %+v", name, got)
		}
		if (err != nil) != (test.failed != "") || err != nil && err.Error() != test.failed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatCannotBeReadHoldsTheRest: a pass that knows half of what pods refer to sends nothing, and says what right is missing.
func TestWhatCannotBeReadHoldsTheRest(t *testing.T) {
	setting := moving(t)
	fw := setting.in.FleetWorkload.DeepCopy()
	fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
	fw.Spec.Template.Raw = []byte(strings.Replace(string(fw.Spec.Template.Raw), `"image":"nginx:1"`, `"image":"nginx:1","envFrom":[{"secretRef":{"name":"key"}}]`, 1))
	p, err := plan.New(fw, setting.in.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	setting.work.plan, setting.placed.targets = p, []backends.Target{{Cluster: "m1"}}
	setting.in.Objects = map[string]Object{"Secret key": {Err: errors.New("forbidden"), Forbidden: true}}
	var why *stalled
	if err := setting.gather(); !errors.As(err, &why) || why.reason != v1alpha1.ReasonDependencyForbidden || !why.again ||
		!strings.Contains(why.message, "grant it get, list and watch on secrets there") {
		t.Errorf("%v", err)
	}
}

// TestDependenciesThatAreTooLargeAreRefused: their number is one, and what they come to on all clusters is said.
func TestDependenciesThatAreTooLargeAreRefused(t *testing.T) {
	for size, refused := range map[int]bool{1 << 10: false, 1 << 20: true} {
		setting := moving(t)
		fw := setting.in.FleetWorkload.DeepCopy()
		fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
		fw.Spec.Template.Raw = []byte(strings.Replace(string(fw.Spec.Template.Raw), `"image":"nginx:1"`, `"image":"nginx:1","envFrom":[{"secretRef":{"name":"key"}}]`, 1))
		p, err := plan.New(fw, setting.in.Kinds)
		if err != nil {
			t.Fatal(err)
		}
		setting.work.plan, setting.placed.targets = p, nil
		for i := range 100 {
			setting.placed.targets = append(setting.placed.targets, backends.Target{Cluster: fmt.Sprintf("m%d", i)})
		}
		setting.in.Objects = map[string]Object{"Secret key": {Found: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": map[string]any{"name": "key", "namespace": "shop"},
			"data": map[string]any{"key": strings.Repeat("x", size)},
		}}}}
		err = setting.gather()
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "spec.dependencies") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// TestWhatIsMissingHoldsWhoNeedsIt: pods elsewhere, and clusters that are left, do not wait for it.
func TestWhatIsMissingHoldsWhoNeedsIt(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*plan.Need)
		held   []string
		said   string
	}{
		"all need it":         {func(*plan.Need) {}, []string{"m1", "m2"}, "changed on m1, m2, and"},
		"one needs it":        {func(n *plan.Need) { n.Clusters = []string{"m2"} }, []string{"m2"}, "changed on m2, and"},
		"one needs it, later": {func(n *plan.Need) { n.Clusters = []string{"m9"} }, nil, "changed on any cluster, and"},
		"none needs it":       {func(n *plan.Need) { n.Optional = true }, nil, ""},
	} {
		d := moving(t)
		d.placed.targets = []backends.Target{{Cluster: "m1"}, {Cluster: "m2"}, {Cluster: "m3", Mode: backends.ModeRemove}}
		before, need := slices.Clone(d.placed.targets), needOf("ConfigMap", "settings")
		test.change(&need)
		d.travel.prune = backends.PruneAll
		d.lack(need)
		var held []string
		for i, target := range d.placed.targets {
			if target.Mode == backends.ModeHold {
				held = append(held, target.Cluster)
			} else if target.Mode != before[i].Mode {
				t.Errorf("%s: %s becomes %s", name, target.Cluster, target.Mode)
			}
		}
		if !slices.Equal(held, test.held) {
			t.Errorf("%s: held are %v", name, held)
		}
		err := d.reportMissing()
		if (err != nil) != (test.said != "") || err != nil && !strings.Contains(err.Error(), test.said) {
			t.Errorf("%s: %v", name, err)
		}
		if (d.travel.prune == backends.PruneNone) != (test.said != "") {
			t.Errorf("%s: what was sent of it before goes: %s", name, d.travel.prune)
		}
	}
}

// TestRolledOut: what pods of an earlier revision may need goes only when every cluster says that it has none of them (law 4).
func TestRolledOut(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Decision, *backends.ClusterObservation)
		want   bool
	}{
		"as it should be":   {func(*Decision, *backends.ClusterObservation) {}, true},
		"an old report":     {func(_ *Decision, o *backends.ClusterObservation) { o.Current = false }, false},
		"not applied":       {func(_ *Decision, o *backends.ClusterObservation) { o.Applied = metav1.ConditionFalse }, false},
		"an older manifest": {func(_ *Decision, o *backends.ClusterObservation) { o.Revision = "older" }, false},
		"no report":         {func(_ *Decision, o *backends.ClusterObservation) { o.Status = nil }, false},
		"it is progressing": {func(_ *Decision, o *backends.ClusterObservation) { o.Status["updatedReplicas"] = int64(1) }, false},
		"not ready":         {func(_ *Decision, o *backends.ClusterObservation) { o.Status["availableReplicas"] = int64(0) }, false},
		"it is not there":   {func(_ *Decision, o *backends.ClusterObservation) { o.Cluster = "m9" }, false},
		"it is to be left": {func(d *Decision, o *backends.ClusterObservation) {
			o.Current, d.placed.targets[0].Mode = false, backends.ModeRemove
		}, true},
		"nobody has it": {func(d *Decision, _ *backends.ClusterObservation) { d.placed.targets = []backends.Target{} }, true},
		"another has not yet": {func(d *Decision, _ *backends.ClusterObservation) {
			d.placed.targets = append(d.placed.targets, backends.Target{Cluster: "m2"})
		}, false},
	} {
		d := moving(t)
		d.work.kind = d.work.plan.Kind
		var err error
		if d.placed.targets, err = d.work.plan.Pinned(*d.fleet, []string{"m1"}, map[string]int32{"m1": 2}); err != nil {
			t.Fatal(err)
		}
		d.observed.Clusters = reports(d, "m1")
		test.change(d, &d.observed.Clusters[0])
		if got := d.rolledOut(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestHealthyIsNotRolledOut: under a partition pods of the earlier revision go on well, and need what they needed; of kinds that do not count
// updated pods, health is all there is.
func TestHealthyIsNotRolledOut(t *testing.T) {
	counts := func(updated int64) map[string]any {
		return map[string]any{
			"observedGeneration": int64(1), "replicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2), "updatedReplicas": updated,
		}
	}
	const set = `{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"selector":{"matchLabels":{"app":"web"}},` +
		`"updateStrategy":{"rollingUpdate":{"partition":1}},` +
		`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"nginx:1"}]}}}}`
	const job = `{"apiVersion":"batch/v1","kind":"Job",` +
		`"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"web","image":"nginx:1"}]}}}}`
	for name, test := range map[string]struct {
		template string
		status   map[string]any
		want     bool
	}{
		"held at its partition": {set, counts(1), false},
		"all are updated":       {set, counts(2), true},
		"a job that is done":    {job, map[string]any{"succeeded": int64(1), "conditionComplete": "True"}, true},
		"a job that runs":       {job, map[string]any{"active": int64(1), "startTime": "2026-01-01T00:00:00Z"}, false},
	} {
		d := moving(t)
		fw := d.in.FleetWorkload.DeepCopy()
		fw.Spec.Template.Raw, fw.Spec.Placement.Division = []byte(test.template), nil
		if test.template == job {
			fw.Spec.Replicas = nil
		}
		var err error
		if d.work.plan, err = plan.New(fw, d.in.Kinds); err != nil {
			t.Fatal(err)
		}
		d.work.kind = d.work.plan.Kind
		if d.placed.targets, err = d.work.plan.Pinned(*d.fleet, []string{"m1"}, map[string]int32{"m1": 2}); err != nil {
			t.Fatal(err)
		}
		d.observed.Clusters = reports(d, "m1")
		d.observed.Clusters[0].Status = test.status
		if got := d.rolledOut(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCompanionsComeAfterTheAnswer: nothing is sent to a cluster that is only asked what it runs.
func TestCompanionsComeAfterTheAnswer(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web"}}}
	for name, test := range map[string]struct {
		probed, clusters, want []string
	}{
		"none is asked":             {nil, nil, nil},
		"none is asked, one has it": {nil, []string{"m1"}, []string{"m1"}},
		"one is asked":              {[]string{"m2"}, nil, []string{"m1"}},
		"all are asked":             {[]string{"m1", "m2"}, nil, []string{}},
		"the one that needs it is":  {[]string{"m2"}, []string{"m2"}, []string{}},
	} {
		d := moving(t)
		d.placed.probed, d.placed.targets = test.probed, []backends.Target{{Cluster: "m1"}, {Cluster: "m2"}}
		d.travel.companions = []backends.Companion{{Object: obj, Clusters: test.clusters}}
		got := d.shipped()[0].Clusters
		if !slices.Equal(got, test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%s: it goes to %#v, want %#v", name, got, test.want)
		}
	}
}

// TestCompanionsOfPausedClustersStay, although on no other cluster an earlier revision runs.
func TestCompanionsOfPausedClustersStay(t *testing.T) {
	for name, test := range map[string]struct {
		pinned map[string]*int32
		want   backends.Prune
	}{
		"paused":     {map[string]*int32{"m1": nil}, backends.PruneNone},
		"not paused": {nil, backends.PruneOwn},
	} {
		d := moving(t)
		d.placed.pinned = test.pinned
		if err := d.gather(); err != nil {
			t.Fatal(err)
		}
		if d.travel.prune != test.want {
			t.Errorf("%s: %v", name, d.travel.prune)
		}
	}
}

// TestCompanionsGoWhereTheyAreNeeded: neither to a cluster that is asked what it runs, nor to one that is paused.
func TestCompanionsGoWhereTheyAreNeeded(t *testing.T) {
	for name, test := range map[string]struct {
		probed, pinned, want string
	}{
		"to all that need it":      {"", "", ""},
		"one is asked":             {"m1", "", "m2,m3"},
		"one is paused":            {"", "m2", "m1,m3"},
		"one each":                 {"m1", "m2", "m3"},
		"asked and paused at once": {"m1", "m1", "m2,m3"},
	} {
		d := moving(t)
		d.travel.companions = make([]backends.Companion, 1)
		for _, cluster := range []string{"m1", "m2", "m3"} {
			d.placed.targets = append(d.placed.targets, backends.Target{Cluster: cluster, Mode: backends.ModeOwn})
		}
		if test.probed != "" {
			d.placed.probed = []string{test.probed}
		}
		if test.pinned != "" {
			d.placed.pinned = map[string]*int32{test.pinned: nil}
		}
		if got := d.shipped()[0].Clusters; strings.Join(got, ",") != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCompanionsAndDependenciesCountTogether: 16,000 objects on all clusters are the limit.
func TestCompanionsAndDependenciesCountTogether(t *testing.T) {
	for companions, refused := range map[int]bool{15: false, 16: true} { // and one Secret that the pods refer to
		d := moving(t)
		fw := d.in.FleetWorkload
		fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
		fw.Spec.Template.Raw = []byte(strings.Replace(string(fw.Spec.Template.Raw), `"image":"nginx:1"`, `"image":"nginx:1","envFrom":[{"secretRef":{"name":"key"}}]`, 1))
		var err error
		if d.work.plan, err = plan.New(fw, d.in.Kinds); err != nil {
			t.Fatal(err)
		}
		for range companions {
			d.work.plan.Companions = append(d.work.plan.Companions, backends.Companion{Object: &unstructured.Unstructured{}})
		}
		for i := range 1000 {
			d.placed.targets = append(d.placed.targets, backends.Target{Cluster: fmt.Sprintf("m%d", i)})
		}
		if err := d.gather(); (backends.CodeOf(err) == backends.CodeInvalidTemplate) != refused {
			t.Errorf("%d companions: %v", companions, err)
		}
	}
}

// TestWhichFormerCompanionsGo: none while a pod may need one, or on a paused cluster; and of what pods refer to none that is not sent any more.
func TestWhichFormerCompanionsGo(t *testing.T) {
	for name, test := range map[string]struct {
		propagates bool
		change     func(*Decision)
		want       backends.Prune
	}{
		"all run the present spec":                {true, func(*Decision) {}, backends.PruneAll},
		"they do, and dependencies do not travel": {false, func(*Decision) {}, backends.PruneOwn},
		"one is paused":                           {true, func(d *Decision) { d.placed.pinned = map[string]*int32{"m2": nil} }, backends.PruneNone},
		"one runs another spec":                   {true, func(d *Decision) { d.observed.Clusters[1].Revision = "before" }, backends.PruneNone},
		"one is silent":                           {true, func(d *Decision) { d.observed.Clusters = d.observed.Clusters[:1] }, backends.PruneNone},
	} {
		d := moving(t)
		if test.propagates {
			d.in.FleetWorkload.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
		}
		if err := d.understandAnew(); err != nil {
			t.Fatal(err)
		}
		var err error
		if d.placed.targets, err = d.work.plan.Pinned(*d.fleet, []string{"m1", "m2"}, map[string]int32{"m1": 2, "m2": 2}); err != nil {
			t.Fatal(err)
		}
		d.work.kind, d.observed.Clusters = d.work.plan.Kind, reports(d, "m1", "m2")
		test.change(d)
		if err := d.gather(); err != nil || d.travel.prune != test.want {
			t.Errorf("%s: %q, %v", name, d.travel.prune, err)
		}
	}
}
