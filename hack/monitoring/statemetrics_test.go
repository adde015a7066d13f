// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stateMetrics is the part of kube-state-metrics' configuration that config/monitoring uses. Anything else in the file is an error.
type stateMetrics struct {
	Kind string `json:"kind"`
	Spec struct {
		Resources []resource `json:"resources"`
	} `json:"spec"`
}

type resource struct {
	GroupVersionKind struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	} `json:"groupVersionKind"`
	MetricNamePrefix string              `json:"metricNamePrefix"`
	LabelsFromPath   map[string][]string `json:"labelsFromPath"`
	ErrorLogV        int                 `json:"errorLogV"`
	Metrics          []metric            `json:"metrics"`
}

type metric struct {
	Name string `json:"name"`
	Help string `json:"help"`
	Each struct {
		Type     string  `json:"type"`
		Info     *values `json:"info"`
		Gauge    *values `json:"gauge"`
		StateSet *values `json:"stateSet"`
	} `json:"each"`
}

type values struct {
	Path           []string            `json:"path"`
	LabelsFromPath map[string][]string `json:"labelsFromPath"`
	ValueFrom      []string            `json:"valueFrom"`
	NilIsZero      bool                `json:"nilIsZero"`
	LabelName      string              `json:"labelName"`
	List           []string            `json:"list"`
}

func (m metric) values() *values {
	return map[string]*values{"Info": m.Each.Info, "Gauge": m.Each.Gauge, "StateSet": m.Each.StateSet}[m.Each.Type]
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
func fleetWorkload(t *testing.T, r resource) schema {
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
	loose(t, "config/crd/bases/apps.fleetworkload.io_fleetworkloads.yaml", &crd)
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
	var config stateMetrics
	decode(t, "config/monitoring/kube-state-metrics.yaml", &config)
	if config.Kind != "CustomResourceStateMetrics" || len(config.Spec.Resources) != 1 {
		t.Fatalf("it is %+v", config)
	}
	r := config.Spec.Resources[0]
	whole := fleetWorkload(t, r)
	checkLabels(t, whole, "every metric", r.LabelsFromPath)
	seen := map[string]bool{}
	for _, m := range r.Metrics {
		if seen[m.Name] || m.Help == "" {
			t.Errorf("%s is there twice, or has no help", m.Name)
		}
		seen[m.Name] = true
		if why := problem(whole, m); why != "" {
			t.Errorf("%s: %s", m.Name, why)
		}
		if v := m.values(); v != nil {
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
func problem(whole schema, m metric) string {
	v := m.values()
	if v == nil {
		return "type " + m.Each.Type + " without what belongs to it"
	}
	found := whole.at(v.Path...).at(v.ValueFrom...)
	switch {
	case found == nil:
		return fmt.Sprintf("there is no %v %v", v.Path, v.ValueFrom)
	case m.Each.Type == "Gauge" && !numeric(found):
		return fmt.Sprintf("no number can be made of %v %v, which is %v", v.Path, v.ValueFrom, found["type"])
	case m.Each.Type == "StateSet" && !slices.Equal(sorted(found["enum"]), slices.Sorted(slices.Values(v.List))):
		return fmt.Sprintf("it lists %v of %v", v.List, found["enum"])
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
	var config stateMetrics
	decode(t, "config/monitoring/kube-state-metrics.yaml", &config)
	whole := fleetWorkload(t, config.Spec.Resources[0])
	for name, v := range map[string]values{
		"no such field":   {Path: []string{"status", "nothing"}},
		"no number":       {Path: []string{"status", "backend"}},
		"no such value":   {Path: []string{"status", "conditions"}, ValueFrom: []string{"nothing"}},
		"a list":          {Path: []string{"status", "conditions"}},
		"beyond a scalar": {Path: []string{"status", "replicas", "more"}},
	} {
		m := metric{}
		m.Each.Type, m.Each.Gauge = "Gauge", &v
		if problem(whole, m) == "" {
			t.Errorf("%s was not found", name)
		}
	}
	m := metric{}
	m.Each.Type, m.Each.StateSet = "StateSet", &values{Path: []string{"status", "migration", "phase"}, List: []string{"Validating"}}
	if problem(whole, m) == "" {
		t.Error("a phase that is left out was not found")
	}
}

// TestThePageHasTheStateMetrics: docs/metrics.md names each, and no other.
func TestThePageHasTheStateMetrics(t *testing.T) {
	var config stateMetrics
	decode(t, "config/monitoring/kube-state-metrics.yaml", &config)
	r, missing := config.Spec.Resources[0], map[string]bool{}
	for _, m := range r.Metrics {
		missing[r.MetricNamePrefix+"_"+m.Name] = true
	}
	for _, name := range regexp.MustCompile(`kube_fleetworkload_[a-z_]+`).FindAllString(string(file(t, "docs/metrics.md")), -1) {
		if _, is := missing[name]; !is {
			t.Errorf("the page has %s, which is not configured", name)
		}
		missing[name] = false
	}
	maps.DeleteFunc(missing, func(_ string, is bool) bool { return !is })
	if len(missing) > 0 {
		t.Errorf("the page lacks %s", strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
}
