package backends

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

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
	// Taints by which people keep workloads away, without those that a backend gives to clusters it has lost: Ready says it.
	Taints []Taint `json:"taints,omitempty"`
	// Free is what pods can still request there, as far as the backend knows; nil when it does not.
	Free corev1.ResourceList `json:"free,omitempty"`
	// Allocatable is what all pods together can request there; nil when the backend does not know, and where Free is known.
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Leaving is true while the cluster is being taken off the backend.
	Leaving bool `json:"leaving,omitempty"`
	// Ready is Unknown when the backend has lost contact.
	Ready metav1.ConditionStatus `json:"ready,omitempty"`
	// ReadySince is when Ready changed last.
	ReadySince time.Time `json:"readySince,omitzero"`
	// Message says why the cluster is not ready.
	Message string `json:"message,omitempty"`
}

// Same tells whether nothing of the cluster has changed that can change a selection or a report. What pods can request there
// is left out: it counts when replicas are divided for another reason, and who waits for room looks again by itself.
func (c Cluster) Same(o Cluster) bool {
	taints := slices.EqualFunc(c.Taints, o.Taints, func(a, b Taint) bool {
		return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.Added.Equal(b.Added)
	})
	return taints && maps.Equal(c.Labels, o.Labels) && maps.Equal(c.Attributes, o.Attributes) && c.ReadySince.Equal(o.ReadySince) &&
		c.Name == o.Name && c.Identity == o.Identity && c.Ready == o.Ready && c.Message == o.Message && c.Leaving == o.Leaving
}

// TaintEffect is what a taint does, in Kubernetes' words. Backends with words of their own are translated.
type TaintEffect string

const (
	// TaintNoSchedule keeps new workloads away.
	TaintNoSchedule TaintEffect = "NoSchedule"
	// TaintPreferNoSchedule has no effect here.
	TaintPreferNoSchedule TaintEffect = "PreferNoSchedule"
	// TaintNoExecute keeps new workloads away, and wants those that run to leave.
	TaintNoExecute TaintEffect = "NoExecute"
)

// Taint keeps workloads without a matching toleration off a cluster.
type Taint struct {
	Key    string      `json:"key"`
	Value  string      `json:"value,omitempty"`
	Effect TaintEffect `json:"effect,omitempty"`
	// Added is when the taint was set, as far as the backend knows.
	Added time.Time `json:"added,omitzero"`
}

// Fleet is the set of clusters a backend knows.
type Fleet struct {
	// Clusters are sorted by name.
	Clusters []Cluster `json:"clusters"`
}

// Get returns the cluster of that name.
func (f Fleet) Get(name string) (Cluster, bool) {
	i, known := slices.BinarySearchFunc(f.Clusters, name, func(c Cluster, name string) int { return strings.Compare(c.Name, name) })
	if !known {
		return Cluster{}, false
	}
	return f.Clusters[i], true
}

// InContact tells whether the cluster can be reached.
func (f Fleet) InContact(name string) bool {
	c, known := f.Get(name)
	return known && c.Ready == metav1.ConditionTrue
}

// Select returns the names of the clusters that any one of the selectors chooses, sorted.
func (f Fleet) Select(selectors ...v1alpha1.ClusterSelector) ([]string, error) {
	var names []string
	for i := range selectors {
		m, err := NewMatcher(&selectors[i])
		if err != nil {
			return nil, err
		}
		for _, c := range f.Clusters {
			if m.Matches(c) {
				names = append(names, c.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Chosen is a backend's choice, or where it has made none for these selectors, what they choose. A backend that chooses by more than selectors may
// decide otherwise: it is for those who must not ask it to choose.
func (f Fleet) Chosen(made Selection, selectors []v1alpha1.ClusterSelector) (Selection, error) {
	if made.Settled {
		return made, nil
	}
	clusters, err := f.Select(selectors...)
	if err != nil {
		return Selection{}, &Error{
			Code: CodeInvalidPlacement, Field: "spec.placement", Message: "a selector cannot be read", Remedy: "correct it", Err: err,
		}
	}
	return Selection{Settled: true, Clusters: clusters}, nil
}

// Unknown returns, sorted, the names in the selectors that no cluster has.
func (f Fleet) Unknown(selectors ...v1alpha1.ClusterSelector) []string {
	var names []string
	for _, s := range selectors {
		for _, name := range s.Names {
			if _, known := f.Get(name); !known {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Matcher decides whether a ClusterSelector chooses a cluster. Its meaning is the same wherever clusters are chosen:
// what is set must all hold, exclude wins, and NotIn holds for a cluster that lacks the attribute.
type Matcher struct {
	// names is empty when any will do.
	names, exclude sets.Set[string]
	attributes     []attributeMatcher
	labels         labels.Selector
}

type attributeMatcher struct {
	key    v1alpha1.Attribute
	values sets.Set[string]
	in     bool
}

// NewMatcher compiles a selector. A nil selector matches every cluster. The error names the field that is wrong.
func NewMatcher(selector *v1alpha1.ClusterSelector) (Matcher, error) {
	if selector == nil {
		return Matcher{labels: labels.Everything()}, nil
	}
	m := Matcher{names: sets.New(selector.Names...), exclude: sets.New(selector.Exclude...), labels: labels.Everything()}
	for _, a := range selector.Attributes {
		m.attributes = append(m.attributes, attributeMatcher{a.Key, sets.New(a.Values...), a.Operator == v1alpha1.AttributeOperatorIn})
	}
	if selector.Selector != nil {
		compiled, err := metav1.LabelSelectorAsSelector(selector.Selector)
		if err != nil {
			return Matcher{}, fmt.Errorf("clusters.selector: %w", err)
		}
		m.labels = compiled
	}
	for _, req := range selector.Attributes {
		switch req.Key {
		case v1alpha1.AttributeProvider, v1alpha1.AttributeRegion, v1alpha1.AttributeZone:
		default: // the schema admits no other; an object from before it must not lose its clusters for want of one
			return Matcher{}, fmt.Errorf("clusters.attributes: there is no attribute %q; use Provider, Region or Zone", req.Key)
		}
	}
	return m, nil
}

// Matches tells whether the cluster is chosen.
func (m Matcher) Matches(c Cluster) bool {
	if m.exclude.Has(c.Name) || len(m.names) > 0 && !m.names.Has(c.Name) {
		return false
	}
	for _, a := range m.attributes {
		if a.values.Has(c.Attributes[a.key]) != a.in {
			return false
		}
	}
	return m.labels.Matches(labels.Set(c.Labels))
}
