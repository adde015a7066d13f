package karmada

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
	"github.com/fleetworkload/fleetworkload/backends/internal/expectations"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// Options set a driver up.
type Options struct {
	// Log receives what happens in the background. The zero value discards it.
	Log logr.Logger
	// Interpreter gives the interpreters that are kept on the control plane for a kind that is used, as a
	// ResourceInterpreterCustomization. When nil, customizations are neither written nor read.
	Interpreter func(schema.GroupVersionKind) (Interpreter, error)
	// PodEvidence has Restarts look at pods, which takes rights that nothing else does.
	PodEvidence bool
}

// Driver carries workloads out through one Karmada control plane.
type Driver struct {
	client client.Client
	cache  cache.Cache
	kinds  kinds
	log    logr.Logger

	watches  watches
	expected expectations.Expectations
	teacher  *teacher
	pods     *podReader // nil when it is not to look at pods
	// created are the carriers that the cache may not show yet.
	created companions.Created
}

var (
	_ backends.Driver    = (*Driver)(nil)
	_ backends.Runner    = (*Driver)(nil)
	_ backends.Trier     = (*Driver)(nil)
	_ backends.Bringer   = (*Driver)(nil)
	_ backends.PodReader = (*Driver)(nil)
)

// New returns a driver for the Karmada control plane whose API server cfg leads to. It sends no request; Run must be
// called before it is of use.
func New(cfg *rest.Config, opts Options) (*Driver, error) {
	cfg = rest.CopyConfig(cfg)
	if cfg.QPS == 0 {
		// Karmada's API server has priority and fairness; a limit on our side would only delay gates.
		cfg.QPS = -1
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to Karmada: %w", err)
	}
	d := &Driver{log: opts.Log, teacher: newTeacher(opts.Interpreter)}
	bounded := backends.Bounded(httpClient)
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, bounded)
	if err != nil {
		return nil, fmt.Errorf("connect to Karmada: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	direct, err := client.New(cfg, client.Options{HTTPClient: bounded, Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to Karmada: %w", err)
	}
	cached, err := newCache(cfg, d.watches.refused.Client(httpClient), scheme, mapper)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, bounded)
	if err != nil {
		return nil, fmt.Errorf("connect to Karmada: %w", err)
	}
	d.client, d.cache, d.kinds.discovery = direct, cached, disco
	if opts.PodEvidence {
		if d.pods, err = newPodReader(cfg, bounded); err != nil {
			return nil, err
		}
	}
	if d.log.GetSink() == nil {
		d.log = logr.Discard()
	}
	return d, nil
}

// Features tells what the driver can do.
func (d *Driver) Features() backends.Features {
	return backends.Features{
		backends.FeatureHold: true, backends.FeatureModes: true, backends.FeatureClusterScoped: true,
		backends.FeatureKarmadaMarks: true,
	}
}

// Clusters returns Karmada's clusters.
func (d *Driver) Clusters(ctx context.Context) (backends.Fleet, error) {
	clusters, err := d.clusters(ctx)
	if err != nil {
		return backends.Fleet{}, err
	}
	return toFleet(clusters), nil
}

// Observe tells what Karmada reports.
func (d *Driver) Observe(ctx context.Context, query backends.Query) (backends.Observation, error) {
	clusters, err := d.clusters(ctx)
	if err != nil {
		return backends.Observation{}, err
	}
	lesson, err := d.teacher.prepare(ctx, d.cache, query.Workload.GVK)
	if err != nil {
		return backends.Observation{}, err
	}
	live, err := d.load(ctx, d.readerFor(query), query)
	if err != nil && backends.CodeOf(err) != backends.CodeKindNotServed {
		return backends.Observation{}, err
	}
	earlier := live.earlier(query)
	live = live.own(query)
	live.retains = lesson.retains
	o := translate(query, live, toFleet(clusters))
	o.Earlier = earlier
	o.Notes = slices.Clone(lesson.notes)
	if err := d.observeCarriers(ctx, query, &o); err != nil {
		return backends.Observation{}, err
	}
	selection, choice := choose(query, clusters, live)
	if err = errors.Join(err, choice); err != nil {
		// What runs is reported all the same; Apply says what is wrong with the spec.
		selection = backends.Selection{Message: err.Error()}
	}
	o.Selection = selection
	return o, nil
}

// Apply takes the next step towards desired.
func (d *Driver) Apply(ctx context.Context, desired backends.Desired) (backends.Progress, error) {
	removed := removedOf(desired)
	desired.Targets = desired.Wanted()
	want, err := render(desired, world{})
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
	err = refuseCarried(desired, func(at types.NamespacedName) (*workv1alpha1.Work, error) { return d.carrier(ctx, at) })
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
		return backends.Progress{Waiting: behind, Again: expectations.Patience}, err
	}
	if waiting, err := d.teacher.teach(ctx, d.cache, d.client, desired.Workload.GVK); err != nil || waiting != "" {
		return backends.Progress{Waiting: waiting}, err
	}
	return d.advance(ctx, desired, removed, live, clusters)
}

// advance takes the next step: companions first, then the workload, then what is no longer needed.
func (d *Driver) advance(
	ctx context.Context, desired backends.Desired, removed map[string]bool, live world, clusters []clusterv1alpha1.Cluster,
) (backends.Progress, error) {
	fleet := toFleet(clusters)
	first, err := d.applyCarriers(ctx, desired, fleet)
	if err != nil {
		return backends.Progress{}, err
	}
	if len(first.pending) > 0 {
		return backends.Progress{Waiting: strings.Join(first.pending[:min(len(first.pending), mostNamed)], "; ")}, nil
	}
	now := time.Now()
	unseen, seenBy := live.unseen(fleet, now, func(w work) bool { return !removed[w.cluster] })
	held, want, stay, err := holdBack(desired, removed, live, fleet, unseen, first.blocked)
	if err != nil {
		return backends.Progress{}, err
	}
	want, again := want.asking(live, clusters, held.Query, now)
	step := decide(held, want, live)
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
		again = backends.Sooner(again, wait)
	}
	settled := step.waiting == "" && len(step.writes) == 0
	waiting, seenCarrierBy, err := d.leaveCarriers(ctx, desired, removed, live, fleet, settled)
	for _, cluster := range slices.Sorted(maps.Keys(first.blocked)) {
		waiting = append(waiting, cluster+": "+first.blocked[cluster])
	}
	for _, cluster := range slices.Sorted(maps.Keys(stay)) {
		waiting = append(waiting, cluster+": "+stay[cluster])
	}
	if step.waiting != "" {
		waiting = append([]string{step.waiting}, waiting...)
	}
	waiting = waiting[:min(len(waiting), mostNamed)]
	return backends.Progress{Done: len(waiting) == 0, Waiting: strings.Join(waiting, "; "), Again: backends.Sooner(backends.Sooner(again, seenBy), seenCarrierBy)}, err
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
	desired backends.Desired, removed map[string]bool, live world, fleet backends.Fleet, unseen []string, blocked map[string]string,
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

// Delete takes the next step towards having nothing of the workload on Karmada.
func (d *Driver) Delete(ctx context.Context, query backends.Query, policy v1alpha1.DeletionPolicy) (backends.Progress, error) {
	clusters, err := d.clusters(ctx)
	if err != nil {
		return backends.Progress{}, err
	}
	live, err := d.load(ctx, d.cache, query)
	if err != nil && backends.CodeOf(err) != backends.CodeKindNotServed {
		return backends.Progress{}, err
	}
	live = live.own(query)
	if behind, err := d.behind(ctx, query, live); err != nil || behind != "" {
		return backends.Progress{Waiting: behind, Again: expectations.Patience}, err
	}
	if unseen, err := d.showAgain(ctx, query, live); err != nil || unseen != "" {
		return backends.Progress{Waiting: unseen}, err
	}
	step := decideDelete(query, policy, live, toFleet(clusters), time.Now())
	for _, w := range step.writes {
		if w.remove || w.object.GetKind() == kindOf(live.policy) || w.object.GetKind() == kindOf(live.override) {
			continue
		}
		if err := d.checkFree(ctx, query, w.object); err != nil {
			return backends.Progress{}, err
		}
	}
	if err := d.carryOut(ctx, step); err != nil {
		return backends.Progress{}, err
	}
	again := step.again
	if len(step.writes) == 0 && step.waiting != "" {
		wait, err := d.retell(ctx, live)
		if err != nil {
			return backends.Progress{}, err
		}
		again = backends.Sooner(again, wait)
	}
	waiting := step.waiting
	if waiting == "" {
		if waiting, again, err = d.deleteCarriers(ctx, query, policy, toFleet(clusters)); err != nil {
			return backends.Progress{}, err
		}
	}
	if waiting == "" {
		d.watches.forget(query)
	}
	return backends.Progress{Done: waiting == "", Waiting: waiting, Again: again}, nil
}

// clusters returns Karmada's clusters as cached; they must not be changed.
func (d *Driver) clusters(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
	if err := ctx.Err(); err != nil { // caches do not look
		return nil, fmt.Errorf("list Karmada's clusters: %w", err)
	}
	if err := d.watches.ready(); err != nil {
		return nil, err
	}
	var clusters clusterv1alpha1.ClusterList
	if err := d.cache.List(ctx, &clusters); err != nil {
		return nil, backends.Classify("list Karmada's clusters", err)
	}
	return clusters.Items, nil
}

// readerFor is the API server when the query asks for it, else the cache.
func (d *Driver) readerFor(q backends.Query) client.Reader {
	if q.Counterpart != backends.CounterpartNone {
		return d.client
	}
	return d.cache
}

// load reads what Karmada has of the workload. With a kind that is not served it returns that error, and all the rest.
func (d *Driver) load(ctx context.Context, from client.Reader, q backends.Query) (world, error) {
	if err := d.watches.ready(); err != nil {
		return world{}, err
	}
	d.watches.remember(q)
	notServed := d.watchKind(ctx, q.Workload)
	if notServed != nil && backends.CodeOf(notServed) != backends.CodeKindNotServed {
		return world{}, notServed
	}
	var live world
	var err error
	name, kinds := policyName(q), scopeOf(q.Workload)
	if notServed == nil {
		live.template = &unstructured.Unstructured{}
		live.template.SetGroupVersionKind(q.Workload.GVK)
		err = get(ctx, from, q.Workload.Namespace, q.Workload.Name, &live.template)
	}
	live.policy, live.override = &unstructured.Unstructured{}, &unstructured.Unstructured{}
	live.policy.SetGroupVersionKind(kinds.policy)
	live.override.SetGroupVersionKind(kinds.override)
	err = errors.Join(err, get(ctx, from, q.Workload.Namespace, name, &live.policy),
		get(ctx, from, q.Workload.Namespace, name, &live.override))
	if err != nil {
		return world{}, err
	}
	if err := errors.Join(loadBinding(ctx, from, q, &live), d.loadWorks(ctx, from, q, &live)); err != nil {
		return world{}, err
	}
	return live, notServed
}

func loadBinding(ctx context.Context, from client.Reader, q backends.Query, live *world) error {
	at := bindingOf(q.Workload)
	namespaced, wide := &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}
	var obj client.Object = namespaced
	if at.Namespace == "" {
		obj = wide
	}
	switch err := from.Get(ctx, at, obj); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return backends.Classify("get binding "+at.String(), err)
	}
	live.binding = namespaced
	if at.Namespace == "" {
		live.binding = asBinding(wide)
	}
	return nil
}

// loadWorks needs the binding. Only the cache finds Works that are left without one.
func (d *Driver) loadWorks(ctx context.Context, from client.Reader, q backends.Query, live *world) error {
	at, label := bindingOf(q.Workload), scopeOf(q.Workload).bindingID
	var chosen client.ListOption = client.MatchingFields{workByBinding: at.String()}
	if from != d.cache {
		if live.binding != nil && live.binding.Labels[label] != "" {
			chosen = client.MatchingLabels{label: live.binding.Labels[label]}
		} else {
			from = d.cache
		}
	}
	var works workv1alpha1.WorkList
	if err := from.List(ctx, &works, chosen); err != nil {
		return backends.Classify("list works of "+at.String(), err)
	}
	for i := range works.Items {
		w := newWork(&works.Items[i])
		id := w.Labels[label]
		if w.ours(q.Key) || live.binding != nil && id != "" && id == live.binding.Labels[label] {
			live.works = append(live.works, w)
		}
	}
	slices.SortFunc(live.works, func(a, b work) int { return compareWorks(a, b) })
	return nil
}

// get reads an object, and sets the pointer to nil when there is none.
func get(ctx context.Context, from client.Reader, namespace, name string, obj **unstructured.Unstructured) error {
	err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, *obj)
	if err == nil {
		return nil
	}
	kind := (*obj).GetKind()
	*obj = nil
	if apierrors.IsNotFound(err) {
		return nil
	}
	return backends.Classify(fmt.Sprintf("get %s %s/%s", kind, namespace, name), err)
}

// prepare makes sure, before the first write, that what is missing in the cache is not there in truth: the cache holds
// only what has our label. It also creates the namespace; it is never deleted, since Karmada would delete it on members
// with everything in it.
func (d *Driver) prepare(ctx context.Context, desired backends.Desired, want *rendered, live world) error {
	for _, pair := range []struct{ live, want *unstructured.Unstructured }{
		{live.template, want.template}, {live.policy, want.policy}, {live.override, want.override},
	} {
		if pair.live != nil {
			continue
		}
		err := d.checkFree(ctx, desired.Query, pair.want)
		if err != nil && pair.want == want.template && desired.ConflictPolicy == v1alpha1.ConflictPolicyAdopt {
			return d.refuseRaw(ctx, desired.Query, pair.want, err)
		}
		if err != nil {
			return err
		}
	}
	if live.policy != nil || live.override != nil || live.template != nil || desired.Workload.Namespace == "" {
		return nil
	}
	return d.ensureNamespace(ctx, desired.Workload.Namespace, desired.Workload.NamespaceLabels)
}

func (d *Driver) checkFree(ctx context.Context, q backends.Query, want *unstructured.Unstructured) error {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(want.GroupVersionKind())
	err := d.client.Get(ctx, client.ObjectKeyFromObject(want), found)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		op := fmt.Sprintf("get %s %s", want.GetKind(), client.ObjectKeyFromObject(want))
		return backends.Classify(op, err)
	}
	if found.Labels[v1alpha1.LabelUID] == string(q.Key.UID) {
		return nil // the cache will show it
	}
	obj := reference(want.GetAPIVersion(), want.GetKind(), want.GetNamespace(), want.GetName())
	obj.SetAnnotations(found.Annotations)
	return nameConflict(obj, q)
}

// showAgain puts the label back by which the cache has an object, when somebody took it off one of the workload's: it would be awaited
// for ever, or stay. It says what is awaited then.
func (d *Driver) showAgain(ctx context.Context, q backends.Query, live world) (waiting string, err error) {
	for _, object := range live.objects(q) {
		if object.live != nil {
			continue
		}
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(object.gvk)
		at := types.NamespacedName{Namespace: q.Workload.Namespace, Name: object.name}
		err := d.client.Get(ctx, at, found)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return "", backends.Classify(fmt.Sprintf("get %s %s", object.gvk.Kind, at), err)
		}
		if found.Labels[v1alpha1.LabelUID] != string(q.Key.UID) || found.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelManagedBy, v1alpha1.ManagedByOperator)
		err = client.IgnoreNotFound(d.client.Patch(ctx, found, client.RawPatch(types.MergePatchType, patch)))
		if err != nil {
			return "", backends.Classify(fmt.Sprintf("label %s %s", object.gvk.Kind, at), err)
		}
		waiting = fmt.Sprintf("the cache to show %s %s", object.gvk.Kind, at)
	}
	return waiting, nil
}

func kindOf(obj *unstructured.Unstructured) string {
	if obj == nil {
		return ""
	}
	return obj.GetKind()
}

// ensureNamespace makes a namespace that is missing, with these labels: Karmada makes it on the members as it is here
// (pkg/controllers/namespace). One that is there is left as it is.
func (d *Driver) ensureNamespace(ctx context.Context, name string, labels map[string]string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	err := d.client.Get(ctx, types.NamespacedName{Name: name}, &corev1.Namespace{})
	if err == nil {
		return nil
	}
	if apierrors.IsNotFound(err) {
		err = d.client.Create(ctx, namespace)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		op := "create namespace " + name
		return backends.Classify(op, err)
	}
	return nil
}

// carryOut sends the writes in order, then releases Works, and stops at the first that fails.
func (d *Driver) carryOut(ctx context.Context, step decision) error {
	for _, w := range step.writes {
		if w.remove {
			if err := d.remove(ctx, w.object); err != nil {
				return err
			}
			continue
		}
		sent, err := ssa.Send(ctx, d.client, w.object)
		if err != nil {
			return err
		}
		d.expected.Wrote(sent)
	}
	for _, w := range step.release {
		if err := d.release(ctx, w); err != nil {
			return err
		}
	}
	for _, t := range step.tell {
		if err := d.patchWork(ctx, t.work.Work, t.told(), "set preserveResourcesOnDeletion of"); err != nil {
			return err
		}
	}
	for _, w := range step.discard {
		if err := d.discard(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// discard deletes a Work that is still as it was seen: what it says of the member object is carried out.
func (d *Driver) discard(ctx context.Context, w work) error {
	seen := asSeen(w)
	err := d.client.Delete(ctx, seen, client.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return backends.Classify(fmt.Sprintf("delete work %s/%s", w.Namespace, w.Name), err)
	}
	return nil
}

// remove deletes the object if it is still the one that was seen.
func (d *Driver) remove(ctx context.Context, obj *unstructured.Unstructured) error {
	d.expected.Forget(expectations.KeyOf(obj))
	opts := []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}
	if uid := obj.GetUID(); uid != "" {
		opts = append(opts, client.Preconditions{UID: &uid})
	}
	target := reference(obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName())
	if err := client.IgnoreNotFound(d.client.Delete(ctx, target, opts...)); err != nil {
		op := fmt.Sprintf("delete %s %s", obj.GetKind(), client.ObjectKeyFromObject(obj))
		return backends.Classify(op, err)
	}
	return nil
}

// release takes Karmada's finalizer from a Work, see untouchable.
func (d *Driver) release(ctx context.Context, w work) error {
	if !slices.Contains(w.Finalizers, executionFinalizer) {
		return nil
	}
	before := asSeen(w)
	after := before.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == executionFinalizer })
	return d.patchWork(ctx, before, after, "release")
}

// asSeen is the Work with nothing but what tells which one it is, and which state of it.
func asSeen(w work) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: w.Name, UID: w.UID, ResourceVersion: w.ResourceVersion, Finalizers: slices.Clone(w.Finalizers),
	}}
}

// patchWork sends what differs, if the Work is still as it was seen.
func (d *Driver) patchWork(ctx context.Context, before, after *workv1alpha1.Work, operation string) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(d.client.Patch(ctx, after, patch)); err != nil {
		return backends.Classify(fmt.Sprintf("%s work %s/%s", operation, before.Namespace, before.Name), err)
	}
	return nil
}

// behind says which of the objects the cache does not show yet as they were written; it is empty when it is up to date.
func (d *Driver) behind(ctx context.Context, q backends.Query, live world) (string, error) {
	for _, object := range live.objects(q) {
		key := expectations.Key{
			GroupKind: object.gvk.GroupKind(), NamespacedName: types.NamespacedName{Namespace: q.Workload.Namespace, Name: object.name},
		}
		var seen metav1.Object
		if object.live != nil {
			seen = object.live
		}
		behind, err := d.expected.Behind(key, seen, func() (string, error) {
			there := &metav1.PartialObjectMetadata{}
			there.SetGroupVersionKind(object.gvk)
			err := d.client.Get(ctx, key.NamespacedName, there)
			if there.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByOperator || there.Labels[v1alpha1.LabelUID] != string(q.Key.UID) {
				return "", client.IgnoreNotFound(err)
			}
			return there.ResourceVersion, client.IgnoreNotFound(err)
		})
		if err != nil {
			return "", backends.Classify("read what was written", err)
		}
		if behind {
			return fmt.Sprintf("the cache to show %s %s", object.gvk.Kind, key.NamespacedName), nil
		}
	}
	return "", nil
}
