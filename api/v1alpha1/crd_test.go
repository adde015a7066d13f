// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

const (
	crdPath    = "../../config/crd/bases/apps.fleetworkload.io_fleetworkloads.yaml"
	samplesDir = "../../config/samples"
)

func readCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	raw, err := os.ReadFile(crdPath)
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// readSamples returns the samples by file name.
func readSamples(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(samplesDir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string][]byte{}
	for _, path := range paths {
		if filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		if samples[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if len(samples) == 0 {
		t.Fatalf("no samples in %s", samplesDir)
	}
	return samples
}

// celMessages collects the messages of all CEL rules of a schema.
func celMessages(t *testing.T, schema *apiextensionsv1.JSONSchemaProps) []string {
	t.Helper()
	var found []string
	for _, rule := range schema.XValidations {
		if rule.Message == "" {
			t.Errorf("the rule %q has no message", rule.Rule)
		}
		found = append(found, rule.Message)
	}
	for _, child := range schema.Properties {
		found = append(found, celMessages(t, &child)...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		found = append(found, celMessages(t, schema.Items.Schema)...)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		found = append(found, celMessages(t, schema.AdditionalProperties.Schema)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestEveryRuleHasCases demands an accepting and a rejecting case of every CEL rule of the CRD, and no case of a rule
// that is not there. The cases run on a real API server, under build tag api.
func TestEveryRuleHasCases(t *testing.T) {
	accepting, rejecting := map[string]bool{}, map[string]bool{}
	for _, c := range append(celCases(), carriedCases()...) {
		if c.rejected == "" {
			accepting[c.rule] = true
		} else {
			rejecting[c.rule] = true
		}
	}
	for _, version := range readCRD(t).Spec.Versions {
		messages := celMessages(t, version.Schema.OpenAPIV3Schema)
		if len(messages) == 0 {
			t.Fatal("the CRD has no CEL rule: was it generated?")
		}
		for _, message := range messages {
			if !accepting[message] {
				t.Errorf("no accepting case for the rule %q", message)
			}
			if !rejecting[message] {
				t.Errorf("no rejecting case for the rule %q", message)
			}
			delete(accepting, message)
			delete(rejecting, message)
		}
		for message := range accepting {
			t.Errorf("a case is about the rule %q, which the CRD does not have", message)
		}
	}
}

func TestSubresourcesAndColumns(t *testing.T) {
	version := readCRD(t).Spec.Versions[0]
	if version.Subresources == nil || version.Subresources.Status == nil || version.Subresources.Scale == nil {
		t.Fatalf("want the subresources status and scale, got %+v", version.Subresources)
	}
	var columns, wide []string
	for _, c := range version.AdditionalPrinterColumns {
		columns = append(columns, c.Name)
		if c.Priority > 0 {
			wide = append(wide, c.Name)
		}
	}
	if diff := cmp.Diff(wideColumns, wide); diff != "" {
		t.Errorf("wide printer columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantColumns, columns); diff != "" {
		t.Errorf("printer columns (-want +got):\n%s", diff)
	}
}

// wantColumns are those of kubectl get, after the name.
var wantColumns = []string{"Backend", "Ready", "Updated", "Clusters", "Status", "Age", "Kind", "Revision", "Message"}

// wideColumns are those that only kubectl get -o wide shows.
var wideColumns = []string{"Kind", "Revision", "Message"}

// TestSamplesFitTypes demands that the Go types know every field of the samples and give it back.
func TestSamplesFitTypes(t *testing.T) {
	for name, raw := range readSamples(t) {
		t.Run(name, func(t *testing.T) {
			fw := &v1alpha1.FleetWorkload{}
			if err := yaml.UnmarshalStrict(raw, fw); err != nil {
				t.Fatal(err)
			}
			back, err := json.Marshal(fw)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fromYAML(t, raw), fromYAML(t, back)); diff != "" {
				t.Errorf("changed on the way through the Go types (-sample +typed):\n%s", diff)
			}
		})
	}
}

func fromYAML(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal(bytes.TrimSpace(raw), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
