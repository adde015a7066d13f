package main

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/declarative/luavm"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/default/thirdparty"
	"github.com/karmada-io/karmada/pkg/util"
	"github.com/karmada-io/karmada/pkg/util/names"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

const (
	// registeredPrefix begins the names of the clusters that are registered and not there.
	registeredPrefix = "simulated-"
	// renewal is how often each renews its lease: Karmada gives a cluster up that has not for 40 s (cluster-monitor-grace-period).
	renewal = 10 * time.Second
	// stripes is in how many parts all leases are renewed, so that they do not come at once.
	stripes = 10
)

// registered stands in for the agents of clusters in Pull mode: Karmada makes their Works, and each is answered as karmada-agent would once
// it has the manifest applied and the workload runs. Nothing runs.
type registered struct {
	karmada client.Client
	reads   cache.Cache
	names   []string
	queue   workqueue.TypedInterface[types.NamespacedName]
	vm      *luavm.VM
	stock   *thirdparty.ConfigurableInterpreter
	failed  chan error
	ended   sync.WaitGroup
}

// startRegistered registers n clusters that serve what a one one does, and answers their Works until ctx ends.
func startRegistered(ctx context.Context, fleet *lab.Fleet, karmada client.Client, n int, progress io.Writer) (*registered, error) {
	r := &registered{
		karmada: karmada, queue: workqueue.NewTyped[types.NamespacedName](), vm: luavm.New(false, answerers),
		stock: thirdparty.NewConfigurableInterpreter(), failed: make(chan error, 1),
	}
	for i := range n {
		r.names = append(r.names, fmt.Sprintf("%s%03d", registeredPrefix, i))
	}
	cfg, err := fleet.RESTConfig(lab.Karmada)
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	if err := r.watch(ctx, cfg); err != nil {
		return nil, fmt.Errorf("watch Works: %w", err)
	}
	fmt.Fprintf(progress, "registering %d clusters with Karmada\n", n)
	if err := r.register(ctx, fleet.Members()[0].KarmadaName); err != nil {
		return nil, err
	}
	for i := range stripes {
		r.ended.Go(func() { r.renew(ctx, i) })
	}
	return r, pollFor(ctx, patience, "Karmada to have the clusters ready", func() error { return r.ready(ctx) })
}

// watch reads the Works, and what Karmada is told of kinds.
func (r *registered) watch(ctx context.Context, cfg *rest.Config) (err error) {
	r.reads, err = cache.New(cfg, cache.Options{Scheme: r.karmada.Scheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return err
	}
	if _, err := r.reads.GetInformer(ctx, &configv1alpha1.ResourceInterpreterCustomization{}, cache.BlockUntilSynced(false)); err != nil {
		return err
	}
	informer, err := r.reads.GetInformer(ctx, &workv1alpha1.Work{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	see := func(obj any) {
		if work, ok := obj.(*workv1alpha1.Work); ok && strings.HasPrefix(work.Namespace, names.ExecutionSpacePrefix+registeredPrefix) {
			r.queue.Add(client.ObjectKeyFromObject(work))
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, now any) { see(now) }}); err != nil {
		return err
	}
	r.ended.Go(func() {
		if err := r.reads.Start(ctx); err != nil {
			r.fail(fmt.Errorf("watch Works: %w", err))
		}
	})
	for range answerers {
		r.ended.Go(func() { r.answerAll(ctx) })
	}
	context.AfterFunc(ctx, r.queue.ShutDown)
	if !r.reads.WaitForCacheSync(ctx) {
		return context.Cause(ctx)
	}
	return nil
}

// register creates the Clusters, each ready, with the kinds that the one one has.
func (r *registered) register(ctx context.Context, like string) error {
	one := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, client.ObjectKey{Name: like}, one); err != nil {
		return fmt.Errorf("read Cluster: %w", err)
	}
	return parallel(ctx, len(r.names), func(i int) error {
		name := r.names[i]
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		cluster.Spec.SyncMode, cluster.Spec.ID = clusterv1alpha1.Pull, "00000000-0000-4000-8000-"+fmt.Sprintf("%012d", i)
		if err := client.IgnoreAlreadyExists(r.karmada.Create(ctx, cluster)); err != nil {
			return fmt.Errorf("register cluster %s: %w", name, err)
		}
		if err := r.renewOne(ctx, name); err != nil {
			return err
		}
		if err := r.karmada.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
			return fmt.Errorf("read Cluster: %w", err)
		}
		before := cluster.DeepCopy()
		cluster.Status.KubernetesVersion, cluster.Status.APIEnablements = one.Status.KubernetesVersion, one.Status.APIEnablements
		for _, c := range one.Status.Conditions {
			meta.SetStatusCondition(&cluster.Status.Conditions, c)
		}
		return r.karmada.Status().Patch(ctx, cluster, client.MergeFrom(before))
	})
}

// ready is an error while Karmada would not schedule anything to one of them, or has no namespace for its Works.
func (r *registered) ready(ctx context.Context) error {
	list := &clusterv1alpha1.ClusterList{}
	if err := r.karmada.List(ctx, list); err != nil {
		return err
	}
	ready := 0
	for _, c := range list.Items {
		if strings.HasPrefix(c.Name, registeredPrefix) && len(c.Spec.Taints) == 0 && controllerutil.ContainsFinalizer(&c, util.ClusterControllerFinalizer) {
			ready++
		}
	}
	if ready != len(r.names) {
		return fmt.Errorf("%d of %d are", ready, len(r.names))
	}
	return r.check()
}

// renew renews a part of the leases for as long as ctx lasts.
func (r *registered) renew(ctx context.Context, stripe int) {
	ticker := time.NewTicker(renewal)
	defer ticker.Stop()
	for {
		for i := stripe; i < len(r.names); i += stripes {
			if err := r.renewOne(ctx, r.names[i]); err != nil && ctx.Err() == nil {
				r.fail(err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *registered) renewOne(ctx context.Context, name string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: util.NamespaceClusterLease, Name: name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.karmada, lease, func() error {
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To(name), ptr.To[int32](40)
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		return nil
	})
	if err != nil {
		return fmt.Errorf("renew the lease of %s: %w", name, err)
	}
	return nil
}

func (r *registered) answerAll(ctx context.Context) {
	for {
		key, end := r.queue.Get()
		if end {
			return
		}
		if err := r.answer(ctx, key); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
			r.fail(fmt.Errorf("answer Work %s: %w", key, err))
		}
		r.queue.Done(key)
	}
}

// answer does what the agent does with a Work, in one write.
func (r *registered) answer(ctx context.Context, key types.NamespacedName) error {
	before := &workv1alpha1.Work{}
	if err := r.reads.Get(ctx, key, before); err != nil {
		return err
	}
	work := before.DeepCopy()
	if work.DeletionTimestamp != nil {
		if controllerutil.RemoveFinalizer(work, util.ExecutionControllerFinalizer) {
			return r.karmada.Patch(ctx, work, client.MergeFrom(before))
		}
		return nil
	}
	dispatching := metav1.Condition{Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionTrue, Reason: "Dispatching"}
	if ptr.Deref(work.Spec.SuspendDispatching, false) {
		dispatching.Status, dispatching.Reason = metav1.ConditionFalse, "SuspendDispatching"
	}
	meta.SetStatusCondition(&work.Status.Conditions, dispatching)
	if dispatching.Status == metav1.ConditionTrue {
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: "AppliedSuccessful"})
		statuses, err := r.report(ctx, work)
		if err != nil {
			return err
		}
		work.Status.ManifestStatuses = statuses
	}
	if reflect.DeepEqual(before.Status, work.Status) {
		return nil
	}
	return r.karmada.Status().Patch(ctx, work, client.MergeFrom(before))
}

// report is what the agent tells of the object on the cluster, by the script that Karmada has for the kind.
func (r *registered) report(ctx context.Context, work *workv1alpha1.Work) ([]workv1alpha1.ManifestStatus, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	if object.GetKind() != "CloneSet" {
		return nil, nil
	}
	object.SetUID(types.UID("member-" + string(work.UID)))
	object.SetGeneration(work.Generation)
	object.Object["status"] = running(object.Object, work.Generation)
	status, err := r.reflect(ctx, object)
	if err != nil {
		return nil, err
	}
	gvk := object.GroupVersionKind()
	return []workv1alpha1.ManifestStatus{{
		Identifier: workv1alpha1.ResourceIdentifier{
			Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName(),
		},
		Status: status, Health: workv1alpha1.ResourceHealthy,
	}}, nil
}

func (r *registered) reflect(ctx context.Context, object *unstructured.Unstructured) (*runtime.RawExtension, error) {
	told := &configv1alpha1.ResourceInterpreterCustomizationList{}
	if err := r.reads.List(ctx, told); err != nil {
		return nil, err
	}
	for _, c := range told.Items {
		reflection := c.Spec.Customizations.StatusReflection
		if schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind) == object.GroupVersionKind() && reflection != nil {
			return r.vm.ReflectStatus(object, reflection.LuaScript)
		}
	}
	status, _, err := r.stock.ReflectStatus(object)
	return status, err
}

// worksGone is an error while Karmada has Works of a namespace for one of the clusters.
func (r *registered) worksGone(ctx context.Context, namespace string) error {
	list := &workv1alpha1.WorkList{}
	if err := r.reads.List(ctx, list); err != nil {
		return err
	}
	left := 0
	for _, work := range list.Items {
		if work.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey] == namespace {
			left++
		}
	}
	if left > 0 {
		return fmt.Errorf("%d Works are left", left)
	}
	return r.check()
}

// check is the first error of what goes on beside.
func (r *registered) check() error {
	select {
	case err := <-r.failed:
		r.fail(err)
		return err
	default:
		return nil
	}
}

func (r *registered) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}
