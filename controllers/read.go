package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/lenient"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/plan"
	"github.com/fleetworkload/fleetworkload/internal/proposal"
	"github.com/fleetworkload/fleetworkload/internal/sources"
)

// Sources reads what pods refer to from the management cluster.
type Sources interface {
	// Get returns an object, nil when there is none. It must not be changed.
	Get(ctx context.Context, ref sources.Ref) (*unstructured.Unstructured, error)
	// Refer records what a FleetWorkload refers to, so that it is looked at again when that changes.
	Refer(fleetWorkload types.NamespacedName, refs []sources.Ref)
}

// decide reads what the decision asks for, until it asks for nothing more.
func (r *Reconciler) decide(ctx context.Context, fw *v1alpha1.FleetWorkload) (*pass.Decision, error) {
	ctx, span := r.startSpan(ctx, "Decide")
	defer span.End()
	in := r.unasked(fw)
	for range pass.MostReads {
		d := pass.Decide(in)
		if d.Refers != nil { // before they are read, so that no change is missed
			r.Sources.Refer(client.ObjectKeyFromObject(fw), refsOf(fw.Namespace, *d.Refers))
		}
		if d.Reads.Empty() {
			r.tellDrift(ctx, fw, in.Sides)
			return d, nil
		}
		if err := r.read(ctx, &in, d.Reads); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("decide on %s: what it asks is not answered", client.ObjectKeyFromObject(fw))
}

// unasked is what a decision about a FleetWorkload begins with, before anything is asked.
func (r *Reconciler) unasked(fw *v1alpha1.FleetWorkload) pass.In {
	return pass.In{
		Settings: pass.Settings{
			Kinds: r.Kinds, Installation: r.Installation, Aliases: r.Aliases, Backends: r.Backends.Names(), LeaveOut: r.LeaveOut, MaxRemovalPercent: r.MaxRemovalPercent,
			MigrationsAtOnce: r.MigrationLimiter.limit, Tenancy: r.Tenancy,
		},
		FleetWorkload: fw, Undecodable: lenient.Problem(fw), Now: r.Clock.Now(), Starting: r.younger(r.StartGrace), Filling: r.younger(r.FillGrace),
		Sides: map[string]*pass.Side{}, Objects: map[string]pass.Object{}, Restarts: map[string]*int32{}, Access: map[pass.Access]pass.Answer{},
	}
}

// read answers what a decision asks. What a backend cannot tell is an answer too.
func (r *Reconciler) read(ctx context.Context, in *pass.In, reads pass.Reads) error {
	for _, read := range reads.Sides {
		in.Sides[read.Backend] = r.readSide(ctx, read)
	}
	if reads.KeptSpec != "" {
		in.Kept = r.readKept(ctx, in.FleetWorkload.Namespace, reads.KeptSpec)
	}
	for _, need := range reads.Objects {
		obj, err := r.Sources.Get(ctx, refOf(in.FleetWorkload.Namespace, need))
		in.Objects[need.String()] = pass.Object{Found: obj, Err: err, Forbidden: apierrors.IsForbidden(err) || backends.CodeOf(err) == backends.CodeForbidden}
	}
	for _, access := range reads.Access {
		in.Access[access] = r.access.ask(ctx, r.Client, in.FleetWorkload.Namespace, access)
	}
	if reads.Namespace {
		in.Namespace = r.readNamespace(ctx, in.FleetWorkload.Namespace)
	}
	if reads.Turn {
		turn, err := r.MigrationLimiter.take(ctx, r.Client, client.ObjectKeyFromObject(in.FleetWorkload))
		if err != nil {
			return err
		}
		in.Turn = &turn
	}
	if reads.Rivals != nil {
		rivals, err := r.rivals(ctx, in.FleetWorkload, reads.Rivals)
		if err != nil {
			return err
		}
		in.Rivals = &rivals
	}
	if reads.Preflight != nil {
		in.Preflight = r.preflight(ctx, *reads.Preflight)
	}
	if reads.Plan {
		return r.plan(ctx, in)
	}
	if len(reads.Restarts) > 0 {
		r.readRestarts(ctx, in, reads.Restarts)
	}
	return nil
}

// plan finds out what the spec comes to.
func (r *Reconciler) plan(ctx context.Context, in *pass.In) error {
	var failed error
	planned := pass.PlanOf(*in, func(in *pass.In, reads pass.Reads) {
		if failed == nil {
			failed = r.read(ctx, in, reads)
		}
	})
	in.Planned = &planned
	return failed
}

// answer says in the status what a proposed spec comes to. What cannot be read is part of the answer: whoever wants to know asks again.
func (r *Reconciler) answer(ctx context.Context, fw *v1alpha1.FleetWorkload, status *v1alpha1.FleetWorkloadStatus) {
	status.Proposal = pass.Answered(fw, metav1.NewTime(r.Clock.Now()), func(value string) v1alpha1.ProposalStatus {
		next, err := proposal.Decode(ctx, fw, value)
		if err != nil {
			return v1alpha1.ProposalStatus{Refused: err.Error()}
		}
		var failed error
		answer := pass.Proposed(r.unasked(next), func(in *pass.In, reads pass.Reads) {
			if failed == nil {
				failed = r.read(ctx, in, reads)
			}
			choose(in.Sides, reads.Sides)
		})
		if failed != nil {
			return v1alpha1.ProposalStatus{Refused: fmt.Sprintf("what it comes to could not be read: %v", failed)}
		}
		return answer
	})
}

// choose takes what selectors choose where a backend was asked that has not chosen for them. To have it choose would be a write.
func choose(sides map[string]*pass.Side, reads []pass.SideRead) {
	for _, read := range reads {
		side := sides[read.Backend]
		if read.Query == nil || side == nil || side.Err != nil || side.Observed == nil || side.Fleet == nil {
			continue
		}
		side.Observed.Selection, side.Err = side.Fleet.Chosen(side.Observed.Selection, read.Query.Selectors)
	}
}

// readNamespace reads the namespace's labels. One that is gone has none.
func (r *Reconciler) readNamespace(ctx context.Context, name string) *pass.Namespace {
	namespace := namespaceMetadata()
	err := r.Get(ctx, client.ObjectKey{Name: name}, namespace)
	return &pass.Namespace{Labels: namespace.Labels, Err: client.IgnoreNotFound(err)}
}

func (r *Reconciler) readSide(ctx context.Context, read pass.SideRead) *pass.Side {
	driver, err := r.Backends.Driver(read.Backend)
	if err != nil {
		return &pass.Side{Err: err}
	}
	side := &pass.Side{Features: driver.Features(), Live: read.Live()}
	if read.Fleet {
		fleet, err := driver.Clusters(ctx)
		if err != nil {
			side.Err = fmt.Errorf("list clusters: %w", err)
			return side
		}
		side.Fleet = &fleet
	}
	if read.Query != nil {
		observed, err := driver.Observe(ctx, *read.Query)
		if err != nil {
			side.Err = fmt.Errorf("read reports: %w", err)
			return side
		}
		side.Observed = &observed
	}
	return side
}

// rivals are the other FleetWorkloads that have one of the objects, each once, in the order of their names. They are the cache's: nothing
// of them may be changed.
func (r *Reconciler) rivals(ctx context.Context, fw *v1alpha1.FleetWorkload, reads []pass.RivalsRead) ([]pass.Rival, error) {
	found := map[types.UID]pass.Rival{}
	for _, read := range reads {
		var list v1alpha1.FleetWorkloadList
		err := r.List(ctx, &list, client.InNamespace(read.Namespace), client.MatchingFields{objectIndex: pass.ObjectKey(read.Object)}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("list FleetWorkloads with %s %s: %w", read.Object.Kind, read.Object.Name, err)
		}
		for i := range list.Items {
			if other := &list.Items[i]; other.UID != fw.UID {
				found[other.UID] = pass.RivalOf(other)
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b pass.Rival) int { return strings.Compare(a.String(), b.String()) }), nil
}

// preflight asks a driver what stands against an order.
func (r *Reconciler) preflight(ctx context.Context, read pass.PreflightRead) *pass.Preflight {
	driver, err := r.Backends.Driver(read.Backend)
	if err != nil {
		return &pass.Preflight{Err: err}
	}
	preflight := &pass.Preflight{}
	if dryRunner, is := driver.(backends.DryRunner); is {
		preflight.Against, preflight.Err = dryRunner.DryRun(ctx, read.Desired)
	}
	if preflight.Err == nil {
		preflight.Brought, preflight.Err = r.brought(ctx, read)
	}
	return preflight
}

// brought is what would go from the clusters with the backend that is left.
func (r *Reconciler) brought(ctx context.Context, read pass.PreflightRead) ([]backends.Dependent, error) {
	driver, err := r.Backends.Driver(read.Source)
	if err != nil {
		return nil, fmt.Errorf("ask backend %s what goes with it: %w", read.Source, err)
	}
	bringer, is := driver.(backends.Bringer)
	if !is {
		return nil, nil
	}
	found, err := bringer.Brought(ctx, read.Desired.Workload, read.On)
	if err != nil {
		return nil, fmt.Errorf("ask backend %s what goes with it: %w", read.Source, err)
	}
	return found, nil
}

func refOf(namespace string, need plan.Need) sources.Ref {
	return sources.Ref{GroupVersionKind: need.GroupVersionKind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: need.Name}}
}

func refsOf(namespace string, needs []plan.Need) []sources.Ref {
	if len(needs) == 0 {
		return nil
	}
	refs := make([]sources.Ref, len(needs))
	for i, need := range needs {
		refs[i] = refOf(namespace, need)
	}
	return refs
}

// restartReaders bounds in how many clusters pods are counted at once.
const restartReaders = 10

// readRestarts counts in all clusters. Where nobody answers nothing is known.
func (r *Reconciler) readRestarts(ctx context.Context, in *pass.In, reads []pass.RestartsRead) {
	m := in.FleetWorkload.Status.Migration
	counts := make([]*int32, len(reads))
	workqueue.ParallelizeUntil(ctx, restartReaders, len(reads), func(i int) {
		counts[i] = r.restarts(ctx, m.From, reads[i].OnSource, reads[i])
		if counts[i] == nil {
			counts[i] = r.restarts(ctx, m.To, reads[i].OnTarget, reads[i])
		}
	})
	for i, read := range reads {
		in.Restarts[read.Cluster] = counts[i]
	}
}

// restarts asks one backend, which may be able to tell.
func (r *Reconciler) restarts(ctx context.Context, backend, cluster string, read pass.RestartsRead) *int32 {
	driver, err := r.Backends.Driver(backend)
	reader, is := driver.(backends.PodReader)
	if err != nil || !is || cluster == "" {
		return nil
	}
	pods, err := metav1.LabelSelectorAsSelector(read.Pods)
	if err != nil {
		return nil
	}
	restarts, err := reader.Restarts(ctx, cluster, read.Namespace, pods)
	if err != nil {
		log.FromContext(ctx).Error(err, "Restarts are left out of the evidence", "backend", backend, "cluster", cluster)
	}
	return restarts
}

// readKept reads a spec that is kept for the time of a hand-over.
func (r *Reconciler) readKept(ctx context.Context, namespace, name string) *pass.KeptSpec {
	key, kept := client.ObjectKey{Namespace: namespace, Name: name}, &appsv1.ControllerRevision{}
	if err := r.Get(ctx, key, kept); apierrors.IsNotFound(err) {
		return &pass.KeptSpec{Name: name}
	} else if err != nil {
		return &pass.KeptSpec{Name: name, Err: fmt.Errorf("get ControllerRevision %s with the spec from the beginning of the migration: %w", key, err)}
	}
	spec := &v1alpha1.FleetWorkloadSpec{}
	if err := utiljson.Unmarshal(kept.Data.Raw, spec); err != nil {
		return &pass.KeptSpec{Name: name, Unreadable: true} // somebody else has written it
	}
	return &pass.KeptSpec{Name: name, Spec: spec}
}
