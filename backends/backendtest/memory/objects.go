package memory

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
)

var (
	groupVersion  = schema.GroupVersion{Group: "memory.fleetworkload.io", Version: "v1"}
	placementKind = groupVersion.WithKind("Placement")
	orderKind     = groupVersion.WithKind("Order")
)

// The kinds of workloads that become ready on the members.
const (
	deploymentKind = "Deployment"
	cloneSetKind   = "CloneSet"
)

// OwnerMark is the annotation by which the memory backend marks a member object as its own.
const OwnerMark = "memory.fleetworkload.io/owner"

// placementObject asks the memory backend to choose clusters.
type placementObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Selectors []v1alpha1.ClusterSelector `json:"selectors"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64    `json:"observedGeneration,omitempty"`
		Clusters           []string `json:"clusters,omitempty"`
	} `json:"status"`
}

// orderObject asks the memory backend to have one cluster run a manifest.
type orderObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   orderSpec   `json:"spec"`
	Status orderStatus `json:"status"`
}

type orderSpec struct {
	Cluster  string        `json:"cluster"`
	Workload workloadRef   `json:"workload"`
	Mode     backends.Mode `json:"mode"`
	// Manifest is absent on a cluster held from the start.
	Manifest map[string]any          `json:"manifest,omitempty"`
	Revision string                  `json:"revision,omitempty"`
	Conflict v1alpha1.ConflictPolicy `json:"conflict"`
	Hold     bool                    `json:"hold,omitempty"`
	// Removal takes the workload off the cluster.
	Removal v1alpha1.DeletionPolicy `json:"removal,omitempty"`
	// Released says that it was confirmed, when the order was taken away, that it only observes.
	Released bool `json:"released,omitempty"`
}

type workloadRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func (w workloadRef) ref() backendtest.Ref {
	return backendtest.Ref{
		GVK:            schema.FromAPIVersionAndKind(w.APIVersion, w.Kind),
		NamespacedName: types.NamespacedName{Namespace: w.Namespace, Name: w.Name},
	}
}

type orderStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Applied says whether the order of ObservedGeneration was carried out.
	Applied  bool   `json:"applied,omitempty"`
	Conflict bool   `json:"conflict,omitempty"`
	Message  string `json:"message,omitempty"`
	// Removed is true when Removal was carried out.
	Removed bool `json:"removed,omitempty"`
	// Report is the member object as last seen.
	Report *memberReport `json:"report,omitempty"`
}

type memberReport struct {
	UID        types.UID      `json:"uid,omitempty"`
	Revision   string         `json:"revision,omitempty"`
	Generation int64          `json:"generation"`
	Object     map[string]any `json:"object"`
}

// seen tells whether the member's controller had seen the object of the report.
func (r *memberReport) seen() bool {
	observed, _, _ := unstructured.NestedInt64(r.Object, "status", "observedGeneration")
	return observed == r.Generation
}

// carriedOut tells whether the status is about the order as it is.
func (o *orderObject) carriedOut() bool { return o.Status.ObservedGeneration == o.Generation }

// released tells whether the order is no danger to another owner.
func (o *orderObject) released() bool {
	return o.Spec.Released || o.carriedOut() && o.Spec.Mode == backends.ModeObserve && o.Spec.Removal == ""
}

// remove takes the workload off the cluster.
func (o *orderObject) remove(policy v1alpha1.DeletionPolicy, alone bool) {
	o.Spec.Released, o.Spec.Removal = o.released() && !alone, policy
	if alone {
		o.Spec.Mode = backends.ModeOwn
	}
}

func orderRef(key backends.Key, cluster string) backendtest.Ref {
	return backendtest.Ref{GVK: orderKind, NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Name + "." + cluster}}
}

func placementRef(key backends.Key) backendtest.Ref {
	return backendtest.Ref{GVK: placementKind, NamespacedName: key.NamespacedName}
}

// ours tells whether an object of the backend belongs to the FleetWorkload.
func ours(obj *unstructured.Unstructured, key backends.Key) bool {
	return obj != nil && obj.GetLabels()[v1alpha1.LabelUID] == string(key.UID)
}

// newObject returns an object of the backend with our marks.
func newObject(ref backendtest.Ref, key backends.Key) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GVK)
	obj.SetNamespace(ref.Namespace)
	obj.SetName(ref.Name)
	obj.SetLabels(map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator,
		v1alpha1.LabelUID:       string(key.UID),
	})
	obj.SetAnnotations(map[string]string{v1alpha1.AnnotationOwner: key.String()})
	return obj
}

// read decodes an object of the backend. The store has only what toMap encoded, so that failing is a bug.
func read[T any](obj *unstructured.Unstructured) *T {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into); err != nil {
		panic(fmt.Sprintf("read %s %s: %v", obj.GetKind(), obj.GetName(), err))
	}
	return into
}

// toMap encodes a spec or a status.
func toMap(v any) map[string]any {
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return encoded
}

// ForeignPlacement is a placement of the name that the driver would use, as somebody else would have created it.
func ForeignPlacement(desired backends.Desired) *unstructured.Unstructured {
	obj := newObject(placementRef(desired.Key), desired.Key)
	obj.SetLabels(nil)
	obj.SetAnnotations(nil)
	obj.Object["spec"] = map[string]any{"placement": map[string]any{}}
	return obj
}
