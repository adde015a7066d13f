package pass

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/migration"
)

// beginning is a change of spec.backend that has not begun. Until it does, the workload is served by the backend that has it, edits
// included, and nothing changes in the fleet.
type beginning struct {
	next v1alpha1.MigrationStatus
	// waitsForTurn is true while other FleetWorkloads are being handed over first.
	waitsForTurn bool
	err          error
}

// validate looks whether a change of spec.backend can begin. The turn comes first: examining asks the target, again and again for as
// long as it is waited for.
func (d *Decision) validate() error {
	if d.in.FleetWorkload.Spec.Backend == d.backend || d.unapproved != "" {
		d.end.Turn = TurnEnds
		d.record.migration = onlyHistory(d.record.migration)
		return nil
	}
	d.begins = &beginning{next: d.thoughtOf()}
	switch {
	case d.in.Turn == nil:
		d.Reads.Turn = true
		return errEnough
	case !*d.in.Turn:
		d.begins.waitsForTurn = true
		if m := d.record.migration; m != nil && m.From == d.begins.next.From && m.To == d.begins.next.To {
			d.begins.next.Problems, d.begins.next.Clusters = m.Problems, m.Clusters // they stand until it is examined again
		}
		return nil
	}
	err := d.examine()
	if errors.Is(err, errEnough) {
		return err
	}
	d.begins.err = err
	return nil
}

// begin says what becomes of a change of spec.backend, once the present backend has taken its step.
func (d *Decision) begin() error {
	b := d.begins
	switch {
	case b == nil:
		return nil
	case b.err != nil:
		d.end.Turn = TurnEnds
		return b.err
	}
	next := b.next
	d.record.migration = &next
	if b.waitsForTurn && len(next.Problems) == 0 {
		d.waiting = cmp.Or(d.waiting, fmt.Sprintf(
			"its turn to move to backend %s: the operator's configuration allows %d migrations at once (migrations.atOnce)", next.To, d.in.MigrationsAtOnce))
		return nil
	}
	if len(next.Problems) > 0 {
		if !b.waitsForTurn {
			d.end.Turn = TurnEnds
		}
		return &stalled{reason: v1alpha1.ReasonMigrationNotPossible, again: !b.waitsForTurn, message: fmt.Sprintf(
			"spec.backend %q: the workload stays on backend %q; mend what follows, or set spec.backend back to %q: %s",
			next.To, next.From, next.From, few(next.Problems))}
	}
	if left := d.left(); d.waiting == "" && len(left) > 0 {
		d.waiting = fmt.Sprintf("%s to let go of the workload, before it moves to backend %s", brief.List(left), next.To)
	}
	if d.waiting != "" || !d.carriedOut() {
		d.end.Turn = TurnEnds
		return nil // the present backend carries the present spec out first
	}
	return d.firstStep(next)
}

// left are the clusters that are not to have the workload and on which the backend still has something of it. A release would leave there
// for ever what is to be removed.
func (d *Decision) left() (names []string) {
	wanted := d.wanted()
	for _, o := range d.observed.Clusters {
		if !slices.ContainsFunc(wanted, func(t backends.Target) bool { return t.Cluster == o.Cluster }) {
			names = append(names, o.Cluster)
		}
	}
	return names
}

// carriedOut tells whether every cluster has taken the present manifest, as its report says.
func (d *Decision) carriedOut() bool {
	return !slices.ContainsFunc(d.wanted(), func(t backends.Target) bool {
		o, known := d.observed.Of(t.Cluster)
		return !known || o.Applied != metav1.ConditionTrue || o.Revision != d.work.plan.Revision
	})
}

// firstStep keeps the spec and takes the first step.
func (d *Decision) firstStep(next v1alpha1.MigrationStatus) error {
	fw := d.in.FleetWorkload
	spec := migration.Kept(fw.Spec)
	name, err := migration.KeptName(d.known(fw), spec, fw.Generation)
	if err != nil {
		return err
	}
	d.end.Keep = &KeptSpec{Name: name, Spec: &spec}
	next.SpecRevision = name
	next, _ = migration.Decide(next, migration.Input{Now: d.now.Time, Forward: true})
	d.record.migration = &next
	return nil
}

// few are as many problems as a condition's message can hold.
func few(problems []string) string {
	const most = 20
	if n := len(problems) - most; n > 0 {
		return fmt.Sprintf("%s; and %d more, see status.migration.problems", strings.Join(problems[:most], "; "), n)
	}
	return strings.Join(problems, "; ")
}

// thoughtOf is the record of a migration that has not begun.
func (d *Decision) thoughtOf() v1alpha1.MigrationStatus {
	next := v1alpha1.MigrationStatus{
		From: d.backend, To: d.in.FleetWorkload.Spec.Backend, Phase: v1alpha1.MigrationPhaseValidating, StartedAt: &d.now,
	}
	if m := d.record.migration; m != nil {
		next.History = m.History
		if m.Phase == v1alpha1.MigrationPhaseValidating && m.From == next.From && m.To == next.To {
			next.StartedAt = m.StartedAt
		}
	}
	return next
}

// mostProblems is how many of them the status lists, and maxProblemBytes how long they are together.
const (
	mostProblems    = 64
	maxProblemBytes = 24 << 10
)

// examine lists the clusters that would change hands, and all that stands against it.
func (d *Decision) examine() error {
	to := d.in.FleetWorkload.Spec.Backend
	var problems []string
	if suspended(d.in.FleetWorkload) {
		problems = append(problems, "spec.suspend: while it is true nothing changes hands; set it to false")
	}
	if paused := d.refusePaused(); paused != "" {
		problems = append(problems, paused)
	}
	if len(d.placed.held) > 0 {
		problems = append(problems, fmt.Sprintf("spec.placement.failover: %s was given up and keeps what it runs; wait until it is back, or "+
			"until the others are healthy with purge Graceful, or take it off with purge Immediate", brief.List(d.placed.held)))
	}
	for _, o := range d.observed.Clusters {
		if o.Left != nil {
			problems = append(problems, fmt.Sprintf("spec.drift %q: cluster %s keeps what somebody else has changed there, which would be put back when "+
				"the workload moves; have the FleetWorkload say it, or set spec.drift to Correct: %s", v1alpha1.DriftPolicyReport, o.Cluster, o.Left.Others))
		}
	}
	for _, name := range d.left() {
		if c, known := d.fleet.Get(name); known && c.Ready != metav1.ConditionTrue {
			problems = append(problems, fmt.Sprintf("cluster %s: it is left, still has what it ran, and cannot be reached; wait until it is back, or "+
				"remove it from backend %q if it does not come back", name, d.backend))
		}
	}
	if err := d.terms.Backend(to); err != nil {
		d.object(append(problems, err.Error()))
		return nil
	}
	target, err := d.side(SideRead{Backend: to, Fleet: true})
	if errors.Is(err, errEnough) {
		return err
	}
	if err != nil {
		d.object(append(problems, fmt.Sprintf("backend %q: %v", to, err)))
		return nil
	}
	there, err := d.work.plan.With(d.in.Aliases.Written(d.spec, to))
	if err != nil {
		return err
	}
	candidate := migration.Candidate{
		Source: d.migrationSide(d.backend, *d.fleet), Target: d.migrationSide(to, *target.Fleet),
		Plan: d.work.plan, There: there, Aliases: d.in.Aliases, Targets: d.wanted(), Strategy: d.here.Spec.Migration,
	}
	clusters, found := candidate.Validate()
	d.begins.next.Clusters = clusters
	problems = append(problems, found...)
	if outside := d.outOfReach(*target.Fleet, migration.NameOnTarget, clusters); len(outside) > 0 {
		problems = append(problems, fmt.Sprintf("backend %q: %v", to, d.terms.Clusters(outside)))
	}
	if len(clusters) > 0 {
		if d.in.Preflight == nil {
			desired := there.Desired(targetsOf(d.placed.targets, clusters, migration.NameOnTarget, observe))
			d.Reads.Preflight = &PreflightRead{Backend: to, Desired: desired, Source: d.backend, On: namesOf(clusters)}
			return errEnough
		}
		problems = append(problems, d.in.Preflight.problems(to)...)
		problems = append(problems, d.in.Preflight.goes(d.backend)...)
	}
	d.object(problems)
	return nil
}

func (d *Decision) migrationSide(backend string, fleet backends.Fleet) migration.Side {
	return migration.Side{Name: backend, Features: d.in.Sides[backend].Features, Fleet: fleet}
}

// problems words what stands against a hand-over. What could not be asked stands against a beginning, and passes.
func (p Preflight) problems(backend string) (all []string) {
	if p.Err != nil {
		return []string{fmt.Sprintf("backend %s: %v", backend, p.Err)}
	}
	for _, why := range p.Against {
		all = append(all, fmt.Sprintf("backend %s: %s", backend, why))
	}
	return all
}

// goes words what would go from clusters with the backend that is left.
func (p Preflight) goes(backend string) (all []string) {
	for _, b := range p.Brought {
		remedy := "bring it there another way"
		if b.Preserve != "" {
			remedy = fmt.Sprintf("have it stay (%s; kubectl fw backend retire %s --preserve does so for all), or %s", b.Preserve, backend, remedy)
		}
		owner := strings.Join(strings.Fields(b.Owner.Kind+" "+b.Owner.Namespace+" "+b.Owner.Name), " ")
		all = append(all, fmt.Sprintf("cluster %s: %s %s is from backend %s (%s), and when that lets go of the cluster, everything of its kind goes; %s",
			b.Cluster, b.Kind, b.Name, backend, owner, remedy))
	}
	return all
}

// namesOf are the clusters by the source's names.
func namesOf(clusters []v1alpha1.MigrationClusterStatus) []string {
	names := make([]string, 0, len(clusters))
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	return names
}

// object notes what stands against a beginning, as far as the status can hold it.
func (d *Decision) object(problems []string) {
	listed := slices.Clone(problems[:min(len(problems), mostProblems)])
	for i, problem := range listed {
		listed[i] = brief.Note(problem)
	}
	if left := len(problems) - mostProblems; left > 0 {
		listed[mostProblems-1] = fmt.Sprintf("and %d more", left+1)
	}
	d.begins.next.Problems = brief.Fit(listed, maxProblemBytes)
}

// targetsOf are the targets of a migration's clusters by their names on one of its backends, sorted, with what it may do
// there. The mode is asked for by the source's name.
func targetsOf(
	targets []backends.Target, clusters []v1alpha1.MigrationClusterStatus,
	name func(v1alpha1.MigrationClusterStatus) string, mode func(cluster string) backends.Mode,
) (out []backends.Target) {
	for _, c := range clusters {
		t, is := targetOf(targets, c.Name)
		if !is {
			continue
		}
		t.Cluster = name(c)
		if m := mode(c.Name); t.Mode != backends.ModeHold || !m.Owns() {
			t.Mode = m
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b backends.Target) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

func sourceName(c v1alpha1.MigrationClusterStatus) string { return c.Name }

func observe(string) backends.Mode { return backends.ModeObserve }

// onlyUsed is nil for a record that says nothing.
func onlyUsed(m *v1alpha1.MigrationStatus) *v1alpha1.MigrationStatus {
	if m == nil || equality.Semantic.DeepEqual(*m, v1alpha1.MigrationStatus{}) {
		return nil
	}
	return m
}

func onlyHistory(m *v1alpha1.MigrationStatus) *v1alpha1.MigrationStatus {
	if m == nil || len(m.History) == 0 {
		return nil
	}
	return &v1alpha1.MigrationStatus{History: m.History}
}
