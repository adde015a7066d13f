package ocm

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
)

// TestWhatClustersShareIsNotChanged (R6): ManifestWorks of clusters that get the same share what they deliver, with each other and with what
// Apply was asked. Nothing that Apply makes of them, nor of what is in the cache, is written into that.
func TestWhatClustersShareIsNotChanged(t *testing.T) {
	d := wantedDelivery()
	same := d.Targets[0].Manifest
	d.Targets = nil
	for _, cluster := range []string{"m1", "m2", "m3"} {
		d.Targets = append(d.Targets, backends.Target{Cluster: cluster, Manifest: same, Mode: backends.ModeOwn})
	}
	for _, name := range []string{"own", "shared"} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"},
			"metadata": map[string]any{"namespace": "shop", "name": name, "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"a": "b"}}}}
		d.Companions = append(d.Companions, backends.Companion{Object: object, Resource: "configmaps", Shared: name == "shared"})
	}
	p, err := newPlan(d, Options{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := Render(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var live, all []*unstructured.Unstructured
	for _, target := range p.targets {
		all = append(append(all, target.work), target.prerequisites...)
		for _, c := range target.companionWorks {
			other := c.work.DeepCopy()
			other.SetAnnotations(map[string]string{annotationHash: "other", annotationRemoving: "since"})
			all, live = append(all, c.work), append(live, c.work.DeepCopy(), other)
		}
	}
	if a, b := firstManifest(p.targets[0].work), firstManifest(p.targets[1].work); reflect.ValueOf(a).Pointer() != reflect.ValueOf(b).Pointer() {
		t.Error("two clusters that get the same do not share it: the test tells nothing")
	}
	all = append(append(append(all, rendered...), live...), same, d.Companions[0].Object, d.Companions[1].Object)
	var before []*unstructured.Unstructured
	for _, object := range all {
		before = append(before, object.DeepCopy())
	}

	var moves []move
	for _, strategy := range []workv1.UpdateStrategyType{workv1.UpdateStrategyTypeServerSideApply, workv1.UpdateStrategyTypeReadOnly} {
		for _, deletion := range []workv1.DeletePropagationPolicyType{workv1.DeletePropagationPolicyTypeOrphan, workv1.DeletePropagationPolicyTypeForeground} {
			for _, m := range []move{{}, {removing: "since"}, {held: true}, {observe: true}, {probe: true}, {clean: "0,1"}} {
				m.strategy, m.deletion = strategy, deletion
				moves = append(moves, m)
			}
		}
	}
	for _, target := range p.targets {
		for _, m := range moves {
			annotate(p.variants.of(target.work, m), annotationHeld, "true")
			for _, prerequisite := range target.prerequisites {
				annotate(variant(prerequisite, m), annotationHeld, "true")
			}
			for i, c := range target.companionWorks {
				for _, found := range live {
					need := companions.ReadNeed(found.GetAnnotations()).Owning(d.Key, nil)
					annotate(asWritten(found, variant(target.companionWorks[i].work, m), need), annotationHeld, "true")
					annotate(asWritten(found, c.work, need), annotationHeld, "true")
					annotate(asWritten(found, asBefore(found, companionWorkFromLive(found)), need), annotationHeld, "true")
				}
			}
		}
	}
	if _, err := Render(d, Options{}); err != nil {
		t.Fatal(err)
	}
	for i, object := range all {
		if diff := cmp.Diff(before[i], object); diff != "" {
			t.Errorf("%s was changed (-before +after):\n%s", object.GetName(), diff)
		}
	}
}
