package backends

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Cluster is a member cluster as a backend knows it.
type Cluster struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	// Attributes holds provider, region and zone, as far as the backend knows them.
	Attributes map[v1alpha1.Attribute]string `json:"attributes,omitempty"`
	// Identity is the UID of the cluster's kube-system namespace, or empty.
	Identity string `json:"identity,omitempty"`
	// Taints by which the backend keeps workloads away.
	Taints []Taint `json:"taints,omitempty"`
	// Ready is Unknown when the backend has lost contact.
	Ready metav1.ConditionStatus `json:"ready,omitempty"`
	// ReadySince is when Ready changed last.
	ReadySince time.Time `json:"readySince,omitzero"`
	// Message says why the cluster is not ready.
	Message string `json:"message,omitempty"`
}

// Taint keeps workloads without a matching toleration off a cluster.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect,omitempty"`
}

// Fleet is the set of clusters a backend knows.
type Fleet struct {
	// Clusters are sorted by name.
	Clusters []Cluster `json:"clusters"`
}

// Get returns the cluster of that name.
func (f Fleet) Get(name string) (Cluster, bool) {
	for _, c := range f.Clusters {
		if c.Name == name {
			return c, true
		}
	}
	return Cluster{}, false
}

// Select returns the names of the clusters that the selector chooses, sorted. A nil selector chooses all.
func (f Fleet) Select(selector *v1alpha1.ClusterSelector) ([]string, error) {
	m, err := NewMatcher(selector)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range f.Clusters {
		if m.Matches(c) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Matcher decides whether a ClusterSelector chooses a cluster. Its meaning is the same wherever clusters are chosen:
// what is set must all hold, exclude wins, and NotIn holds for a cluster that lacks the attribute.
type Matcher struct {
	selector v1alpha1.ClusterSelector
	labels   labels.Selector
}

// NewMatcher compiles a selector. A nil selector matches every cluster. The error names the field that is wrong.
func NewMatcher(selector *v1alpha1.ClusterSelector) (Matcher, error) {
	if selector == nil {
		return Matcher{labels: labels.Everything()}, nil
	}
	m := Matcher{selector: *selector, labels: labels.Everything()}
	if selector.Selector != nil {
		compiled, err := metav1.LabelSelectorAsSelector(selector.Selector)
		if err != nil {
			return Matcher{}, fmt.Errorf("clusters.selector: %w", err)
		}
		m.labels = compiled
	}
	return m, nil
}

// Matches tells whether the cluster is chosen.
func (m Matcher) Matches(c Cluster) bool {
	if slices.Contains(m.selector.Exclude, c.Name) {
		return false
	}
	if len(m.selector.Names) > 0 && !slices.Contains(m.selector.Names, c.Name) {
		return false
	}
	for _, req := range m.selector.Attributes {
		in := slices.Contains(req.Values, c.Attributes[req.Key])
		if in != (req.Operator == v1alpha1.AttributeOperatorIn) {
			return false
		}
	}
	return m.labels.Matches(labels.Set(c.Labels))
}
