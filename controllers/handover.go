package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/migration"
	"github.com/fleetworkload/fleetworkload/internal/placement"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// end is one backend of a hand-over, as a pass finds it.
type end struct {
	name     string
	driver   backends.Driver
	plan     *plan.Plan
	fleet    backends.Fleet
	observed backends.Observation
}

// handOver is a pass with two backends.
type handOver struct {
	source, target end
	// unavailable names what could not be read.
	unavailable string
	input       migration.Input
	orders      migration.Orders
}

// handsOver tells whether clusters may change hands: the record says so, and it is past Validating.
func handsOver(fw *v1alpha1.FleetWorkload) bool {
	m := fw.Status.Migration
	return m != nil && m.Phase != "" && m.Phase != v1alpha1.MigrationPhaseValidating
}

// handOverSteps are a pass with two backends. Only what its record and both backends say decides; the spec is the one from
// the beginning.
func (r *Reconciler) handOverSteps() []step {
	return []step{
		{"read the spec from the beginning", r.readKeptSpec},
		{"identify workload", r.identify},
		{"observe both backends", r.observeBoth},
		{"understand spec", r.understandBoth},
		{"pin replicas", r.pin},
		{"gather companions", r.gather},
		{"decide", r.decide},
		{"carry out", r.carryOut},
		{"ask a person", r.ask},
	}
}

// observeBoth reads both backends from their API servers. What cannot be read freezes the hand-over.
func (r *Reconciler) observeBoth(ctx context.Context, s *scope) error {
	m, h := s.record.migration, &handOver{}
	s.handOver, s.query.Live = h, true
	h.source.name, h.target.name = m.From, m.To
	for _, e := range []*end{&h.source, &h.target} {
		if err := r.look(ctx, s, e); err != nil {
			h.unavailable = e.name
			next, _ := migration.Decide(*m, migration.Input{Now: s.now.Time, Unavailable: e.name})
			s.backend, s.record.migration = e.name, &next
			return err
		}
	}
	s.merge()
	return nil
}

func (r *Reconciler) look(ctx context.Context, s *scope, e *end) (err error) {
	if e.driver, err = r.Backends.Driver(e.name); err != nil {
		if errors.Is(err, backends.ErrNotConfigured) {
			return stall(v1alpha1.ReasonBackendNotFound,
				"the migration needs backend %q, which is no longer in the operator's configuration; add it again", e.name)
		}
		return err
	}
	if e.fleet, err = e.driver.Clusters(ctx); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	query := s.query
	query.Selectors = placement.Selectors(r.Aliases.Written(s.spec, e.name).Spec.Placement)
	if e.observed, err = e.driver.Observe(ctx, query); err != nil {
		return fmt.Errorf("read reports: %w", err)
	}
	return nil
}

// understandBoth reads the spec with the names that each backend has for its clusters.
func (r *Reconciler) understandBoth(ctx context.Context, s *scope) (err error) {
	if err := r.understand(ctx, s); err != nil {
		return err
	}
	s.handOver.source.plan = s.plan
	s.handOver.target.plan, err = s.plan.With(r.Aliases.Written(s.spec, s.handOver.target.name))
	return err
}

// merge shows the workload as one: of each cluster, the report of the backend whose it is, by the source's name.
func (s *scope) merge() {
	h := s.handOver
	fleet, observed := backends.Fleet{}, backends.Observation{Found: true, Selection: backends.Selection{Settled: true}}
	for _, c := range s.record.migration.Clusters {
		known, is := h.source.fleet.Get(c.Name)
		if !is { // it has left the source, or the fleet
			known, _ = h.target.fleet.Get(migration.NameOnTarget(c))
			known.Name, known.Ready = c.Name, metav1.ConditionUnknown
		}
		of, name := h.source, c.Name
		other, otherName := h.target, migration.NameOnTarget(c)
		if migration.IsTargets(c.Phase) {
			of, name, other, otherName = other, otherName, of, name
		}
		if owner, is := of.fleet.Get(name); is {
			known.Ready = owner.Ready
		}
		fleet.Clusters = append(fleet.Clusters, known)
		if o, is := of.observed.Of(name); is {
			o.Cluster = c.Name
			if last, is := other.observed.Of(otherName); is && o.Status == nil {
				o.Status = last.Status // the new owner has nothing to say yet; what is shown is no longer current
			}
			observed.Clusters = append(observed.Clusters, o)
		}
	}
	observed.Notes = slices.Concat(h.source.observed.Notes, h.target.observed.Notes)
	s.fleet, s.observed = &fleet, &observed
}

// pin gives the clusters of the migration, and no others, their replicas: what was decided before it began, and shares of another
// number once the spec asks for that. Nothing else moves replicas meanwhile, and a cluster that gets none keeps its object.
func (r *Reconciler) pin(_ context.Context, s *scope) error {
	var chosen []string
	for _, c := range s.record.migration.Clusters {
		chosen = append(chosen, c.Name)
	}
	shares := guard.Decided(s.record.placement)
	for _, name := range chosen {
		shares[name] += 0
	}
	if record := s.record.placement; record == nil || record.Replicas == nil || *record.Replicas != s.asked.Replicas {
		var err error
		if shares, err = s.plan.Shares(*s.fleet, chosen, s.current()); err != nil {
			return err
		}
	}
	targets, err := s.plan.Pinned(*s.fleet, chosen, shares)
	if err != nil {
		return err
	}
	s.targets = targets
	if suspended(s.fw) {
		return nil
	}
	record, removal := guard.Check(guard.In{
		Record: s.record.placement, Asked: s.asked, Runs: s.runs(), Next: s.next(), Chosen: chosen,
		Confirmation: s.fw.Annotations[v1alpha1.AnnotationConfirmRemoval], MaxPercent: r.MaxRemovalPercent,
	})
	return s.hold(record, removal)
}

// decide asks the state machine. A record that changes is written before anything follows from it.
func (r *Reconciler) decide(ctx context.Context, s *scope) error {
	h := s.handOver
	h.input = s.migrationInput()
	if suspended(s.fw) {
		h.input.Unavailable = "spec.suspend"
	}
	next, orders := migration.Decide(*s.record.migration, h.input)
	h.orders = orders
	s.countRestarts(ctx, &next)
	s.remember(next)
	return nil
}

// remember ends the pass when the record changes.
func (s *scope) remember(next v1alpha1.MigrationStatus) {
	s.stop = !equalRecords(*s.record.migration, next)
	if s.handOver.orders.TargetOwns {
		s.record.backend = s.handOver.target.name
	}
	if s.handOver.orders.Ended && s.record.backend == s.handOver.target.name {
		s.record.placement = guard.Renamed(s.record.placement, s.onTarget)
	}
	s.record.migration = &next
}

// onTarget is what the target calls a cluster of the migration.
func (s *scope) onTarget(cluster string) string {
	for _, c := range s.record.migration.Clusters {
		if c.Name == cluster {
			return migration.NameOnTarget(c)
		}
	}
	return cluster
}

// turn is what one side is to do in a pass.
type turn struct {
	of    end
	act   migration.Act
	other *bool // whether the other side has nothing left
	gone  *bool
}

// carryOut lets the source take its next step, and then the target; one that is to be released comes first.
func (r *Reconciler) carryOut(ctx context.Context, s *scope) error {
	h := s.handOver
	turns := []turn{
		{h.source, h.orders.Source, &h.input.TargetGone, &h.input.SourceGone},
		{h.target, h.orders.Target, &h.input.SourceGone, &h.input.TargetGone},
	}
	if h.orders.Target == migration.ActRelease {
		slices.Reverse(turns)
	}
	for _, t := range turns {
		progress, err := r.act(ctx, s, t)
		if err != nil {
			s.backend = t.of.name
			return err
		}
		if s.waiting == "" && progress.Waiting != "" {
			s.waiting = fmt.Sprintf("backend %s: %s", t.of.name, progress.Waiting)
		}
		s.backendAgain = sooner(s.backendAgain, progress.Again)
		*t.gone = t.act == migration.ActRelease && progress.Done
	}
	if h.input.SourceGone || h.input.TargetGone {
		next, orders := migration.Decide(*s.record.migration, h.input)
		h.orders = orders
		s.countRestarts(ctx, &next)
		s.remember(next)
	}
	return nil
}

func (r *Reconciler) act(ctx context.Context, s *scope, t turn) (backends.Progress, error) {
	switch t.act {
	case migration.ActApply:
		desired := s.desiredOf(t.of)
		desired.Alone = *t.other
		return t.of.driver.Apply(ctx, desired)
	case migration.ActRelease:
		query := s.query
		query.Heir = true
		return t.of.driver.Delete(ctx, query, v1alpha1.DeletionPolicyOrphan)
	default:
		return backends.Progress{Done: true}, nil
	}
}

// ask ends the pass with what a person has to decide.
func (r *Reconciler) ask(_ context.Context, s *scope) error {
	m, overdue := s.record.migration, s.handOver.orders.Overdue
	if overdue != "" {
		return stall(v1alpha1.ReasonMigrationNotPossible, "the migration to backend %q has handed no cluster over yet: %s. It goes on when that is "+
			"mended; or set spec.backend back to %q", m.To, overdue, m.From)
	}
	if m.Approval == "" || s.handOver.orders.Ended {
		return nil
	}
	approve := fmt.Sprintf("kubectl annotate fleetworkload %s -n %s %s=%s --overwrite", s.fw.Name, s.fw.Namespace,
		v1alpha1.AnnotationApproveMigration, m.Approval)
	back := fmt.Sprintf("set spec.backend back to %q to undo the migration", m.From)
	if m.Failure != "" {
		return stall(v1alpha1.ReasonMigrationFailed, "the migration to backend %q: wave %d failed: %s. Its clusters are in phase %s. Try it "+
			"again with: %s; or %s", m.To, *m.Wave, m.Failure, m.Phase, approve, back)
	}
	return stall(v1alpha1.ReasonMigrationNeedsApproval, "the migration to backend %q: wave %d has passed. Let it go on with: %s; or %s",
		m.To, *m.Wave, approve, back)
}

// progressOf says how far the migration has come.
func progressOf(fw *v1alpha1.FleetWorkload, m v1alpha1.MigrationStatus) string {
	if m.Phase == "" {
		return ""
	}
	handed := 0
	for _, c := range m.Clusters {
		if c.Phase == v1alpha1.MigrationPhaseVerifying || c.Phase == v1alpha1.MigrationPhaseReleasing {
			handed++
		}
	}
	text := fmt.Sprintf("moving from backend %s to %s: %s, %d of %d clusters handed over", m.From, m.To, m.Phase, handed, len(m.Clusters))
	if m.Wave != nil {
		text += fmt.Sprintf(", wave %d", *m.Wave)
	}
	for _, c := range m.Clusters {
		if c.Message != "" {
			text += fmt.Sprintf("; cluster %s: %s", c.Name, c.Message)
			break
		}
	}
	if !migration.KeptAt(m.SpecRevision, fw.Generation) {
		text += "; changes of the spec other than replicas wait until it is over"
	}
	return text
}

// migrationInput translates what both backends say.
func (s *scope) migrationInput() migration.Input {
	h, strategy := s.handOver, s.fw.Spec.Migration
	in := migration.Input{
		Now: s.now.Time, Forward: s.fw.Spec.Backend == h.target.name,
		Waves: migration.Waves(s.spec.Spec.Migration), Timeout: migration.Timeout(strategy), Pause: migration.Pauses(strategy),
		Approval: s.fw.Annotations[v1alpha1.AnnotationApproveMigration], Clusters: map[string]migration.Pair{},
	}
	for _, c := range s.record.migration.Clusters {
		i := slices.IndexFunc(s.targets, func(t backends.Target) bool { return t.Cluster == c.Name })
		var t backends.Target
		if i >= 0 {
			t = s.targets[i]
		}
		in.Clusters[c.Name] = migration.Pair{
			Source: s.sideReport(h.source, c.Name, t), Target: s.sideReport(h.target, migration.NameOnTarget(c), t),
		}
	}
	return in
}

// sideReport is what one backend says of one cluster.
func (s *scope) sideReport(of end, cluster string, t backends.Target) migration.Report {
	o, present := of.observed.Of(cluster)
	c, known := of.fleet.Get(cluster)
	if !present {
		return migration.Report{Unknown: !known}
	}
	r := migration.Report{
		Present: true, Yielded: o.Yielded, Leaving: o.Removing, Desired: o.Desired, Marked: len(o.Marks) > 0, Message: o.Message,
		Rendered: o.Revision == s.plan.Revision && (t.Replicas == nil || o.Desired != nil && *o.Desired == *t.Replicas),
		Current:  o.Current && o.Applied == metav1.ConditionTrue && known && c.Ready == metav1.ConditionTrue,
	}
	r.Evidence.UID = string(o.UID)
	if revision, is := o.Status["updateRevision"].(string); is {
		r.Evidence.PodRevision = revision
	}
	if state := s.interpret(t, o); state != nil {
		r.Evidence.Health, r.Evidence.Ready = state.Health, state.Ready
	}
	return r
}
