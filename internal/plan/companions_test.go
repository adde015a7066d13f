package plan

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func carrying(manifests ...string) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		for _, m := range manifests {
			fw.Spec.Companions = append(fw.Spec.Companions, runtime.RawExtension{Raw: []byte(m)})
		}
	}
}

func TestCompanionsAreMarkedAndSorted(t *testing.T) {
	p, err := New(workload(deployment, carrying(
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","uid":"x","labels":{"a":"b"},"annotations":{"c":"d"}},"spec":{"ports":[{"port":80}]},"status":{}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"k":"v"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}`,
	)), kinds)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range p.Companions {
		if c.Shared || c.Object.GetNamespace() != "shop" || c.Object.GetLabels()[v1alpha1.LabelUID] != "u1" ||
			c.Object.GetAnnotations()[v1alpha1.AnnotationOwner] != "shop/web" || c.Object.GetAnnotations()[v1alpha1.AnnotationRevision] == "" || c.Object.Object["status"] != nil || c.Object.GetUID() != "" {
			t.Errorf("got %v", c.Object.Object)
		}
		got = append(got, c.Resource+"/"+c.Object.GetName())
	}
	if service := p.Companions[2].Object; service.GetLabels()["a"] != "b" || service.GetAnnotations()["c"] != "d" {
		t.Errorf("an author's own are lost: %v", service.Object["metadata"])
	}
	if diff := cmp.Diff([]string{"configmaps/a", "configmaps/b", "services/web"}, got); diff != "" {
		t.Error(diff)
	}
	if p.Desired(nil).Companions == nil {
		t.Error("they are not handed over")
	}
	if policy := p.Desired(nil).ConflictPolicy; policy != v1alpha1.ConflictPolicyFail {
		t.Errorf("what is there already is dealt with by %q", policy)
	}
	if p.fw.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt; p.Desired(nil).ConflictPolicy != v1alpha1.ConflictPolicyAdopt {
		t.Error("what is there already is not adopted")
	}
}

func TestCompanionsThatAreRefused(t *testing.T) {
	tests := map[string]struct {
		companions []string
		code       backends.Code
		message    string
	}{
		"no version":              {[]string{`{"kind":"Service","metadata":{"name":"a"}}`}, backends.CodeInvalidTemplate, "spec.companions[0].apiVersion: required"},
		"no object":               {[]string{`7`}, backends.CodeInvalidTemplate, "spec.companions[0]: it is not an object"},
		"no kind":                 {[]string{`{"apiVersion":"v1"}`}, backends.CodeInvalidTemplate, "spec.companions[0].kind: required"},
		"no name":                 {[]string{`{"apiVersion":"v1","kind":"Service"}`}, backends.CodeInvalidTemplate, "spec.companions[0].metadata.name"},
		"elsewhere":               {[]string{`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"other"}}`}, backends.CodeInvalidTemplate, `spec.companions[0].metadata.namespace "other"`},
		"what grants":             {[]string{`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"a"}}`}, backends.CodeUnsupported, "grants rights"},
		"an unknown kind":         {[]string{`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"}}`}, backends.CodeUnsupported, `"example.com/v1 Gadget": companions may not be of this kind; use one of ConfigMap`},
		"a workload":              {[]string{`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a"}}`}, backends.CodeUnsupported, "companions may not be of this kind"},
		"a token":                 {[]string{`{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","metadata":{"name":"a"}}`}, backends.CodeUnsupported, "spec.companions[0].type"},
		"a cluster's own CA":      {[]string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kube-root-ca.crt"}}`}, backends.CodeUnsupported, `spec.companions[0].metadata.name "kube-root-ca.crt": every cluster makes this ConfigMap for itself`},
		"a cluster's own account": {[]string{`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}`}, backends.CodeUnsupported, "every cluster makes this ServiceAccount for itself"},
		"twice": {[]string{
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"}}`, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"}}`,
		}, backends.CodeInvalidTemplate, `spec.companions[1] "Service a": it is spec.companions[0] too`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(workload(deployment, carrying(test.companions...)), kinds)
			if backends.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.message) {
				t.Errorf("got %s %v", backends.CodeOf(err), err)
			}
		})
	}
	gadget := carrying(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"}}`)
	allowing := kinds.Allowing(schema.GroupKind{Group: "example.com", Kind: "*"}, schema.GroupKind{Group: rightsGroup, Kind: "Role"})
	if _, err := New(workload(deployment, gadget), allowing); err != nil {
		t.Error(err)
	}
	role := carrying(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a"}}`)
	if _, err := New(workload(deployment, role), allowing); backends.CodeOf(err) != backends.CodeUnsupported {
		t.Errorf("a Role travels along when it is allowed: %v", err)
	}
}

const referring = `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"web"}},` +
	`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"serviceAccountName":"runner","imagePullSecrets":[{"name":"pull"}],` +
	`"volumes":[{"name":"a","configMap":{"name":"own"}},{"name":"b","persistentVolumeClaim":{"claimName":"data"}},` +
	`{"name":"c","configMap":{"name":"kube-root-ca.crt"}}],"containers":[{"name":"web","image":"nginx:1","envFrom":[` +
	`{"configMapRef":{"name":"settings"}},{"secretRef":{"name":"maybe","optional":true}}]}]}}}}`

func TestNeeds(t *testing.T) {
	patch := func(path, value string, names ...string) v1alpha1.Override {
		return v1alpha1.Override{
			Clusters: &v1alpha1.ClusterSelector{Names: names},
			Patches:  []v1alpha1.PatchOperation{{Op: v1alpha1.PatchOpReplace, Path: path, Value: &apiextensionsv1.JSON{Raw: []byte(value)}}},
		}
	}
	own := carrying(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"own"}}`)
	tests := map[string]struct {
		change func(*v1alpha1.FleetWorkload)
		want   []string
	}{
		"all of them": {nil, []string{
			"ConfigMap own", "ConfigMap settings", "PersistentVolumeClaim data", "Secret maybe (optional)", "Secret pull", "ServiceAccount runner",
		}},
		"but for companions": {own, []string{
			"ConfigMap settings", "PersistentVolumeClaim data", "Secret maybe (optional)", "Secret pull", "ServiceAccount runner",
		}},
		"of an override's variables": {func(fw *v1alpha1.FleetWorkload) {
			own(fw)
			fw.Spec.Overrides = []v1alpha1.Override{{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m2"}}, Env: []v1alpha1.EnvOverride{{
				Container: "web", Set: []v1alpha1.EnvVar{
					{Name: "A", ValueFrom: &v1alpha1.EnvVarSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "key", Key: "a"}}},
					{Name: "B", ValueFrom: &v1alpha1.EnvVarSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "more", Key: "b", Optional: ptr(true)}}},
					{Name: "C", ValueFrom: &v1alpha1.EnvVarSource{FieldRef: &v1alpha1.FieldReference{FieldPath: "metadata.name"}}},
				},
			}}}}
		}, []string{
			"ConfigMap more (optional) on m2", "ConfigMap settings", "PersistentVolumeClaim data", "Secret key on m2", "Secret maybe (optional)",
			"Secret pull", "ServiceAccount runner",
		}},
		"others on one cluster": {func(fw *v1alpha1.FleetWorkload) {
			own(fw)
			fw.Spec.Overrides = []v1alpha1.Override{patch("/spec/template/spec/containers/0/envFrom/0/configMapRef/name", `"other"`, "m2")}
		}, []string{
			"ConfigMap other on m2", "ConfigMap settings on m1,m3", "PersistentVolumeClaim data", "Secret maybe (optional)", "Secret pull",
			"ServiceAccount runner",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := New(workload(referring, test.change), kinds)
			if err != nil {
				t.Fatal(err)
			}
			targets, err := p.Targets(fleet, []string{"m1", "m2", "m3"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			needs, err := p.Needs(targets)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range needs {
				text := n.String()
				if n.Optional {
					text += " (optional)"
				}
				if n.Clusters != nil {
					text += " on " + strings.Join(n.Clusters, ",")
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNeedsBeforeAClusterIsChosen: what the template refers to is known already, whatever overrides that refer to nothing change.
func TestNeedsBeforeAClusterIsChosen(t *testing.T) {
	p, err := New(workload(referring, func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Overrides = []v1alpha1.Override{{Labels: &v1alpha1.MetadataOverride{Set: map[string]string{"a": "b"}}}}
	}), kinds)
	if err != nil {
		t.Fatal(err)
	}
	if needs, err := p.Needs(nil); err != nil || len(needs) != 6 {
		t.Errorf("%v, %v", needs, err)
	}
}

func TestWhatIsSentIsBare(t *testing.T) {
	tests := map[string]struct{ source, want, note string }{
		"a Secret": {
			`{"apiVersion":"v1","kind":"Secret","type":"Opaque","data":{"a":"Yg=="},"metadata":{"name":"x","namespace":"shop","uid":"u",` +
				`"resourceVersion":"7","managedFields":[],"ownerReferences":[{"name":"o"}],"finalizers":["f"],"labels":{"team":"shop"},` +
				`"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"Yg==","keep":"me"}}}`,
			`{"apiVersion":"v1","kind":"Secret","type":"Opaque","data":{"a":"Yg=="},"metadata":{"name":"x","namespace":"shop",` +
				`"annotations":{"keep":"me"},"labels":{"team":"shop","fleetworkload.io/managed-by":"fleetworkload","fleetworkload.io/uid":"shared"}}}`, "",
		},
		"a token": {
			`{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","data":{"token":"Yg=="},"metadata":{"name":"x"}}`, "", "is not sent",
		},
		"a ServiceAccount": {
			`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"x"},"secrets":[{"name":"x-token"}],"imagePullSecrets":[{"name":"p"}]}`,
			`{"apiVersion":"v1","kind":"ServiceAccount","imagePullSecrets":[{"name":"p"}],"metadata":{"name":"x",` +
				`"labels":{"fleetworkload.io/managed-by":"fleetworkload","fleetworkload.io/uid":"shared"}}}`, "",
		},
		"a Service, claimed by Karmada": {
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"x","labels":{"karmada.io/managed":"true"}},` +
				`"spec":{"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],"healthCheckNodePort":31000,"type":"LoadBalancer"},"status":{"loadBalancer":{}}}`,
			`{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"},"metadata":{"name":"x",` +
				`"labels":{"fleetworkload.io/managed-by":"fleetworkload","fleetworkload.io/uid":"shared"}}}`, "",
		},
		"a Service without an address": {
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"clusterIP":"None","clusterIPs":["None"]}}`,
			`{"apiVersion":"v1","kind":"Service","spec":{"clusterIP":"None","clusterIPs":["None"]},"metadata":{"name":"x",` +
				`"labels":{"fleetworkload.io/managed-by":"fleetworkload","fleetworkload.io/uid":"shared"}}}`, "",
		},
		"a claim": {
			`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"x","annotations":{"pv.kubernetes.io/bind-completed":"yes",` +
				`"volume.kubernetes.io/selected-node":"n"}},"spec":{"volumeName":"pv-1","accessModes":["ReadWriteOnce"]},"status":{"phase":"Bound"}}`,
			`{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{"accessModes":["ReadWriteOnce"]},"metadata":{"name":"x",` +
				`"labels":{"fleetworkload.io/managed-by":"fleetworkload","fleetworkload.io/uid":"shared"}}}`, "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			source := &unstructured.Unstructured{}
			if err := source.UnmarshalJSON([]byte(test.source)); err != nil {
				t.Fatal(err)
			}
			n := Need{GroupVersionKind: source.GroupVersionKind(), Name: "x"}
			c, note := n.Companion(source)
			if !strings.Contains(note, test.note) {
				t.Fatalf("got %q", note)
			}
			if c == nil {
				if test.want != "" {
					t.Error("it is not sent")
				}
				return
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if revision := takeRevision(c.Object); revision == "" {
				t.Error("it has no revision")
			}
			resources := map[string]string{
				"Secret": "secrets", "ServiceAccount": "serviceaccounts", "Service": "services", "PersistentVolumeClaim": "persistentvolumeclaims",
			}
			if diff := cmp.Diff(want, c.Object.Object); diff != "" || !c.Shared || c.Resource != resources[n.Kind] {
				t.Error(diff, c.Shared, c.Resource)
			}
		})
	}
}

func takeRevision(obj *unstructured.Unstructured) string {
	annotations := obj.GetAnnotations()
	revision := annotations[v1alpha1.AnnotationRevision]
	delete(annotations, v1alpha1.AnnotationRevision)
	if len(annotations) == 0 {
		annotations = nil // then the field goes
	}
	obj.SetAnnotations(annotations)
	return revision
}

// TestCompanionRevision: what is taken out makes another revision, whatever it is; a Secret's values make none.
func TestCompanionRevision(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		same          bool
	}{
		"a key less":          {`{"kind":"ConfigMap","data":{"a":"1","b":"2"}}`, `{"kind":"ConfigMap","data":{"a":"1"}}`, false},
		"another value":       {`{"kind":"ConfigMap","data":{"a":"1"}}`, `{"kind":"ConfigMap","data":{"a":"2"}}`, false},
		"a label less":        {`{"kind":"Secret","metadata":{"labels":{"a":"b"}}}`, `{"kind":"Secret","metadata":{}}`, false},
		"a Secret's key less": {`{"kind":"Secret","data":{"a":"MQ==","b":"MQ=="}}`, `{"kind":"Secret","data":{"a":"MQ=="}}`, false},
		"a Secret's value":    {`{"kind":"Secret","data":{"a":"MQ=="}}`, `{"kind":"Secret","data":{"a":"Mg=="}}`, true},
		"a Secret's text":     {`{"kind":"Secret","stringData":{"a":"1"}}`, `{"kind":"Secret","stringData":{"a":"2"}}`, true},
	} {
		of := func(manifest string) (revision string) {
			obj := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(manifest), &obj.Object); err != nil {
				t.Fatal(err)
			}
			obj.SetAPIVersion("v1")
			before := obj.DeepCopy()
			setMarks(obj, "u1")
			revision = takeRevision(obj)
			if kept := obj.Object["data"]; !cmp.Equal(kept, before.Object["data"]) {
				t.Errorf("%s: the data are %v", name, kept)
			}
			return revision
		}
		if before, after := of(test.before), of(test.after); before == "" || (before == after) != test.same {
			t.Errorf("%s: %q and %q", name, before, after)
		}
	}
}

func TestWhatIsElsewhereIsNotSent(t *testing.T) {
	const sidecars = `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"SidecarSet","spec":{%s"selector":{"matchLabels":{"app":"web"}},` +
		`"containers":[{"name":"log","image":"log:1","envFrom":[{"secretRef":{"name":"key"}}]}]}}`
	for namespace, refused := range map[string]bool{"": true, `"namespace":"other",`: true, `"namespace":"shop",`: false} {
		p, err := New(workload(strings.Replace(sidecars, "%s", namespace, 1), nil), kinds)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Needs(nil); (backends.CodeOf(err) == backends.CodeUnsupported) != refused {
			t.Errorf("namespace %q: %v", namespace, err)
		}
	}
}

// TestOverridesOfTheDocs: the example of docs/concepts.md does what the page says.
func TestOverridesOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(page), "```yaml\noverrides:\n")
	example, _, ends := strings.Cut(example, "```")
	if !found || !ends {
		t.Fatal("the page has no example of overrides")
	}
	p, err := New(workload(deployment, func(fw *v1alpha1.FleetWorkload) {
		if err := yaml.UnmarshalStrict([]byte("overrides:\n"+example), &fw.Spec); err != nil {
			t.Fatal(err)
		}
	}), kinds)
	if err != nil {
		t.Fatal(err)
	}
	europe := backends.Fleet{Clusters: []backends.Cluster{
		{Name: "m1", Attributes: map[v1alpha1.Attribute]string{v1alpha1.AttributeRegion: "eu-west"}}, {Name: "m2"},
	}}
	targets, err := p.Targets(europe, []string{"m1", "m2"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	needs, err := p.Needs(targets)
	if err != nil || len(needs) != 2 || needs[0].String() != "ConfigMap eu-rules" || needs[1].String() != "Secret eu-keys" || needs[1].Clusters[0] != "m1" {
		t.Errorf("it refers to %v, %v", needs, err)
	}
	pods, _, _ := unstructured.NestedMap(targets[0].Manifest.Object, "spec", "template")
	text, err := json.Marshal(pods)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"mountPath":"/etc/rules"`, `"configMap":{"name":"eu-rules"}`, `"example.com/residency":"eu"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}
