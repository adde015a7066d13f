// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/crdcheck"
	"github.com/fleetworkload/fleetworkload/internal/bulk"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

// small is a FleetWorkload without anything that it could lack. What a page shows in part is put into it.
const small = `
apiVersion: apps.fleetworkload.io/v1alpha1
kind: FleetWorkload
metadata: {name: web, namespace: shop}
spec:
  backend: karmada
  template:
    apiVersion: apps/v1
    kind: Deployment
    spec: {template: {spec: {containers: [{name: web, image: nginx}]}}}
  placement: {clusters: {}}
`

// smallConfiguration is the same of the operator's configuration.
const smallConfiguration = `
apiVersion: config.fleetworkload.io/v1alpha1
kind: OperatorConfiguration
backends:
- {name: karmada, type: Karmada, connection: {inCluster: {}}}
- {name: ocm, type: OCM, connection: {inCluster: {}}}
`

// parts are FleetWorkloads of which a page shows a part, although they say their kind, by page and first line.
var parts = map[string]string{
	"docs/gitops.md":         "# prod/web.yaml\n",
	"docs/importing.md":      "# web.yaml, without spec.template\n",
	"docs/karmada-to-ocm.md": "# web.yaml, without spec.template\n",
}

// elsewhere are blocks that another test reads as what they are, by page and first line.
var elsewhere = map[string]string{
	"docs/gitops.md: # charts/shop/values.yaml": "hack/tools/chart renders the page's chart by Helm",
	"docs/gitops.md: # base/kustomization.yaml": "hack/tools/kustomize builds the page's folders by kustomize",
	"docs/gitops.md: # prod/kustomization.yaml": "hack/tools/kustomize builds the page's folders by kustomize",
	"docs/gitops.md: patches:":                  "hack/tools/kustomize applies such a patch",
}

// inventory begins a block that the tests of cmd/kubectl-fw read.
const inventory = "# clusters.yaml, three clusters as the test fleet's"

type object = map[string]any

// TestManifests: an API server would take each manifest, and each part of one.
func TestManifests(t *testing.T) {
	schemas := others(t)
	maps.Copy(schemas, crdcheck.LoadFile(t, filepath.Join(root, "config/crd/bases/apps.fleetworkload.io_fleetworkloads.yaml")))
	looked, told := map[string]int{}, map[string]bool{}
	for _, page := range read(t) {
		for _, block := range page.Blocks {
			if block.Language != "yaml" || strings.HasPrefix(block.Text, inventory) {
				continue
			}
			first, _, _ := strings.Cut(block.Text, "\n")
			if at := page.Path + ": " + first; elsewhere[at] != "" {
				told[at] = true
				continue
			}
			contents, err := decode(block.Text)
			if err != nil {
				t.Errorf("%s: %v", block.Where, err)
			}
			isPart := parts[page.Path] != "" && strings.HasPrefix(block.Text, parts[page.Path])
			for _, content := range contents {
				what, err := check(t, schemas, content, isPart)
				if err != nil {
					t.Errorf("%s, %s: %v", block.Where, what, err)
				}
				looked[what]++
			}
		}
	}
	for at, why := range elsewhere {
		if !told[at] {
			t.Errorf("%s: there is no such block that %s", at, why)
		}
	}
	for what, atLeast := range map[string]int{"FleetWorkload": 4, "part of a FleetWorkload": 5, "part of a configuration": 4,
		"OperatorConfiguration": 1, "ClusterRole": 2, "rules of a Role": 3, "values of the chart": 2, "report": 1, "Kustomization": 2, "HelmRelease": 1, "Application": 1, "ApplicationSet": 1} {
		if looked[what] < atLeast {
			t.Errorf("looked at %d of %s", looked[what], what)
		}
	}
	t.Log(looked)
}

// check holds one document against what would read it, and says what it is.
func check(t *testing.T, schemas crdcheck.Schemas, content object, isPart bool) (string, error) {
	t.Helper()
	kind, _ := content["kind"].(string)
	apiVersion, _ := content["apiVersion"].(string)
	spec, hasSpec := content["spec"].(object)
	switch {
	case kind == "FleetWorkload" && !isPart:
		return kind, admit(t, schemas, content)
	case kind == "FleetWorkload":
		return "part of a FleetWorkload", admit(t, schemas, merged(must(t, small), content))
	case kind == config.Kind:
		return kind, configured(t, content)
	case apiVersion != "":
		return kind, known(t, schemas, content)
	case hasSpec:
		return "part of a FleetWorkload", admit(t, schemas, merged(must(t, small), object{"spec": spec}))
	case only(content, v1alpha1.FleetWorkloadSpec{}):
		return "part of a FleetWorkload", admit(t, schemas, merged(must(t, small), object{"spec": content}))
	case only(content, config.Configuration{}):
		return "part of a configuration", configured(t, merged(must(t, smallConfiguration), content))
	case content["evidence"] != nil:
		return "report", reported(t, content)
	case content["rules"] != nil && only(content, rbacv1.ClusterRole{}):
		return "rules of a Role", known(t, schemas, merged(must(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}"), content))
	default:
		return "values of the chart", valued(t, content)
	}
}

// reported reads what a page shows of a report. It leaves out some of the numbers.
func reported(t *testing.T, content object) error {
	t.Helper()
	delete(content["summary"].(object), "...")
	raw, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return yaml.UnmarshalStrict(raw, &bulk.Report{})
}

// valued holds values against those of the chart, which has each that it reads, and the backends among them against the configuration.
func valued(t *testing.T, content object) error {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "charts/fleetworkload/values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if stray := strayIn("", content, must(t, string(raw))); stray != "" {
		return fmt.Errorf("the chart has no value %s", stray)
	}
	return configured(t, merged(must(t, smallConfiguration), object{"backends": content["backends"]}))
}

// strayIn is a key that the chart does not have; empty when there is none. What is empty there may have any.
func strayIn(path string, content, chart object) string {
	for key, value := range content {
		has, is := chart[key]
		if !is {
			return path + key
		}
		inner, isObject := value.(object)
		if known, wasObject := has.(object); isObject && wasObject && len(known) > 0 {
			if stray := strayIn(path+key+".", inner, known); stray != "" {
				return stray
			}
		}
	}
	return ""
}

func admit(t *testing.T, schemas crdcheck.Schemas, content object) error {
	t.Helper()
	obj := &unstructured.Unstructured{Object: content}
	if obj.GetNamespace() == "" {
		obj.SetNamespace("default") // as kubectl does
	}
	_, err := schemas.Admit(t.Context(), obj)
	return err
}

func configured(t *testing.T, content object) error {
	t.Helper()
	if backends, are := content["backends"].([]any); are {
		for _, backend := range backends { // a part may leave out how a backend is reached
			if _, has := backend.(object)["connection"]; !has {
				backend.(object)["connection"] = object{"inCluster": object{}}
			}
		}
	}
	raw, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	_, err = config.Parse(raw)
	return err
}

// others are the kinds of other projects that pages show.
func others(t *testing.T) crdcheck.Schemas {
	t.Helper()
	all := crdcheck.Load(t, "github.com/karmada-io/karmada", "charts/karmada/_crds/bases/*/*.yaml")
	maps.Copy(all, crdcheck.Load(t, "open-cluster-management.io/api", "*/v1*/*.crd.yaml"))
	for _, of := range []struct{ module, sum, files string }{
		{"github.com/argoproj/argo-cd/v3@v3.4.4", "h1:PmYfvrLRecuOXjoUjBVx0nRwtJv/Wc9a3jaWs37EyyI=", "manifests/crds/*-crd.yaml"},
		{"github.com/fluxcd/kustomize-controller@v1.9.0", "h1:WfM+bQUGUGW2qyrrTgh2bIVSZSPmc3JC7234K8NiTWQ=", "config/crd/bases/*.yaml"},
		{"github.com/fluxcd/helm-controller@v1.6.3", "h1:MSiDP/s8xRSkO3g11vBiDStxfmJ5ZVdwDEpW7BSE/UA=", "config/crd/bases/*.yaml"},
		{"github.com/kedacore/keda/v2@v2.19.0", "h1:IP3iMTwr9HkaAwPtLnhngPv74LghMf7ubLrsGLQo52M=", "config/crd/bases/keda.sh_*.yaml"},
	} {
		maps.Copy(all, crdcheck.LoadDownloaded(t, of.module, of.sum, of.files))
	}
	return all
}

// known holds an object against the schema of its kind, or decodes it strictly when it is one of Kubernetes' own.
func known(t *testing.T, schemas crdcheck.Schemas, content object) error {
	t.Helper()
	obj := &unstructured.Unstructured{Object: content}
	if schemas[obj.GroupVersionKind()] != nil {
		return admit(t, schemas, content)
	}
	raw, err := yaml.Marshal(content)
	if err != nil {
		return err
	}
	_, _, err = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer().Decode(raw, nil, nil)
	return err
}

// decode reads the documents of a block, with numbers as they are.
func decode(text string) ([]object, error) {
	var contents []object
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
	defer documents.Close()
	for {
		raw := make([]byte, len(text))
		n, err := documents.Read(raw)
		if errors.Is(err, io.EOF) {
			return contents, nil
		}
		if err != nil {
			return nil, err
		}
		asJSON, err := yaml.YAMLToJSONStrict(bytes.TrimSpace(raw[:n]))
		if err != nil {
			return nil, err
		}
		if asJSON[0] == '[' { // the only lists that pages show without their key
			asJSON = fmt.Appendf(nil, `{"rules":%s}`, asJSON)
		}
		content := object{}
		if err := utiljson.Unmarshal(asJSON, &content); err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, raw[:n])
		}
		contents = append(contents, content)
	}
}

func must(t *testing.T, text string) object {
	t.Helper()
	contents, err := decode(text)
	if err != nil || len(contents) != 1 {
		t.Fatal(err, len(contents))
	}
	return contents[0]
}

// merged puts a part into a whole.
func merged(whole, part object) object {
	result := maps.Clone(whole)
	for key, value := range part {
		inner, isObject := value.(object)
		present, wasObject := result[key].(object)
		if isObject && wasObject {
			result[key] = merged(present, inner)
		} else {
			result[key] = value
		}
	}
	return result
}

// only tells whether all that the content says are fields of a type.
func only(content object, of any) bool {
	fields := map[string]bool{}
	for i := range reflect.TypeOf(of).NumField() {
		name, _, _ := strings.Cut(reflect.TypeOf(of).Field(i).Tag.Get("json"), ",")
		fields[name] = true
	}
	for key := range content {
		if !fields[key] {
			return false
		}
	}
	return true
}
