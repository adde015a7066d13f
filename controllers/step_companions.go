package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/plan"
	"github.com/fleetworkload/fleetworkload/internal/sources"
)

// Sources reads what pods refer to from the management cluster.
type Sources interface {
	// Get returns an object, nil when there is none. It must not be changed.
	Get(ctx context.Context, ref sources.Ref) (*unstructured.Unstructured, error)
	// Refer records what a FleetWorkload refers to, so that it is looked at again when that changes.
	Refer(fleetWorkload types.NamespacedName, refs []sources.Ref)
}

// gather collects what travels along: companions of the spec, and what the pods refer to as it is now. A target that
// would start without something is held, and keeps what it runs.
func (r *Reconciler) gather(ctx context.Context, s *scope) error {
	if suspended(s.fw) {
		s.keep = backends.KeepAll
		return nil
	}
	s.companions = slices.Clone(s.plan.Companions)
	switch {
	case !s.rolledOut():
		s.keep = backends.KeepAll
	case !s.plan.Propagates():
		// What was sent before is in use still, and nobody else has put it there.
		s.keep = backends.KeepShared
	}
	if !s.plan.Propagates() {
		r.Sources.Refer(client.ObjectKeyFromObject(s.fw), nil)
		return nil
	}
	needs, err := s.plan.Needs(s.targets)
	if err != nil {
		return err
	}
	needs = slices.DeleteFunc(needs, func(n plan.Need) bool { return slices.Contains(r.LeaveOut, n.Kind) })
	refs := make([]sources.Ref, len(needs))
	for i, n := range needs {
		refs[i] = sources.Ref{
			GroupVersionKind: n.GroupVersionKind,
			NamespacedName:   types.NamespacedName{Namespace: s.fw.Namespace, Name: n.Name},
		}
	}
	r.Sources.Refer(client.ObjectKeyFromObject(s.fw), refs)
	for i, n := range needs {
		source, err := r.Sources.Get(ctx, refs[i])
		if err != nil {
			return unreadable(n, err)
		}
		if err := s.take(n, source); err != nil {
			return err
		}
	}
	plan.SortCompanions(s.companions)
	return nil
}

// take adds what was found for a need, or remembers that it is missing.
func (s *scope) take(n plan.Need, source *unstructured.Unstructured) error {
	if source == nil {
		if n.Optional {
			return nil
		}
		// What was sent of it before stays.
		s.lacking, s.keep = append(s.lacking, n), backends.KeepAll
		s.targets = slices.Clone(s.targets)
		for i, t := range s.targets {
			if n.Clusters == nil || slices.Contains(n.Clusters, t.Cluster) {
				s.targets[i].Hold = true
			}
		}
		return nil
	}
	c, note, err := n.Companion(source)
	if err != nil {
		return err
	}
	if c != nil {
		s.companions = append(s.companions, *c)
	}
	if note != "" {
		s.notes = append(s.notes, note)
	}
	return nil
}

// rolledOut tells whether no target can have a pod of an earlier revision, which may need what is no longer listed.
func (s *scope) rolledOut() bool {
	states := map[string]bool{}
	for _, r := range s.reports() {
		o := r.Observed
		states[r.Name] = o != nil && o.Current && o.Applied == metav1.ConditionTrue && o.Revision == s.plan.Revision &&
			r.State != nil && r.State.Health == v1alpha1.HealthHealthy && (r.State.Updated == nil || r.State.UpToDate)
	}
	return !slices.ContainsFunc(s.targets, func(t backends.Target) bool { return !states[t.Cluster] })
}

// unreadable says why the management cluster does not give an object.
func unreadable(n plan.Need, err error) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("spec.dependencies: %w", err)
	}
	return &stalled{
		reason: v1alpha1.ReasonDependencyForbidden, again: true,
		message: fmt.Sprintf("spec.dependencies: the pods refer to %s, and the operator may not read objects of this kind on the "+
			"management cluster; grant it get, list and watch on %s there (config/rbac/management), or leave the kind out in the "+
			"operator's configuration under dependencies.leaveOut", n, n.Resource()),
	}
}

// complain ends a pass in which something was missing. The driver has held back what needs it.
func (r *Reconciler) complain(_ context.Context, s *scope) error {
	if len(s.lacking) == 0 {
		return nil
	}
	names := make([]string, len(s.lacking))
	for i, n := range s.lacking {
		names[i] = n.String()
	}
	return stall(v1alpha1.ReasonDependencyMissing,
		"spec.dependencies: the pods refer to %s, not found in namespace %q of the management cluster; until then nothing is started or "+
			"changed on %s, and what runs goes on. Create what is missing there, mark the reference optional, or set spec.dependencies to Ignore",
		bounded(names), s.fw.Namespace, s.waitingClusters())
}

func (s *scope) waitingClusters() string {
	var names []string
	for _, t := range s.targets {
		if t.Hold {
			names = append(names, t.Cluster)
		}
	}
	return cmp.Or(bounded(names), "any cluster")
}

// bounded names the first few.
func bounded(names []string) string {
	const most = 5
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}
