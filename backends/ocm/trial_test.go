//go:build e2e

package ocm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/backends/ocm"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// trial is one workload on the test fleet, driven the way the controller does.
type trial struct {
	t        *testing.T
	fleet    *fleet
	driver   *ocm.Driver
	requests *[]backendtest.RequestKind
	desired  backends.Desired
}

func newTrial(t *testing.T, kind schema.GroupVersionKind, resource string, clusters ...string) *trial {
	t.Helper()
	f := newFleet(t)
	tr := &trial{t: t, fleet: f, requests: &[]backendtest.RequestKind{}}
	config := f.config(t, lab.Hub)
	config.Wrap(backendtest.Transport(func(kind backendtest.RequestKind, _ string) error {
		*tr.requests = append(*tr.requests, kind)
		return nil
	}))
	var err error
	if tr.driver, err = ocm.New(config, labOptions); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- tr.driver.Run(ctx, func(types.NamespacedName) {}) }()
	t.Cleanup(func() { cancel(); <-done })
	tr.until("the driver to be ready", func() string {
		_, err := tr.driver.Clusters(t.Context())
		return text(err)
	})
	tr.desired = deliveryOf(kind, resource, f.namespace(t), "web")
	tr.on(clusters...)
	t.Cleanup(func() { tr.remove(v1alpha1.DeletionPolicyDelete) })
	return tr
}

// sibling is another workload of the same namespace and driver.
func (tr *trial) sibling(name string) *trial {
	other := *tr
	w := tr.desired.Workload
	other.desired = deliveryOf(w.GVK, w.Resource, tr.desired.Key.Namespace, name)
	other.on(tr.desired.Selectors[0].Names...)
	return &other
}

func deliveryOf(kind schema.GroupVersionKind, resource, namespace, name string) backends.Desired {
	d := backends.Desired{ConflictPolicy: v1alpha1.ConflictPolicyFail, Division: v1alpha1.DivisionTypeDuplicated, Revision: "r1"}
	d.Key = backends.Key{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, UID: uuid.NewUUID()}
	d.Workload = backends.Workload{
		GVK: kind, Resource: resource, Namespace: namespace, Name: name, ReplicasPath: []string{"spec", "replicas"},
		Feedback: []backends.FeedbackField{
			{Name: "observedGeneration", Path: ".status.observedGeneration"}, {Name: "readyReplicas", Path: ".status.readyReplicas"},
		},
	}
	return d
}

func (tr *trial) on(clusters ...string) {
	tr.desired.Selectors = []v1alpha1.ClusterSelector{{Names: clusters}}
	tr.desired.Targets = nil
	replicas := int32(2)
	for _, cluster := range slices.Sorted(slices.Values(clusters)) {
		tr.desired.Targets = append(tr.desired.Targets, backends.Target{
			Cluster: cluster, Replicas: &replicas, Manifest: tr.manifest(),
		})
	}
	tr.desired.Template = tr.manifest()
}

func (tr *trial) manifest() *unstructured.Unstructured {
	w := tr.desired.Workload
	labels := map[string]any{"app": w.Name}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(2), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "main", "image": "registry.k8s.io/pause:3.9"}},
		}},
	}}}
	obj.SetGroupVersionKind(w.GVK)
	obj.SetNamespace(w.Namespace)
	obj.SetName(w.Name)
	obj.SetLabels(map[string]string{v1alpha1.LabelUID: string(tr.desired.Key.UID), "app": w.Name})
	obj.SetAnnotations(map[string]string{v1alpha1.AnnotationRevision: tr.desired.Revision})
	return obj
}

// pass is one reconcile; it returns what is missing.
func (tr *trial) pass() string {
	tr.t.Helper()
	o, err := tr.driver.Observe(tr.t.Context(), tr.desired.Query)
	if err != nil {
		return text(err)
	}
	d := tr.desired
	d.Targets = slices.Clone(d.Targets)
	for _, c := range o.Clusters {
		if !slices.ContainsFunc(d.Targets, func(t backends.Target) bool { return t.Cluster == c.Cluster }) {
			d.Targets = append(d.Targets, backends.Target{Cluster: c.Cluster, Mode: backends.ModeRemove, Reason: v1alpha1.RemovalSpecChanged})
		}
	}
	if !o.Selection.Settled {
		d.Targets = nil
	}
	progress, err := tr.driver.Apply(tr.t.Context(), d)
	switch {
	case err != nil:
		return text(err)
	case !o.Selection.Settled:
		return o.Selection.Message
	case !progress.Done:
		return progress.Waiting
	}
	for _, target := range tr.desired.Targets {
		i := slices.IndexFunc(o.Clusters, func(c backends.ClusterObservation) bool { return c.Cluster == target.Cluster })
		if i < 0 || !o.Clusters[i].Current || o.Clusters[i].Status["readyReplicas"] != int64(2) {
			return fmt.Sprintf("%s does not run it: %+v", target.Cluster, o.Clusters)
		}
	}
	if len(o.Clusters) != len(tr.desired.Targets) {
		return "other clusters are still reported"
	}
	return ""
}

func (tr *trial) converge() {
	tr.t.Helper()
	start := time.Now()
	tr.until("convergence", tr.pass)
	tr.t.Logf("converged in %.1fs", time.Since(start).Seconds())
}

func (tr *trial) remove(policy v1alpha1.DeletionPolicy) {
	tr.t.Helper()
	start := time.Now()
	tr.until("removal", func() string {
		progress, err := tr.driver.Delete(context.WithoutCancel(tr.t.Context()), tr.desired.Query, policy)
		return text(err) + progress.Waiting
	})
	tr.t.Logf("removed (%s) in %.1fs", policy, time.Since(start).Seconds())
}

func (tr *trial) until(what string, step func() string) {
	tr.t.Helper()
	missing := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if missing = step(); missing == "" {
			return
		}
	}
	tr.t.Fatalf("waited for %s: %s", what, missing)
}

// steady passes for a while and checks that the members' objects stay as they are.
func (tr *trial) steady(f func()) {
	tr.t.Helper()
	before := tr.members()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		f()
	}
	for cluster, was := range before {
		live := tr.member(cluster)
		if live == nil || live.GetUID() != was.GetUID() || live.GetGeneration() != was.GetGeneration() ||
			live.GetDeletionTimestamp() != nil {
			tr.t.Fatalf("%s: touched: %v", cluster, live)
		}
	}
}

func (tr *trial) members() map[string]*unstructured.Unstructured {
	found := map[string]*unstructured.Unstructured{}
	for _, target := range tr.desired.Targets {
		found[target.Cluster] = tr.member(target.Cluster)
	}
	return found
}

func (tr *trial) member(cluster string) *unstructured.Unstructured {
	tr.t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(tr.desired.Workload.GVK)
	err := tr.fleet.clients[cluster].Get(tr.t.Context(), client.ObjectKey{
		Namespace: tr.desired.Workload.Namespace, Name: tr.desired.Workload.Name,
	}, obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		tr.t.Fatal(err)
	}
	return obj
}

// works lists the hub's ManifestWorks in a cluster's namespace whose names contain part.
// works are the ManifestWorks for a cluster whose names begin so.
func (tr *trial) works(cluster, prefix string) []unstructured.Unstructured {
	tr.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(manifestWorkGVK.GroupVersion().WithKind("ManifestWorkList"))
	if err := tr.fleet.hub.List(tr.t.Context(), list, client.InNamespace(cluster)); err != nil {
		tr.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool { return !strings.HasPrefix(u.GetName(), prefix) })
}

func (tr *trial) hubObjects(gvk schema.GroupVersionKind) []unstructured.Unstructured {
	tr.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := tr.fleet.hub.List(tr.t.Context(), list, client.InNamespace(tr.desired.Key.Namespace)); err != nil {
		tr.t.Fatal(err)
	}
	return list.Items
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

var (
	deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	cloneSet   = schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}
	bindingGVK = schema.GroupVersionKind{
		Group: "cluster.open-cluster-management.io", Version: "v1beta2", Kind: "ManagedClusterSetBinding",
	}
)

// TestQuiet: after convergence the driver sends nothing at all.
func TestQuiet(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, cloneSet, "clonesets", "member1", "member2")
	tr.converge()
	tr.steady(func() {
		*tr.requests = nil
		if missing := tr.pass(); missing != "" || len(*tr.requests) > 0 {
			t.Fatalf("%d requests: %s", len(*tr.requests), missing)
		}
	})
}

// TestAccidents: what people do to the hub by mistake takes nothing from the members.
func TestAccidents(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, deployment, "deployments", "member1", "member2")
	tr.converge()
	t.Log("a ManifestWork deleted by hand")
	work := tr.works("member1", tr.desired.Key.Namespace+"-web-")[0]
	tr.steady(func() { _ = client.IgnoreNotFound(tr.fleet.hub.Delete(t.Context(), &work)) })
	tr.steady(func() { tr.pass() })
	tr.converge()

	t.Log("the Placement edited by hand so that it chooses nothing")
	placement := tr.hubObjects(placementGVK)[0]
	patch := []byte(`{"spec":{"predicates":[{"requiredClusterSelector":{"labelSelector":{"matchLabels":{"no":"body"}}}}]}}`)
	if err := tr.fleet.hub.Patch(t.Context(), &placement, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	settledWrong := 0
	tr.steady(func() {
		o, err := tr.driver.Observe(t.Context(), tr.desired.Query)
		if err == nil && o.Selection.Settled && len(o.Selection.Clusters) != 2 {
			settledWrong++
		}
		tr.pass()
	})
	if settledWrong > 0 {
		t.Errorf("%d wrong selections passed for settled", settledWrong)
	}
	tr.converge()

	t.Log("the set binding deleted by hand")
	binding := tr.hubObjects(bindingGVK)[0]
	if err := tr.fleet.hub.Delete(t.Context(), &binding); err != nil {
		t.Fatal(err)
	}
	tr.steady(func() {
		o, err := tr.driver.Observe(t.Context(), tr.desired.Query)
		if err == nil && o.Selection.Settled && len(o.Selection.Clusters) != 2 {
			t.Errorf("settled without a binding: %+v", o.Selection)
		}
		tr.pass()
	})
	tr.converge()
	if n := len(tr.hubObjects(placementGVK)); n != 1 {
		t.Errorf("%d Placements", n)
	}
}

// TestAnotherObject: with another name of the template, the former object goes before the new one comes.
func TestAnotherObject(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, deployment, "deployments", "member1")
	tr.converge()
	former := tr.desired.Workload
	tr.desired.Workload.Name = "web2"
	tr.on("member1")
	tr.converge()
	now := tr.desired.Workload
	tr.desired.Workload = former
	if tr.member("member1") != nil {
		t.Error("the former object was left behind")
	}
	tr.desired.Workload = now
}

// TestHeldFromTheBeginning: what was held until it is removed goes at once, although its cluster never got the rights for the
// kind, without which an agent cannot tell that nothing is there.
func TestHeldFromTheBeginning(t *testing.T) {
	t.Parallel()
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionPolicyDelete, v1alpha1.DeletionPolicyOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			// No other test is about this kind.
			tr := newTrial(t, schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "BroadcastJob"}, "broadcastjobs", "member1")
			tr.desired.Targets[0].Mode = backends.ModeHold
			const rights = "fleetworkload-agent-rights-broadcastjobs.apps.kruise.io"
			tr.until("a ManifestWork that is held", func() string {
				missing := tr.pass()
				if len(tr.works("member1", tr.desired.Key.Namespace+"-web-")) == 0 {
					return "none yet: " + missing
				}
				return ""
			})
			if len(tr.works("member1", rights)) > 0 {
				t.Error("a cluster that is held got rights")
			}
			tr.remove(policy)
			tr.until("the rights to go", func() string {
				if n := len(tr.works("member1", rights)); n > 0 {
					return fmt.Sprintf("%d left", n)
				}
				return ""
			})
		})
	}
}

// TestShared: prerequisites and bindings stay while anybody needs them, and go with the last one.
func TestShared(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, cloneSet, "clonesets", "member1")
	other := tr.sibling("web-b")
	tr.converge()
	other.converge()
	other.steady(func() { tr.remove(v1alpha1.DeletionPolicyDelete) })
	ns := tr.desired.Key.Namespace
	if len(tr.works("member1", "fleetworkload-ns-"+ns)) != 1 || len(tr.hubObjects(bindingGVK)) != 1 {
		t.Error("what the other needs is gone")
	}
	other.converge()
	other.remove(v1alpha1.DeletionPolicyDelete)
	tr.until("what they shared to go", func() string {
		if n := len(tr.works("member1", "fleetworkload-ns-"+ns)) + len(tr.hubObjects(bindingGVK)); n > 0 {
			return "still there"
		}
		return ""
	})
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := tr.fleet.clients["member1"].Get(t.Context(), client.ObjectKey{Name: ns}, namespace); err != nil ||
		namespace.DeletionTimestamp != nil {
		t.Errorf("the member's namespace: %v, deleted %v", err, namespace.DeletionTimestamp)
	}
}

// TestRightsThatGo: while an agent's rights are on their way out, nothing is done: they are still to be made again.
func TestRightsThatGo(t *testing.T) {
	t.Parallel()
	// No other test is about this kind.
	tr := newTrial(t, schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"}, "statefulsets", "member1")
	tr.converge()
	rights := func() *unstructured.Unstructured {
		t.Helper()
		works := tr.works("member1", "fleetworkload-agent-rights-statefulsets.apps.kruise.io")
		if len(works) != 1 {
			t.Fatalf("%d ManifestWorks with the rights", len(works))
		}
		return &works[0]
	}
	finalize := func(obj *unstructured.Unstructured, finalizers ...string) {
		t.Helper()
		before := obj.DeepCopy()
		obj.SetFinalizers(finalizers)
		if err := tr.fleet.hub.Patch(t.Context(), obj, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	finalize(rights(), append(rights().GetFinalizers(), "fleetworkload.io/test")...)
	if err := tr.fleet.hub.Delete(t.Context(), rights()); err != nil {
		t.Fatal(err)
	}
	const again = "(being removed, it will be made again)"
	tr.until("the driver to see it", func() string {
		if missing := tr.pass(); !strings.Contains(missing, again) {
			return "got: " + missing
		}
		return ""
	})
	tr.steady(func() {
		if missing := tr.pass(); !strings.Contains(missing, again) {
			t.Fatalf("it waits for %q", missing)
		}
	})
	finalize(rights())
	tr.converge()
	if rights().GetDeletionTimestamp() != nil {
		t.Error("they are not made again")
	}
}

// TestTwice: two FleetWorkloads that deliver the same object do not fight.
func TestTwice(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, deployment, "deployments", "member1")
	other := tr.sibling("twin")
	other.desired.Workload.Name = "web"
	other.on("member1")
	tr.converge()
	tr.steady(func() {
		progress, err := other.driver.Apply(t.Context(), other.desired)
		if backends.CodeOf(err) != backends.CodeNameConflict {
			t.Fatalf("got %v, %+v", err, progress)
		}
	})
	tr.steady(func() { other.remove(v1alpha1.DeletionPolicyDelete) })
}

// TestLostCluster pauses a member for a while.
func TestLostCluster(t *testing.T) {
	tr := newTrial(t, deployment, "deployments", "member1", "member2")
	tr.converge()
	was := tr.member("member2")
	// Whatever happens here, the member is back for the tests that follow.
	resume := sync.OnceValue(func() error { return tr.fleet.lab.ResumeMember(context.WithoutCancel(t.Context()), "member2") })
	t.Cleanup(func() {
		if err := resume(); err != nil {
			t.Error(err)
		}
	})
	if err := tr.fleet.lab.PauseMember(t.Context(), "member2"); err != nil {
		t.Fatal(err)
	}
	tr.until("the loss to be noticed", func() string {
		fleet, err := tr.driver.Clusters(t.Context())
		if c, _ := fleet.Get("member2"); err != nil || c.Ready == metav1.ConditionTrue {
			return "member2 is still ready"
		}
		return ""
	})
	t.Log("the lost cluster stays selected")
	o, err := tr.driver.Observe(t.Context(), tr.desired.Query)
	if err != nil || !o.Selection.Settled || len(o.Selection.Clusters) != 2 {
		t.Errorf("%v %+v", err, o.Selection)
	}
	t.Log("it leaves the targets, and comes back to them before it is in contact again")
	tr.on("member1")
	tr.until("the removal to wait for the lost cluster", func() string {
		if waiting := tr.pass(); !strings.Contains(waiting, "out of contact") {
			return "it waits for: " + waiting
		}
		return ""
	})
	tr.on("member1", "member2")
	tr.until("the placement to settle", func() string {
		o, err := tr.driver.Observe(t.Context(), tr.desired.Query)
		if err == nil && o.Selection.Settled {
			_, err = tr.driver.Apply(t.Context(), tr.desired)
			return text(err)
		}
		tr.pass()
		return text(err) + o.Selection.Message + " "
	})
	go func() { _ = resume() }()
	tr.until("member2 to report again", func() string {
		missing := tr.pass()
		o, err := tr.driver.Observe(t.Context(), tr.desired.Query)
		fleet, _ := tr.driver.Clusters(t.Context())
		if c, _ := fleet.Get("member2"); err != nil || len(o.Clusters) != 2 || !o.Clusters[1].Current || c.Ready != metav1.ConditionTrue {
			return missing + " not Current"
		}
		return ""
	})
	live := tr.member("member2")
	if live == nil || live.GetUID() != was.GetUID() || live.GetGeneration() != was.GetGeneration() {
		t.Errorf("member2: was %s/%d, is %v", was.GetUID(), was.GetGeneration(), live)
	}
	tr.remove(v1alpha1.DeletionPolicyDelete)
}

// TestCompanionsMarks: what another backend has left on a companion goes once that backend has nothing left, and not before: it
// might put it back.
func TestCompanionsMarks(t *testing.T) {
	tr := newTrial(t, deployment, "deployments", "member1")
	settings := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "b"}}}
	settings.SetAPIVersion("v1")
	settings.SetKind("ConfigMap")
	settings.SetNamespace(tr.desired.Key.Namespace)
	settings.SetName("settings")
	settings.SetLabels(map[string]string{
		v1alpha1.LabelUID: string(tr.desired.Key.UID), v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator,
	})
	settings.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: tr.desired.Key.String()})
	tr.desired.Companions = []backends.Companion{{Object: settings, Resource: "configmaps"}}
	tr.desired.Targets[0].Mode = backends.ModeAdopt
	tr.converge()

	const mark = "karmada.io/managed"
	live := func() *unstructured.Unstructured {
		obj := settings.DeepCopy()
		if err := tr.fleet.clients["member1"].Get(t.Context(), client.ObjectKeyFromObject(settings), obj); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	marked := live()
	patch := client.MergeFrom(marked.DeepCopy())
	labels := marked.GetLabels()
	labels[mark] = "true"
	marked.SetLabels(labels)
	if err := tr.fleet.clients["member1"].Patch(t.Context(), marked, patch); err != nil {
		t.Fatal(err)
	}
	tr.until("the mark to be reported", func() string {
		o, err := tr.driver.Observe(t.Context(), tr.desired.Query)
		if err != nil || len(o.Clusters) != 1 || !slices.Contains(o.Clusters[0].Marks, mark) {
			return fmt.Sprintf("%v: %+v", err, o.Clusters)
		}
		return ""
	})
	tr.converge()
	if live().GetLabels()[mark] == "" {
		t.Fatal("the mark was taken off while its owner may put it back")
	}
	tr.desired.Counterpart = backends.CounterpartGone
	tr.until("the mark to go", func() string {
		o, err := tr.driver.Observe(t.Context(), tr.desired.Query)
		if waiting := tr.pass(); waiting != "" || err != nil || len(o.Clusters[0].Marks) > 0 || live().GetLabels()[mark] != "" {
			return fmt.Sprintf("%s %v: %+v", waiting, err, o.Clusters)
		}
		return ""
	})
	if live().GetUID() != marked.GetUID() {
		t.Error("the companion was made anew")
	}
}

// TestChangedOnAMember: what somebody changes on a member is put back when its agent looks, and the agent is told to force only for that.
func TestChangedOnAMember(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, deployment, "deployments", "member1")
	tr.converge()
	work := func() *unstructured.Unstructured { return &tr.works("member1", tr.desired.Key.Namespace+"-web-")[0] }
	forces := func() bool { return strings.Contains(fmt.Sprint(work().Object["spec"]), "force:true") }
	if forces() {
		t.Error("at rest the agent is told to force")
	}
	live := tr.member("member1")
	was := live.GetUID()
	if err := unstructured.SetNestedField(live.Object, int64(5), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if err := tr.fleet.clients["member1"].Update(t.Context(), live, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	look := []byte(`{"metadata":{"labels":{"e2e.fleetworkload.io/look":"now"}}}`) // see onUpdateFunc in ocm pkg/work/spoke/controllers/manifestcontroller
	if err := tr.fleet.hub.Patch(t.Context(), work(), client.RawPatch(types.MergePatchType, look)); err != nil {
		t.Fatal(err)
	}
	tr.until("the change to be undone", func() string {
		missing := tr.pass()
		if replicas, _, _ := unstructured.NestedInt64(tr.member("member1").Object, "spec", "replicas"); replicas != 2 {
			return fmt.Sprintf("%d replicas, %s", replicas, missing)
		}
		return missing
	})
	if forces() {
		t.Error("the agent is still told to force")
	}
	if now := tr.member("member1").GetUID(); now != was {
		t.Errorf("it was %s, and is %s", was, now)
	}
}
