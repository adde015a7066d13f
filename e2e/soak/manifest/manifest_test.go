// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

var web = history.Key{Namespace: "shop", Name: "web"}

func TestFleetWorkloadSaysTheSpec(t *testing.T) {
	fw, err := FleetWorkload(web, history.Spec{
		Backend: history.OCM, Kind: history.Deployment, Replicas: 5, Pods: history.Template{Image: "7", Env: "info"},
		Clusters: history.Selection{ByLabel: true, Exclude: []string{"c"}}, Divided: true, Weights: map[string]int{"b": 2, "a": 1},
		Overrides: map[string]history.Override{"b": {Image: "8"}, "a": {Env: "debug", Label: "canary"}},
		Waves:     history.Waves{Size: "1", Soak: 2}, Companions: 2, Dependencies: true, Orphan: true, Adopt: true, Suspended: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := fw.Spec
	if s.Backend != "ocm" || *s.Replicas != 5 || !*s.Suspend || s.DeletionPolicy != v1alpha1.DeletionPolicyOrphan ||
		s.ConflictPolicy != v1alpha1.ConflictPolicyAdopt || s.Dependencies != v1alpha1.DependencyPolicyPropagate || len(s.Companions) != 2 {
		t.Errorf("the plain fields: %+v", s)
	}
	if p := s.Placement; p.Clusters.Selector.MatchLabels["soak.example.com/shop.web"] != "on" || p.Clusters.Exclude[0] != "c" ||
		p.Division.Weights[0].Clusters.Names[0] != "a" || *p.Division.Weights[1].Weight != 2 {
		t.Errorf("the placement: %+v", p)
	}
	if o := s.Overrides; o[0].Env[0].Set[0].Value != "debug" || o[0].Labels.Set["channel"] != "canary" || o[1].Images[0].Tag != "8" {
		t.Errorf("the overrides: %+v", o)
	}
	if s.Migration.Waves[0].Size.IntValue() != 1 {
		t.Errorf("the waves: %+v", s.Migration)
	}
}

// What is written is what is read back on members.
func TestObjectReadsTheTemplate(t *testing.T) {
	for kind := range GVKs {
		fw, err := FleetWorkload(web, history.Spec{Kind: kind, Pods: history.Template{Image: "7", Env: "info"}})
		if err != nil {
			t.Fatal(err)
		}
		obj := &unstructured.Unstructured{}
		if err := json.Unmarshal(fw.Spec.Template.Raw, &obj.Object); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(obj.Object, int64(3), "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
		replicas, pods, whole, err := Object(obj)
		if err != nil || replicas != 3 || pods != (history.Template{Image: "7", Env: "info"}) {
			t.Errorf("%s: %d %v %v", kind, replicas, pods, err)
		}
		if err := unstructured.SetNestedField(obj.Object, map[string]any{"a": ""}, "spec", "template", "spec", "securityContext"); err != nil {
			t.Fatal(err)
		}
		if _, _, same, _ := Object(obj); same != whole {
			t.Errorf("%s: what is empty counts: %s, then %s", kind, whole, same)
		}
	}
}

// What Karmada leaves for good is no mark of a workload that was adopted so, and one of a workload that was handed over.
func TestMarks(t *testing.T) {
	obj := &unstructured.Unstructured{}
	obj.SetLabels(map[string]string{"app": "web", "karmada.io/managed": "true"})
	obj.SetAnnotations(map[string]string{resolution: "abort"})
	for _, c := range []struct {
		carrier string
		moved   bool
		want    int
	}{{history.Karmada, true, 0}, {history.OCM, true, 2}, {history.OCM, false, 1}} {
		if marks := Marks(obj, c.carrier, c.moved); len(marks) != c.want {
			t.Errorf("on %s, moved %v: %v", c.carrier, c.moved, marks)
		}
	}
}
