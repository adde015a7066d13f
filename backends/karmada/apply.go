package karmada

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/expectations"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// Apply takes the next step towards desired.
func (d *Driver) Apply(ctx context.Context, desired backends.Desired) (backends.Progress, error) {
	removed := removedOf(desired)
	desired.Targets = desired.Wanted()
	want, err := render(desired, currentState{})
	if err != nil {
		return backends.Progress{}, err
	}
	clusters, err := d.clusters(ctx)
	if err != nil {
		return backends.Progress{}, err
	}
	live, err := d.load(ctx, d.cache, desired.Query)
	if err != nil {
		return backends.Progress{}, err
	}
	if err := checkOwners(desired.Query, live); err != nil {
		return backends.Progress{}, err
	}
	err = refuseCarried(desired, func(at types.NamespacedName) (*workv1alpha1.Work, error) { return d.companionWork(ctx, at) })
	if err != nil {
		return backends.Progress{}, err
	}
	if _, err := choose(desired.Query, clusters, live); err != nil {
		return backends.Progress{}, err
	}
	if want == nil { // no targets: what runs goes on running (R7)
		return backends.Progress{Waiting: "the choice of clusters"}, nil
	}
	if live.template == nil || !ssa.UpToDate(live.template, want.template) {
		if err := d.kinds.check(desired.Workload.GVK); err != nil {
			return backends.Progress{}, err
		}
	}
	if behind, err := d.behind(ctx, desired.Query, live); err != nil || behind != "" {
		return backends.Progress{Waiting: behind, RequeueAfter: expectations.Patience}, err
	}
	if waiting, err := d.installer.install(ctx, d.cache, d.client, desired.Workload.GVK); err != nil || waiting != "" {
		return backends.Progress{Waiting: waiting}, err
	}
	return d.advance(ctx, desired, removed, live, clusters)
}

// advance takes the next step: companions first, then the workload, then what is no longer needed.
func (d *Driver) advance(
	ctx context.Context, desired backends.Desired, removed map[string]bool, live currentState, clusters []clusterv1alpha1.Cluster,
) (backends.Progress, error) {
	fleet := toFleet(clusters)
	first, err := d.applyCompanionWorks(ctx, desired, fleet)
	if err != nil {
		return backends.Progress{}, err
	}
	if len(first.pending) > 0 {
		return backends.Progress{Waiting: brief.Clauses(first.pending, mostNamed)}, nil
	}
	now := time.Now()
	unseen, seenBy := live.unseen(fleet, now, func(w work) bool { return !removed[w.cluster] })
	held, want, stay, err := holdBack(desired, removed, live, fleet, unseen, first.blocked)
	if err != nil {
		return backends.Progress{}, err
	}
	live.companionsMove = first.moving
	if live.isNew() {
		live.plain = true
		live.plain = want.createsAtOnce(held, live) && d.isPlain(ctx, held.Query)
	}
	want, requeueAfter := want.rescheduled(live, clusters, held.Query, now)
	step := decide(held, want, live)
	requeueAfter = backends.Sooner(requeueAfter, step.requeueAfter)
	if len(step.writes) > 0 {
		if err := d.prepare(ctx, held, want, live); err != nil {
			return backends.Progress{}, err
		}
	}
	if err := d.carryOut(ctx, step); err != nil {
		return backends.Progress{}, err
	}
	if len(step.writes) == 0 && step.waiting != "" {
		wait, err := d.retell(ctx, live)
		if err != nil {
			return backends.Progress{}, err
		}
		requeueAfter = backends.Sooner(requeueAfter, wait)
		if why := d.failure(ctx, step.waiting, live); why != "" {
			step.waiting += ", which fails: " + why
		}
	}
	settled := step.waiting == "" && len(step.writes) == 0
	waiting, seenCompanionWorkBy, err := d.leaveCompanionWorks(ctx, desired, removed, live, fleet, settled)
	for _, cluster := range slices.Sorted(maps.Keys(first.blocked)) {
		waiting = append(waiting, cluster+": "+first.blocked[cluster])
	}
	for _, cluster := range slices.Sorted(maps.Keys(stay)) {
		waiting = append(waiting, cluster+": "+stay[cluster])
	}
	if step.waiting != "" {
		waiting = append([]string{step.waiting}, waiting...)
	}
	return backends.Progress{Done: len(waiting) == 0, Waiting: brief.Clauses(waiting, mostNamed), RequeueAfter: backends.Sooner(backends.Sooner(requeueAfter, seenBy), seenCompanionWorkBy)}, err
}

// removedOf are the clusters that the workload is to be taken off.
func removedOf(desired backends.Desired) map[string]bool {
	removed := map[string]bool{}
	for _, t := range desired.Targets {
		if t.Mode == backends.ModeRemove {
			removed[t.Cluster] = true
		}
	}
	return removed
}

// holdBack returns desired with all clusters held that must wait, as it is rendered, and those to be left that stay for now, each with
// the reason. Why a cluster waits that is not in blocked yet is added there.
func holdBack(
	desired backends.Desired, removed map[string]bool, live currentState, fleet backends.Fleet, unseen []string, blocked map[string]string,
) (held backends.Desired, want *rendered, stay map[string]string, err error) {
	held, stay = holdUnsaid(waitingFor(probingClosely(desired, live), blocked), removed, live, fleet, unseen)
	if want, err = render(held, live); err != nil {
		return held, nil, nil, err
	}
	if again := toRecheck(held, want, live); len(again) > 0 {
		maps.Copy(blocked, again)
		held = waitingFor(held, again)
		want, err = render(held, live)
	}
	return held, want, stay, err
}
