package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/migration"
)

// validate looks, at the end of an ordinary pass, whether a change of spec.backend can begin. Until then the workload is
// served by the backend that has it, edits included, and nothing changes in the fleet.
func (r *Reconciler) validate(ctx context.Context, s *scope) error {
	if s.fw.Spec.Backend == s.backend {
		r.Turns.end(client.ObjectKeyFromObject(s.fw))
		s.record.migration = onlyHistory(s.record.migration)
		return nil
	}
	next := s.thoughtOf()
	// The turn comes first: examining asks the target, again and again for as long as it is waited for.
	turn, err := r.Turns.take(ctx, r.Client, client.ObjectKeyFromObject(s.fw))
	if err != nil {
		return err
	}
	if !turn {
		s.waitsForTurn, s.record.migration = true, &next
		s.waiting = cmp.Or(s.waiting, fmt.Sprintf(
			"its turn to move to backend %s: the operator's configuration allows %d migrations at once (migrations.atOnce)", next.To, r.Turns.limit))
		return nil
	}
	if next.Clusters, next.Problems, err = r.examine(ctx, s); err != nil {
		return err
	}
	s.record.migration = &next
	if len(next.Problems) > 0 || s.waiting != "" {
		r.Turns.end(client.ObjectKeyFromObject(s.fw))
	}
	if len(next.Problems) > 0 {
		return &stalled{reason: v1alpha1.ReasonMigrationNotPossible, again: true, message: fmt.Sprintf(
			"spec.backend %q: the workload stays on backend %q; mend what follows, or set spec.backend back to %q: %s",
			next.To, next.From, next.From, few(next.Problems))}
	}
	if s.waiting != "" {
		return nil // the present backend carries the present spec out first
	}
	return r.beginMigration(ctx, s, next)
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
func (s *scope) thoughtOf() v1alpha1.MigrationStatus {
	next := v1alpha1.MigrationStatus{
		From: s.backend, To: s.fw.Spec.Backend, Phase: v1alpha1.MigrationPhaseValidating, StartedAt: &s.now,
	}
	if m := s.record.migration; m != nil {
		next.History = m.History
		if m.Phase == v1alpha1.MigrationPhaseValidating && m.From == next.From && m.To == next.To {
			next.StartedAt = m.StartedAt
		}
	}
	return next
}

// beginMigration keeps the spec and takes the first step.
func (r *Reconciler) beginMigration(ctx context.Context, s *scope, next v1alpha1.MigrationStatus) (err error) {
	if next.SpecRevision, err = r.keepSpec(ctx, s.fw); err != nil {
		return err
	}
	next, _ = migration.Decide(next, migration.Input{Now: s.now.Time, Forward: true})
	s.record.migration = &next
	return nil
}

// examine lists the clusters that would change hands, and all that stands against it.
func (r *Reconciler) examine(ctx context.Context, s *scope) (clusters []v1alpha1.MigrationClusterStatus, problems []string, err error) {
	if suspended(s.fw) {
		problems = append(problems, "spec.suspend: while it is true nothing changes hands; set it to false")
	}
	if len(s.keeps) > 0 {
		problems = append(problems, fmt.Sprintf("spec.placement.failover: %s was given up and keeps what it runs; wait until it is back, or "+
			"until the others are healthy with purge Graceful, or take it off with purge Immediate", bounded(s.keeps)))
	}
	target := end{name: s.fw.Spec.Backend}
	if err := r.open(ctx, &target); err != nil {
		return nil, append(problems, err.Error()), nil
	}
	if target.plan, err = s.plan.With(r.Aliases.Written(s.spec, target.name)); err != nil {
		return nil, nil, err
	}
	candidate := migration.Candidate{
		Source: migration.Side{Name: s.backend, Features: s.driver.Features(), Fleet: *s.fleet},
		Target: migration.Side{Name: target.name, Features: target.driver.Features(), Fleet: target.fleet},
		Plan:   s.plan, There: target.plan, Aliases: r.Aliases, Targets: s.targets, Strategy: s.here.Spec.Migration,
	}
	clusters, found := candidate.Validate()
	against, err := target.try(ctx, s, clusters)
	if err != nil {
		return nil, nil, err
	}
	problems = slices.Concat(problems, found, against)
	for i, problem := range problems {
		problems[i] = eventNote(problem)
	}
	return clusters, problems[:min(len(problems), mostProblems)], nil
}

// mostProblems is how many of them the status lists.
const mostProblems = 64

// try asks the target what stands against carrying the workload out.
func (e *end) try(ctx context.Context, s *scope, clusters []v1alpha1.MigrationClusterStatus) (problems []string, err error) {
	trier, is := e.driver.(backends.Trier)
	if !is || len(clusters) == 0 {
		return nil, nil
	}
	desired := e.plan.Desired(targetsOf(s.targets, clusters, migration.NameOnTarget, shadow))
	against, err := trier.Try(ctx, desired)
	if err != nil {
		return []string{fmt.Sprintf("backend %s: %v", e.name, err)}, nil // it stands against a beginning, and passes
	}
	for _, why := range against {
		problems = append(problems, fmt.Sprintf("backend %s: %s", e.name, why))
	}
	return problems, nil
}

// targetsOf are the targets of a migration's clusters by their names on one of its backends, sorted, with what it may do
// there. The mode is asked for by the source's name.
func targetsOf(
	targets []backends.Target, clusters []v1alpha1.MigrationClusterStatus,
	name func(v1alpha1.MigrationClusterStatus) string, mode func(cluster string) backends.Ownership,
) (out []backends.Target) {
	for _, c := range clusters {
		i := slices.IndexFunc(targets, func(t backends.Target) bool { return t.Cluster == c.Name })
		if i < 0 {
			continue
		}
		t := targets[i]
		t.Cluster, t.Ownership = name(c), mode(c.Name)
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b backends.Target) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

func sourceName(c v1alpha1.MigrationClusterStatus) string { return c.Name }

func shadow(string) backends.Ownership { return backends.OwnershipShadow }

// onlyUsed is nil for a record that says nothing.
func onlyUsed(m *v1alpha1.MigrationStatus) *v1alpha1.MigrationStatus {
	if m == nil || equalRecords(*m, v1alpha1.MigrationStatus{}) {
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

// open finds the driver of the backend that is to take over, and its clusters.
func (r *Reconciler) open(ctx context.Context, target *end) (err error) {
	if target.driver, err = r.Backends.Driver(target.name); err != nil {
		return fmt.Errorf("backend %q: %w", target.name, err)
	}
	if target.fleet, err = target.driver.Clusters(ctx); err != nil {
		return fmt.Errorf("backend %q: %w", target.name, err)
	}
	return nil
}

func equalRecords(a, b v1alpha1.MigrationStatus) bool { return equality.Semantic.DeepEqual(a, b) }
