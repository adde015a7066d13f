package karmada

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// leftOut is a world in which the scheduler has given member2 nothing, and the clusters, both of which serve the kind.
func leftOut(t *testing.T, want *rendered, at time.Time) (currentState, []clusterv1alpha1.Cluster) {
	t.Helper()
	live := currentState{policy: stored(gated(want.policy))}
	live.binding = &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	live.binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "member1", Replicas: 5}}
	live.binding.Status.SchedulerObservedGeneration = 2
	live.binding.Status.LastScheduledTime = &metav1.Time{Time: at}
	bind(t, &live)
	var clusters []clusterv1alpha1.Cluster
	for _, name := range []string{"member1", "member2"} {
		clusters = append(clusters, clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: clusterv1alpha1.ClusterStatus{APIEnablements: []clusterv1alpha1.APIEnablement{{
				GroupVersion: "apps.kruise.io/v1alpha1", Resources: []clusterv1alpha1.APIResource{{Name: "clonesets", Kind: "CloneSet"}},
			}}},
		})
	}
	return live, clusters
}

// stored is the policy as the API server returns it once it is applied; to that, its lists are atomic.
func stored(policy *unstructured.Unstructured) *unstructured.Unstructured {
	out := policy.DeepCopy()
	out.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: ssa.FieldOwner, Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec": {"f:placement": {"f:clusterTolerations": {}}}}`)},
	}})
	return out
}

// bind gives the binding the placement of the policy.
func bind(t *testing.T, live *currentState) {
	t.Helper()
	placement, err := policyPlacement(live.policy)
	if err != nil {
		t.Fatal(err)
	}
	live.binding.Spec.Placement = &placement
}

func TestTheSchedulerIsAskedAgain(t *testing.T) {
	d := desiredFor("r1", "app:1", v1alpha1.DivisionTypeDivided, share{cluster: "member1", replicas: 3}, share{cluster: "member2", replicas: 2})
	want, err := render(d, currentState{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	live, clusters := leftOut(t, want, at)
	var waits []time.Duration
	for n := range 10 {
		asked, wait := want.rescheduled(live, clusters, d.Query, at)
		if got := timesAsked(asked.policy); got != n || wait == 0 {
			t.Fatalf("at once: asked %d times with %s to wait, want %d and some", got, wait, n)
		}
		waits = append(waits, wait)
		if decide(d, asked, live).writes != nil {
			t.Fatalf("written while nothing is due")
		}
		asked, wait = want.rescheduled(live, clusters, d.Query, at.Add(waits[n]))
		if got := timesAsked(asked.policy); got != n+1 || wait != 0 {
			t.Fatalf("when due: asked %d times with %s to wait, want %d and none", got, wait, n+1)
		}
		live.policy = stored(gated(asked.policy))
		bind(t, &live)
	}
	if waits[0] != askFirst || waits[3] != 8*askFirst || waits[9] != askFirst<<askSlowest {
		t.Errorf("waits %v", waits)
	}
	live.binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "member1", Replicas: 3}, {Name: "member2", Replicas: 2}}
	if asked, wait := want.rescheduled(live, clusters, d.Query, at.Add(time.Hour)); wait != 0 || timesAsked(asked.policy) != 10 {
		t.Errorf("once all are scheduled the count must stay: %d, %s", timesAsked(asked.policy), wait)
	}
	other, err := render(desiredFor("r2", "app:1", v1alpha1.DivisionTypeDivided, share{cluster: "member1", replicas: 4}, share{cluster: "member2", replicas: 2}), currentState{})
	if err != nil {
		t.Fatal(err)
	}
	if asked, _ := other.rescheduled(live, clusters, d.Query, at); timesAsked(asked.policy) != 0 {
		t.Error("another placement needs no count")
	}
}

func TestTheSchedulerIsNotAskedInVain(t *testing.T) {
	d := desiredFor("r1", "app:1", v1alpha1.DivisionTypeDivided, share{cluster: "member1", replicas: 3}, share{cluster: "member2", replicas: 2})
	want, err := render(d, currentState{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	for name, change := range map[string]func(*currentState, []clusterv1alpha1.Cluster){
		"it does not serve the kind":  func(_ *currentState, c []clusterv1alpha1.Cluster) { c[1].Status.APIEnablements = nil },
		"it is going":                 func(_ *currentState, c []clusterv1alpha1.Cluster) { c[1].DeletionTimestamp = &metav1.Time{Time: at} },
		"it is being evicted":         func(w *currentState, _ []clusterv1alpha1.Cluster) { evict(w.binding, "member2") },
		"it is being scheduled":       func(w *currentState, _ []clusterv1alpha1.Cluster) { w.binding.Generation++ },
		"the placement is on its way": func(w *currentState, _ []clusterv1alpha1.Cluster) { w.binding.Spec.Placement = nil },
		"there is no binding":         func(w *currentState, _ []clusterv1alpha1.Cluster) { w.binding = nil },
		"the binding is going": func(w *currentState, _ []clusterv1alpha1.Cluster) {
			w.binding.DeletionTimestamp = &metav1.Time{Time: at}
		},
		"no cluster was ever found": func(w *currentState, _ []clusterv1alpha1.Cluster) { w.binding.Status.LastScheduledTime = nil },
		"there is no policy":        func(w *currentState, _ []clusterv1alpha1.Cluster) { w.policy = nil },
	} {
		live, clusters := leftOut(t, want, at)
		change(&live, clusters)
		if asked, wait := want.rescheduled(live, clusters, d.Query, at.Add(time.Hour)); wait != 0 || timesAsked(asked.policy) != 0 {
			t.Errorf("%s: asked %d times, %s to wait", name, timesAsked(asked.policy), wait)
		}
	}
}

func evict(b *workv1alpha2.ResourceBinding, cluster string) {
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: cluster}}
}
