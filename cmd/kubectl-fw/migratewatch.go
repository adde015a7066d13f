package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// errEnded ends a watch when the migration is over and the workload is where it was asked to be.
var errEnded = errors.New("the migration is over")

// awaiting follows a migration until it is over, or a person has to decide.
type awaiting struct {
	client  client.Reader
	key     client.ObjectKey
	to      string
	program string
	picture picture

	// shown is the newest state with a migration under way; nil when there was none.
	shown *v1alpha1.FleetWorkload
	// told is what the user knows to be waited for before there is anything to draw.
	told string
	// revision names the spec from the beginning, and began is that spec, nil when it cannot be read.
	revision string
	began    *v1alpha1.FleetWorkloadSpec
}

func (a *awaiting) run(ctx context.Context, c client.WithWatch, streams genericiooptions.IOStreams) error {
	see := func(fw *v1alpha1.FleetWorkload) error { return a.see(ctx, fw, streams.Out) }
	err := follow(ctx, c, a.key, see, streams.ErrOut)
	if a.shown != nil {
		if err := a.picture.end(a.shown, a.view()); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(err, errEnded):
		fmt.Fprintf(streams.Out, "%s is on backend %s\n", a.key, a.to)
		return nil
	case err == nil && ctx.Err() != nil:
		return errors.New("no longer followed; the migration goes on by itself")
	case err == nil:
		return errors.New("it was deleted before it was there")
	default:
		return err
	}
}

// see shows one state, and returns an error when it is the last one.
func (a *awaiting) see(ctx context.Context, fw *v1alpha1.FleetWorkload, out io.Writer) error {
	if !looked(fw) {
		a.tell(out, "waiting for the operator to look at it")
		return nil
	}
	m := fw.Status.Migration
	if m == nil || m.Phase == "" {
		if fw.Status.Backend != fw.Spec.Backend {
			a.tell(out, "waiting for the operator to begin"+unready(fw))
		}
		return a.outcome(fw)
	}
	a.shown = fw.DeepCopy()
	a.learn(ctx, fw.Namespace, m.SpecRevision)
	if err := a.picture.draw(fw, a.view()); err != nil {
		return err
	}
	return decisionNeeded(fw, a.program)
}

// tell says what is waited for until there is something to draw.
func (a *awaiting) tell(out io.Writer, text string) {
	if a.shown == nil && a.told != text {
		fmt.Fprintln(out, text)
	}
	a.told = text
}

func (a *awaiting) view() view { return view{now: time.Now(), program: a.program, began: a.began} }

// looked tells whether the status is about the newest spec.
func looked(fw *v1alpha1.FleetWorkload) bool {
	return fw.Status.ObservedGeneration != nil && *fw.Status.ObservedGeneration == fw.Generation
}

// learn reads the spec from the beginning, by which it is known what waits. Without the right to read it there is less to
// tell, and no more.
func (a *awaiting) learn(ctx context.Context, namespace, revision string) {
	if revision == a.revision {
		return
	}
	a.revision, a.began = revision, nil
	kept, spec := &appsv1.ControllerRevision{}, &v1alpha1.FleetWorkloadSpec{}
	if revision == "" || a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: revision}, kept) != nil {
		return
	}
	if utiljson.Unmarshal(kept.Data.Raw, spec) == nil {
		a.began = spec
	}
}

// outcome tells what it means that no migration is under way.
func (a *awaiting) outcome(fw *v1alpha1.FleetWorkload) error {
	switch on := fw.Status.Backend; {
	case fw.Spec.Backend == a.to && on == a.to:
		return errEnded
	case fw.Spec.Backend != a.to && on == fw.Spec.Backend && rolledBack(fw, a.to):
		return fmt.Errorf("the migration to backend %s was turned round, and nothing is left of it: %s is on backend %s again",
			a.to, a.key, on)
	case fw.Spec.Backend != a.to:
		return fmt.Errorf("spec.backend was set to %s meanwhile: %s is on backend %s", fw.Spec.Backend, a.key, orNone(on))
	case changeWaits(fw):
		return fmt.Errorf("the change of spec.backend waits for a person: %s; let it go on with: %s, or give it up with: %s --to %s",
			fw.Status.Change.Message, commandFor(a.program, "approve", fw), commandFor(a.program, "migrate", fw), on)
	default:
		return stalledNow(fw)
	}
}

// changeWaits tells whether a change of the spec waits for a person, as far as the operator has seen.
func changeWaits(fw *v1alpha1.FleetWorkload) bool {
	c := fw.Status.Change
	return c != nil && c.Approval != "" && c.Approval != fw.Annotations[v1alpha1.AnnotationApproveChange]
}

// rolledBack tells whether the newest migration was one to that backend, and went back.
func rolledBack(fw *v1alpha1.FleetWorkload, to string) bool {
	m := fw.Status.Migration
	return m != nil && len(m.History) > 0 && m.History[0].To == to && m.History[0].Phase == v1alpha1.MigrationPhaseRolledBack
}

// unready says why a FleetWorkload is not ready.
func unready(fw *v1alpha1.FleetWorkload) string {
	ready := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf(": %s: %s", ready.Reason, oneLine(ready.Message))
}

// stalledNow is an error while the operator waits for a person.
func stalledNow(fw *v1alpha1.FleetWorkload) error {
	stalled := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionStalled)
	if stalled == nil || stalled.Status != metav1.ConditionTrue {
		return nil
	}
	return fmt.Errorf("it goes no further: %s: %s", stalled.Reason, stalled.Message)
}

// decisionNeeded is an error when the migration goes no further by itself.
func decisionNeeded(fw *v1alpha1.FleetWorkload, program string) error {
	m := fw.Status.Migration
	approve := commandFor(program, "approve", fw)
	back := fmt.Sprintf("%s --to %s", commandFor(program, "migrate", fw), m.From)
	switch {
	case len(m.Problems) > 0:
		return fmt.Errorf("it cannot begin: %s; it begins by itself when this is mended, or give it up with: %s",
			strings.Join(m.Problems, "; "), back)
	case m.Approval != "" && m.Approval == fw.Annotations[v1alpha1.AnnotationApproveMigration]:
		return nil // the operator has not seen it yet
	case m.Failure != "" && m.Approval != "":
		return fmt.Errorf("wave %s failed: %s; try it again with: %s, or turn round with: %s",
			number(m.Wave), m.Failure, approve, back)
	case m.Approval != "":
		return fmt.Errorf("wave %s has passed and waits for a person; let it go on with: %s, or turn round with: %s",
			number(m.Wave), approve, back)
	default:
		return stalledNow(fw)
	}
}

// picture shows a migration again and again.
type picture interface {
	draw(*v1alpha1.FleetWorkload, view) error
	// end shows the last state with all there is to know of it.
	end(*v1alpha1.FleetWorkload, view) error
}

func pictureOn(out io.Writer) picture {
	if isTerminal(out) {
		return &screen{inPlace{out: out}}
	}
	return &journal{out: out, said: map[string]string{}}
}

// screen draws in place.
type screen struct{ picture inPlace }

// mostOnScreen is how many clusters are shown on a terminal, which may have no room for all of them.
const mostOnScreen = 15

func (s *screen) draw(fw *v1alpha1.FleetWorkload, v view) error {
	v.most = mostOnScreen
	return s.write(fw, v, false)
}

func (s *screen) end(fw *v1alpha1.FleetWorkload, v view) error { return s.write(fw, v, true) }

func (s *screen) write(fw *v1alpha1.FleetWorkload, v view, last bool) error {
	return s.picture.draw(last, func(on io.Writer) error { return writeMigration(on, fw, v) })
}

// journal appends what is new, each line under its time, and the whole at the end.
type journal struct {
	out io.Writer
	// said is the last word about the whole, and about each cluster by its name.
	said  map[string]string
	notes []string
}

func (j *journal) draw(fw *v1alpha1.FleetWorkload, v view) error {
	m := fw.Status.Migration
	j.say(v, "", progressOf(m))
	notes := migrationNotes(fw, v)
	for _, note := range notes {
		if !slices.Contains(j.notes, note) {
			j.write(v, "  "+note)
		}
	}
	frozen := func(note string) bool { return strings.HasPrefix(note, noteFrozen) }
	if slices.ContainsFunc(j.notes, frozen) && !slices.ContainsFunc(notes, frozen) {
		j.write(v, "  no longer frozen")
	}
	j.notes = notes
	for _, c := range m.Clusters {
		text := fmt.Sprintf("  %s: %s", clusterName(c), orNone(string(c.Phase)))
		if c.After != nil {
			text += fmt.Sprintf(", %s ready, %s before", number(c.After.Ready), number(evidence(c.Before).Ready))
		}
		if c.Message != "" {
			text += ": " + oneLine(c.Message)
		}
		j.say(v, c.Name, text)
	}
	return nil
}

// say writes what was not the last word about it.
func (j *journal) say(v view, about, text string) {
	if j.said[about] != text {
		j.write(v, text)
	}
	j.said[about] = text
}

func (j *journal) write(v view, text string) {
	fmt.Fprintf(j.out, "%s %s\n", v.now.Format(time.TimeOnly), text)
}

func (j *journal) end(fw *v1alpha1.FleetWorkload, v view) error {
	fmt.Fprintln(j.out)
	return writeMigration(j.out, fw, v)
}
