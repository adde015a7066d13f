package backends

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

func TestSelect(t *testing.T) {
	attributes := func(provider, region string) map[v1alpha1.Attribute]string {
		return map[v1alpha1.Attribute]string{v1alpha1.AttributeProvider: provider, v1alpha1.AttributeRegion: region}
	}
	fleet := Fleet{Clusters: []Cluster{
		{Name: "c", Labels: map[string]string{"env": "prod"}, Attributes: attributes("gcp", "us")},
		{Name: "a", Labels: map[string]string{"env": "prod"}, Attributes: attributes("aws", "eu")},
		{Name: "b", Labels: map[string]string{"env": "dev"}},
	}}
	requirement := func(operator v1alpha1.AttributeOperator, values ...string) []v1alpha1.AttributeRequirement {
		return []v1alpha1.AttributeRequirement{{Key: v1alpha1.AttributeProvider, Operator: operator, Values: values}}
	}
	prod := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	tests := map[string]struct {
		selector v1alpha1.ClusterSelector
		want     []string
	}{
		"an empty selector chooses all, sorted": {v1alpha1.ClusterSelector{}, []string{"a", "b", "c"}},
		"names":                                 {v1alpha1.ClusterSelector{Names: []string{"b", "gone"}}, []string{"b"}},
		"exclude wins over names":               {v1alpha1.ClusterSelector{Names: []string{"a", "b"}, Exclude: []string{"b"}}, []string{"a"}},
		"labels":                                {v1alpha1.ClusterSelector{Selector: prod}, []string{"a", "c"}},
		"labels and names":                      {v1alpha1.ClusterSelector{Selector: prod, Names: []string{"b", "c"}}, []string{"c"}},
		"an attribute":                          {v1alpha1.ClusterSelector{Attributes: requirement(v1alpha1.AttributeOperatorIn, "aws")}, []string{"a"}},
		"not an attribute, or none of its own":  {v1alpha1.ClusterSelector{Attributes: requirement(v1alpha1.AttributeOperatorNotIn, "aws")}, []string{"b", "c"}},
		"nothing left":                          {v1alpha1.ClusterSelector{Names: []string{"a"}, Exclude: []string{"a"}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := fleet.Select(test.selector)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	either, err := fleet.Select(v1alpha1.ClusterSelector{Names: []string{"c", "a"}}, v1alpha1.ClusterSelector{Names: []string{"a"}})
	if diff := cmp.Diff([]string{"a", "c"}, either); err != nil || diff != "" {
		t.Error(err, diff)
	}
	bad := v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}
	if _, err := fleet.Select(bad); err == nil || !strings.Contains(err.Error(), "clusters.selector") {
		t.Errorf("got %v", err)
	}
	lower := v1alpha1.ClusterSelector{Attributes: []v1alpha1.AttributeRequirement{{Key: "region", Operator: v1alpha1.AttributeOperatorIn, Values: []string{"eu"}}}}
	if names, err := fleet.Select(lower); err == nil || !strings.Contains(err.Error(), `no attribute "region"`) {
		t.Errorf("an attribute that there is not: %v %v", names, err)
	}
}

func TestClassify(t *testing.T) {
	resource := schema.GroupResource{Resource: "works"}
	tests := map[string]struct {
		err  error
		want Code
	}{
		"forbidden":    {apierrors.NewForbidden(resource, "w", errors.New("no")), CodeForbidden},
		"unauthorized": {apierrors.NewUnauthorized("no"), CodeUnavailable},
		"throttled":    {apierrors.NewTooManyRequests("slow down", 1), CodeUnavailable},
		"down":         {apierrors.NewServiceUnavailable("down"), CodeUnavailable},
		"invalid":      {apierrors.NewInvalid(schema.GroupKind{Kind: "W"}, "w", nil), CodeRejected},
		"something":    {errors.New("something"), ""},
		"a conflict":   {apierrors.NewConflict(resource, "w", errors.New("changed")), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Classify("apply work w", fmt.Errorf("wrapped: %w", test.err))
			if CodeOf(got) != test.want || !errors.Is(got, test.err) {
				t.Errorf("got %q %v", CodeOf(got), got)
			}
			if strings.Count(got.Error(), "apply work w: ") != 1 {
				t.Errorf("the operation must be named once: %v", got)
			}
		})
	}
	if Classify("x", nil) != nil {
		t.Error("no error became one")
	}
}

func TestSame(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	base := func() Cluster {
		return Cluster{
			Name: "a", Labels: map[string]string{"env": "prod"}, Attributes: map[v1alpha1.Attribute]string{v1alpha1.AttributeZone: "z"},
			Identity: "1", Taints: []Taint{{Key: "k", Effect: TaintNoExecute, Added: at}},
			Free: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}, Ready: metav1.ConditionTrue, ReadySince: at.In(time.Local),
		}
	}
	more := base()
	more.Free, more.Allocatable = nil, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	if !base().Same(base()) || !base().Same(more) {
		t.Error("nothing has changed but what is free")
	}
	for what, change := range map[string]func(*Cluster){
		"name":      func(c *Cluster) { c.Name = "b" },
		"label":     func(c *Cluster) { c.Labels["env"] = "test" },
		"attribute": func(c *Cluster) { c.Attributes = nil },
		"identity":  func(c *Cluster) { c.Identity = "2" },
		"taint":     func(c *Cluster) { c.Taints[0].Added = at.Add(time.Second) },
		"ready":     func(c *Cluster) { c.Ready = metav1.ConditionUnknown },
		"since":     func(c *Cluster) { c.ReadySince = at.Add(time.Second) },
		"message":   func(c *Cluster) { c.Message = "lost" },
		"leaving":   func(c *Cluster) { c.Leaving = true },
	} {
		changed := base()
		change(&changed)
		if base().Same(changed) {
			t.Errorf("another %s goes unseen", what)
		}
	}
}
