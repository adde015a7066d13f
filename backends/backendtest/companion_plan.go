package backendtest

import (
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// passenger is a companion of a plan.
type passenger struct {
	kind string
	name string
	// value is its content.
	value  string
	shared bool
	// clusters that need it; nil for all.
	clusters []string
	// elsewhere are those who need it on every cluster from another backend.
	elsewhere []types.UID
}

// carrying returns the plan with these companions and no others.
func (p plan) carrying(passengers ...passenger) plan {
	p.passengers = slices.Clone(passengers)
	return p
}

// resources are the plurals of the kinds that travel here.
var resources = map[string]string{
	"ConfigMap": "configmaps", "Secret": "secrets", "PersistentVolumeClaim": "persistentvolumeclaims",
}

func (p passenger) ref(namespace string) Ref {
	return Ref{
		GVK:            schema.GroupVersionKind{Version: "v1", Kind: p.kind},
		NamespacedName: types.NamespacedName{Namespace: namespace, Name: p.name},
	}
}

// object is the companion as the controller would hand it over.
func (p passenger) object(key backends.Key) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	switch p.kind {
	case "Secret":
		obj.Object["data"] = map[string]any{"value": base64.StdEncoding.EncodeToString([]byte(p.value))}
	case "PersistentVolumeClaim":
		obj.Object["spec"] = map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "none",
			"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		}
	default:
		obj.Object["data"] = map[string]any{"value": p.value}
	}
	ref := p.ref(key.Namespace)
	obj.SetGroupVersionKind(ref.GVK)
	obj.SetNamespace(ref.Namespace)
	obj.SetName(ref.Name)
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelUID: backends.SharedUID}
	if !p.shared {
		labels[v1alpha1.LabelUID] = string(key.UID)
		obj.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: key.String()})
	}
	obj.SetLabels(labels)
	return obj
}

func (p plan) companions() []backends.Companion {
	out := make([]backends.Companion, 0, len(p.passengers))
	for _, each := range p.passengers {
		elsewhere := map[string][]types.UID{}
		for _, cluster := range p.clusters() {
			elsewhere[cluster] = each.elsewhere
		}
		out = append(out, backends.Companion{
			Object: each.object(p.key), Resource: resources[each.kind], Shared: each.shared, Clusters: each.clusters,
			Elsewhere: elsewhere,
		})
	}
	slices.SortFunc(out, func(a, b backends.Companion) int {
		return strings.Compare(a.Object.GetKind()+"/"+a.Object.GetName(), b.Object.GetKind()+"/"+b.Object.GetName())
	})
	return out
}
