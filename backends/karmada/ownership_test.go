//go:build e2e

package karmada

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

const (
	firstImage  = "registry.k8s.io/pause:3.9"
	secondImage = "registry.k8s.io/pause:3.10"
)

func (l *trial) duplicated(revision, image string, shares ...share) backends.Desired {
	return l.desired(revision, image, v1alpha1.DivisionTypeDuplicated, shares...)
}

// report waits until a cluster's live report is as wanted.
func (l *trial) report(what string, d backends.Desired, cluster string, want func(backends.ClusterObservation) bool) {
	l.t.Helper()
	q := d.Query
	q.Counterpart = backends.CounterpartActive
	l.until(what, func() string {
		o, err := l.driver.Observe(l.t.Context(), q)
		if err != nil {
			return err.Error()
		}
		if c := reportOf(o, cluster); !want(c) {
			return c.Message + " not yet"
		}
		return ""
	})
}

func isReleased(c backends.ClusterObservation) bool { return c.Released() }

// TestOwnedClusterWaitsForObserved: preserving is one field of the policy for all clusters.
func TestOwnedClusterWaitsForObserved(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	m1, m2 := share{cluster: "member1", replicas: 2}, share{cluster: "member2", replicas: 2}
	l.apply("create", l.duplicated("r1", firstImage, m1, m2))
	m1.owner = backends.ModeObserve
	d := l.duplicated("r1", firstImage, m1)
	l.until("it waits", func() string {
		progress, err := l.driver.Apply(t.Context(), d)
		if err != nil {
			return err.Error()
		}
		if progress.Waiting != "member2: to be left once no cluster is being handed over" {
			return progress.Waiting
		}
		return ""
	})
	l.report("released", d, "member1", isReleased)
	if l.member("member2") == nil {
		t.Fatal("member2 was left")
	}
	m1.owner = backends.ModeOwn
	l.apply("owned again", l.duplicated("r1", firstImage, m1))
	l.gone("member2")
	l.wantMember("member1", 1, firstImage, 2)
	l.delete("deleted", d, v1alpha1.DeletionPolicyDelete)
	l.gone("member1")
}

func (l *trial) gone(cluster string) {
	l.t.Helper()
	l.until("gone from "+cluster, func() string {
		if obj := l.member(cluster); obj != nil && obj.GetDeletionTimestamp() == nil {
			return "it is there"
		}
		return ""
	})
}

// TestDeleteSparesObserved: Delete, with both policies, of an observed cluster next to one that is owned.
func TestDeleteSparesObserved(t *testing.T) {
	t.Parallel()
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionPolicyDelete, v1alpha1.DeletionPolicyOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			m1, m2 := share{cluster: "member1", replicas: 2}, share{cluster: "member2", replicas: 2}
			l.apply("create", l.duplicated("r1", firstImage, m1, m2))
			m1.owner = backends.ModeObserve
			d := l.duplicated("r2", secondImage, m1, m2)
			l.apply("a change, with an observed cluster", d)
			l.report("released", d, "member1", isReleased)
			l.wantMember("member2", 2, secondImage, 2)
			l.delete("deleted", d, policy)
			l.wantMember("member1", 1, firstImage, 2)
			if policy == v1alpha1.DeletionPolicyDelete {
				l.gone("member2")
			} else {
				l.wantMember("member2", 2, secondImage, 2)
			}
		})
	}
}

// TestOrphanWhileWorksChange: Karmada takes its marks off a member object and then its finalizer off the Work. When the Work
// has changed meanwhile, the second fails and both are done again.
func TestOrphanWhileWorksChange(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]backends.Mode{"owned": backends.ModeOwn, "observed": backends.ModeObserve} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			m1 := share{cluster: "member1", replicas: 2}
			d := l.duplicated("r1", firstImage, m1)
			l.apply("create", d)
			// On an observed cluster, Karmada takes its marks off only when the member runs what is held.
			l.report("ready", d, "member1", func(c backends.ClusterObservation) bool { return c.Current && c.Status["readyReplicas"] == int64(2) })
			m1.owner = owner
			d = l.duplicated("r1", firstImage, m1)
			l.apply("as it is to be", d)
			stop := l.disturb(d)
			l.delete("orphaned", d, v1alpha1.DeletionPolicyOrphan)
			stop()
			l.wantMember("member1", 1, firstImage, 2)
			if l.marked("member1") {
				t.Errorf("it keeps labels of Karmada's: %v", l.member("member1").GetLabels())
			}
		})
	}
}

// disturb writes into a workload's Works all the time, as reports of a rollout do, until the member object has none of
// Karmada's marks: whoever goes on longer keeps Karmada from ever writing a Work.
func (l *trial) disturb(d backends.Desired) (stop func()) {
	l.t.Helper()
	live, err := l.driver.load(l.t.Context(), l.driver.client, d.Query)
	if err != nil || len(live.works) == 0 {
		l.t.Fatalf("%d Works, %v", len(live.works), err)
	}
	ctx, cancel := context.WithCancel(l.t.Context())
	var done sync.WaitGroup
	for _, w := range live.works {
		target := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
		done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				released := !l.marked(w.cluster)
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"test.example.com/report":"%d"}}}`, n)
				err := l.driver.client.Patch(ctx, target.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
				if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
					l.t.Error(err)
					return
				}
				if released {
					return
				}
			}
		})
	}
	return func() {
		cancel()
		done.Wait()
	}
}

// marked tells whether the member object is there and has labels of Karmada's.
func (l *trial) marked(cluster string) bool {
	obj := reference("apps.kruise.io/v1alpha1", "CloneSet", l.namespace, testName)
	if err := l.members[cluster].Get(l.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		if !apierrors.IsNotFound(err) {
			l.t.Error(err)
		}
		return false
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(obj.GetLabels())), func(key string) bool { return strings.Contains(key, "karmada") })
}

// TestObservingWhatBearsOldMarks: an object that Karmada takes for its own, left over from an earlier time, is no more in
// danger than any other.
func TestObservingWhatBearsOldMarks(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*trial, backends.Desired){
		"Delete": func(l *trial, d backends.Desired) { l.delete("deleted", d, v1alpha1.DeletionPolicyDelete) },
		"Orphan": func(l *trial, d backends.Desired) { l.delete("orphaned", d, v1alpha1.DeletionPolicyOrphan) },
		"left": func(l *trial, d backends.Desired) {
			d.Targets = slices.Clone(d.Targets)
			d.Targets[0] = backends.Target{Cluster: d.Targets[0].Cluster, Mode: backends.ModeRemove, Reason: v1alpha1.RemovalSpecChanged}
			l.apply("left", d)
			l.delete("deleted", d, v1alpha1.DeletionPolicyDelete)
		},
		"adopted": func(l *trial, d backends.Desired) {
			d.Targets = slices.Clone(d.Targets)
			d.Targets[0].Mode = backends.ModeAdopt
			l.apply("adopted", d)
			l.wantMember("member1", 2, secondImage, 2)
			d.Targets[0].Mode = backends.ModeObserve
			l.apply("and given up again", d)
			l.report("released", d, "member1", isReleased)
			l.delete("deleted", d, v1alpha1.DeletionPolicyDelete)
			l.wantMember("member1", 2, secondImage, 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLive(t)
			d := l.duplicated("r1", secondImage, share{cluster: "member1", replicas: 2, owner: backends.ModeObserve},
				share{cluster: "member2", replicas: 2, owner: backends.ModeObserve})
			old := l.duplicated("r0", firstImage, share{cluster: "member1", replicas: 2}).Targets[0].Manifest.DeepCopy()
			old.SetLabels(map[string]string{managedLabel: "true"})
			if err := l.members["member1"].Create(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			l.apply("observed", d)
			l.report("released", d, "member1", isReleased)
			end(l, d)
			if l.member("member2") != nil {
				t.Error("observing created the workload")
			}
			if name != "adopted" {
				l.wantMember("member1", 1, firstImage, 2)
			}
		})
	}
}

// with adds a ConfigMap that holds the value.
func (l *trial) with(d backends.Desired, value string) backends.Desired {
	settings := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"value": value}}}
	settings.SetAPIVersion("v1")
	settings.SetKind("ConfigMap")
	settings.SetNamespace(l.namespace)
	settings.SetName("settings")
	settings.SetLabels(map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelUID: string(l.uid)})
	d.Companions = []backends.Companion{{Object: settings, Resource: "configmaps"}}
	return d
}

// TestCompanionsOfAnObservedCluster are neither written nor removed.
func TestCompanionsOfAnObservedCluster(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	m1, m2 := share{cluster: "member1", replicas: 1}, share{cluster: "member2", replicas: 1}
	value := func(cluster, want string) {
		t.Helper()
		l.until(cluster+" has "+want, func() string {
			var settings corev1.ConfigMap
			err := l.members[cluster].Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "settings"}, &settings)
			if err != nil || settings.Data["value"] != want {
				return settings.Data["value"]
			}
			return ""
		})
	}
	l.apply("create", l.with(l.duplicated("r1", firstImage, m1, m2), "one"))
	value("member1", "one")
	m1.owner = backends.ModeObserve
	d := l.with(l.duplicated("r1", firstImage, m1, m2), "two")
	l.apply("a change, with an observed cluster", d)
	l.report("released", d, "member1", isReleased)
	value("member2", "two")
	value("member1", "one")
	none := d
	none.Companions = nil
	l.apply("no longer listed", none)
	value("member1", "one")
	m1.owner = backends.ModeAdopt
	l.apply("owned again", l.with(l.duplicated("r1", firstImage, m1, m2), "three"))
	value("member1", "three")
	m1.owner = backends.ModeObserve
	d = l.with(l.duplicated("r1", firstImage, m1, m2), "three")
	l.apply("given up again", d)
	l.report("released", d, "member1", isReleased)
	l.delete("deleted", d, v1alpha1.DeletionPolicyDelete)
	value("member1", "three")
}

// TestUIDIsReported, by our interpreters.
func TestUIDIsReported(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	d := l.duplicated("r1", firstImage, share{cluster: "member1", replicas: 1})
	l.apply("create", d)
	l.report("its UID, and that it runs", d, "member1", func(c backends.ClusterObservation) bool {
		live := l.member("member1")
		return live != nil && c.UID == live.GetUID() && c.Status["replicas"] == int64(1)
	})
	d.Targets[0].Mode = backends.ModeObserve
	l.apply("observed", d)
	l.report("its UID still", d, "member1", func(c backends.ClusterObservation) bool {
		return c.Released() && c.UID == l.member("member1").GetUID() && c.Applied == metav1.ConditionUnknown && !c.Current
	})
	l.delete("orphaned", d, v1alpha1.DeletionPolicyOrphan)
	if l.marked("member1") {
		t.Errorf("it keeps labels of Karmada's: %v", l.member("member1").GetLabels())
	}
}
