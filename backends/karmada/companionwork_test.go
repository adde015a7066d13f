package karmada

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

// TestACompanionIsWrittenOnce (law 11): what clusters share of a companion is worked out once, and gives every cluster what it would have been
// given alone, whatever an author has written.
func TestACompanionIsWrittenOnce(t *testing.T) {
	for name, text := range map[string]string{
		"plain":                    "v",
		"signs":                    `<cluster> "\u003c`,
		"a hash":                   companions.Hash("x"),
		"a namespace of Karmada's": "karmada-es-m1",
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": text, text: "b"},
			"metadata": map[string]any{"namespace": "shop", "name": "c", "annotations": map[string]any{"a": text}}}}
		before := object.DeepCopy()
		c, shared := backends.Companion{Object: object}, renderings{}
		for _, adopt := range []bool{false, true, false} {
			for _, cluster := range []string{"m1", "m2", "m1"} {
				at := companionWorkKey(cluster, object)
				want, err := json.Marshal(companionFor(at, c, adopt).Object)
				if err != nil {
					t.Fatal(err)
				}
				got, err := shared.companionWork(testQuery().Key, cluster, c, adopt)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(got.work.Spec.Workload.Manifests[0].Raw)); diff != "" {
					t.Errorf("%s, %s, adopt %t (-want +got):\n%s", name, cluster, adopt, diff)
				}
				hash := companions.Hash(companionFor(at, c, false).Object)
				if adopt {
					hash += overwriting
				}
				if is := got.work.Annotations[companions.AnnotationContent]; is != hash {
					t.Errorf("%s, %s, adopt %t: the hash is %s, not %s", name, cluster, adopt, is, hash)
				}
			}
		}
		if len(shared) != 2 {
			t.Errorf("%s: it was written %d times, not once for each resolution of conflicts", name, len(shared))
		}
		if diff := cmp.Diff(before, object); diff != "" {
			t.Errorf("%s: the companion was changed (-want +got):\n%s", name, diff)
		}
	}
}

// TestRenderedCompanionWorksAreWhatIsWritten: what Render shows is what Apply writes.
func TestRenderedCompanionWorksAreWhatIsWritten(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "n": int64(1) << 60, "status": map[string]any{},
		"metadata": map[string]any{"namespace": "shop", "name": "c"}}}
	for _, policy := range []v1alpha1.ConflictPolicy{"", v1alpha1.ConflictPolicyAdopt} {
		desired := backends.Desired{Query: testQuery(), ConflictPolicy: policy, Companions: []backends.Companion{{Object: object}},
			Targets: []backends.Target{{Cluster: "m1"}, {Cluster: "m2"}}}
		works, err := renderCompanionWorks(desired)
		if err != nil {
			t.Fatal(err)
		}
		for i, work := range works {
			written, err := renderCompanionWork(desired.Key, fmt.Sprint("m", i+1), desired.Companions[0], policy != "")
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := utiljson.Unmarshal(written.work.Spec.Workload.Manifests[0].Raw, &want); err != nil {
				t.Fatal(err)
			}
			manifests, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
			if diff := cmp.Diff([]any{want}, manifests); diff != "" || work.GetNamespace() != written.work.Namespace {
				t.Errorf("%s (-want +got):\n%s", work.GetNamespace(), diff)
			}
		}
		if len(works) != 2 {
			t.Errorf("%d Works", len(works))
		}
	}
}

// TestWhatWorksShareIsNotChanged (R6): Works of a companion share what is the same on all clusters. What is written of one, as it is rendered and
// as it is applied in every mode, changes none of them.
func TestWhatWorksShareIsNotChanged(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"},
		"metadata": map[string]any{"namespace": "shop", "name": "c", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"a": "b"}}}}
	desired := backends.Desired{Query: testQuery(), Companions: []backends.Companion{{Object: object}, {Object: object.DeepCopy(), Shared: true}},
		Targets: []backends.Target{{Cluster: "m1"}, {Cluster: "m2"}, {Cluster: "m3"}}}
	desired.Companions[1].Object.SetName("shared")
	works, err := renderCompanionWorks(desired)
	if err != nil {
		t.Fatal(err)
	}
	all := append(works, object, desired.Companions[1].Object)
	var before []*unstructured.Unstructured
	for _, o := range all {
		before = append(before, o.DeepCopy())
	}
	written := renderings{}
	for range 2 {
		for _, target := range desired.Targets {
			for _, c := range desired.Companions {
				for _, adopt := range []bool{false, true} {
					want, err := written.companionWork(desired.Key, target.Cluster, c, adopt)
					if err != nil {
						t.Fatal(err)
					}
					raw := want.work.Spec.Workload.Manifests[0].Raw
					clear(raw) // a client or a cache may do with it what it likes
					clear(want.work.Labels)
					again, err := written.companionWork(desired.Key, target.Cluster, c, adopt)
					if err != nil || !json.Valid(again.work.Spec.Workload.Manifests[0].Raw) || len(again.work.Labels) == 0 {
						t.Fatalf("%s, adopt %t: what is written for one is another's: %v", target.Cluster, adopt, err)
					}
				}
			}
		}
		if works, err = renderCompanionWorks(desired); err != nil {
			t.Fatal(err)
		}
		setMarks(works[0], map[string]string{"x": "y"}, map[string]string{"x": "y"})
		if works[2].GetLabels()["x"] != "" || works[2].GetAnnotations()["x"] != "" {
			t.Error("the marks of one Work are another's")
		}
	}
	for i, o := range all {
		if diff := cmp.Diff(before[i], o); diff != "" {
			t.Errorf("%s was changed (-before +after):\n%s", o.GetName(), diff)
		}
	}
}

// leavingCache has that many Works with companions that are on their way out, each on a cluster of its own.
type leavingCache struct {
	cache.Cache
	n int
}

func (c leavingCache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	works, is := list.(*workv1alpha1.WorkList)
	if !is {
		return fmt.Errorf("list %T", list)
	}
	for i := range c.n {
		works.Items = append(works.Items, workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("karmada-es-m", i+1), Name: "settings", DeletionTimestamp: &metav1.Time{Time: time.Unix(1000, 0)},
		}})
	}
	return nil
}

// TestWhatIsAwaitedIsCounted: a message names some of the companions that are on their way out, and tells how many more there are.
func TestWhatIsAwaitedIsCounted(t *testing.T) {
	for n, want := range map[int]string{0: "", 5: "", 7: "; and 2 more"} {
		d := &Driver{cache: leavingCache{n: n}}
		waiting, _, err := d.deleteCompanionWorks(t.Context(), testQuery(), v1alpha1.DeletionPolicyDelete, backends.Fleet{})
		if err != nil {
			t.Fatal(err)
		}
		if named := strings.Count(waiting, "Karmada to leave m"); named != min(n, mostNamed) || !strings.HasSuffix(waiting, want) ||
			strings.Contains(waiting, "more") != (want != "") {
			t.Errorf("of %d: %q", n, waiting)
		}
	}
}
