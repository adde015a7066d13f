// SPDX-License-Identifier: Apache-2.0

//go:build api

package v1alpha1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

const testNamespace = "api-tests"

// The API server that the tests of this package share; TestMain sets both.
var (
	config *rest.Config
	api    client.Client
)

func TestMain(m *testing.M) {
	code, err := runOnAPIServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runOnAPIServer(m *testing.M) (code int, err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fleetworkload-api-")
	if err != nil {
		return 0, fmt.Errorf("make a folder for the API server: %w", err)
	}
	server, err := lab.StartAPIServer(ctx, filepath.Join(dir, "lab"), os.Stderr)
	if err != nil {
		return 0, fmt.Errorf("start the API server: %w", err)
	}
	defer func() {
		if stopErr := server.Stop(); stopErr != nil && err == nil {
			err = fmt.Errorf("stop the API server: %w", stopErr)
		}
		_ = os.RemoveAll(dir)
	}()
	if config, err = server.RESTConfig(); err != nil {
		return 0, fmt.Errorf("read the API server's kubeconfig: %w", err)
	}
	if err := prepare(ctx); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// prepare installs the CRD and makes the namespace of the tests.
func prepare(ctx context.Context) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("register types: %w", err)
		}
	}
	lenient, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	api = client.WithFieldValidation(lenient, metav1.FieldValidationStrict)

	raw, err := os.ReadFile(crdPath)
	if err != nil {
		return fmt.Errorf("read the CRD: %w", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, crd); err != nil {
		return fmt.Errorf("parse the CRD: %w", err)
	}
	if err := api.Create(ctx, crd); err != nil {
		return fmt.Errorf("install the CRD: %w", err)
	}
	if err := api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testNamespace}}); err != nil {
		return fmt.Errorf("create the namespace: %w", err)
	}
	return waitForCRD(ctx, crd)
}

// waitForCRD returns once objects of the CRD can be listed; Established alone comes a moment too early.
func waitForCRD(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = api.List(ctx, &v1alpha1.FleetWorkloadList{})
		return last == nil, nil
	})
	if err == nil {
		return nil
	}
	if getErr := api.Get(ctx, client.ObjectKeyFromObject(crd), crd); getErr == nil {
		return fmt.Errorf("the CRD is not served: %w; conditions: %+v", last, crd.Status.Conditions)
	}
	return fmt.Errorf("the CRD is not served: %w", last)
}

func TestCRDIsSound(t *testing.T) {
	crd := readCRD(t)
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Fatal(err)
	}
	for _, c := range crd.Status.Conditions {
		bad := c.Type == apiextensionsv1.NonStructuralSchema
		if (c.Status == apiextensionsv1.ConditionTrue) == bad {
			t.Errorf("condition %s is %s: %s", c.Type, c.Status, c.Message)
		}
	}
}

func TestValidation(t *testing.T) {
	for _, c := range append(celCases(), schemaCases()...) {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			fw := minimal()
			c.mutate(fw)
			fw.Namespace = testNamespace
			c.judge(t, api.Create(t.Context(), fw, client.DryRunAll))
		})
	}
}

// TestValidationOfEdits: what the operator carries stays what it is; before it does, a mistake can be corrected.
func TestValidationOfEdits(t *testing.T) {
	fw := created(t, "carried")
	edit := func(c validationCase) error {
		edited := fw.DeepCopy()
		c.mutate(edited)
		return api.Update(t.Context(), edited, client.DryRunAll)
	}
	for _, c := range carriedCases() {
		if err := edit(c); err != nil {
			t.Errorf("%s, of what is not carried yet: %v", c.name, err)
		}
	}
	fw.Status.Workload = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "carried"}
	if err := api.Status().Update(t.Context(), fw); err != nil {
		t.Fatal(err)
	}
	for _, c := range carriedCases() {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) { c.judge(t, edit(c)) })
	}
}

// judge compares what the API server says with what it should say.
func (c validationCase) judge(t *testing.T, err error) {
	t.Helper()
	switch {
	case c.rejected == "" && err != nil:
		t.Errorf("was rejected: %v", err)
	case c.rejected != "" && !apierrors.IsInvalid(err):
		t.Errorf("want it rejected as invalid, got %v", err)
	case c.rejected != "" && !strings.Contains(err.Error(), c.rejected):
		t.Errorf("the error does not say %q: %v", c.rejected, err)
	}
}

// TestTemplatesAreKept: of what people write in manifests, or paste from a cluster, nothing is lost but what is empty.
func TestTemplatesAreKept(t *testing.T) {
	for text, want := range map[string]string{
		"metadata: {name: x, namespace: api-tests, labels: {a: b}, annotations: {c: d}}, spec: {a: [1, null]}, status: {replicas: 3}":        "",
		"metadata: {uid: u, resourceVersion: '7', generation: 3, selfLink: /x, generateName: x-, creationTimestamp: '2026-01-01T00:00:00Z'}": "",
		"metadata: {finalizers: [a.b/c], ownerReferences: [{apiVersion: v1, kind: A, name: b, uid: c}], " +
			"managedFields: [{manager: m, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {}}]}": "",
		"spec: {template: {metadata: {creationTimestamp: null, strange: x}}}, data: {a: b}": "",
		"metadata: {creationTimestamp: null, name: x}":                                      "metadata: {name: x}",
	} {
		if want == "" {
			want = text
		}
		parse := func(text string) map[string]any {
			return fromYAML(t, []byte("{apiVersion: apps/v1, kind: Deployment, "+text+"}"))
		}
		obj := sampleWith(t, "{companions: []}")
		spec := obj.Object["spec"].(map[string]any)
		spec["template"] = parse(text)
		spec["companions"] = []any{parse(text)}
		if err := api.Create(t.Context(), obj, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		raw, err := obj.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		kept := fromYAML(t, raw)["spec"].(map[string]any)
		for _, got := range []any{kept["template"], kept["companions"].([]any)[0]} {
			if diff := cmp.Diff(any(parse(want)), got); diff != "" {
				t.Errorf("%s was not kept (-want +got):\n%s", text, diff)
			}
		}
	}
}

// TestDurations: what cannot be decoded would keep the operator from listing any FleetWorkload, and so must not be admitted.
func TestDurations(t *testing.T) {
	for text, accepted := range map[string]bool{
		"90s": true, "10m": true, "1h30m": true, "1h0m1.5s": true, "999999h": true, "0s": true,
		"": false, "1d": false, "10": false, "-1s": false, "1h1h": false, "9999999h": false, "1e3s": false, " 1s": false, "1s\n": false, "inf": false,
	} {
		obj := &unstructured.Unstructured{Object: fromYAML(t, readSamples(t)["apps_v1alpha1_fleetworkload.yaml"])}
		obj.SetNamespace(testNamespace)
		if err := unstructured.SetNestedField(obj.Object, text, "spec", "migration", "timeout"); err != nil {
			t.Fatal(err)
		}
		err := api.Create(t.Context(), obj, client.DryRunAll)
		if accepted != (err == nil) || err != nil && !strings.Contains(err.Error(), ruleDuration) {
			t.Errorf("%q: %v", text, err)
		}
		if _, decodes := time.ParseDuration(text); err == nil && decodes != nil {
			t.Errorf("%q was admitted: %v", text, decodes)
		}
	}
}

// TestApplyReachesOneEntry: whoever applies one override or wave by its name leaves the others, and their order, as they are.
func TestApplyReachesOneEntry(t *testing.T) {
	apply := func(manager, spec string) *v1alpha1.FleetWorkload {
		t.Helper()
		obj := &unstructured.Unstructured{Object: fromYAML(t, []byte("{apiVersion: apps.fleetworkload.io/v1alpha1, kind: FleetWorkload, "+
			"metadata: {name: merged, namespace: "+testNamespace+"}, spec: "+spec+"}"))}
		if err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(manager)); err != nil {
			t.Fatal(err)
		}
		fw := &v1alpha1.FleetWorkload{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(obj), fw); err != nil {
			t.Fatal(err)
		}
		return fw
	}
	fw := apply("one", `{backend: karmada, template: {apiVersion: apps/v1, kind: Deployment}, placement: {clusters: {}},
		overrides: [{name: b, labels: {set: {of: one}}}, {name: a, labels: {set: {of: one}}}],
		migration: {waves: [{name: second, clusters: {}}, {name: first, clusters: {}}]}}`)
	t.Cleanup(func() {
		if err := api.Delete(context.Background(), fw); err != nil {
			t.Error(err)
		}
	})
	fw = apply("two", `{overrides: [{name: a, annotations: {set: {of: two}}}, {name: c, labels: {set: {of: two}}}],
		migration: {waves: [{name: second, soak: 1m}]}}`)
	var names []string
	for _, o := range fw.Spec.Overrides {
		names = append(names, o.Name)
	}
	if diff := cmp.Diff([]string{"b", "a", "c"}, names); diff != "" {
		t.Fatalf("overrides (-want +got):\n%s", diff)
	}
	if a := fw.Spec.Overrides[1]; a.Labels.Set["of"] != "one" || a.Annotations.Set["of"] != "two" {
		t.Errorf("the override of both has not what both say: %+v", a)
	}
	if waves := fw.Spec.Migration.Waves; len(waves) != 2 || waves[0].Name != "second" || waves[0].Soak == nil || waves[1].Name != "first" {
		t.Errorf("the waves: %+v", waves)
	}
}

// TestNumbersThatDoNotFit: the Go types cannot say these, and could not decode them.
func TestNumbersThatDoNotFit(t *testing.T) {
	for _, n := range []int64{1 << 31, -1 << 32, 1 << 40} {
		for rule, spec := range map[string]string{
			rulePartition: "{overrides: [{name: a, partition: %d}]}",
			ruleSize:      "{migration: {waves: [{name: a, size: %d}]}}",
		} {
			obj := sampleWith(t, fmt.Sprintf(spec, n))
			if err := api.Create(t.Context(), obj, client.DryRunAll); err == nil || !strings.Contains(err.Error(), rule) {
				t.Errorf("%s: %v", fmt.Sprintf(spec, n), err)
			}
		}
	}
}

// TestQuantities: numbers and strings are taken as containers have them, and what is admitted can be decoded.
func TestQuantities(t *testing.T) {
	for text, accepted := range map[string]bool{
		"1": true, "0": true, `"1"`: true, "500m": true, "1Gi": true, "1.5": false, `"1.5"`: true, "8589934592": true, "1e3": true, `"1e3"`: true, `"1E"`: true,
		"999999999999999999": true, `"1e99"`: true, "0.000000001": false, `"0.000000001"`: true, "100000000000000000000": false, "-1": true,
		`""`: false, "much": false, `"-1"`: false, "1GI": false, `"1e1.5"`: false, `"1e100"`: false, `"1e99999999999"`: false, `"1 "`: false, `"1\n"`: false,
		"true": false, "[1]": false, `"` + strings.Repeat("1", 33) + `"`: false,
	} {
		obj := sampleWith(t, "{overrides: [{name: a, resources: [{container: nginx, requests: {cpu: "+text+"}}]}]}")
		err := api.Create(t.Context(), obj, client.DryRunAll)
		if accepted != (err == nil) {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil {
			continue
		}
		raw, err := obj.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(raw, &v1alpha1.FleetWorkload{})
		}
		if err != nil {
			t.Errorf("%s was admitted: %v", text, err)
		}
	}
}

// sampleWith is a sample with more in its spec.
func sampleWith(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{Object: fromYAML(t, readSamples(t)["apps_v1alpha1_fleetworkload.yaml"])}
	obj.SetNamespace(testNamespace)
	maps.Copy(obj.Object["spec"].(map[string]any), fromYAML(t, []byte(spec)))
	return obj
}

func TestUnknownFieldIsRejected(t *testing.T) {
	obj := &unstructured.Unstructured{Object: fromYAML(t, readSamples(t)["apps_v1alpha1_fleetworkload.yaml"])}
	obj.SetNamespace(testNamespace)
	if err := unstructured.SetNestedField(obj.Object, "x", "spec", "placement", "cluster"); err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), obj, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "unknown field") {
		t.Errorf("want the unknown field refused, got %v", err)
	}
}

func TestSamplesAreAccepted(t *testing.T) {
	for name, raw := range readSamples(t) {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: fromYAML(t, raw)}
			obj.SetNamespace(testNamespace)
			template, _, _ := unstructured.NestedMap(obj.Object, "spec", "template")
			if err := api.Create(t.Context(), obj, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			kept, _, _ := unstructured.NestedMap(obj.Object, "spec", "template")
			if diff := cmp.Diff(template, kept); diff != "" {
				t.Errorf("the template lost fields on the way (-sent +kept):\n%s", diff)
			}
		})
	}
}

// created makes a FleetWorkload that is removed when the test ends.
func created(t *testing.T, name string) *v1alpha1.FleetWorkload {
	t.Helper()
	fw := minimal()
	fw.Name, fw.Namespace = name, testNamespace
	fw.Spec.Replicas = ptr[int32](3)
	if err := api.Create(t.Context(), fw); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Delete(context.Background(), fw); err != nil {
			t.Error(err)
		}
	})
	return fw
}

func TestScale(t *testing.T) {
	fw := created(t, "scale")
	fw.Status.Scale = &v1alpha1.ScaleStatus{Replicas: ptr[int32](2), Selector: "app=web"}
	if err := api.Status().Update(t.Context(), fw); err != nil {
		t.Fatal(err)
	}

	scale := &autoscalingv1.Scale{}
	if err := api.SubResource("scale").Get(t.Context(), fw, scale); err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 2 || scale.Status.Selector != "app=web" {
		t.Errorf("want 3 wanted, 2 there, selector app=web; got %+v %+v", scale.Spec, scale.Status)
	}

	scale.Spec.Replicas = 7
	if err := api.SubResource("scale").Update(t.Context(), fw, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(fw), fw); err != nil {
		t.Fatal(err)
	}
	if fw.Spec.Replicas == nil || *fw.Spec.Replicas != 7 {
		t.Errorf("want spec.replicas 7, got %v", fw.Spec.Replicas)
	}
	if fw.Generation != 2 {
		t.Errorf("want generation 2 after one scale, got %d", fw.Generation)
	}
}

// docs/autoscaling.md: an autoscaler needs spec.replicas.
func TestScaleNeedsReplicas(t *testing.T) {
	fw := created(t, "unscaled")
	fw.Spec.Replicas = nil
	if err := api.Update(t.Context(), fw); err != nil {
		t.Fatal(err)
	}
	const want = `the spec replicas field ".spec.replicas" does not exist`
	if err := api.SubResource("scale").Get(t.Context(), fw, &autoscalingv1.Scale{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want %q, got %v", want, err)
	}

	// Zero is a number, and so is what follows it.
	fw.Spec.Replicas = ptr[int32](2)
	if err := api.Update(t.Context(), fw); err != nil {
		t.Fatal(err)
	}
	for _, replicas := range []int32{0, 1} {
		scale := &autoscalingv1.Scale{}
		if err := api.SubResource("scale").Get(t.Context(), fw, scale); err != nil {
			t.Fatal(err)
		}
		scale.Spec.Replicas = replicas
		if err := api.SubResource("scale").Update(t.Context(), fw, client.WithSubResourceBody(scale)); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(fw), fw); err != nil {
			t.Fatal(err)
		}
		if fw.Spec.Replicas == nil || *fw.Spec.Replicas != replicas {
			t.Errorf("want spec.replicas %d, got %v", replicas, fw.Spec.Replicas)
		}
	}
}

func TestColumns(t *testing.T) {
	fw := created(t, "columns")
	fw.Status.Backend, fw.Status.Ready, fw.Status.ClustersReady = "karmada", "10/12", "2/3"
	fw.Status.UpdatedReplicas, fw.Status.Revision = ptr[int32](11), "6f9c1d"
	fw.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonProgressing,
		Message: "on the way", LastTransitionTime: metav1.Now(),
	}}
	if err := api.Status().Update(t.Context(), fw); err != nil {
		t.Fatal(err)
	}

	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	restConfig := rest.CopyConfig(config)
	restConfig.GroupVersion = &v1alpha1.GroupVersion
	restConfig.APIPath = "/apis"
	restConfig.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	restClient, err := rest.RESTClientForConfigAndClient(restConfig, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := restClient.Get().Namespace(testNamespace).Resource("fleetworkloads").Name(fw.Name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(raw, table); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range table.ColumnDefinitions {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff(append([]string{"Name"}, wantColumns...), names); diff != "" {
		t.Fatalf("columns (-want +got):\n%s", diff)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("want one row, got %d", len(table.Rows))
	}
	want := []any{"columns", "karmada", "10/12", float64(11), "2/3", v1alpha1.ReasonProgressing}
	cells := table.Rows[0].Cells
	if diff := cmp.Diff(want, cells[:len(want)]); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"Deployment", "6f9c1d", "on the way"}, cells[len(want)+1:]); diff != "" {
		t.Errorf("wide cells (-want +got):\n%s", diff)
	}
}

// TestFieldSelectors: what a backend has, and what moves to one, can be listed.
func TestFieldSelectors(t *testing.T) {
	moving := created(t, "moving")
	moving.Status.Backend = "ocm"
	if err := api.Status().Update(t.Context(), moving); err != nil {
		t.Fatal(err)
	}
	created(t, "resting")
	for selector, want := range map[string][]string{
		"spec.backend=karmada": {"moving", "resting"}, "spec.backend=ocm": nil, "status.backend=ocm": {"moving"},
		"spec.backend=karmada,status.backend!=ocm": {"resting"},
	} {
		list := &v1alpha1.FleetWorkloadList{}
		if err := api.List(t.Context(), list, client.InNamespace(testNamespace),
			&client.ListOptions{Raw: &metav1.ListOptions{FieldSelector: selector}}); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, fw := range list.Items {
			names = append(names, fw.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", selector, diff)
		}
	}
}

// TestStatusIsASubresource guards the meaning of metadata.generation: it counts changes of the spec alone.
func TestStatusIsASubresource(t *testing.T) {
	fw := created(t, "status")
	fw.Status.Backend = "karmada"
	if err := api.Status().Update(t.Context(), fw); err != nil {
		t.Fatal(err)
	}
	if fw.Generation != 1 {
		t.Errorf("want generation 1 after a change of status, got %d", fw.Generation)
	}
	fw.Status.Backend = "ocm"
	if err := api.Update(t.Context(), fw); err != nil {
		t.Fatal(err)
	}
	if fw.Status.Backend != "karmada" || fw.Generation != 1 {
		t.Errorf("an update of the object changed status.backend to %q, generation to %d", fw.Status.Backend, fw.Generation)
	}
}
