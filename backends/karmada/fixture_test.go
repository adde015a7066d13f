package karmada

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

const (
	testNamespace = "shop"
	testName      = "web"
	testUID       = "6d2f7a3e-0000-4000-8000-000000000001"
)

// share is one cluster's part of a test's desired state.
type share struct {
	cluster  string
	replicas int32
	greeting string
	hold     bool
	owner    backends.Mode
}

func manifestFor(revision, image, greeting string, replicas int32) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"replicas": int64(replicas), "paused": false,
			"selector": map[string]any{"matchLabels": map[string]any{"app": testName}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": testName}},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "main", "image": image,
					"env": []any{map[string]any{"name": "GREETING", "value": greeting}},
				}}},
			},
		},
	}}
	obj.SetAPIVersion("apps.kruise.io/v1alpha1")
	obj.SetKind("CloneSet")
	obj.SetNamespace(testNamespace)
	obj.SetName(testName)
	obj.SetLabels(map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelUID: testUID})
	obj.SetAnnotations(map[string]string{
		v1alpha1.AnnotationOwner: testNamespace + "/" + testName, v1alpha1.AnnotationRevision: revision,
	})
	return obj
}

func testQuery() backends.Query {
	return backends.Query{
		Key: backends.Key{NamespacedName: types.NamespacedName{Namespace: testNamespace, Name: testName}, UID: testUID},
		Workload: backends.Workload{
			GVK:      schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"},
			Resource: "clonesets", Namespace: testNamespace, Name: testName, ReplicasPath: []string{"spec", "replicas"},
			Feedback: []backends.FeedbackField{{Name: "observedGeneration", Path: ".status.observedGeneration"}},
		},
		Selectors: []v1alpha1.ClusterSelector{{}},
	}
}

func (s share) mode() backends.Mode {
	if s.hold && s.owner.Owns() {
		return backends.ModeHold
	}
	return s.owner
}

// desiredFor builds a desired state; without a greeting a cluster has the template's.
func desiredFor(revision, image string, division v1alpha1.DivisionType, shares ...share) backends.Desired {
	d := backends.Desired{
		Query: testQuery(), Revision: revision, ConflictPolicy: v1alpha1.ConflictPolicyFail, Division: division,
		Template: manifestFor(revision, image, "hello", 7),
	}
	for _, s := range shares {
		greeting := s.greeting
		if greeting == "" {
			greeting = "hello"
		}
		d.Targets = append(d.Targets, backends.Target{
			Cluster: s.cluster, Replicas: &s.replicas, Mode: s.mode(),
			Manifest: manifestFor(revision, image, greeting, s.replicas),
		})
	}
	return d
}

func mustRender(t *testing.T, d backends.Desired) *rendered {
	t.Helper()
	r, err := render(d, currentState{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func revisionOf(n int) string { return fmt.Sprintf("r%d", n) }
