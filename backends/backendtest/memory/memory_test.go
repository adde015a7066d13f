package memory_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/memory"
)

func clusters() []backends.Cluster {
	cluster := func(name, region string) backends.Cluster {
		return backends.Cluster{
			Name: name, Identity: "uid-of-" + name, Labels: map[string]string{"tier": region + "-tier"},
			Attributes: map[v1alpha1.Attribute]string{v1alpha1.AttributeRegion: region, v1alpha1.AttributeProvider: "acme"},
		}
	}
	return []backends.Cluster{cluster("m1", "north"), cluster("m2", "south"), cluster("m3", "south")}
}

func environment(backend *memory.Backend) backendtest.Environment {
	var namespaces atomic.Int64
	return backendtest.Environment{
		NewDriver: func(_ *testing.T, gate backendtest.Gate) backends.Driver {
			return backend.GatedDriver(gate)
		},
		Namespace:      func(*testing.T) string { return fmt.Sprintf("case-%d", namespaces.Add(1)) },
		Clusters:       clusters(),
		Member:         backend.Member,
		Backend:        backend.Objects(),
		Owned:          backend.Owned,
		Foreign:        memory.ForeignPlacement,
		OwnershipMarks: []string{memory.OwnerMark},
		Rival: func(_ *testing.T, _ string, obj *unstructured.Unstructured) {
			obj.SetAnnotations(map[string]string{memory.OwnerMark: "another/web"})
		},
		Timeout: time.Minute,
		Poll:    time.Millisecond,
		Quiet:   50 * time.Millisecond,
	}
}

// TestAuto runs the suite with everything taking effect at once.
func TestAuto(t *testing.T) {
	backend := memory.New(memory.Options{Clusters: clusters(), Auto: true})
	backendtest.Run(t, environment(backend))
}

// TestStepped runs the suite with changes on their way while the driver works, as on a real backend.
func TestStepped(t *testing.T) {
	backend := memory.New(memory.Options{Clusters: clusters(), LateSync: true})
	step(t, backend)
	backendtest.Run(t, environment(backend))
}

// TestWithoutFeatures runs the cases that want what is not declared to be refused.
func TestWithoutFeatures(t *testing.T) {
	backend := memory.New(memory.Options{
		Clusters: clusters(), Features: backends.Features{}, Auto: true,
	})
	backendtest.Run(t, environment(backend))
}

// step steps until the test ends.
func step(t *testing.T, backend *memory.Backend) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for ctx.Err() == nil {
			backend.Step()
			time.Sleep(2 * time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-stopped
	})
}

func query(name string) backends.Query {
	q := backends.Query{Workload: backends.Workload{Resource: "deployments", Namespace: "shop", Name: name}}
	q.Key.Namespace, q.Key.Name, q.Key.UID = "shop", name, "1"
	q.Workload.GVK.Group, q.Workload.GVK.Version, q.Workload.GVK.Kind = "apps", "v1", "Deployment"
	q.Workload.ReplicasPath = []string{"spec", "replicas"}
	q.Workload.Feedback = []backends.FeedbackField{{Name: "readyReplicas", Path: ".status.readyReplicas"}}
	q.Selectors = []v1alpha1.ClusterSelector{{Names: []string{"m1"}}}
	return q
}

func desired(name string, replicas int64) backends.Desired {
	q := query(name)
	manifest := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas}}}
	manifest.SetGroupVersionKind(q.Workload.GVK)
	manifest.SetNamespace("shop")
	manifest.SetName(name)
	manifest.SetAnnotations(map[string]string{v1alpha1.AnnotationRevision: "r1"})
	return backends.Desired{
		Query: q, Template: manifest, Revision: "r1", ConflictPolicy: v1alpha1.ConflictPolicyFail,
		Division: v1alpha1.DivisionTypeDuplicated,
		Targets:  []backends.Target{{Cluster: "m1", Manifest: manifest}},
	}
}

func TestStep(t *testing.T) {
	backend := memory.New(memory.Options{Clusters: clusters()})
	driver := backend.Driver()
	apply(t, driver, desired("web", 3))
	if n := backend.Writes(); n != 2 {
		t.Errorf("%d writes, want a placement and an order", n)
	}
	if c := observe(t, driver, "web"); c.Status != nil || c.Current {
		t.Errorf("a report without a step: %+v", c)
	}
	backend.LimitReady("m1", 2)
	backend.Settle()
	if c := observe(t, driver, "web"); !c.Current || c.Status["readyReplicas"] != int64(2) {
		t.Errorf("not limited to two ready replicas: %+v", c)
	}
	backend.LimitReady("m1", -1)
	backend.Settle()
	if c := observe(t, driver, "web"); !c.Current || c.Status["readyReplicas"] != int64(3) {
		t.Errorf("not ready: %+v", c)
	}
}

func TestUnreachableCluster(t *testing.T) {
	backend := memory.New(memory.Options{Clusters: clusters(), Auto: true})
	driver := backend.Driver()
	apply(t, driver, desired("web", 3))
	lost := clusters()[0]
	lost.Ready = "Unknown"
	backend.SetCluster(lost)
	apply(t, driver, desired("web", 5))
	if c := observe(t, driver, "web"); c.Current || c.Applied != "Unknown" || c.Status["readyReplicas"] != int64(3) {
		t.Errorf("want the last report, not current: %+v", c)
	}
	backend.SetCluster(clusters()[0])
	if c := observe(t, driver, "web"); !c.Current || c.Status["readyReplicas"] != int64(5) {
		t.Errorf("not recovered: %+v", c)
	}
}

func TestFailNext(t *testing.T) {
	backend := memory.New(memory.Options{Clusters: clusters(), Auto: true})
	driver := backend.Driver()
	want := errors.New("out of luck")
	backend.FailNext(memory.OpClusters, want)
	if _, err := driver.Clusters(t.Context()); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	if _, err := driver.Clusters(t.Context()); err != nil {
		t.Errorf("the second call fails too: %v", err)
	}
}

// TestSharedMembers hands a workload over between two backends by hand.
func TestSharedMembers(t *testing.T) {
	source := memory.New(memory.Options{Clusters: clusters(), Auto: true})
	destination := memory.New(memory.Options{Clusters: clusters(), Auto: true, Members: source})
	from, to := source.Driver(), destination.Driver()
	d := desired("web", 3)
	apply(t, from, d)
	ref := backendtest.Ref{GVK: d.Workload.GVK}
	ref.Namespace, ref.Name = "shop", "web"
	was, err := source.Member("m1").Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	d.Targets[0].Mode = backends.ModeObserve
	apply(t, from, d)
	d.Targets[0].Mode = backends.ModeAdopt
	apply(t, to, d)
	if progress, err := from.Delete(t.Context(), d.Query, v1alpha1.DeletionPolicyDelete); err != nil || progress.Done {
		t.Fatalf("first Delete: %+v, %v", progress, err)
	}
	if progress, err := from.Delete(t.Context(), d.Query, v1alpha1.DeletionPolicyDelete); err != nil || !progress.Done {
		t.Fatalf("second Delete: %+v, %v", progress, err)
	}
	live, err := destination.Member("m1").Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if live.GetUID() != was.GetUID() || !reflect.DeepEqual(live.Object["spec"], was.Object["spec"]) {
		t.Errorf("the object was touched: %v became %v", was.Object["metadata"], live.Object["metadata"])
	}
	if c := observe(t, to, "web"); !c.Current {
		t.Errorf("not reported by its new owner: %+v", c)
	}
}

func apply(t *testing.T, driver backends.Driver, d backends.Desired) {
	t.Helper()
	if _, err := driver.Apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func observe(t *testing.T, driver backends.Driver, name string) backends.ClusterObservation {
	t.Helper()
	observation, err := driver.Observe(t.Context(), query(name))
	if err != nil {
		t.Fatal(err)
	}
	if len(observation.Clusters) != 1 {
		t.Fatalf("%d clusters, want one: %+v", len(observation.Clusters), observation)
	}
	return observation.Clusters[0]
}
