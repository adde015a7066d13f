package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

// Driver drives a Backend: one placement a workload, one order a cluster. It is the shortest driver that
// keeps the contract.
type Driver struct {
	backend *Backend
	gate    backendtest.Gate
	running atomic.Bool
}

var (
	_ backends.Driver = (*Driver)(nil)
	_ backends.Runner = (*Driver)(nil)
)

// Features implements backends.Driver.
func (d *Driver) Features() backends.Features { return maps.Clone(d.backend.options.Features) }

// Run implements backends.Runner.
func (d *Driver) Run(ctx context.Context, notify func(types.NamespacedName)) error {
	l := d.backend.listen()
	defer d.backend.unlisten(l)
	d.running.Store(true)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
			for _, name := range l.take() {
				notify(name)
			}
		}
	}
}

// begin is the beginning of every call.
func (d *Driver) begin(ctx context.Context, op Operation) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if d.backend.options.LateSync && !d.running.Load() {
		return &backends.Error{
			Code: backends.CodeNotReady, Message: "the driver is not synchronised", Remedy: "wait until it runs",
		}
	}
	return d.backend.failure(op)
}

// Clusters implements backends.Driver.
func (d *Driver) Clusters(ctx context.Context) (backends.Fleet, error) {
	if err := d.begin(ctx, OpClusters); err != nil {
		return backends.Fleet{}, err
	}
	return backends.Fleet{Clusters: d.backend.fleet()}, nil
}

// Observe implements backends.Driver.
func (d *Driver) Observe(ctx context.Context, query backends.Query) (backends.Observation, error) {
	if err := d.begin(ctx, OpObserve); err != nil {
		return backends.Observation{}, err
	}
	observation := backends.Observation{Selection: backends.Selection{Message: "the placement is not there yet"}}
	if obj := d.backend.backend.get(placementRef(query.Key)); ours(obj, query.Key) {
		observation.Found = true
		observation.Selection = selection(read[placementObject](obj), query.Selectors)
	}
	for _, obj := range d.orders(query.Key) {
		observation.Found = true
		observation.Clusters = append(observation.Clusters, observe(read[orderObject](obj), query.Workload))
	}
	d.observeCompanions(query, &observation)
	slices.SortFunc(observation.Clusters, func(a, b backends.ClusterObservation) int {
		return cmp.Compare(a.Cluster, b.Cluster)
	})
	return observation, nil
}

func selection(p *placementObject, asked []v1alpha1.ClusterSelector) backends.Selection {
	switch {
	case !equality.Semantic.DeepEqual(p.Spec.Selectors, asked):
		return backends.Selection{Message: "the placement is still the one before"}
	case p.Status.ObservedGeneration != p.Generation:
		return backends.Selection{Message: "clusters are being chosen"}
	case len(p.Status.Clusters) == 0:
		return backends.Selection{Settled: true, Message: "no cluster matches"}
	default:
		return backends.Selection{Settled: true, Clusters: p.Status.Clusters}
	}
}

// observe tells what is known of one order.
func observe(o *orderObject, workload backends.Workload) backends.ClusterObservation {
	c := backends.ClusterObservation{
		Cluster: o.Spec.Cluster, Revision: o.Spec.Revision, Held: o.Spec.Hold,
		Applied: metav1.ConditionUnknown, Presence: backends.PresenceOf(o.Spec.Removal != "", o.released()),
	}
	if replicas, ok := nestedNumber(o.Spec.Manifest, workload.ReplicasPath); ok {
		c.Asked = ptr.To(int32(replicas))
	}
	if o.Spec.Mode == backends.ModeProbe && !c.Removing() {
		c.Probe = probed(o, workload)
	}
	if o.carriedOut() {
		c.Conflict, c.Message = o.Status.Conflict, o.Status.Message
		switch {
		case !o.Status.Applied:
			c.Applied = metav1.ConditionFalse
		case o.Spec.Manifest != nil && o.Spec.Mode.Owns():
			c.Applied = metav1.ConditionTrue
		}
	}
	if r := o.Status.Report; r != nil {
		c.UID = r.UID
		c.Status = map[string]any{}
		for _, field := range workload.Feedback {
			path := strings.Split(strings.TrimPrefix(field.Path, "."), ".")
			if value, found, _ := unstructured.NestedFieldCopy(r.Object, path...); found {
				c.Status[field.Name] = value
			}
		}
		reported, _ := nestedNumber(r.Object, workload.ReplicasPath)
		c.Current = c.Applied == metav1.ConditionTrue && r.Revision == c.Revision && r.seen() &&
			(c.Asked == nil || reported == int64(*c.Asked))
	}
	return c
}

// probed is what a probe has brought.
func probed(o *orderObject, workload backends.Workload) *backends.ProbeResult {
	s := &backends.ProbeResult{Answered: o.carriedOut(), Exists: o.Status.Report != nil}
	if s.Exists {
		if n, found := nestedNumber(o.Status.Report.Object, workload.ReplicasPath); found {
			s.Replicas = ptr.To(int32(n))
		}
	}
	return s
}

func nestedNumber(obj map[string]any, path []string) (int64, bool) {
	if obj == nil || len(path) == 0 {
		return 0, false
	}
	n, found, err := unstructured.NestedInt64(obj, path...)
	return n, found && err == nil
}

// orders are the backend's orders of a workload.
func (d *Driver) orders(key backends.Key) []*unstructured.Unstructured {
	return slices.DeleteFunc(d.backend.backend.list(orderKind.Kind), func(obj *unstructured.Unstructured) bool {
		return !ours(obj, key) || companions.IsCompanionWork(obj)
	})
}

// Apply implements backends.Driver.
func (d *Driver) Apply(ctx context.Context, desired backends.Desired) (backends.Progress, error) {
	if err := d.begin(ctx, OpApply); err != nil {
		return backends.Progress{}, err
	}
	if err := d.check(desired); err != nil {
		return backends.Progress{}, err
	}
	var spec placementObject
	spec.Spec.Selectors = desired.Selectors
	placement := toMap(&spec.Spec)
	if err := d.write(placementRef(desired.Key), desired.Key, placement); err != nil {
		return backends.Progress{}, err
	}
	if len(desired.Targets) == 0 {
		return backends.Progress{Done: true}, nil
	}
	missing := map[string]string{}
	var waiting []string
	for _, target := range desired.Wanted() {
		what, err := d.companions(desired, target)
		if err == nil && (what == "" || target.Mode == backends.ModeHold) {
			err = d.order(desired, target)
		}
		if err != nil {
			return backends.Progress{}, err
		}
		if what != "" {
			missing[target.Cluster] = what
			waiting = append(waiting, target.Cluster+": "+what)
		}
	}
	progress, err := d.withdraw(desired.Query, v1alpha1.DeletionPolicyDelete, func(cluster string) bool { return !desired.Removes(cluster) })
	if err != nil {
		return progress, err
	}
	leaving, err := d.release(desired, missing)
	return progressOf(append(waiting, append(leaving, progress.Waiting)...)), err
}

// progressOf is done when nothing is awaited.
func progressOf(waiting []string) backends.Progress {
	waiting = slices.DeleteFunc(waiting, func(what string) bool { return what == "" })
	return backends.Progress{Done: len(waiting) == 0, Waiting: strings.Join(waiting, "; ")}
}

// check refuses what the backend cannot do.
func (d *Driver) check(desired backends.Desired) error {
	features := d.backend.options.Features
	gvk := desired.Workload.GVK
	if !slices.Contains(d.backend.options.Groups, gvk.Group) {
		return &backends.Error{
			Code: backends.CodeKindNotServed, Field: "spec.template.kind", Value: gvk.Kind,
			Message: gvk.GroupVersion().String() + " is not served", Remedy: "install the kind's CRD",
		}
	}
	unsupported := func(field, message string) error {
		return &backends.Error{
			Code: backends.CodeUnsupported, Field: field, Message: message, Remedy: "use a backend that can",
		}
	}
	if desired.Workload.Namespace == "" && !features[backends.FeatureClusterScoped] {
		return unsupported("spec.template", "cluster-scoped workloads are not carried")
	}
	if desired.Drift == v1alpha1.DriftPolicyReport && !features[backends.FeatureDriftReport] {
		return unsupported("spec.drift", "what others change is put back")
	}
	fleet := backends.Fleet{Clusters: d.backend.fleet()}
	if unknown := fleet.Unknown(desired.Selectors...); len(unknown) > 0 {
		return &backends.Error{
			Code: backends.CodeClusterNotFound, Field: "spec.placement", Value: unknown[0],
			Message: "the backend knows no such cluster", Remedy: "correct the name or register the cluster",
		}
	}
	for _, target := range desired.Targets {
		switch target.Mode {
		case backends.ModeHold:
			if !features[backends.FeatureHold] {
				return unsupported("", "clusters cannot be held")
			}
		case backends.ModeAdopt, backends.ModeObserve, backends.ModeProbe:
			if !features[backends.FeatureModes] {
				return unsupported("", "mode "+string(target.Mode)+" is not possible")
			}
		case "", backends.ModeOwn, backends.ModeRemove:
		}
	}
	return nil
}

// order writes one cluster's order. A held cluster keeps the manifest that it has.
func (d *Driver) order(desired backends.Desired, target backends.Target) error {
	w := desired.Workload
	spec := orderSpec{
		Cluster: target.Cluster, Conflict: desired.ConflictPolicy, Hold: target.Mode == backends.ModeHold,
		Mode: cmp.Or(target.Mode, backends.ModeOwn),
		Workload: workloadRef{
			APIVersion: w.GVK.GroupVersion().String(), Kind: w.GVK.Kind, Namespace: w.Namespace, Name: w.Name,
		},
		Manifest: target.Manifest.DeepCopy().Object, Revision: desired.Revision,
	}
	ref := orderRef(desired.Key, target.Cluster)
	if spec.Hold {
		spec.Manifest, spec.Revision, spec.Mode = nil, "", backends.ModeOwn
		if live := d.backend.backend.get(ref); ours(live, desired.Key) {
			before := read[orderObject](live).Spec
			spec.Manifest, spec.Revision, spec.Mode = before.Manifest, before.Revision, before.Mode
		}
	}
	return d.write(ref, desired.Key, toMap(&spec))
}

// Delete implements backends.Driver.
func (d *Driver) Delete(ctx context.Context, query backends.Query, policy v1alpha1.DeletionPolicy) (backends.Progress, error) {
	if err := d.begin(ctx, OpDelete); err != nil {
		return backends.Progress{}, err
	}
	progress, err := d.withdraw(query, policy, func(string) bool { return false })
	if err != nil || !progress.Done {
		return progress, err
	}
	leaving, err := d.leave(query, policy, func(*unstructured.Unstructured, string) bool { return false })
	if err != nil || len(leaving) > 0 {
		return progressOf(leaving), err
	}
	if obj := d.backend.backend.get(placementRef(query.Key)); ours(obj, query.Key) {
		return progress, d.drop(backendtest.RefOf(obj))
	}
	return progress, nil
}

// withdraw takes the orders that are not kept off their clusters, then off the backend.
func (d *Driver) withdraw(
	query backends.Query, policy v1alpha1.DeletionPolicy, keep func(cluster string) bool,
) (backends.Progress, error) {
	var waiting []string
	key := query.Key
	for _, obj := range d.orders(key) {
		order := read[orderObject](obj)
		if keep(order.Spec.Cluster) {
			continue
		}
		if order.Spec.Removal == policy && order.carriedOut() && order.Status.Removed {
			if err := d.drop(backendtest.RefOf(obj)); err != nil {
				return backends.Progress{}, err
			}
			continue
		}
		order.remove(policy, query.Alone())
		if err := d.write(backendtest.RefOf(obj), key, toMap(&order.Spec)); err != nil {
			return backends.Progress{}, err
		}
		waiting = append(waiting, order.Spec.Cluster)
	}
	if len(waiting) > 0 {
		return backends.Progress{Waiting: "clusters to give the workload up: " + strings.Join(waiting, ", ")}, nil
	}
	return backends.Progress{Done: true}, nil
}

// write makes the spec of a backend object what is given, when it is not.
func (d *Driver) write(ref backendtest.Ref, key backends.Key, spec map[string]any) error {
	store := d.backend.backend
	live := store.get(ref)
	if live != nil && !ours(live, key) {
		return &backends.Error{
			Code: backends.CodeNameConflict, Field: "metadata.name", Value: key.Name,
			Message: fmt.Sprintf("the backend has a %s %s that is not this FleetWorkload's", ref.GVK.Kind, ref.NamespacedName),
			Remedy:  "delete that object or choose another name",
		}
	}
	if live != nil && reflect.DeepEqual(live.Object["spec"], spec) {
		return nil
	}
	if err := d.gate(backendtest.WriteRequest, "write "+ref.String()); err != nil {
		return fmt.Errorf("write %s %s: %w", ref.GVK.Kind, ref.NamespacedName, err)
	}
	var err error
	if live == nil {
		live = newObject(ref, key)
		live.Object["spec"] = spec
		err = store.create(live)
	} else {
		live.Object["spec"] = spec
		err = store.replace(live)
	}
	if err != nil {
		return backends.Classify("write "+ref.String(), err)
	}
	d.backend.wrote()
	return nil
}

// drop deletes a backend object.
func (d *Driver) drop(ref backendtest.Ref) error {
	if err := d.gate(backendtest.WriteRequest, "delete "+ref.String()); err != nil {
		return fmt.Errorf("delete %s %s: %w", ref.GVK.Kind, ref.NamespacedName, err)
	}
	d.backend.backend.remove(ref)
	d.backend.wrote()
	return nil
}
