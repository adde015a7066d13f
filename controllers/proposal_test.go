package controllers

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/proposal"
)

// propose asks what another spec comes to, and returns the answer. It leaves the question there.
func (w *world) propose(change func(*v1alpha1.FleetWorkloadSpec)) *v1alpha1.ProposalStatus {
	w.t.Helper()
	spec := w.get().Spec.DeepCopy()
	change(spec)
	value, err := proposal.Encode(*spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.ask(value)
}

// ask writes a question as it stands.
func (w *world) ask(value string) *v1alpha1.ProposalStatus {
	w.t.Helper()
	w.edit(func(fw *v1alpha1.FleetWorkload) {
		metav1.SetMetaDataAnnotation(&fw.ObjectMeta, v1alpha1.AnnotationPropose, value)
	})
	w.settle()
	answer := w.get().Status.Proposal
	if answer == nil || answer.Hash != proposal.Hash(value) || answer.AnsweredAt == nil {
		w.t.Fatalf("the answer is %+v", answer)
	}
	return answer
}

// TestWhatIsProposedIsNotCarriedOut: it is answered once, nothing is written for it on a backend, and what it says is what happens when the same
// spec is applied.
func TestWhatIsProposedIsNotCarriedOut(t *testing.T) {
	on := func(names ...string) func(*v1alpha1.FleetWorkloadSpec) {
		return func(spec *v1alpha1.FleetWorkloadSpec) {
			spec.Placement.Clusters = &v1alpha1.ClusterSelector{Names: names}
		}
	}
	for name, test := range map[string]struct {
		change       func(*v1alpha1.FleetWorkloadSpec)
		says, refuse string
		runs         string
	}{
		"another image": {func(spec *v1alpha1.FleetWorkloadSpec) {
			spec.Template.Raw = []byte(strings.Replace(template, "nginx:1", "nginx:2", 1))
		}, "Update on m1, m2, m3", "", "4 2 2"},
		"other replicas":     {func(spec *v1alpha1.FleetWorkloadSpec) { spec.Replicas = new(int32); *spec.Replicas = 4 }, "Scale on m1, m2, m3", "", "2 1 1"},
		"fewer clusters":     {on("m1", "m2"), "Remove on m3, Scale on m1, m2", "", "5 3 -1"},
		"none of it":         {func(*v1alpha1.FleetWorkloadSpec) {}, "nothing changes on any cluster", "", "4 2 2"},
		"suspended, too":     {func(spec *v1alpha1.FleetWorkloadSpec) { spec.Suspend = new(bool); *spec.Suspend = true; on("m1")(spec) }, "nothing changes on any cluster", "", "4 2 2"},
		"a backend too many": {func(spec *v1alpha1.FleetWorkloadSpec) { spec.Backend = "two" }, "it would be handed over from backend one to two: Move on m1, m2, m3", "", ""},
		"of another kind": {func(spec *v1alpha1.FleetWorkloadSpec) {
			spec.Template.Raw = []byte(`{"apiVersion":"v1","kind":"Node"}`)
		}, "", "the kind of spec.template cannot change", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(divide(8))
			w.settle()
			w.membersRun("4 2 2")
			sent := w.backend.Writes()
			answer := w.propose(test.change)
			if answer.Message != test.says || !strings.Contains(answer.Refused, test.refuse) || (answer.Refused == "") != (test.refuse == "") {
				t.Errorf("the answer is %+v", answer)
			}
			if w.backend.Writes() != sent {
				t.Errorf("%d writes on the backend", w.backend.Writes()-sent)
			}
			w.membersRun("4 2 2")
			w.expect(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

			w.later(3600)
			writes := w.writes
			if _, err := w.reconcile(); err != nil || w.writes != writes {
				t.Errorf("it is answered again: %d writes, %v", w.writes-writes, err)
			}
			w.edit(func(fw *v1alpha1.FleetWorkload) { delete(fw.Annotations, v1alpha1.AnnotationPropose) })
			w.settle()
			if got := w.get().Status.Proposal; got != nil {
				t.Errorf("nobody asks any more, and the status says %+v", got)
			}
			if test.runs != "" {
				w.edit(func(fw *v1alpha1.FleetWorkload) { test.change(&fw.Spec) })
				w.settle()
				w.membersRun(test.runs)
			}
		})
	}
}

// TestNonsenseIsAnswered: whatever is asked, the FleetWorkload goes on.
func TestNonsenseIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.create(divide(8))
	w.settle()
	if got := w.ask("nonsense"); !strings.Contains(got.Refused, "gzip and base64") {
		t.Errorf("the answer is %+v", got)
	}
	w.scale(4)
	w.settle()
	w.membersRun("2 1 1")
}
