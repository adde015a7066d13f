// SPDX-License-Identifier: Apache-2.0

package statemetrics

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/kube-state-metrics/v2/pkg/customresourcestate"
	"k8s.io/kube-state-metrics/v2/pkg/metric"
	"sigs.k8s.io/yaml"
)

// values is what a metric is made of, whatever its type.
type values struct {
	customresourcestate.MetricMeta
	from, list []string
}

// valuesOf is nil when there is nothing of the metric's type.
func valuesOf(m customresourcestate.Metric) *values {
	switch {
	case m.Type == metric.Info && m.Info != nil:
		return &values{MetricMeta: m.Info.MetricMeta}
	case m.Type == metric.Gauge && m.Gauge != nil:
		return &values{MetricMeta: m.Gauge.MetricMeta, from: m.Gauge.ValueFrom}
	case m.Type == metric.StateSet && m.StateSet != nil:
		return &values{MetricMeta: m.StateSet.MetricMeta, from: m.StateSet.ValueFrom, list: m.StateSet.List}
	}
	return nil
}

// schema is the CRD's schema of a value.
type schema map[string]any

// at follows a path of field names; nil when there is none. Of a list it goes on with one of the items, as kube-state-metrics does where a
// path ends at a list.
func (s schema) at(path ...string) schema {
	for _, name := range path {
		if s["type"] == "array" {
			s = s.child("items")
		}
		if s = s.child("properties").child(name); s == nil {
			return nil
		}
	}
	return s
}

func (s schema) child(name string) schema {
	child, _ := s[name].(map[string]any)
	return child
}

// fleetWorkload is the schema in the CRD, with the metadata that it leaves to the API server.
func fleetWorkload(t *testing.T, r customresourcestate.Resource) schema {
	t.Helper()
	var crd struct {
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					OpenAPI schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(file(t, "config/crd/bases/apps.fleetworkload.io_fleetworkloads.yaml"), &crd); err != nil {
		t.Fatal(err)
	}
	gvk := r.GroupVersionKind
	if gvk.Group != crd.Spec.Group || gvk.Kind != crd.Spec.Names.Kind {
		t.Fatalf("%+v is not the CRD's", gvk)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == gvk.Version {
			text, number := map[string]any{"type": "string"}, map[string]any{"type": "integer"}
			v.Schema.OpenAPI.child("properties")["metadata"] = map[string]any{
				"properties": map[string]any{"name": text, "namespace": text, "generation": number},
			}
			return v.Schema.OpenAPI
		}
	}
	t.Fatalf("the CRD has no version %s", gvk.Version)
	return nil
}

// TestStateMetricsReadWhatThereIs: each path leads to a field of the CRD that has the value that it is read for.
func TestStateMetricsReadWhatThereIs(t *testing.T) {
	r := configuration(t)
	whole := fleetWorkload(t, r)
	checkLabels(t, whole, "every metric", r.LabelsFromPath)
	seen := map[string]bool{}
	for _, m := range r.Metrics {
		if seen[m.Name] || m.Help == "" {
			t.Errorf("%s is there twice, or has no help", m.Name)
		}
		seen[m.Name] = true
		if why := problem(whole, m.Each); why != "" {
			t.Errorf("%s: %s", m.Name, why)
		}
		if v := valuesOf(m.Each); v != nil {
			checkLabels(t, whole.at(v.Path...), m.Name, v.LabelsFromPath)
		}
	}
}

func checkLabels(t *testing.T, from schema, of string, paths map[string][]string) {
	t.Helper()
	for label, path := range paths {
		if got := from.at(path...)["type"]; got != "string" {
			t.Errorf("label %s of %s: %v is of type %v", label, of, path, got)
		}
	}
}

// problem is what stands against a metric's value.
func problem(whole schema, m customresourcestate.Metric) string {
	v := valuesOf(m)
	if v == nil {
		return fmt.Sprintf("type %s without what belongs to it", m.Type)
	}
	found := whole.at(v.Path...).at(v.from...)
	switch {
	case found == nil:
		return fmt.Sprintf("there is no %v %v", v.Path, v.from)
	case m.Type == metric.Gauge && !numeric(found):
		return fmt.Sprintf("no number can be made of %v %v, which is %v", v.Path, v.from, found["type"])
	case m.Type == metric.StateSet && !slices.Equal(sorted(found["enum"]), slices.Sorted(slices.Values(v.list))):
		return fmt.Sprintf("it lists %v of %v", v.list, found["enum"])
	}
	return ""
}

// numeric tells whether kube-state-metrics makes a number of it: numbers, booleans, times, and True, False and Unknown.
func numeric(s schema) bool {
	return s["type"] == "integer" || s["type"] == "boolean" || s["format"] == "date-time" || slices.Equal(sorted(s["enum"]), []string{"False", "True", "Unknown"})
}

func sorted(list any) []string {
	all, _ := list.([]any)
	var texts []string
	for _, one := range all {
		texts = append(texts, fmt.Sprint(one))
	}
	return slices.Sorted(slices.Values(texts))
}

// TestWrongPathsAreFound: the test above can fail.
func TestWrongPathsAreFound(t *testing.T) {
	whole := fleetWorkload(t, configuration(t))
	for name, gauge := range map[string]customresourcestate.MetricGauge{
		"no such field":   {MetricMeta: customresourcestate.MetricMeta{Path: []string{"status", "nothing"}}},
		"no number":       {MetricMeta: customresourcestate.MetricMeta{Path: []string{"status", "backend"}}},
		"no such value":   {MetricMeta: customresourcestate.MetricMeta{Path: []string{"status", "conditions"}}, ValueFrom: []string{"nothing"}},
		"a list":          {MetricMeta: customresourcestate.MetricMeta{Path: []string{"status", "conditions"}}},
		"beyond a scalar": {MetricMeta: customresourcestate.MetricMeta{Path: []string{"status", "replicas", "more"}}},
	} {
		if problem(whole, customresourcestate.Metric{Type: metric.Gauge, Gauge: &gauge}) == "" {
			t.Errorf("%s was not found", name)
		}
	}
	states := customresourcestate.MetricStateSet{
		MetricMeta: customresourcestate.MetricMeta{Path: []string{"status", "migration", "phase"}}, List: []string{"Validating"},
	}
	if problem(whole, customresourcestate.Metric{Type: metric.StateSet, StateSet: &states}) == "" {
		t.Error("a phase that is left out was not found")
	}
}

// TestFixturesAreFleetWorkloads: what metrics are made of has fields that the CRD has, with values of their types.
func TestFixturesAreFleetWorkloads(t *testing.T) {
	whole := fleetWorkload(t, configuration(t))
	for name, fw := range fleetWorkloads(t) {
		if wrong := whole.wrong("", fw.Object); len(wrong) > 0 {
			t.Errorf("%s: %v", name, wrong)
		}
	}
	nonsense := map[string]any{"status": map[string]any{"replica": int64(1), "replicas": "1", "conditions": []any{map[string]any{"kind": "Ready"}}}}
	if wrong := whole.wrong("", nonsense); len(wrong) != 3 {
		t.Errorf("of three mistakes %v were found", wrong)
	}
}

// wrong lists what a value has that the schema does not know.
func (s schema) wrong(at string, value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		if s["x-kubernetes-preserve-unknown-fields"] == true {
			return nil
		}
		for name, v := range value {
			if field := s.child("properties").child(name); field == nil {
				found = append(found, at+"."+name)
			} else {
				found = append(found, field.wrong(at+"."+name, v)...)
			}
		}
	case []any:
		for _, v := range value {
			found = append(found, s.child("items").wrong(at, v)...)
		}
	default:
		if is := map[string]string{"string": "string", "int64": "integer", "bool": "boolean"}[fmt.Sprintf("%T", value)]; s["type"] != is {
			found = append(found, at)
		}
	}
	return found
}
