package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/pass"
)

// rehearsal is a migration that is thought of, and that nothing is done for.
type rehearsal struct {
	fw     *v1alpha1.FleetWorkload
	to     string
	source source
	// program is how people call this one, for what they may want to do next.
	program string

	// from and target are the two backends.
	from, target backend
	// decision is what the operator would decide if it were asked for the migration now.
	decision *pass.Decision
	clusters []v1alpha1.MigrationClusterStatus
	problems []string
}

// run shows what would happen. It fails when the migration would not begin.
func (r *rehearsal) run(out io.Writer, now time.Time) error {
	if over, err := r.standing(out, now); over || err != nil {
		return err
	}
	if err := r.validate(); err != nil {
		return err
	}
	if err := r.write(out); err != nil {
		return err
	}
	return r.refused()
}

// refused is the error when something stands against the migration.
func (r *rehearsal) refused() error {
	if n := len(r.problems); n > 0 {
		return fmt.Errorf("the migration would not begin, %s; the workload would stay on backend %s",
			counted(n, "problem stands against it", "problems stand against it"), r.fw.Status.Backend)
	}
	return nil
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// standing prints where the workload is when there is nothing to rehearse.
func (r *rehearsal) standing(out io.Writer, now time.Time) (over bool, err error) {
	key := client.ObjectKeyFromObject(r.fw)
	switch state, message, err := r.where(); {
	case err != nil:
		return true, err
	case state == comesToGoOn:
		fmt.Fprintf(out, "%s: a migration is under way, and nothing was changed. %s\n\n", key, message)
		return true, writeMigration(out, r.fw, view{now: now})
	case state == comesToStay:
		fmt.Fprintln(out, message)
		return true, nil
	default:
		return false, nil
	}
}

// where says where the workload is. The migration begins from there unless something stands against it.
func (r *rehearsal) where() (state comesTo, message string, err error) {
	key, m := client.ObjectKeyFromObject(r.fw), r.fw.Status.Migration
	switch {
	case !r.fw.DeletionTimestamp.IsZero():
		return "", "", fmt.Errorf("FleetWorkload %s is being deleted, and stays on its backend until it is gone", key)
	case r.fw.Status.Backend == "":
		return "", "", fmt.Errorf("no backend has FleetWorkload %s yet, so that there is nothing to hand over; set spec.backend to the one "+
			"that is to have it", key)
	case m != nil && m.Phase != "" && m.Phase != v1alpha1.MigrationPhaseValidating:
		return comesToGoOn, r.whileUnderWay(m), nil
	case r.fw.Status.Backend == r.to:
		message = fmt.Sprintf("%s is on backend %s already: there is nothing to hand over", key, r.to)
		if r.fw.Spec.Backend != r.to {
			message += fmt.Sprintf("\nthe migration to %s has not begun; --to %s gives it up", r.fw.Spec.Backend, r.to)
		}
		return comesToStay, message, nil
	}
	return comesToBegin, "", nil
}

// whileUnderWay says what asking for the backend would come to.
func (r *rehearsal) whileUnderWay(m *v1alpha1.MigrationStatus) string {
	follow := r.command("migrate") + " --to " + r.to + " --wait"
	switch {
	case r.to == m.To && r.fw.Spec.Backend == m.To:
		return "Follow it with: " + follow
	case r.to == m.To:
		return fmt.Sprintf("It is being turned round; --to %s has it go on to backend %s once more.", r.to, r.to)
	case m.Phase == v1alpha1.MigrationPhaseReleasing:
		return fmt.Sprintf("Backend %s owns the workload by now: a migration to %s begins when this one is over.", m.To, r.to)
	case r.to == m.From && r.fw.Spec.Backend == m.From:
		return "It is being turned round. Follow it with: " + follow
	case r.to == m.From:
		return fmt.Sprintf("--to %s turns it round: what backend %s has taken over goes back, and its objects are removed.",
			r.to, m.To)
	default:
		return fmt.Sprintf("--to %s turns it round first: a migration from %s to %s begins when it has gone back.", r.to, m.From, r.to)
	}
}

// command is a command line for this FleetWorkload, without its flags.
func (r *rehearsal) command(sub string) string { return commandFor(r.program, sub, r.fw) }

func commandFor(program, sub string, fw *v1alpha1.FleetWorkload) string {
	return fmt.Sprintf("%s %s %s -n %s", program, sub, fw.Name, fw.Namespace)
}

// validate lists all that stands against the migration, in the operator's words.
func (r *rehearsal) validate() error {
	kinds, err := r.source.kinds()
	if err != nil {
		return err
	}
	if r.from, err = r.source.backend(r.fw.Status.Backend); errors.Is(err, backends.ErrNotConfigured) {
		return noBackend(r.source, "status.backend", r.fw.Status.Backend)
	} else if err != nil {
		return fmt.Errorf("backend %q: %w", r.fw.Status.Backend, err)
	}
	var unusable error
	if r.target, unusable = r.source.backend(r.to); errors.Is(unusable, backends.ErrNotConfigured) {
		return noBackend(r.source, "--to", r.to)
	}
	fw := r.fw.DeepCopy()
	fw.Spec.Backend, fw.Spec.Dependencies = r.to, v1alpha1.DependencyPolicyIgnore
	if r.decision, err = r.from.rehearse(fw, kinds, func(in *pass.In, reads pass.Reads) { r.read(in, reads, unusable) }); err != nil {
		r.object("%w", err)
		return nil
	}
	if m := r.decision.Beginning(); m != nil {
		r.clusters = m.Clusters
		for _, problem := range m.Problems {
			r.object("%s", problem)
		}
	}
	r.lookAtPresent()
	return nil
}

// read answers for both backends. The target's driver says what it could not write, and its API server what it would refuse.
func (r *rehearsal) read(in *pass.In, reads pass.Reads, unusable error) {
	r.from.read(in, reads)
	for _, read := range reads.Sides {
		switch {
		case read.Backend != r.to:
		case unusable != nil:
			in.Sides[r.to] = &pass.Side{Err: unusable}
		default:
			in.Sides[r.to] = r.target.side(read)
		}
	}
	if turn := true; reads.Turn {
		in.Turn = &turn
	}
	if reads.Preflight != nil {
		in.Preflight = r.preflight(*reads.Preflight)
	}
}

// object adds a problem, unless it is known already.
func (r *rehearsal) object(format string, args ...any) {
	problem := fmt.Errorf(format, args...).Error()
	if !slices.Contains(r.problems, problem) {
		r.problems = append(r.problems, problem)
	}
}

// preflight has the target's driver say what it could not write, and its API server what it would refuse; and the present one what would go with it.
func (r *rehearsal) preflight(read pass.PreflightRead) *pass.Preflight {
	preflight := &pass.Preflight{}
	if _, preflight.Err = r.target.rendered(read.Desired); preflight.Err == nil && r.target.dryRun != nil {
		preflight.Against, preflight.Err = r.target.dryRun(read.Desired)
	}
	if preflight.Err == nil && r.from.brought != nil {
		preflight.Brought, preflight.Err = r.from.brought(read.Desired.Workload, read.On)
	}
	return preflight
}

// lookAtPresent tells what keeps the operator from a migration before it looks at the target.
func (r *rehearsal) lookAtPresent() {
	stalled := meta.FindStatusCondition(r.fw.Status.Conditions, v1alpha1.ConditionStalled)
	if looked(r.fw) && stalled != nil && stalled.Status == metav1.ConditionTrue &&
		stalled.Reason != v1alpha1.ReasonMigrationNotPossible {
		r.object("the present spec is not carried out, and waits for a person: %s: %s", stalled.Reason, stalled.Message)
		return
	}
	if r.from.observe == nil {
		return
	}
	for _, t := range r.decision.Targets() {
		o := r.reportOf(t.Cluster)
		if o == nil || o.Revision != r.decision.Revision() || !equality.Semantic.DeepEqual(o.Asked, t.Replicas) {
			r.object("backend %s has not carried out the present spec yet", r.from.name)
			return
		}
	}
}

func (r *rehearsal) targetOf(c v1alpha1.MigrationClusterStatus) (backends.Target, bool) {
	targets := r.decision.Targets()
	i := slices.IndexFunc(targets, func(t backends.Target) bool { return t.Cluster == c.Name })
	if i < 0 {
		return backends.Target{}, false
	}
	return targets[i], true
}

// reports are those of the present backend.
func (r *rehearsal) reports() []backends.ClusterObservation {
	if r.decision == nil || r.decision.Observed() == nil || r.from.observe == nil {
		return nil
	}
	return r.decision.Observed().Clusters
}

// reportOf is what the present backend says of a cluster; nil when it says nothing.
func (r *rehearsal) reportOf(cluster string) *backends.ClusterObservation {
	all := r.reports()
	for i, o := range all {
		if o.Cluster == cluster {
			return &all[i]
		}
	}
	return nil
}

// ready is how many pods of a target are ready; nil when that is not known.
func (r *rehearsal) ready(t backends.Target) *int32 {
	o := r.reportOf(t.Cluster)
	if o == nil || o.Status == nil {
		return nil
	}
	state, err := r.decision.Kind().State(interpreter.Report{Manifest: t.Manifest, Desired: t.Replicas, Status: o.Status})
	if err != nil {
		return nil
	}
	return state.Ready
}
