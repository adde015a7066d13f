//go:build e2e

package karmada

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// trial is a driver on the test fleet with one workload.
type trial struct {
	t         *testing.T
	driver    *Driver
	backend   client.WithWatch
	members   map[string]client.WithWatch
	namespace string
	uid       types.UID
	changed   chan struct{}
}

// patience is how long anything may take: Karmada's controllers try again after pauses that double with each failure, and the
// machine may be busy with other tests.
const patience = 3 * time.Minute

func newLive(t *testing.T) *trial {
	t.Helper()
	fleet := openLab(t)
	l := &trial{t: t, backend: labClient(t, fleet, lab.Karmada), members: map[string]client.WithWatch{},
		uid: uuid.NewUUID(), changed: make(chan struct{}, 1)}
	for _, m := range fleet.Members()[:2] {
		l.members[m.KarmadaName] = labClient(t, fleet, m.Name)
	}
	l.namespace = newNamespace(t, l.backend, l.members)
	cfg, err := fleet.RESTConfig(lab.Karmada)
	if err != nil {
		t.Fatal(err)
	}
	if l.driver, err = New(cfg, Options{Interpreter: interpreterOf}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		_ = l.driver.Run(ctx, func(types.NamespacedName) {
			select {
			case l.changed <- struct{}{}:
			default:
			}
		})
	}()
	return l
}

// desired is a CloneSet of the shares.
func (l *trial) desired(revision, image string, division v1alpha1.DivisionType, shares ...share) backends.Desired {
	d := desiredFor(revision, image, division, shares...)
	d.Key = backends.Key{NamespacedName: types.NamespacedName{Namespace: l.namespace, Name: testName}, UID: l.uid}
	d.Workload.Namespace = l.namespace
	d.Selectors = []v1alpha1.ClusterSelector{{}}
	for _, o := range append([]*unstructured.Unstructured{d.Template}, manifests(d)...) {
		o.SetNamespace(l.namespace)
		unstructured.RemoveNestedField(o.Object, "spec", "paused") // CloneSets have it elsewhere
		labels, annotations := o.GetLabels(), o.GetAnnotations()
		labels[v1alpha1.LabelUID], annotations[v1alpha1.AnnotationOwner] = string(l.uid), d.Key.String()
		o.SetLabels(labels)
		o.SetAnnotations(annotations)
	}
	for _, cluster := range []string{"member1", "member2", "member3", lostCluster} {
		if !slices.ContainsFunc(shares, func(s share) bool { return s.cluster == cluster }) {
			d.Targets = append(d.Targets, backends.Target{Cluster: cluster, Mode: backends.ModeRemove, Reason: v1alpha1.RemovalSpecChanged})
		}
	}
	return d
}

// deployment is a Deployment of the shares.
func (l *trial) deployment(revision, image string, shares ...share) backends.Desired {
	d := l.desired(revision, image, v1alpha1.DivisionTypeDivided, shares...)
	d.Workload.GVK = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for _, o := range append([]*unstructured.Unstructured{d.Template}, manifests(d)...) {
		o.SetAPIVersion("apps/v1")
		o.SetKind("Deployment")
	}
	return d
}

// lostCluster is one that a test joins and loses.
const lostCluster = "kdrv-lost"

func manifests(d backends.Desired) (out []*unstructured.Unstructured) {
	for _, t := range d.Wanted() {
		out = append(out, t.Manifest)
	}
	return out
}

// until calls step on every notification, as the controller does, and says how long it took.
func (l *trial) until(what string, step func() string) time.Duration {
	l.t.Helper()
	start := time.Now()
	for {
		missing := step()
		took := time.Since(start)
		if missing == "" {
			l.t.Logf("%-60s %5.1f s", what, took.Seconds())
			return took
		}
		if took > patience {
			l.t.Fatalf("%s: after %s: %s", what, patience, missing)
		}
		select {
		case <-l.changed:
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// apply passes until Done.
func (l *trial) apply(what string, d backends.Desired) {
	l.t.Helper()
	l.until(what+": written", func() string {
		progress, err := l.driver.Apply(l.t.Context(), d)
		if err != nil {
			if c := backends.CodeOf(err); c != "" && c != backends.CodeNotReady {
				l.t.Fatal(err)
			}
			return err.Error()
		}
		return progress.Waiting
	})
}

// current waits until the clusters report for the revision.
func (l *trial) current(what string, d backends.Desired, clusters ...string) {
	l.t.Helper()
	l.until(what+": reported", func() string {
		o, err := l.driver.Observe(l.t.Context(), d.Query)
		if err != nil {
			return err.Error()
		}
		for _, name := range clusters {
			c := reportOf(o, name)
			if !c.Current || c.Revision != d.Revision {
				return name + ": " + c.Message
			}
		}
		return ""
	})
}

// chosen waits until the scheduler can take a cluster that has just joined: it takes none of which it does not know what it serves.
func (l *trial) chosen(d backends.Desired, cluster string) {
	l.t.Helper()
	l.until("the cluster is chosen", func() string {
		o, err := l.driver.Observe(l.t.Context(), d.Query)
		if err != nil {
			return err.Error()
		}
		if !slices.Contains(o.Selection.Clusters, cluster) || o.Selection.Unsupported[cluster] != "" {
			return o.Selection.Message + o.Selection.Unsupported[cluster]
		}
		fleet, err := l.driver.Clusters(l.t.Context())
		if err != nil {
			return err.Error()
		}
		if c, _ := fleet.Get(cluster); c.Ready != metav1.ConditionTrue {
			return "it is not ready"
		}
		return ""
	})
}

// applied waits until Karmada says that the cluster has the workload.
func (l *trial) applied(d backends.Desired, cluster string) {
	l.t.Helper()
	l.until("applied on it", func() string {
		o, _ := l.driver.Observe(l.t.Context(), d.Query)
		if c := reportOf(o, cluster); c.Applied != metav1.ConditionTrue {
			return "Applied " + string(c.Applied) + " " + c.Message
		}
		return ""
	})
}

// seen waits until Karmada reports what it has made on the cluster.
func (l *trial) seen(d backends.Desired, cluster string) {
	l.t.Helper()
	l.until("is seen", func() string {
		o, _ := l.driver.Observe(l.t.Context(), d.Query)
		if c := reportOf(o, cluster); len(c.Status) == 0 {
			return "no report: " + c.Message
		}
		return ""
	})
}

func (l *trial) delete(what string, d backends.Desired, policy v1alpha1.DeletionPolicy) {
	l.t.Helper()
	l.until(what, func() string {
		progress, err := l.driver.Delete(l.t.Context(), d.Query, policy)
		if err != nil {
			return err.Error()
		}
		return progress.Waiting
	})
}

func (l *trial) member(cluster string) *unstructured.Unstructured {
	l.t.Helper()
	obj := reference("apps.kruise.io/v1alpha1", "CloneSet", l.namespace, testName)
	err := l.members[cluster].Get(l.t.Context(), client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return obj
}

func (l *trial) wantMember(cluster string, generation int64, image string, replicas int64) {
	l.t.Helper()
	l.until(cluster+" has it", func() string {
		obj := l.member(cluster)
		if obj == nil {
			return "no object"
		}
		got := what(obj)
		n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
		if obj.GetGeneration() > generation {
			l.t.Errorf("%s is at generation %d, want %d: %s", cluster, obj.GetGeneration(), generation, got)
			return ""
		}
		if obj.GetGeneration() != generation || !strings.HasPrefix(got, image) || n != replicas {
			return got
		}
		return ""
	})
}

func reportOf(o backends.Observation, cluster string) backends.ClusterObservation {
	c, _ := o.Of(cluster)
	return c
}

// TestLive goes through a workload's life and says how long each step takes.
func TestLive(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	const a, b = v1alpha1.DivisionTypeDivided, "registry.k8s.io/pause:3.10"
	image := "registry.k8s.io/pause:3.9"
	d := l.desired("r1", image, a, share{cluster: "member1", replicas: 4}, share{cluster: "member2", replicas: 2})
	l.apply("create", d)
	l.current("create", d, "member1", "member2")
	d = l.desired("r2", b, a, share{cluster: "member1", replicas: 5, greeting: "hola"}, share{cluster: "member2", replicas: 4})
	l.apply("image, replicas and an override", d)
	l.current("image, replicas and an override", d, "member1", "member2")
	l.wantMember("member1", 2, b, 5)
	l.wantMember("member2", 2, b, 4)
	d = l.desired("r3", b, a, share{cluster: "member1", replicas: 5, greeting: "salut"}, share{cluster: "member2", replicas: 4})
	l.apply("an override alone", d)
	l.current("an override alone", d, "member1", "member2")
	l.wantMember("member1", 3, b, 5)
	l.wantMember("member2", 2, b, 4)
	d = l.desired("r3", b, a, share{cluster: "member1", replicas: 9, greeting: "salut"}, share{cluster: "member2", replicas: 0})
	l.apply("one cluster to zero", d)
	l.wantMember("member1", 4, b, 9)
	l.wantMember("member2", 3, b, 0)
	d = l.desired("r3", b, a, share{cluster: "member1", replicas: 0, greeting: "salut"}, share{cluster: "member2", replicas: 0})
	l.apply("all to zero", d)
	l.wantMember("member1", 5, b, 0)
	l.wantMember("member2", 3, b, 0)
	d = l.desired("r3", b, a, share{cluster: "member1", replicas: 1, greeting: "salut"}, share{cluster: "member2", replicas: 3})
	l.apply("back from zero", d)
	l.wantMember("member1", 6, b, 1)
	l.wantMember("member2", 4, b, 3)
	d = l.desired("r4", image, a, share{cluster: "member1", replicas: 1, greeting: "salut"}, share{cluster: "member2", replicas: 3, hold: true})
	l.apply("a change while member2 is held", d)
	l.wantMember("member1", 7, image, 1)
	l.delete("orphaned while member2 is held", d, v1alpha1.DeletionPolicyOrphan)
	l.wantMember("member1", 7, image, 1)
	l.wantMember("member2", 4, b, 3)
	t.Logf("member2 keeps the labels %v", l.member("member2").GetLabels())
	l.uid = uuid.NewUUID()
	d = l.desired("r5", b, a, share{cluster: "member1", replicas: 1}, share{cluster: "member2", replicas: 3})
	d.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	l.apply("adopted again", d)
	l.current("adopted again", d, "member1", "member2")
	l.delete("deleted", d, v1alpha1.DeletionPolicyDelete)
	for _, cluster := range []string{"member1", "member2"} {
		if obj := l.member(cluster); obj != nil && obj.GetDeletionTimestamp() == nil {
			t.Errorf("%s still has it", cluster)
		}
	}
}

// TestMissedChange: Karmada's detector may lose the second of two changes that undo each other. The binding stays without it then, as it
// does here once it was changed behind Karmada's back.
func TestMissedChange(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	const a, b = v1alpha1.DivisionTypeDivided, "registry.k8s.io/pause:3.10"
	d := l.desired("r1", "registry.k8s.io/pause:3.9", a, share{cluster: "member1", replicas: 2})
	l.apply("create", d)
	binding := reference("work.karmada.io/v1alpha2", "ResourceBinding", l.namespace, bindingName(d.Workload))
	suspend := []byte(`{"spec":{"suspension":{"dispatching":true}}}`)
	if err := l.backend.Patch(t.Context(), binding, client.RawPatch(types.MergePatchType, suspend)); err != nil {
		t.Fatal(err)
	}
	d = l.desired("r2", b, a, share{cluster: "member1", replicas: 3})
	l.apply("a change after one that was missed", d)
	l.wantMember("member1", 2, b, 3)
	if err := l.backend.Patch(t.Context(), binding, client.RawPatch(types.MergePatchType, suspend)); err != nil {
		t.Fatal(err)
	}
	l.until("it is seen at rest", func() string {
		if progress, err := l.driver.Apply(t.Context(), d); err != nil || progress.Done {
			return fmt.Sprintf("done: %v, %v", progress.Done, err)
		}
		return ""
	})
	l.delete("deleted", d, v1alpha1.DeletionPolicyDelete)
}

// TestLeftBehind deletes workloads whose binding has gone without its Works.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionPolicyDelete, v1alpha1.DeletionPolicyOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			d := l.desired("r1", "registry.k8s.io/pause:3.9", v1alpha1.DivisionTypeDivided, share{cluster: "member1", replicas: 2})
			l.apply("create", d)
			l.wantMember("member1", 1, "registry.k8s.io/pause:3.9", 2)
			binding := reference("work.karmada.io/v1alpha2", "ResourceBinding", l.namespace, bindingName(d.Workload))
			free := []byte(`{"metadata":{"finalizers":null}}`)
			if err := l.backend.Patch(t.Context(), binding, client.RawPatch(types.MergePatchType, free)); err != nil {
				t.Fatal(err)
			}
			if err := l.backend.Delete(t.Context(), binding); err != nil {
				t.Fatal(err)
			}
			l.delete("deleted", d, policy)
			obj := l.member("member1")
			if stays := policy == v1alpha1.DeletionPolicyOrphan; (obj != nil && obj.GetDeletionTimestamp() == nil) != stays {
				t.Errorf("the member has %v", obj)
			}
		})
	}
}

// TestLostCluster loses a cluster of its own in the middle of a workload's life.
func TestLostCluster(t *testing.T) {
	l := newLive(t)
	const lost = lostCluster
	server, err := lab.StartAPIServer(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	stop := func() {
		if server != nil {
			_ = server.Stop()
			server = nil
		}
	}
	t.Cleanup(stop)
	cfg, err := server.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	join(t, l.backend, lost, cfg, cfg.Host)
	d := l.deployment("r1", "registry.k8s.io/pause:3.9", share{cluster: lost, replicas: 2}, share{cluster: "member1", replicas: 2})
	l.chosen(d, lost)
	l.apply("create", d)
	l.current("create", d, "member1")
	l.applied(d, lost)
	l.seen(d, lost) // what Karmada has not seen cannot be left for as long as the cluster is lost
	stop()
	l.until("Karmada sees it is lost", func() string {
		fleet, err := l.driver.Clusters(t.Context())
		if err != nil {
			return err.Error()
		}
		if c, _ := fleet.Get(lost); c.Ready == metav1.ConditionTrue {
			return "it is Ready"
		}
		return ""
	})
	d = l.deployment("r2", "registry.k8s.io/pause:3.10", share{cluster: lost, replicas: 1}, share{cluster: "member1", replicas: 3})
	l.apply("a change with a lost cluster", d)
	l.current("a change with a lost cluster", d, "member1")
	o, _ := l.driver.Observe(t.Context(), d.Query)
	t.Logf("lost: %+v", reportOf(o, lost))
	d = l.deployment("r3", "registry.k8s.io/pause:3.9", share{cluster: "member1", replicas: 4})
	l.apply("leaving a lost cluster", d)
	l.current("leaving a lost cluster", d, "member1")
	o, _ = l.driver.Observe(t.Context(), d.Query)
	t.Logf("lost: %+v", reportOf(o, lost))
	l.until("a deletion waits for it", func() string {
		progress, err := l.driver.Delete(t.Context(), d.Query, v1alpha1.DeletionPolicyDelete)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(progress.Waiting, lost+", which cannot be reached") {
			return progress.Waiting
		}
		return ""
	})
	unjoin(t, l.backend, lost)
	l.delete("and ends when it is unjoined", d, v1alpha1.DeletionPolicyDelete)
}

// TestUnseen has Karmada's cache of a member be behind, as after the member was lost: Karmada would take what it has made there for
// gone, and leave it behind.
func TestUnseen(t *testing.T) {
	const cluster = "kdrv-unseen"
	server, err := lab.StartAPIServer(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	cfg, err := server.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	front, blind := frontOf(t, cfg, "/deployments")
	first, l := newLive(t), newLive(t)
	join(t, l.backend, cluster, cfg, front.URL)
	d := first.deployment("r1", "registry.k8s.io/pause:3.9", share{cluster: cluster, replicas: 2})
	first.chosen(d, cluster)
	first.apply("the first of its kind", d)
	first.seen(d, cluster)

	blind.Store(true)
	front.CloseClientConnections()
	d = l.deployment("r1", "registry.k8s.io/pause:3.9", share{cluster: cluster, replicas: 2}, share{cluster: "member1", replicas: 2})
	l.apply("one that is not seen", d)
	l.applied(d, cluster)
	waits := func(what, want string, step func() (backends.Progress, error)) {
		t.Helper()
		l.until(what, func() string {
			progress, err := step()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(progress.Waiting, want) {
				return progress.Waiting
			}
			if progress.RequeueAfter <= 0 || progress.RequeueAfter > unseenFor {
				t.Errorf("looked at again after %s", progress.RequeueAfter)
			}
			return ""
		})
	}
	less := l.deployment("r1", "registry.k8s.io/pause:3.9", share{cluster: "member1", replicas: 2})
	less.Targets = append(less.Targets, backends.Target{Cluster: cluster, Mode: backends.ModeRemove, Reason: v1alpha1.RemovalSpecChanged})
	waits("it is not left yet", cluster+": to be left once Karmada has seen", func() (backends.Progress, error) {
		return l.driver.Apply(t.Context(), less)
	})
	waits("nor deleted", "Karmada to see what it has made on "+cluster, func() (backends.Progress, error) {
		return l.driver.Delete(t.Context(), d.Query, v1alpha1.DeletionPolicyDelete)
	})

	blind.Store(false)
	l.delete("it is deleted once it is seen", d, v1alpha1.DeletionPolicyDelete)
	member, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first.delete("as the first is", first.deployment("r1", "registry.k8s.io/pause:3.9", share{cluster: cluster, replicas: 2}), v1alpha1.DeletionPolicyDelete)
	left := reference("apps/v1", "Deployment", "", "")
	err = member.Get(t.Context(), types.NamespacedName{Namespace: l.namespace, Name: testName}, left)
	if !apierrors.IsNotFound(err) {
		t.Errorf("it was left behind: %v, %v", left.Object, err)
	}
}

// frontOf is a server in front of an API server. While it is blind nobody can list or watch the resource.
func frontOf(t *testing.T, cfg *rest.Config, resource string) (front *httptest.Server, blind *atomic.Bool) {
	t.Helper()
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	behind := httputil.NewSingleHostReverseProxy(target)
	behind.FlushInterval = -1
	// Whoever comes has a token; the certificate of the API server is the test's own.
	behind.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	blind = &atomic.Bool{}
	front = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if blind.Load() && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, resource) {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front, blind
}

// TestLateKind has a cluster serve the kind only after Karmada's scheduler has left it out for that.
func TestLateKind(t *testing.T) {
	l := newLive(t)
	const late = "kdrv-late"
	server, err := lab.StartAPIServer(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	cfg, err := server.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	join(t, l.backend, late, cfg, cfg.Host)
	l.until("Karmada reads what the cluster serves", func() string {
		var c clusterv1alpha1.Cluster
		if err := l.driver.cache.Get(t.Context(), client.ObjectKey{Name: late}, &c); err != nil {
			return err.Error()
		}
		if !serves(&c, corev1.SchemeGroupVersion.WithKind("ConfigMap")) {
			return "nothing"
		}
		return ""
	})
	d := l.desired("r1", "registry.k8s.io/pause:3.9", v1alpha1.DivisionTypeDivided, share{cluster: late, replicas: 2}, share{cluster: "member1", replicas: 2})
	l.until("the scheduler leaves it out", func() string {
		progress, err := l.driver.Apply(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(progress.Waiting, "now it is on member1") {
			return progress.Waiting
		}
		return ""
	})
	serve(t, cfg, l.members["member1"], "clonesets.apps.kruise.io")
	l.apply("once it serves the kind", d)
	l.current("once it serves the kind", d, "member1")
	l.until("applied on it", func() string {
		o, _ := l.driver.Observe(t.Context(), d.Query)
		if c := reportOf(o, late); c.Applied != metav1.ConditionTrue {
			return "Applied " + string(c.Applied) + " " + c.Message
		}
		return ""
	})
	l.delete("deleted", d, v1alpha1.DeletionPolicyDelete)
}

// TestFailedRecreationIsNotTheLastWord has Karmada's word that it could not make objects again stand on the Works of a
// workload and a companion that run, as Karmada leaves it when the objects are there all the same.
func TestFailedRecreationIsNotTheLastWord(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	d := l.with(l.duplicated("r1", firstImage, share{cluster: "member1", replicas: 1}), "one")
	l.apply("create", d)
	l.current("create", d, "member1")
	before := l.member("member1")
	var works workv1alpha1.WorkList
	if err := l.driver.client.List(t.Context(), &works, client.InNamespace(executionPrefix+"member1")); err != nil {
		t.Fatal(err)
	}
	works.Items = slices.DeleteFunc(works.Items, func(w workv1alpha1.Work) bool { return !newWork(&w).ours(d.Key) })
	if len(works.Items) != 2 {
		t.Fatalf("%d works, want the workload's and the ConfigMap's", len(works.Items))
	}
	for _, w := range works.Items {
		patch := client.MergeFrom(w.DeepCopy())
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
			Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, Reason: reasonRecreateFailed, Message: "already exists",
		})
		if err := l.driver.client.Status().Patch(t.Context(), &w, patch); err != nil {
			t.Fatal(err)
		}
	}
	l.until("Karmada has checked again", func() string {
		progress, err := l.driver.Apply(t.Context(), d)
		if err != nil || progress.Waiting != "" {
			return fmt.Sprint(progress.Waiting, err)
		}
		for _, w := range works.Items {
			if err := l.driver.client.Get(t.Context(), client.ObjectKeyFromObject(&w), &w); err != nil {
				t.Fatal(err)
			}
			if c := newWork(&w).applied(); c.Status != metav1.ConditionTrue || newWork(&w).suspended() {
				return w.Name + ": " + c.Reason
			}
		}
		return ""
	})
	l.current("Karmada has checked again", d, "member1")
	if after := l.member("member1"); after.GetUID() != before.GetUID() || after.GetGeneration() != before.GetGeneration() {
		t.Errorf("the member object was changed")
	}
	l.delete("deleted", d, v1alpha1.DeletionPolicyDelete)
}

// serve gives an API server a CustomResourceDefinition of another.
func serve(t *testing.T, to *rest.Config, from client.Client, name string) {
	t.Helper()
	c, err := client.New(to, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	definition := reference("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name)
	if err := from.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
		t.Fatal(err)
	}
	copied := reference("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name)
	copied.SetAnnotations(definition.GetAnnotations())
	copied.Object["spec"] = definition.Object["spec"]
	unstructured.RemoveNestedField(copied.Object, "spec", "conversion")
	create(t, c, copied)
}

// join joins the API server of cfg to Karmada, which reaches it at that address, tainted so that nobody else uses it.
func join(t *testing.T, backend client.Client, name string, cfg *rest.Config, address string) {
	t.Helper()
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karmada"}}
	create(t, c, account)
	create(t, c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "karmada"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kube-system", Name: "karmada"}},
	})
	token := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	create(t, backend, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: name, Labels: map[string]string{"karmada.io/system": "true"}},
		StringData: map[string]string{"token": token.Status.Token},
	})
	cluster := reference("cluster.karmada.io/v1alpha1", "Cluster", "", name)
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: address, InsecureSkipTLSVerification: true,
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name},
		Taints:    []corev1.Taint{{Key: "kdrv", Value: "lost", Effect: corev1.TaintEffectNoSchedule}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cluster.Object["spec"] = spec
	create(t, backend, cluster)
	t.Cleanup(func() { unjoin(t, backend, name) })
}

func unjoin(t *testing.T, backend client.Client, name string) {
	t.Helper()
	ctx := context.Background()
	if err := backend.Delete(ctx, reference("cluster.karmada.io/v1alpha1", "Cluster", "", name)); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: name}}
	if err := backend.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

func create(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// TestACreationAtOnce: a workload that is the same for all clusters is never suspended, unless an override of somebody else's would change it:
// then members get nothing, and it is said why.
func TestACreationAtOnce(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	karmada, ctx := l.backend, t.Context()
	same := func() backends.Desired {
		return l.desired("r0", "registry.k8s.io/pause:3.9", v1alpha1.DivisionTypeDuplicated, share{cluster: "member1", replicas: 1}, share{cluster: "member2", replicas: 1})
	}
	for _, kind := range []string{policyv1alpha1.ResourceKindOverridePolicy, policyv1alpha1.ResourceKindClusterOverridePolicy} {
		theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"resourceSelectors": []any{map[string]any{"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "namespace": l.namespace}},
			"overrideRules": []any{map[string]any{
				"overriders": map[string]any{"plaintext": []any{map[string]any{"path": "/spec/replicas", "operator": "replace", "value": int64(3)}}},
			}},
		}}}
		theirs.SetGroupVersionKind(policyv1alpha1.SchemeGroupVersion.WithKind(kind))
		if kind == policyv1alpha1.ResourceKindOverridePolicy {
			theirs.SetNamespace(l.namespace)
		}
		theirs.SetName("theirs-" + l.namespace)
		if err := karmada.Create(ctx, theirs); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = karmada.Delete(context.Background(), theirs) })
		l.until("it is said what stands against it", func() string {
			progress, err := l.driver.Apply(ctx, same())
			if err != nil {
				return err.Error()
			}
			if !strings.Contains(progress.Waiting, "another override policy may select this workload") {
				return "waiting for " + progress.Waiting
			}
			return ""
		})
		for name := range l.members {
			if made := l.member(name); made != nil {
				t.Errorf("%s has %v", name, made)
			}
		}
		if err := karmada.Delete(ctx, theirs); err != nil {
			t.Fatal(err)
		}
		l.apply("without it", same())
		l.delete("it goes", same(), v1alpha1.DeletionPolicyDelete)
	}

	l.apply("another one", same())
	l.current("another one", same(), "member1", "member2")
	works := &unstructured.UnstructuredList{}
	works.SetGroupVersionKind(workv1alpha1.SchemeGroupVersion.WithKind("WorkList"))
	if err := karmada.List(ctx, works); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, w := range works.Items {
		if w.GetAnnotations()[workv1alpha2.ResourceBindingNamespaceAnnotationKey] != l.namespace {
			continue
		}
		if seen++; w.GetGeneration() != 1 {
			t.Errorf("Work %s/%s was written %d times", w.GetNamespace(), w.GetName(), w.GetGeneration())
		}
	}
	if seen != len(l.members) {
		t.Errorf("found %d Works", seen)
	}
	l.delete("it goes", same(), v1alpha1.DeletionPolicyDelete)
}
