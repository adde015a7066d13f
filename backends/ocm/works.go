package ocm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// writers bounds how many clusters' objects are written at once.
const writers = 10

// outcome is what one cluster's step has come to.
type outcome struct {
	cluster string
	waiting string
	err     error
}

// applyWorks takes the next step on every cluster that is wanted or to be left. What fails on one
// cluster does not keep the others from going on. behind tells that the cache does not show everything that was written.
func (d *Driver) applyWorks(
	ctx context.Context, p plan, fleet backends.Fleet, selected backends.Selection,
) (waiting []string, behind bool, err error) {
	works, err := d.worksOf(ctx, p.desired.Key)
	if err != nil {
		return nil, false, err
	}
	jobs, err := d.jobs(p, works, selected)
	if err != nil {
		return nil, false, err
	}
	owned := map[string]*unstructured.Unstructured{}
	for cluster, j := range jobs {
		if j.target != nil && j.target.mode.Owns() && j.work != nil {
			owned[cluster] = j.work
		}
	}
	if err := d.refuseCarried(ctx, owned); err != nil {
		return nil, false, err
	}
	var late atomic.Bool
	waiting, err = inParallel(ctx, jobs, func(cluster string, j *job) (string, error) {
		if behind, err := d.behind(ctx, cluster, p.desired.Key, j.work); behind {
			late.Store(true)
			return waitsForCache, err
		}
		contact := fleet.InContact(cluster)
		if j.target == nil {
			return d.removeWork(ctx, j.work, intent{policy: v1alpha1.DeletionPolicyDelete, ready: contact})
		}
		if _, known := fleet.Get(cluster); !known && j.work == nil {
			return "", &backends.Error{
				Code: backends.CodeClusterNotFound, Field: "spec.placement.clusters", Value: cluster,
				Message: "the hub knows no accepted cluster of this name",
				Remedy:  "register the cluster and accept it, or correct the name",
			}
		}
		return d.applyWork(ctx, p, *j.target, j.work, contact)
	})
	leaving, leaveErr := d.leaveCompanionWorks(ctx, p, works, fleet)
	return append(waiting, leaving...), late.Load(), errors.Join(err, leaveErr, d.pruneDropped(ctx, p, works))
}

// job is what is to be done on a cluster: a ManifestWork is to be made as the target is, or to go.
type job struct {
	target *clusterPlan
	work   *unstructured.Unstructured
}

// jobs are those of all clusters that the workload is for, or is to leave.
func (d *Driver) jobs(p plan, works []*unstructured.Unstructured, selected backends.Selection) (map[string]*job, error) {
	jobs := map[string]*job{}
	for i := range p.targets {
		jobs[p.targets[i].cluster] = &job{target: &p.targets[i]}
	}
	for _, work := range works {
		if work.GetName() != workName(p.desired.Key) {
			continue
		}
		if jobs[work.GetNamespace()] == nil {
			leaves, err := d.isToLeave(p.desired, work, selected)
			if err != nil {
				return nil, err
			}
			if !leaves {
				continue
			}
			jobs[work.GetNamespace()] = &job{}
		}
		jobs[work.GetNamespace()].work = work
	}
	return jobs, nil
}

// isToLeave tells whether the workload is to be taken off a cluster: that was said, and its ManifestWork does not go on asking.
func (d *Driver) isToLeave(desired backends.Desired, work *unstructured.Unstructured, selected backends.Selection) (bool, error) {
	if !desired.Removes(work.GetNamespace()) {
		return false, nil
	}
	stays, err := d.goesOnAsking(work, selected)
	return !stays, err
}

// inParallel runs f for every cluster and puts the results in the clusters' order.
func inParallel[T any](ctx context.Context, jobs map[string]T, f func(cluster string, job T) (string, error)) ([]string, error) {
	outcomes := make([]outcome, 0, len(jobs))
	for cluster := range jobs {
		outcomes = append(outcomes, outcome{cluster: cluster})
	}
	slices.SortFunc(outcomes, func(a, b outcome) int { return strings.Compare(a.cluster, b.cluster) })
	workqueue.ParallelizeUntil(ctx, writers, len(outcomes), func(i int) {
		outcomes[i].waiting, outcomes[i].err = f(outcomes[i].cluster, jobs[outcomes[i].cluster])
	})
	var waiting []string
	var errs []error
	for _, o := range outcomes {
		if o.waiting != "" {
			waiting = append(waiting, o.cluster+": "+o.waiting)
		}
		if o.err != nil {
			errs = append(errs, o.err)
		}
	}
	return waiting, errors.Join(append(errs, ctx.Err())...)
}

// applyWork takes the next step on one cluster.
func (d *Driver) applyWork(
	ctx context.Context, p plan, target clusterPlan, live *unstructured.Unstructured, contact bool,
) (string, error) {
	var s state
	if live != nil {
		r, err := d.reports.read(live)
		if err != nil {
			return "", err
		}
		s = r.state()
		if identity(r.manifest) != identity(firstManifest(target.work)) && !target.held() {
			// Another object: with Orphan, the agent would leave the old one behind.
			waiting, err := d.removeWork(ctx, live, intent{policy: v1alpha1.DeletionPolicyDelete, ready: contact})
			return "the former object to go: " + waiting, err
		}
	}
	in := intent{
		wanted: true, hold: target.held(), ready: contact,
		adopt: target.adopts(p.desired), takeOver: target.mode == backends.ModeAdopt, observe: target.observes(), probe: target.probes(),
		alone: p.desired.Alone(), contested: d.contests.goesOn(live, s),
		leaves: p.desired.LeavesDrift(),
	}
	in.changes = in.leaves && live != nil && changes(live, target.work)
	missing, again, err := d.applyFirst(ctx, p, target, contact)
	if err != nil {
		return "", err
	}
	if !target.held() {
		in.missing = missing
		if err := d.refuseTwice(ctx, target, live); err != nil {
			return "", err
		}
	}
	m := next(s, in)
	if again && m.waiting == "" {
		m.waiting = missing // what runs may do without it for a while, but there is something left to write
	}
	if in.missing != "" && len(target.companionWorks) > 0 && !in.observe && m.write == writeWork && m.strategy == deliver.strategy {
		// What runs may need what is on its way, so it is not changed before.
		return in.missing, nil
	}
	if p.desired.ConflictPolicy == v1alpha1.ConflictPolicyAdopt && m.begins(live, s) {
		if err := d.refuseOthers(ctx, target.cluster, firstManifest(target.work)); err != nil {
			return "", err
		}
	}
	switch m.write {
	case writeWork:
		wrote, err := d.writeWork(ctx, live, p.variants.of(target.work, m), m, p.desired.Key)
		if err == nil {
			d.contests.note(live, s, m)
		}
		if wrote && m.waiting == "" {
			// What the agent has said is about the ManifestWork before.
			m = m.wait(waitForAgent(in, "the agent to take up the change"))
		}
		return m.waiting, err
	case writeMarks:
		held := fromLive(live)
		annotate(held, annotationHeld, "true")
		return m.waiting, explain("patch "+title(held), d.patchWork(ctx, live, held))
	case writeNothing, writeDelete:
	}
	return m.waiting, nil
}

// applyFirst ensures what must be on the cluster before the workload: prerequisites, then companions. Without
// companions, a cluster that is held gets nothing. What is missing may be on its way out, to be made again.
func (d *Driver) applyFirst(ctx context.Context, p plan, target clusterPlan, contact bool) (missing string, again bool, err error) {
	if target.held() && len(target.companionWorks) == 0 {
		return "", false, nil
	}
	missing, again, err = d.applyPrerequisites(ctx, p, target)
	if err != nil || missing != "" || len(target.companionWorks) == 0 {
		return missing, again, err
	}
	missing, err = d.applyCompanionWorks(ctx, p, target, contact)
	return missing, false, err
}

// removeWork takes the next step towards having nothing of the workload for one cluster.
func (d *Driver) removeWork(ctx context.Context, live *unstructured.Unstructured, in intent) (string, error) {
	r, err := d.reports.read(live)
	if err != nil {
		return "", err
	}
	in.now = time.Now()
	s := r.state()
	m := next(s, in)
	if err := d.enable(ctx, live, s, m); err != nil {
		return "", err
	}
	switch m.write {
	case writeWork:
		_, err := d.writeWork(ctx, live, variant(fromLive(live), m), m, backends.Key{})
		return m.waiting, err
	case writeDelete:
		return m.waiting, d.remove(ctx, live)
	case writeNothing, writeMarks:
	}
	return m.waiting, nil
}
