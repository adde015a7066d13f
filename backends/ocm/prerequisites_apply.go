package ocm

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// pruneAge keeps a prerequisite that nobody seems to need for a moment: after a restart, the workload that it was
// made for may have no ManifestWork yet.
const pruneAge = time.Minute

// applyPrerequisites ensures what the cluster needs first, and says what of it is awaited, and whether that is to be made again: whoever
// stood on it last takes it away, and does not see at once that somebody stands on it anew.
func (d *Driver) applyPrerequisites(ctx context.Context, p plan, target clusterPlan) (missing string, again bool, err error) {
	for _, wanted := range target.prerequisites {
		d.prerequisiteUsers.Add(client.ObjectKeyFromObject(wanted), p.desired.Key.NamespacedName)
		if wanted, err = d.unmanaging(ctx, wanted, p.desired.Alone() && !target.held()); err != nil {
			return "", false, err
		}
		live, err := d.applyPrerequisite(ctx, wanted)
		if err != nil {
			return "", false, err
		}
		if live != nil && live.GetDeletionTimestamp() != nil {
			return prerequisiteTitle(wanted) + " (being removed, it will be made again)", true, nil
		}
		if missing == "" {
			missing = d.awaitPrerequisite(live, wanted)
		}
	}
	return missing, false, nil
}

// applyPrerequisite makes a prerequisite as it should be, unless it is being removed, and returns what it was.
func (d *Driver) applyPrerequisite(ctx context.Context, wanted *unstructured.Unstructured) (was *unstructured.Unstructured, err error) {
	was, err = d.cached(ctx, wanted)
	if err != nil || was != nil && was.GetDeletionTimestamp() != nil || d.reports.equal(was, wanted, ssa.UpToDate) {
		return was, err
	}
	_, err = ssa.Send(ctx, d.hub, wanted)
	return was, explain("apply "+title(wanted), err)
}

// awaitPrerequisite says what is awaited of a prerequisite; empty when the agent has applied it.
func (d *Driver) awaitPrerequisite(live, wanted *unstructured.Unstructured) string {
	what := "the agent to apply " + prerequisiteTitle(wanted)
	if live == nil {
		return what
	}
	r, err := d.reports.read(live)
	switch {
	case err != nil || r.applied == nil:
		return what
	case r.applied.Status != metav1.ConditionTrue:
		return what + ": " + r.message()
	default:
		return ""
	}
}

// enable gives an agent that is asked about an object on its way out the rights to look for it. A cluster that was held from
// the beginning never got any.
func (d *Driver) enable(ctx context.Context, live *unstructured.Unstructured, s state, m move) error {
	group, resource, _ := carriedKind(live)
	if m.strategy != probe.strategy || s.object != presenceUnknown || s.notServed || slices.Contains(groupsOfAdmin, group) {
		return nil
	}
	_, err := d.applyPrerequisite(ctx, renderRightsWork(live.GetNamespace(), group, resource))
	return err
}

// pruneDropped removes the prerequisites that the workload has needed until now. What it cannot know about, after a
// restart, is left to the next Delete: Apply of what is already there must not write.
func (d *Driver) pruneDropped(ctx context.Context, p plan, works []*unstructured.Unstructured) error {
	needed := map[types.NamespacedName]bool{}
	for _, work := range works {
		for _, name := range neededBy(work) {
			key := types.NamespacedName{Namespace: work.GetNamespace(), Name: name}
			d.prerequisiteUsers.Add(key, p.desired.Key.NamespacedName)
			needed[key] = true
		}
	}
	for _, target := range p.targets {
		for _, prerequisite := range target.prerequisites {
			needed[client.ObjectKeyFromObject(prerequisite)] = true
		}
	}
	for _, key := range d.prerequisiteUsers.Drop(p.desired.Key.NamespacedName, needed) {
		prerequisite := newObject(manifestWorkGVK, key.Namespace, key.Name)
		live, err := d.cached(ctx, prerequisite)
		if err != nil {
			return err
		}
		if live == nil || live.GetDeletionTimestamp() != nil {
			continue
		}
		if err := d.prunePrerequisite(ctx, live); err != nil {
			return err
		}
	}
	return nil
}

// sweepPrerequisites removes the prerequisites that no ManifestWork stands on any more: the workload's own, and those
// that others have left behind.
func (d *Driver) sweepPrerequisites(ctx context.Context, workload backends.Workload) error {
	own := prerequisiteNames(workload.Namespace, workload.GVK.Group, workload.Resource)
	for _, kind := range []string{prerequisiteNamespace, prerequisiteRights, prerequisiteDefinition} {
		works, err := d.list(ctx, listOf(manifestWorkGVK), client.MatchingFields{indexPrerequisite: kind})
		if err != nil {
			return err
		}
		for _, work := range works {
			old := time.Since(createdAt(work).Time) > pruneAge
			if work.GetDeletionTimestamp() != nil || !old && !slices.Contains(own, work.GetName()) {
				continue
			}
			if err := d.prunePrerequisite(ctx, work); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Driver) prunePrerequisite(ctx context.Context, work *unstructured.Unstructured) error {
	if len(d.prerequisiteUsers.Of(client.ObjectKeyFromObject(work))) > 0 {
		return nil
	}
	users, err := d.list(ctx, listOf(manifestWorkGVK), client.InNamespace(work.GetNamespace()),
		client.MatchingFields{indexNeeds: work.GetName()})
	if err != nil || len(users) > 0 {
		return err
	}
	return d.remove(ctx, work)
}
