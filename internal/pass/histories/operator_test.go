package histories

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

func sprint(args ...any) string { return fmt.Sprint(args...) }

// slot is the place of one FleetWorkload; there may be several of the name, one after the other.
type slot struct {
	name string
	// draft is the spec as it was last edited.
	draft spec
	// object is what the API server has; nil when there is none. cached is what the operator sees of it.
	object, cached *v1alpha1.FleetWorkload
	// dirty asks for a pass, and so does the time due.
	dirty bool
	due   time.Time
	// rebuilt is true of one that was made anew with its management cluster.
	rebuilt bool
	// failures in a row make the next try later.
	failures int
}

// passInfo is what one pass has read: nothing of what it decided.
type passInfo struct {
	id         int
	at         time.Time
	slot       *slot
	uid        string
	generation int64
	deleting   bool
	// handsOver is what status.migration said.
	handsOver bool
	// waits is true when the status said that a change waits for approval.
	waits    bool
	confirm  string
	backend  string
	known    map[string]facts
	selected []string
	settled  bool
	// written is true when what the pass had to record is written.
	written bool
}

// operator is what one process remembers.
type operator struct {
	// begun are the FleetWorkloads whose turn it is; nil until it was looked up.
	begun map[string]bool
	waits map[string]bool
	fresh bool
}

// kinds are shared by all histories; they never change.
func registry() *interpreter.Registry {
	kinds, err := interpreter.New()
	if err != nil {
		panic(err)
	}
	return kinds
}

// errDied ends a pass whose operator has died.
var errDied = errors.New("the operator died")

// turn tells whether it is that FleetWorkload's turn, as controllers.MigrationLimiter does.
func (w *world) turn(s *slot) bool {
	if w.op.begun == nil {
		w.op.begun = map[string]bool{}
		for _, other := range w.slots {
			if fw := other.object; fw != nil && pass.TakesTurn(fw) {
				w.op.begun[other.name] = true
			}
		}
	}
	if w.op.begun[s.name] || len(w.op.begun) < w.atOnce {
		w.op.begun[s.name] = true
		delete(w.op.waits, s.name)
		return true
	}
	w.op.waits[s.name] = true
	return false
}

func (w *world) changeTurn(s *slot, change pass.TurnChange) {
	switch change {
	case pass.TurnGoesOn:
		if w.op.begun != nil {
			w.op.begun[s.name] = true
		}
	case pass.TurnEnds:
		delete(w.op.waits, s.name)
		if w.op.begun[s.name] {
			delete(w.op.begun, s.name)
			for _, other := range w.slots {
				other.dirty = other.dirty || w.op.waits[other.name]
			}
		}
	case pass.TurnKept:
	}
}

// pass takes one FleetWorkload one step closer to its spec, unless the operator dies on the way.
func (w *world) pass(s *slot) {
	s.dirty, s.due = false, time.Time{}
	if s.cached == nil {
		return
	}
	w.passes++
	again, err := w.reconcile(s)
	switch {
	case errors.Is(err, errDied):
		w.restart()
		return
	case err != nil:
		s.failures = min(s.failures+1, 6)
		again = time.Second << s.failures
	default:
		s.failures = 0
	}
	if again > 0 {
		s.due = w.now.Add(again)
	}
}

func (w *world) reconcile(s *slot) (again time.Duration, err error) {
	fw := s.cached
	if fw.DeletionTimestamp == nil && !slices.Contains(fw.Finalizers, v1alpha1.Finalizer) {
		next := *fw
		next.Finalizers = []string{v1alpha1.Finalizer}
		return w.update(s, fw, &next)
	}
	info := w.begin(s)
	d := w.decide(s, info)
	if err := w.keep(d.Keep, fw); err != nil {
		return w.finish(s, info, d.Fail(err), err)
	}
	outcomes := w.carryOut(s, d.Orders, info)
	if w.dead {
		return 0, errDied
	}
	w.remember(fw, d)
	result := d.Conclude(outcomes)
	if err := w.keep(result.Keep, fw); err != nil {
		return w.finish(s, info, d.Fail(err), err)
	}
	return w.finish(s, info, result, nil)
}

// begin notes that a pass has read a FleetWorkload.
func (w *world) begin(s *slot) *passInfo {
	fw := s.cached
	info := &passInfo{
		id: w.passes, at: w.now, slot: s, uid: string(fw.UID), generation: fw.Generation, deleting: fw.DeletionTimestamp != nil,
		handsOver: pass.HandsOver(fw), confirm: fw.Annotations[v1alpha1.AnnotationConfirmRemoval],
		waits: fw.Status.Change != nil && fw.Status.Change.Approval != "",
	}
	info.backend = orElse(fw.Status.Backend, fw.Spec.Backend)
	return info
}

func (w *world) decide(s *slot, info *passInfo) *pass.Decision {
	in := pass.In{
		Settings: pass.Settings{
			Kinds: w.kinds, Backends: []string{gated, plain}, MaxRemovalPercent: 50, MigrationsAtOnce: w.atOnce,
		},
		Rivals: &[]pass.Rival{}, FleetWorkload: s.cached, Now: w.now, Sides: map[string]*pass.Side{}, Objects: map[string]pass.Object{}, Restarts: map[string]*int32{},
	}
	d := pass.Decide(in)
	for ; !d.Reads.Empty(); d = pass.Decide(in) {
		w.read(s, &in, d.Reads)
	}
	w.op.fresh = false
	if b := w.backend(info.backend); b != nil {
		info.known, info.selected, info.settled = readFacts(in.Sides[info.backend])
		info.settled = info.settled && !refusesVersion(d)
	}
	w.tell("  pass %d of %s reads generation %d, knows %s, chosen %v: %d orders, %v", info.id, s.name, info.generation, told(info.known),
		info.selected, len(d.Orders), d.Err())
	w.oracle.read(info)
	return d
}

// refusesVersion tells whether a pass has decided nothing because the spec asks for a version that a cluster does not serve.
func refusesVersion(d *pass.Decision) bool {
	return d.Err() != nil && strings.Contains(d.Err().Error(), "serve the other version")
}

func told(known map[string]facts) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		f := known[name]
		parts = append(parts, name+flag(!f.Label, "(no label)")+flag(!f.Ready, "(lost)")+flag(f.Taint != "", "("+f.Taint+")"))
	}
	return strings.Join(parts, " ")
}

func (w *world) read(s *slot, in *pass.In, reads pass.Reads) {
	for _, read := range reads.Sides {
		b := w.backend(read.Backend)
		if b == nil {
			in.Sides[read.Backend] = &pass.Side{Err: notConfigured(read.Backend)}
			continue
		}
		in.Sides[read.Backend] = readSide(b, s.name, read, w.op.fresh)
	}
	if reads.KeptSpec != "" {
		in.Kept = &pass.KeptSpec{Name: reads.KeptSpec, Spec: w.kept[reads.KeptSpec]}
	}
	for _, need := range reads.Objects {
		in.Objects[need.String()] = pass.Object{}
	}
	if reads.Namespace {
		in.Namespace = &pass.Namespace{}
	}
	if reads.Turn {
		in.Turn = ptr(w.turn(s))
	}
	if reads.Preflight != nil {
		in.Preflight = &pass.Preflight{}
	}
	if reads.Plan {
		in.Planned = ptr(pass.PlanOf(*in, func(in *pass.In, reads pass.Reads) { w.read(s, in, reads) }))
	}
	for _, read := range reads.Restarts {
		in.Restarts[read.Cluster] = nil
	}
}

// keep creates a kept spec.
func (w *world) keep(kept *pass.KeptSpec, _ *v1alpha1.FleetWorkload) error {
	if kept == nil || w.kept[kept.Name] != nil {
		return nil
	}
	if err := w.spend(); err != nil {
		return err
	}
	w.kept[kept.Name] = kept.Spec
	return nil
}

// remember keeps a version of what is shipped. It is no write that is counted, so that histories that were found before there were versions
// are cut off where they were.
func (w *world) remember(fw *v1alpha1.FleetWorkload, d *pass.Decision) {
	if d.History == nil {
		return
	}
	kept := w.versionsOf[fw.UID]
	next := revisions.Decide(kept, d.History.Name, d.History.Limit)
	kept = slices.DeleteFunc(slices.Clone(kept), func(k revisions.Kept) bool {
		return k.Name == d.History.Name || slices.Contains(next.Delete, k.Name)
	})
	w.versionsOf[fw.UID] = append(kept, revisions.Kept{Name: d.History.Name, Number: next.Number})
	d.Remembered(&v1alpha1.SpecRevision{Name: d.History.Name, Number: ptr(next.Number), Older: ptr(next.Older)}, nil)
}

// carryOut has backends carry orders out until one fails.
func (w *world) carryOut(s *slot, orders []pass.Order, info *passInfo) map[string]pass.Outcome {
	outcomes := map[string]pass.Outcome{}
	done, all := false, true
	for _, o := range orders {
		if o.OnlyAfter && !done {
			return outcomes
		}
		outcome := carryOut(w.backend(o.Backend), s.name, o, o.AloneAfter && done, info)
		outcomes[o.Backend] = outcome
		if w.dead || outcome.Err != nil {
			w.tell("    %s: %v", o.Backend, outcome.Err)
			return outcomes
		}
		done = outcome.Progress.Done
		all = all && done
	}
	if len(orders) > 0 && all {
		w.oracle.carriedOut(info)
	}
	return outcomes
}

// finish is the one exit of a pass.
func (w *world) finish(s *slot, info *passInfo, result pass.Result, failed error) (time.Duration, error) {
	if w.dead {
		return 0, errDied
	}
	fw := s.cached
	if result.Gone {
		w.changeTurn(s, pass.TurnEnds)
		next := *fw
		next.Finalizers = nil
		return w.update(s, fw, &next)
	}
	if !result.Unchanged && !equality.Semantic.DeepEqual(fw.Status, result.Status) {
		next := *fw
		next.Status = result.Status
		next.Status.Placement = w.forget(result.Status.Placement)
		if again, err := w.update(s, fw, &next); err != nil || again > 0 {
			return again, err
		}
		w.oracle.status(info, &result.Status)
	}
	info.written = true
	w.changeTurn(s, result.Turn)
	if result.Forget != "" && w.kept[result.Forget] != nil {
		if err := w.spend(); err != nil {
			return 0, orDied(w, err)
		}
		delete(w.kept, result.Forget)
	}
	if failed == nil {
		failed = result.Err
	}
	return result.RequeueAfter, failed
}

func orDied(w *world, err error) error {
	if w.dead {
		return errDied
	}
	return err
}

// update writes a FleetWorkload that nobody else has written meanwhile.
func (w *world) update(s *slot, read, next *v1alpha1.FleetWorkload) (time.Duration, error) {
	if s.object == nil || s.object.ResourceVersion != read.ResourceVersion {
		return retryAfter, nil
	}
	if err := w.spend(); err != nil {
		return 0, orDied(w, err)
	}
	w.tell("    status of %s: %s", s.name, conditions(next))
	w.store(s, next)
	s.cached = s.object
	return 0, nil
}

// store is what the API server does with a write.
func (w *world) store(s *slot, next *v1alpha1.FleetWorkload) {
	w.versions++
	next.ResourceVersion = sprint(w.versions)
	s.object, s.dirty = next, true
	if next.DeletionTimestamp != nil && len(next.Finalizers) == 0 {
		w.tell("  %s is gone", s.name)
		w.oracle.gone(s, next)
		s.object, s.cached = nil, nil
		for name := range w.kept {
			if strings.HasPrefix(name, s.name+"-migration-") {
				delete(w.kept, name)
			}
		}
	}
}

// restart has another operator go on, which remembers nothing.
func (w *world) restart() {
	w.tell("  another operator goes on")
	w.dead, w.cut = false, -1
	w.op = operator{waits: map[string]bool{}, fresh: true}
	for _, s := range w.slots {
		s.cached, s.dirty, s.failures, s.due = s.object, s.object != nil, 0, time.Time{}
	}
	for _, b := range w.backends {
		b.touched["*"] = true
		b.refresh()
	}
}

func conditions(fw *v1alpha1.FleetWorkload) string {
	var parts []string
	for _, c := range fw.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady || c.Status == metav1.ConditionTrue {
			parts = append(parts, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
		if c.Type == v1alpha1.ConditionStalled {
			break
		}
	}
	if m := fw.Status.Migration; m != nil && m.Phase != "" {
		parts = append(parts, fmt.Sprintf("%s→%s %s", m.From, m.To, m.Phase))
		for _, c := range m.Clusters {
			parts = append(parts, fmt.Sprintf("%s %s %s", c.Name, c.Phase, c.Message))
		}
	}
	if p := fw.Status.Placement; p != nil {
		for _, c := range p.Clusters {
			parts = append(parts, fmt.Sprintf("%s:%s/%s%s", c.Name, number(c.Replicas), number(c.Baseline), flag(c.DeselectedAt != nil, "-")))
		}
	}
	return strings.Join(parts, "; ")
}

func number(n *int32) string {
	if n == nil {
		return "-"
	}
	return sprint(*n)
}

func condition(fw *v1alpha1.FleetWorkload, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(fw.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}
