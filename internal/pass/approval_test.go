package pass

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// waiting is a pass over a FleetWorkload on backend one whose changes a person has to approve, with an update of m1 and m2.
func waiting(t *testing.T) *Decision {
	t.Helper()
	d := moving(t)
	d.handOver, d.record.migration = nil, nil
	d.in.FleetWorkload = d.in.FleetWorkload.DeepCopy()
	d.in.FleetWorkload.Spec.Backend, d.in.FleetWorkload.Status.Migration = "one", nil
	d.in.FleetWorkload.Spec.Approval = v1alpha1.ApprovalPolicyManual
	d.in.Planned = &Planned{Clusters: []v1alpha1.PlannedCluster{
		{Name: "m1", Action: v1alpha1.PlannedUpdate, Replicas: ptr.To[int32](2)}, {Name: "m2", Action: v1alpha1.PlannedUpdate, Replicas: ptr.To[int32](2)},
	}}
	d.record.change = &v1alpha1.ChangeStatus{ApprovedHash: "earlier"}
	return d
}

// offer runs the step, and returns what can be approved.
func offer(t *testing.T, d *Decision) string {
	t.Helper()
	if err := d.awaitApproval(); err != nil {
		t.Fatal(err)
	}
	return d.record.change.Approval
}

// again is the pass after one, with the record that it has left.
func again(t *testing.T, d *Decision, edit func(*Decision)) *Decision {
	t.Helper()
	next := waiting(t)
	next.record.change = d.record.change
	edit(next)
	return next
}

func TestAChangeWaits(t *testing.T) {
	d := waiting(t)
	token := offer(t, d)
	if token == "" || d.record.change.ApprovedHash != "earlier" || d.record.change.Message != "Update on m1, m2" {
		t.Errorf("the record is %+v", d.record.change)
	}
	if !suspended(d.in.FleetWorkload) || !suspended(d.spec) || !suspended(d.here) {
		t.Error("it is not left as it is")
	}
	if want := "kubectl annotate fleetworkload web -n shop fleetworkload.io/approve-change=" + token; !strings.Contains(d.unapproved, want) {
		t.Errorf("it says %q", d.unapproved)
	}
	if d.requeueAfter != approvalHolds {
		t.Errorf("it looks again after %s", d.requeueAfter)
	}
}

// TestWhatAnApprovalStandsFor: the spec and what it does on each cluster, for a day, and no number of replicas.
func TestWhatAnApprovalStandsFor(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*Decision)
		same bool
	}{
		"nothing changes": {func(*Decision) {}, true},
		"it is scaled": {func(d *Decision) {
			d.in.FleetWorkload.Spec.Replicas, d.in.Planned.Clusters[0].Replicas = ptr.To[int32](9), ptr.To[int32](7)
		}, true},
		"it is suspended": {func(d *Decision) { d.in.FleetWorkload.Spec.Suspend = ptr.To(true) }, true},
		"23 hours later":  {func(d *Decision) { d.now = metav1.NewTime(d.now.Add(23 * time.Hour)) }, true},
		"a day later":     {func(d *Decision) { d.now = metav1.NewTime(d.now.Add(approvalHolds)) }, false},
		"a cluster joins": {func(d *Decision) {
			d.in.Planned.Clusters = append(d.in.Planned.Clusters, v1alpha1.PlannedCluster{Name: "m3", Action: v1alpha1.PlannedCreate})
		}, false},
		"a cluster is removed":   {func(d *Decision) { d.in.Planned.Clusters[1].Action = v1alpha1.PlannedRemove }, false},
		"for another reason":     {func(d *Decision) { d.in.Planned.Clusters[1].Reason = v1alpha1.RemovalClusterLeft }, false},
		"the template is edited": {func(d *Decision) { d.in.FleetWorkload.Spec.Template.Raw = []byte(`{}`) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			first := waiting(t)
			token := offer(t, first)
			next := again(t, first, func(d *Decision) {
				d.in.FleetWorkload.Annotations = map[string]string{v1alpha1.AnnotationApproveChange: token}
				test.edit(d)
			})
			got := offer(t, next)
			approved := next.record.change.ApprovedHash != "earlier"
			if approved != test.same || test.same != (got == "") {
				t.Errorf("approved: %t, and %q is offered after %q", approved, got, token)
			}
			if next.unapproved == "" || !suspended(next.in.FleetWorkload) {
				t.Error("it is carried out before the approval is recorded")
			}
			if !test.same && !strings.Contains(next.unapproved, "no longer what would be done") {
				t.Errorf("it says %q", next.unapproved)
			}
			if test.same {
				after := again(t, next, test.edit)
				if err := after.awaitApproval(); err != nil || after.unapproved != "" {
					t.Errorf("after the approval: %v, %q", err, after.unapproved)
				}
			}
		})
	}
}

// TestWhatHasChangedSinceItWasApproved is said for as long as the annotation stands, whoever was first: the person, or the change.
func TestWhatHasChangedSinceItWasApproved(t *testing.T) {
	joins := func(d *Decision) {
		d.in.Planned.Clusters = append(d.in.Planned.Clusters, v1alpha1.PlannedCluster{Name: "m3", Action: v1alpha1.PlannedCreate})
	}
	for name, test := range map[string]struct {
		edit  func(*Decision)
		since string
	}{
		"a cluster joins": {joins, "it comes to something else now"},
		"the spec is edited": {func(d *Decision) {
			d.in.FleetWorkload.Generation++
			d.in.FleetWorkload.Spec.Template.Raw = []byte(`{}`)
		}, "the spec was edited since"},
		"nobody approves it in time": {func(d *Decision) { d.now = metav1.NewTime(d.now.Add(approvalHolds)) }, "nobody approved it in time"},
	} {
		for _, before := range []bool{true, false} {
			first := waiting(t)
			token := offer(t, first)
			approve := func(d *Decision) {
				d.in.FleetWorkload.Annotations = map[string]string{v1alpha1.AnnotationApproveChange: token}
			}
			second := again(t, first, func(d *Decision) {
				test.edit(d)
				if before {
					approve(d)
				}
			})
			offered := offer(t, second)
			if offered == token {
				t.Fatalf("%s: %q is offered again", name, token)
			}
			third := again(t, second, func(d *Decision) { test.edit(d); approve(d) })
			third.in.FleetWorkload.Status.ObservedGeneration = &third.in.FleetWorkload.Generation
			if got := offer(t, third); got != offered {
				t.Errorf("%s: %q is offered after %q", name, got, offered)
			}
			want := "what was approved (" + token + ": Update on m1, m2) is no longer what would be done, as " + test.since + ": "
			for _, d := range []*Decision{second, third} {
				if got := strings.HasPrefix(d.unapproved, want); got != (before || d == third) {
					t.Errorf("%s: it says %q", name, d.unapproved)
				}
			}
			if !reflect.DeepEqual(second.record.change, third.record.change) {
				t.Errorf("%s: the record changes at rest: %+v, then %+v", name, second.record.change, third.record.change)
			}
		}
	}
}

// TestWhatNobodyAsksAbout: what was approved and carried out is not held against the next change, and what was superseded is forgotten once it
// can be approved again. What stands for nothing is named.
func TestWhatNobodyAsksAbout(t *testing.T) {
	first := waiting(t)
	token := offer(t, first)
	annotated := func(value string) func(*Decision) {
		return func(d *Decision) {
			d.in.FleetWorkload.Annotations = map[string]string{v1alpha1.AnnotationApproveChange: value}
		}
	}
	done := again(t, first, annotated(token))
	offer(t, done)
	next := again(t, done, func(d *Decision) {
		annotated(token)(d)
		d.in.FleetWorkload.Spec.Template.Raw = []byte(`{}`)
	})
	if got := offer(t, next); got == token || !strings.HasPrefix(next.unapproved, "a change of the spec waits for approval: ") {
		t.Errorf("after %q, %q is offered, and it says %q", token, got, next.unapproved)
	}
	mistyped := again(t, first, annotated(strings.Repeat("x", 1000)))
	offer(t, mistyped)
	if !strings.HasPrefix(mistyped.unapproved, "what the annotation approves (x") || len(mistyped.unapproved) > 600 {
		t.Errorf("it says %q", mistyped.unapproved)
	}
	moved := again(t, first, func(d *Decision) { d.in.Planned.Clusters = d.in.Planned.Clusters[:1] })
	offer(t, moved)
	if last := moved.record.change.Superseded; last == nil || last.Approval != token {
		t.Errorf("the record is %+v", moved.record.change)
	}
	back := again(t, moved, func(*Decision) {})
	if got := offer(t, back); got != token || back.record.change.Superseded.Approval == token {
		t.Errorf("%q is offered after %q, with %+v", got, token, back.record.change.Superseded)
	}
}

// TestAnApprovalNamesWhatItTakesOut: that is recorded with it, and the rehearsal of what nobody has approved yet takes out whatever it has to.
func TestAnApprovalNamesWhatItTakesOut(t *testing.T) {
	named := func(record *v1alpha1.PlacementRecord) (names []string) {
		for _, c := range record.Clusters {
			if c.RemovalApprovedAt != nil {
				names = append(names, c.Name)
			}
		}
		return names
	}
	record := &v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{{Name: "m1"}, {Name: "m2"}}}
	first := waiting(t)
	first.in.Planned.Clusters[1].Action, first.record.placement = v1alpha1.PlannedRemove, record
	token := offer(t, first)
	if got := named(first.record.placement); got != nil {
		t.Errorf("before it is approved: %v", got)
	}
	next := again(t, first, func(d *Decision) {
		d.in.FleetWorkload.Annotations = map[string]string{v1alpha1.AnnotationApproveChange: token}
		d.in.Planned, d.record.placement = first.in.Planned, record
	})
	offer(t, next)
	if got := named(next.record.placement); !slices.Equal(got, []string{"m2"}) || named(record) != nil {
		t.Errorf("%v is approved, and what was read says %v", got, named(record))
	}
	fw := waiting(t).in.FleetWorkload
	fw.Status.Placement, fw.Status.Change = record, first.record.change
	if rehearsed, err := approved(fw, first.now.Time); err != nil || !slices.Equal(named(rehearsed.Status.Placement), []string{"m1", "m2"}) {
		t.Errorf("it is rehearsed with %v: %v", named(rehearsed.Status.Placement), err)
	}
	fw.Status.Placement, fw.Status.Change = next.record.placement, next.record.change
	if rehearsed, err := approved(fw, first.now.Time); err != nil || !slices.Equal(named(rehearsed.Status.Placement), []string{"m2"}) {
		t.Errorf("once it is approved, it is rehearsed with %v: %v", named(rehearsed.Status.Placement), err)
	}
}

// TestWhatCannotBeApproved: nobody approves what nobody can tell.
func TestWhatCannotBeApproved(t *testing.T) {
	for name, planned := range map[string]Planned{
		"the backend has not chosen": {Unsettled: true}, "it would be refused": {Problem: "spec.template: no containers"},
		"it would be refused at length": {Problem: strings.Repeat("é", mostSummary)},
	} {
		d := waiting(t)
		d.in.Planned = &planned
		if token := offer(t, d); token != "" || !suspended(d.in.FleetWorkload) || !strings.Contains(d.unapproved, "cannot be approved yet") {
			t.Errorf("%s: %q, %q", name, token, d.unapproved)
		}
		if n := len(d.record.change.Message); n > mostSummary || strings.ContainsRune(d.record.change.Message, '�') {
			t.Errorf("%s: the message has %d bytes", name, n)
		}
	}
}

// TestAnApprovalOutlivesAMoment: while the backend cannot be asked, nothing is offered; then the same is, until the same time.
func TestAnApprovalOutlivesAMoment(t *testing.T) {
	first := waiting(t)
	token := offer(t, first)
	lost := again(t, first, func(d *Decision) { d.in.Planned = &Planned{Problem: "the backend cannot be reached"} })
	if got := offer(t, lost); got != "" {
		t.Errorf("%q is offered", got)
	}
	back := again(t, lost, func(d *Decision) { d.now = metav1.NewTime(d.now.Add(time.Hour)) })
	if got := offer(t, back); got != token {
		t.Errorf("%q is offered after %q", got, token)
	}
}

// TestWhatIsCarriedOutAlready needs no approval when approvals begin. What never was carried out does, though it comes to nothing now.
func TestWhatIsCarriedOutAlready(t *testing.T) {
	for shipped, waits := range map[*v1alpha1.SpecRevision]bool{{Name: "web-revision-1"}: false, nil: true} {
		d := waiting(t)
		d.record.change, d.record.revision, d.in.Planned = nil, shipped, &Planned{}
		if err := d.awaitApproval(); err != nil || (d.unapproved != "") != waits {
			t.Errorf("with %v: %v, %q", shipped, err, d.unapproved)
		}
	}
	edited := waiting(t)
	edited.record.change, edited.record.revision, edited.in.Planned = nil, &v1alpha1.SpecRevision{Name: "web-revision-1"}, &Planned{Edited: true}
	if err := edited.awaitApproval(); err != nil || edited.unapproved == "" {
		t.Errorf("an edit that changes nothing yet: %v, %q", err, edited.unapproved)
	}
	d := waiting(t)
	d.in.FleetWorkload.Spec.Approval = ""
	if err := d.awaitApproval(); err != nil || d.record.change != nil || d.unapproved != "" {
		t.Errorf("without approvals: %v, %+v", err, d.record.change)
	}
}

// TestAMoveWaits: it is not rehearsed, and touches each cluster that has the workload.
func TestAMoveWaits(t *testing.T) {
	d := waiting(t)
	d.in.Planned, d.in.FleetWorkload.Spec.Backend = nil, "two"
	d.record.placement = &v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{{Name: "m1", Replicas: ptr.To[int32](4)}, {Name: "m2"}}}
	if offer(t, d); d.record.change.Message != "Move on m1" || d.Reads.Plan {
		t.Errorf("it is %+v", d.record.change)
	}
	if err := d.validate(); err != nil || d.begins != nil {
		t.Errorf("it begins: %v, %+v", err, d.begins)
	}
	if err := d.keepShipped(); err != nil || d.History != nil {
		t.Errorf("it is kept as shipped: %v, %+v", err, d.History)
	}
}

// TestManyClusters: the status lists some of them, and the approval stands for all.
func TestManyClusters(t *testing.T) {
	tokens := map[string]bool{}
	for _, last := range []v1alpha1.PlannedAction{v1alpha1.PlannedUpdate, v1alpha1.PlannedRemove} {
		d := waiting(t)
		all := make([]v1alpha1.PlannedCluster, 1000)
		for i := range all {
			all[i] = v1alpha1.PlannedCluster{Name: "c", Action: v1alpha1.PlannedUpdate}
		}
		all[len(all)-1].Action = last
		d.in.Planned = &Planned{Clusters: all}
		tokens[offer(t, d)] = true
		if c := d.record.change; len(c.Clusters) != mostPlanned || *c.Truncated != int32(1000-mostPlanned) || len(c.Message) > 200 {
			t.Errorf("%d clusters are listed, %d are not, and the message is %q", len(c.Clusters), *c.Truncated, c.Message)
		}
	}
	if len(tokens) != 2 {
		t.Error("the approval does not stand for the last cluster")
	}
}

func TestRows(t *testing.T) {
	two, three := ptr.To[int32](2), ptr.To[int32](3)
	own := func(change func(*backends.ClusterObservation)) *backends.ClusterObservation {
		o := &backends.ClusterObservation{Revision: "r1", Asked: two, Applied: metav1.ConditionTrue, Status: map[string]any{}}
		change(o)
		return o
	}
	held := func(o *backends.ClusterObservation) { o.Held, o.Applied, o.Runs = true, metav1.ConditionUnknown, "r0" }
	for name, test := range map[string]struct {
		mode backends.Mode
		o    *backends.ClusterObservation
		want v1alpha1.PlannedAction
	}{
		"as it is":                         {backends.ModeOwn, own(func(*backends.ClusterObservation) {}), ""},
		"nothing there":                    {backends.ModeOwn, nil, v1alpha1.PlannedCreate},
		"nothing there, and may be":        {backends.ModeAdopt, nil, v1alpha1.PlannedCreateOrAdopt},
		"nobody has asked":                 {backends.ModeProbe, nil, v1alpha1.PlannedCreateOrAdopt},
		"it has not answered":              {backends.ModeProbe, own(func(o *backends.ClusterObservation) { o.Probe = &backends.ProbeResult{} }), v1alpha1.PlannedCreateOrAdopt},
		"there is none":                    {backends.ModeProbe, own(func(o *backends.ClusterObservation) { o.Probe = &backends.ProbeResult{Answered: true} }), v1alpha1.PlannedCreate},
		"another revision":                 {backends.ModeOwn, own(func(o *backends.ClusterObservation) { o.Revision = "r0" }), v1alpha1.PlannedUpdate},
		"another number":                   {backends.ModeOwn, own(func(o *backends.ClusterObservation) { o.Asked = three }), v1alpha1.PlannedScale},
		"the next one is ready, held back": {backends.ModeOwn, own(held), v1alpha1.PlannedUpdate},
		"held back as it is":               {backends.ModeOwn, own(func(o *backends.ClusterObservation) { o.Held = true }), ""},
		"held back from the start": {backends.ModeOwn, own(func(o *backends.ClusterObservation) {
			o.Held, o.Applied, o.Status = true, metav1.ConditionUnknown, nil
		}), v1alpha1.PlannedCreate},
		"named, and nothing made for it": {backends.ModeOwn, &backends.ClusterObservation{Applied: metav1.ConditionUnknown}, v1alpha1.PlannedCreate},
		"nothing but companions": {backends.ModeOwn, &backends.ClusterObservation{
			Applied: metav1.ConditionUnknown, Presence: backends.PresenceReleased, Foreign: []string{"ConfigMap/common"},
		}, v1alpha1.PlannedCreate},
		"without replicas, and silent": {backends.ModeOwn, &backends.ClusterObservation{Applied: metav1.ConditionUnknown, Revision: "r0"}, v1alpha1.PlannedUpdate},
		"it was asked":                 {backends.ModeAdopt, own(func(o *backends.ClusterObservation) { o.Probe = &backends.ProbeResult{Exists: true} }), v1alpha1.PlannedAdopt},
		"somebody else's":              {backends.ModeOwn, own(func(o *backends.ClusterObservation) { o.Conflict = true }), ""},
		"on its way out":               {backends.ModeOwn, own(func(o *backends.ClusterObservation) { o.Presence = backends.PresenceRemoving }), v1alpha1.PlannedCreate},
		"to be removed":                {backends.ModeRemove, own(func(*backends.ClusterObservation) {}), v1alpha1.PlannedRemove},
		"to be held":                   {backends.ModeHold, own(func(*backends.ClusterObservation) {}), ""},
	} {
		if got := rowOf(backends.Target{Cluster: "m1", Mode: test.mode, Replicas: two}, test.o, "r1"); got.Action != test.want {
			t.Errorf("%s: %q, want %q", name, got.Action, test.want)
		}
	}
	// A held cluster is asked for the next number already: what was decided before counts.
	d := waiting(t)
	d.observed.Clusters = []backends.ClusterObservation{*own(func(o *backends.ClusterObservation) { held(o); o.Cluster, o.Asked = "m1", three }), {Cluster: "m2", Asked: two}}
	d.Orders = []Order{{Apply: &backends.Desired{Targets: []backends.Target{{Cluster: "m1", Mode: backends.ModeOwn, Replicas: three}}}}}
	rows := d.Rows(&v1alpha1.PlacementRecord{Clusters: []v1alpha1.ClusterShare{{Name: "m1", Replicas: two}}})
	if len(rows) != 2 || *rows[0].ReplicasBefore != 2 || *rows[0].Replicas != 3 || !rows[1].Unsaid {
		t.Errorf("rows are %+v", rows)
	}
}

// TestEveryFieldIsApprovedOrFree: a field that is added to the spec waits for approval, or does not on purpose.
func TestEveryFieldIsApprovedOrFree(t *testing.T) {
	free := []string{"Replicas", "Migration", "DeletionPolicy", "Suspend", "Approval", "RevisionHistoryLimit"}
	spec := reflect.TypeFor[v1alpha1.FleetWorkloadSpec]()
	for i := range spec.NumField() {
		full := v1alpha1.FleetWorkloadSpec{}
		field := reflect.ValueOf(&full).Elem().Field(i)
		fill(field)
		kept := !reflect.ValueOf(Approvable(full)).Field(i).IsZero()
		if name := spec.Field(i).Name; kept == slices.Contains(free, name) {
			t.Errorf("%s is kept: %t", name, kept)
		}
	}
}

// fill sets a field to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct:
		fill(v.Field(0))
	default:
		panic("unknown kind " + v.Kind().String())
	}
}
