package pass

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// sourceOf is an object of the management cluster.
func sourceOf(kind, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop", "uid": "uid-" + name, "resourceVersion": value},
		"data": map[string]any{"value": value},
	}}
}

// sending is a companion with a value.
func sending(t *testing.T, kind, name, value string, shared bool) backends.Companion {
	t.Helper()
	need := needOf(kind, name)
	c, note := need.Companion(sourceOf(kind, name, value))
	if note != "" {
		t.Fatal(note)
	}
	c.Shared = shared
	return *c
}

// carryingOut is a rehearsal that orders an update of m1 and m2 with companions. there is what the backend has of them on m1.
func carryingOut(t *testing.T, companions []backends.Companion, there ...backends.CompanionObservation) *Decision {
	t.Helper()
	d := moving(t)
	fw := d.in.FleetWorkload.DeepCopy()
	fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
	p, err := plan.New(fw, d.in.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	d.work.plan, d.in.FleetWorkload, d.spec = p, fw, fw
	d.travel.companions = companions
	d.observed.Clusters = []backends.ClusterObservation{{Cluster: "m1", Companions: there}}
	d.Orders = []Order{{Apply: &backends.Desired{Targets: []backends.Target{{Cluster: "m1"}}}}}
	return d
}

func told(rows []PlannedCompanion) string {
	var all []string
	for _, r := range rows {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", r.Action, r.Kind, r.Name, r.Reason, strings.Join(r.PlannedCompanion.Changes, "|"))))
	}
	return strings.Join(all, "; ")
}

func TestPlannedCompanions(t *testing.T) {
	own, shared := sending(t, "ConfigMap", "settings", "1", false), sending(t, "ConfigMap", "settings", "1", true)
	secret := sending(t, "Secret", "keys", "1", true)
	is := func(c backends.Companion, edits ...func(*backends.CompanionObservation)) backends.CompanionObservation {
		o := backends.CompanionObservation{Object: c.Object, Shared: c.Shared}
		for _, edit := range edits {
			edit(&o)
		}
		return o
	}
	theirs := func(o *backends.CompanionObservation) { o.Theirs = backends.TheirsForeign }
	elsewhere := func(o *backends.CompanionObservation) { o.Theirs = backends.TheirsBackend }
	others := func(o *backends.CompanionObservation) { o.Others = true }
	needed := func(o *backends.CompanionObservation) { o.Elsewhere = true }
	removing := func(o *backends.CompanionObservation) { o.Removing = true }
	adopt := func(d *Decision) { d.spec.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt }
	leave := func(d *Decision) { d.Orders[0].Apply.Targets[0].Mode = backends.ModeRemove }
	pause := func(d *Decision) { d.placed.pinned = map[string]*int32{"m1": nil} }
	ignore := func(d *Decision) {
		fw := d.in.FleetWorkload.DeepCopy()
		fw.Spec.Dependencies = ""
		d.work.plan, _ = plan.New(fw, d.in.Kinds)
	}
	type there = []backends.CompanionObservation
	for name, test := range map[string]struct {
		sent  []backends.Companion
		there there
		edit  func(*Decision)
		want  string
	}{
		"as it is":                 {[]backends.Companion{own}, there{is(own)}, nil, ""},
		"it is new":                {[]backends.Companion{own}, nil, nil, "Create ConfigMap settings"},
		"it may be there":          {[]backends.Companion{own}, nil, adopt, "CreateOrAdopt ConfigMap settings"},
		"it goes and comes":        {[]backends.Companion{own}, there{is(own, removing)}, nil, "Create ConfigMap settings"},
		"another value":            {[]backends.Companion{own}, there{is(sending(t, "ConfigMap", "settings", "0", false))}, nil, "Update ConfigMap settings  data.value 0 -> 1"},
		"of what pods refer to":    {[]backends.Companion{shared}, there{is(sending(t, "ConfigMap", "settings", "0", true))}, nil, "Update ConfigMap settings  data.value changed"},
		"of a Secret":              {[]backends.Companion{secret}, there{is(sending(t, "Secret", "keys", "0", true))}, nil, "Update Secret keys  data.value changed"},
		"on a paused cluster":      {[]backends.Companion{own}, nil, pause, "Hold ConfigMap settings ClusterPaused"},
		"nothing, on a paused one": {[]backends.Companion{own}, there{is(own), is(secret)}, pause, ""},
		"somebody else's":          {[]backends.Companion{own}, there{is(own, theirs)}, nil, "Leave ConfigMap settings BlocksWorkload"},
		"used as it is":            {[]backends.Companion{shared}, there{is(shared, theirs)}, nil, "Leave ConfigMap settings SomebodyElses"},
		"of another backend":       {[]backends.Companion{shared}, there{is(shared, elsewhere)}, adopt, "Leave ConfigMap settings OtherBackends"},
		"taken over":               {[]backends.Companion{own}, there{is(own, theirs)}, adopt, "Adopt ConfigMap settings"},
		"it is missing":            {nil, nil, func(d *Decision) { d.travel.lacking = []plan.Need{needOf("Secret", "keys")} }, "Hold Secret keys Missing"},
		"it is missing now": {nil, there{is(secret)}, func(d *Decision) { d.travel.lacking = []plan.Need{needOf("Secret", "keys")} },
			"Hold Secret keys Missing"},
		"it is missing elsewhere": {nil, nil, func(d *Decision) {
			d.travel.lacking = []plan.Need{needOf("Secret", "keys")}
			d.travel.lacking[0].Clusters = []string{"m2"}
		}, ""},
		"no longer listed":           {nil, there{is(own)}, nil, "Delete ConfigMap settings NotListed"},
		"of a cluster that is left":  {[]backends.Companion{own}, there{is(own)}, leave, "Delete ConfigMap settings WorkloadRemoved"},
		"not on its way out":         {nil, there{is(own, removing)}, nil, ""},
		"others use it":              {nil, there{is(shared, others)}, leave, "Leave ConfigMap settings UsedByOthers"},
		"may be needed":              {nil, there{is(shared, needed)}, nil, "GiveUp ConfigMap settings MayBeNeeded"},
		"left to who has it":         {nil, there{is(shared, theirs)}, nil, "Leave ConfigMap settings SomebodyElses"},
		"left to who delivers it":    {nil, there{is(shared, elsewhere)}, nil, "Leave ConfigMap settings OtherBackends"},
		"a claim":                    {nil, there{is(sending(t, "PersistentVolumeClaim", "data", "1", false))}, leave, "GiveUp PersistentVolumeClaim data KeepsData"},
		"dependencies are ignored":   {nil, there{is(shared)}, ignore, "Leave ConfigMap settings DependenciesIgnored"},
		"ignored, on one to be left": {nil, there{is(shared)}, func(d *Decision) { ignore(d); leave(d) }, "Delete ConfigMap settings WorkloadRemoved"},
		"while it is suspended":      {[]backends.Companion{own}, nil, func(d *Decision) { d.in.FleetWorkload.Spec.Suspend = ptr.To(true) }, ""},
		"without an order":           {[]backends.Companion{own}, nil, func(d *Decision) { d.Orders = nil }, ""},
	} {
		d := carryingOut(t, test.sent, test.there...)
		if test.edit != nil {
			test.edit(d)
		}
		if got := told(d.Companions(false)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	d := carryingOut(t, []backends.Companion{shared}, is(sending(t, "ConfigMap", "settings", "0", true)))
	if got := told(d.Companions(true)); got != "Update ConfigMap settings  data.value 0 -> 1" {
		t.Errorf("to who may read it: %q", got)
	}
}

// TestClustersOfOneCompanion: those on which the same becomes of it are told together.
func TestClustersOfOneCompanion(t *testing.T) {
	own := sending(t, "ConfigMap", "settings", "1", false)
	d := carryingOut(t, []backends.Companion{own}, backends.CompanionObservation{Object: own.Object, Theirs: backends.TheirsForeign})
	d.Orders[0].Apply.Targets = []backends.Target{{Cluster: "m3"}, {Cluster: "m1"}, {Cluster: "m2"}}
	rows := d.Companions(false)
	if len(rows) != 2 || !slices.Equal(rows[0].Clusters, []string{"m2", "m3"}) || rows[1].Action != v1alpha1.CompanionLeave ||
		!slices.Equal(rows[1].Clusters, []string{"m1"}) {
		t.Errorf("%+v", rows)
	}
}

// TestAnApprovalStandsForCompanions: for what becomes of each, and for what it holds then.
func TestAnApprovalStandsForCompanions(t *testing.T) {
	planOf := func(d *Decision) *Planned {
		return &Planned{Clusters: []v1alpha1.PlannedCluster{{Name: "m1", Action: v1alpha1.PlannedUpdate}}, Companions: d.Companions(false)}
	}
	comesTo := func(kind, was, is string) *Planned {
		source := sourceOf(kind, "keys", is)
		d := carryingOut(t, nil, backends.CompanionObservation{Object: sending(t, kind, "keys", was, true).Object, Shared: true})
		if err := d.take(needOf(kind, "keys"), Object{Found: source}); err != nil {
			t.Fatal(err)
		}
		return planOf(d)
	}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		first := waiting(t)
		first.in.Planned = comesTo(kind, "1", "2")
		token := offer(t, first)
		if want := "Update on m1; companions: Update " + kind + " keys"; first.record.change.Message != want {
			t.Errorf("it says %q, want %q", first.record.change.Message, want)
		}
		for name, test := range map[string]struct {
			planned *Planned
			same    bool
		}{
			"the same":             {comesTo(kind, "1", "2"), true},
			"another value":        {comesTo(kind, "1", "3"), false},
			"nothing changes":      {comesTo(kind, "2", "2"), false},
			"nobody asks for it":   {planOf(carryingOut(t, nil)), false},
			"somebody else has it": {planOf(carryingOut(t, []backends.Companion{sending(t, kind, "keys", "2", true)}, backends.CompanionObservation{Object: sourceOf(kind, "keys", "1"), Theirs: backends.TheirsForeign})), false},
		} {
			next := again(t, first, func(d *Decision) {
				d.in.FleetWorkload.Annotations = map[string]string{v1alpha1.AnnotationApproveChange: token}
				d.in.Planned = test.planned
			})
			offer(t, next)
			if approved := next.record.change.ApprovedHash != "earlier"; approved != test.same {
				t.Errorf("%s, %s: approved %t", kind, name, approved)
			}
		}
	}
}

// TestNoSecretInAPlan: neither a value nor a hash of it, which would let be guessed what is short.
func TestNoSecretInAPlan(t *testing.T) {
	told := func(value string) string {
		source := sourceOf("Secret", "keys", value)
		source.SetResourceVersion("7")
		d := carryingOut(t, nil, backends.CompanionObservation{Object: sending(t, "Secret", "keys", "was", true).Object, Shared: true})
		if err := d.take(needOf("Secret", "keys"), Object{Found: source}); err != nil {
			t.Fatal(err)
		}
		next := waiting(t)
		next.in.Planned = &Planned{Companions: d.Companions(false)}
		offer(t, next)
		raw, err := json.Marshal(next.record.change)
		if err != nil || len(next.record.change.Companions) != 1 {
			t.Fatalf("%v: %s", err, raw)
		}
		return string(raw)
	}
	if a, b := told("hunter2"), told("hunter3"); a != b || strings.Contains(a, "hunter2") {
		t.Errorf("what it holds can be told apart:\n%s\n%s", a, b)
	}
}

// TestCompanionsBeforeApprovalsBegin: what is carried out already needs no approval, and a companion that changes does.
func TestCompanionsBeforeApprovalsBegin(t *testing.T) {
	for row, waits := range map[*PlannedCompanion]bool{
		ptr.To(plannedTo(v1alpha1.CompanionUpdate, "")):                             true,
		ptr.To(plannedTo(v1alpha1.CompanionDelete, v1alpha1.CompanionNotListed)):    true,
		ptr.To(plannedTo(v1alpha1.CompanionHold, v1alpha1.CompanionClusterPaused)):  true,
		ptr.To(plannedTo(v1alpha1.CompanionHold, v1alpha1.CompanionMissing)):        false,
		ptr.To(plannedTo(v1alpha1.CompanionLeave, v1alpha1.CompanionSomebodyElses)): false,
	} {
		d := waiting(t)
		d.record.change, d.record.revision, d.in.Planned = nil, &v1alpha1.SpecRevision{Name: "web-revision-1"}, &Planned{Companions: []PlannedCompanion{*row}}
		if err := d.awaitApproval(); err != nil || (d.unapproved != "") != waits {
			t.Errorf("%s, %s: %v, %q", row.Action, row.Reason, err, d.unapproved)
		}
	}
}

// TestCompanionsMove with the workload, as they are recorded.
func TestCompanionsMove(t *testing.T) {
	d := waiting(t)
	d.in.Planned, d.in.FleetWorkload.Spec.Backend = nil, "two"
	d.record.placement = &v1alpha1.PlacementRecord{
		Clusters:   []v1alpha1.ClusterShare{{Name: "m1", Replicas: ptr.To[int32](4)}, {Name: "m2"}},
		Companions: []v1alpha1.WorkloadReference{{APIVersion: "v1", Kind: "Service", Name: "web"}},
	}
	offer(t, d)
	if c := d.record.change; c.Message != "Move on m1; companions: Move Service web" || len(c.Companions) != 1 || !slices.Equal(c.Companions[0].Clusters, []string{"m1"}) {
		t.Errorf("it is %+v", c)
	}
}

// TestDependenciesMove with the workload: what the template's pods refer to, but for what never travels.
func TestDependenciesMove(t *testing.T) {
	const template = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"app":"web"}},` +
		`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"serviceAccountName":"web","containers":[{"name":"web","image":"web",` +
		`"envFrom":[{"configMapRef":{"name":"settings"}},{"secretRef":{"name":"key"}}]}]}}}}`
	for policy, want := range map[v1alpha1.DependencyPolicy]string{
		v1alpha1.DependencyPolicyPropagate: "Move on m1; companions: Move ConfigMap settings, Secret key",
		v1alpha1.DependencyPolicyIgnore:    "Move on m1; companions: Move ConfigMap settings",
	} {
		d := waiting(t)
		d.in.Planned, d.in.FleetWorkload.Spec.Backend, d.in.LeaveOut = nil, "two", []string{"ServiceAccount"}
		d.in.FleetWorkload.Spec.Dependencies, d.in.FleetWorkload.Spec.Template.Raw = policy, []byte(template)
		d.record.placement = &v1alpha1.PlacementRecord{
			Clusters:   []v1alpha1.ClusterShare{{Name: "m1", Replicas: ptr.To[int32](4)}},
			Companions: []v1alpha1.WorkloadReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "settings"}},
		}
		if offer(t, d); d.record.change.Message != want {
			t.Errorf("%s: it is %q, want %q", policy, d.record.change.Message, want)
		}
	}
}

// TestManyCompanions: the status has room for some of them, those first that change, and the approval stands for all.
func TestManyCompanions(t *testing.T) {
	long := strings.Repeat("n", 253)
	tokens := map[string]bool{}
	for _, last := range []string{"1", "2"} {
		var all []PlannedCompanion
		for i := range 200 {
			p := plannedTo(v1alpha1.CompanionUpdate, v1alpha1.CompanionClusterPaused)
			p.WorkloadReference = v1alpha1.WorkloadReference{APIVersion: long + "/v1", Kind: strings.Repeat("K", 63), Name: fmt.Sprintf("%s%03d", long[3:], i)}
			for j := range 1000 {
				p.Clusters = append(p.Clusters, fmt.Sprintf("%s%04d", long[:59], j))
				p.PlannedCompanion.Changes = append(p.PlannedCompanion.Changes, strings.Repeat("é", 500)+last)
			}
			all = append(all, p)
		}
		d := waiting(t)
		d.in.Planned = &Planned{Companions: all}
		tokens[offer(t, d)] = true
		c := d.record.change
		raw, err := json.Marshal(c)
		if err != nil || len(raw) > mostCompanionBytes+2048 || len(c.Message) > 2048 || len(c.Companions) == 0 ||
			len(c.Companions)+int(*c.CompanionsTruncated) != len(all) {
			t.Errorf("%d companions are listed in %d bytes: %v", len(c.Companions), len(raw), err)
		}
		for _, row := range c.Companions {
			if len(row.Clusters) != mostCompanionClusters || *row.Truncated != 995 || len(row.Changes) != mostCompanionChanges || *row.ChangesTruncated != 990 {
				t.Errorf("a row is %+v", row)
			}
			for _, change := range row.Changes {
				if len(change) > mostCompanionChange {
					t.Errorf("a change has %d bytes", len(change))
				}
			}
		}
	}
	if len(tokens) != 2 {
		t.Error("the approval does not stand for what is not shown")
	}
}
