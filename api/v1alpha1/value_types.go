package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// Quantity is an amount of a resource, as containers have it: a number, or a string with a unit, such as 1, 500m or 1Gi. A fraction is a
// string: 500m, or "0.5" in quotes. The schema admits nothing that could not be decoded: one such object would keep all of them from being
// listed.
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^[0-9]{1,18}([.][0-9]{1,9})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`
type Quantity struct {
	resource.Quantity `json:",inline"`
}
