// SPDX-License-Identifier: Apache-2.0

// Package statemetrics has kube-state-metrics' own code read config/monitoring/kube-state-metrics.yaml and make metrics of FleetWorkloads by
// it. It is a module of its own, so that its libraries stay out of the operator's.
package statemetrics

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/kube-state-metrics/v2/pkg/customresourcestate"
	"k8s.io/kube-state-metrics/v2/pkg/metric"
	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

const (
	root = "../.."
	path = "config/monitoring/kube-state-metrics.yaml"
)

// file reads a file of the repository.
func file(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(root + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// decode reads a configuration that is of one resource. kube-state-metrics passes over what it does not know; here that is an error.
func decode(raw []byte) (customresourcestate.Resource, error) {
	var whole struct {
		Kind                        string `yaml:"kind"`
		customresourcestate.Metrics `yaml:",inline"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	decoder.KnownFields(true)
	if err := decoder.Decode(&whole); err != nil {
		return customresourcestate.Resource{}, fmt.Errorf("decode the configuration: %w", err)
	}
	if whole.Kind != "CustomResourceStateMetrics" || len(whole.Spec.Resources) != 1 {
		return customresourcestate.Resource{}, fmt.Errorf("it is a %s of %d resources", whole.Kind, len(whole.Spec.Resources))
	}
	r := whole.Spec.Resources[0]
	for i := range r.Metrics { // as kube-state-metrics does before it looks at them
		r.Metrics[i].Each.Type = metric.Type(strings.ToLower(string(r.Metrics[i].Each.Type)))
	}
	return r, nil
}

// configuration is the one that the repository has.
func configuration(t *testing.T) customresourcestate.Resource {
	t.Helper()
	r, err := decode(file(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
