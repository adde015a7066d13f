package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Quantity is an amount of a resource, as containers have it: a number, or a string with a unit, such as 1, 500m or 1Gi. A fraction is a
// string: 500m, or "0.5" in quotes. The schema admits nothing that could not be decoded: one such object would keep all of them from being
// listed.
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^[0-9]{1,18}([.][0-9]{1,9})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`
type Quantity struct {
	// Embedded, and not resource.Quantity itself, so that its schema has a bound and a pattern of its own.
	resource.Quantity `json:",inline"`
}

// Duration is a time span in hours, minutes and seconds, such as 90s, 10m or 1h30m: people write it, for whom 10m says more than 600. The
// schema admits nothing that could not be decoded.
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}([.][0-9]{1,3})?s)?$') && size(self) > 0",message="must be a duration such as 90s, 10m or 1h30m"
type Duration metav1.Duration

// MarshalJSON writes it as metav1.Duration does.
func (d Duration) MarshalJSON() ([]byte, error) { return metav1.Duration(d).MarshalJSON() }

// UnmarshalJSON reads it as metav1.Duration does.
func (d *Duration) UnmarshalJSON(raw []byte) error { return (*metav1.Duration)(d).UnmarshalJSON(raw) }
