package override_test

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/override"
)

var (
	cloneSet = override.Paths{PodTemplate: []string{"spec", "template"}, Selector: []string{"spec", "selector"}, Replicas: []string{"spec", "replicas"}}
	m1       = backends.Cluster{Name: "m1", Labels: map[string]string{"tier": "gold"}}
)

const template = `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata:
  name: web
  namespace: shop
  labels: {app: web, fleetworkload.io/managed-by: fleetworkload}
  annotations: {fleetworkload.io/revision: abc}
spec:
  replicas: 12
  selector: {matchLabels: {app: web}}
  updateStrategy: {type: InPlaceIfPossible}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers:
      - {name: setup, image: "busybox@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
      containers:
      - name: nginx
        image: nginx:1.19
        command: [nginx]
        env:
        - {name: A, value: "1"}
        - {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: C, value: "3"}
        resources: {requests: {cpu: 100m, memory: 1Gi}}
      - {name: sidecar, image: "registry.example.com:5000/team/sidecar:v1"}
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return u
}

func overridesOf(t *testing.T, text string) []v1alpha1.Override {
	t.Helper()
	var overrides []v1alpha1.Override
	if err := yaml.UnmarshalStrict([]byte(text), &overrides); err != nil {
		t.Fatal(err)
	}
	return overrides
}

func TestTarget(t *testing.T) {
	const containers = "/spec/template/spec/containers"
	cases := map[string]struct {
		overrides string
		// want are the changed values of the template by path; nil is a key that is gone.
		want map[string]any
	}{
		"no overrides change nothing": {overrides: `[]`},
		"an override without a selector applies everywhere": {
			overrides: `[{labels: {set: {a: b}}}]`,
			want:      map[string]any{"/metadata/labels/a": "b"},
		},
		"an override applies to the clusters it selects only": {
			overrides: `
- {clusters: {names: [m1]}, labels: {set: {named: "yes"}}}
- {clusters: {names: [m2]}, labels: {set: {other: "yes"}}}
- {clusters: {selector: {matchLabels: {tier: gold}}}, labels: {set: {labelled: "yes"}}}
- {clusters: {exclude: [m1]}, labels: {set: {excluded: "yes"}}}`,
			want: map[string]any{"/metadata/labels/named": "yes", "/metadata/labels/labelled": "yes"},
		},
		"a later override wins": {
			overrides: `[{images: [{container: nginx, tag: "1.20"}]}, {images: [{container: nginx, tag: "1.21"}]}]`,
			want:      map[string]any{containers + "/0/image": "nginx:1.21"},
		},
		"patches come after everything else of their override, however it is written": {
			overrides: `
- patches: [{op: replace, path: /spec/template/spec/containers/0/image, value: patched}]
  images: [{container: nginx, tag: "1.20"}]`,
			want: map[string]any{containers + "/0/image": "patched"},
		},
		"a registry is put in front of an image without one": {
			overrides: `[{images: [{container: nginx, registry: r.example.com}]}]`,
			want:      map[string]any{containers + "/0/image": "r.example.com/nginx:1.19"},
		},
		"image parts are changed one by one, in init containers too": {
			overrides: `
- images:
  - {container: sidecar, repository: ops/proxy}
  - {container: sidecar, registry: "localhost:5000"}
  - {container: setup, repository: tools/setup}`,
			want: map[string]any{
				containers + "/1/image": "localhost:5000/ops/proxy:v1",
				"/spec/template/spec/initContainers/0/image": "tools/setup@sha256:" +
					"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
			},
		},
		"a tag removes the digest": {
			overrides: `[{images: [{container: setup, tag: "1.36"}]}]`,
			want:      map[string]any{"/spec/template/spec/initContainers/0/image": "busybox:1.36"},
		},
		"commands and args replace the whole list": {
			overrides: `[{commands: [{container: nginx, command: [sh, -c]}], args: [{container: nginx, args: [sleep 1]}]}]`,
			want: map[string]any{
				containers + "/0/command": []any{"sh", "-c"},
				containers + "/0/args":    []any{"sleep 1"},
			},
		},
		"env is set in place, appended and removed": {
			overrides: `[{env: [{container: nginx, set: [{name: B, value: two}, {name: D}], remove: [A, nowhere]}]}]`,
			want: map[string]any{containers + "/0/env": []any{
				map[string]any{"name": "B", "value": "two"},
				map[string]any{"name": "C", "value": "3"},
				map[string]any{"name": "D"},
			}},
		},
		"env of a container that has none": {
			overrides: `[{env: [{container: sidecar, set: [{name: A, value: "1"}]}]}]`,
			want:      map[string]any{containers + "/1/env": []any{map[string]any{"name": "A", "value": "1"}}},
		},
		"env from elsewhere": {
			overrides: `
- env:
  - container: nginx
    set:
    - {name: A, valueFrom: {secretKeyRef: {name: keys, key: a, optional: true}}}
    - {name: B, value: two}
    - {name: D, valueFrom: {configMapKeyRef: {name: settings, key: d}}}
    - {name: E, valueFrom: {fieldRef: {fieldPath: status.podIP}}}`,
			want: map[string]any{containers + "/0/env": []any{
				map[string]any{"name": "A", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "keys", "key": "a", "optional": true}}},
				map[string]any{"name": "B", "value": "two"},
				map[string]any{"name": "C", "value": "3"},
				map[string]any{"name": "D", "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "settings", "key": "d"}}},
				map[string]any{"name": "E", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "status.podIP"}}},
			}},
		},
		"labels and annotations of pods": {
			overrides: `[{podLabels: {set: {team: shop}, remove: [nowhere]}, podAnnotations: {set: {example.com/Note: "any text!"}}, labels: {set: {a: b}}}]`,
			want: map[string]any{
				"/metadata/labels/a":                  "b",
				"/spec/template/metadata/labels/team": "shop",
				"/spec/template/metadata/annotations": map[string]any{"example.com/Note": "any text!"},
			},
		},
		"env without variables is gone": {
			overrides: `[{env: [{container: nginx, remove: [A, B, C]}]}]`,
			want:      map[string]any{containers + "/0/env": nil},
		},
		"resources are replaced one by one": {
			overrides: `[{resources: [{container: nginx, requests: {cpu: 1}, limits: {memory: 2Gi, cpu: "2.5"}}]}]`,
			want: map[string]any{
				containers + "/0/resources": map[string]any{
					"requests": map[string]any{"cpu": "1", "memory": "1Gi"},
					"limits":   map[string]any{"memory": "2Gi", "cpu": "2500m"},
				},
			},
		},
		"a quantity may be zero": {
			overrides: `[{resources: [{container: nginx, requests: {cpu: 0}}]}]`,
			want: map[string]any{
				containers + "/0/resources": map[string]any{"requests": map[string]any{"cpu": "0", "memory": "1Gi"}},
			},
		},
		"labels and annotations are set and removed; what is not there is left out in silence": {
			overrides: `[{labels: {remove: [app, nowhere]}, annotations: {set: {example.com/Note: "any text!"}}}]`,
			want:      map[string]any{"/metadata/labels/app": nil, "/metadata/annotations/example.com~1Note": "any text!"},
		},
		"patches add, replace and remove": {
			overrides: `
- patches:
  - {op: add, path: /spec/updateStrategy/partition, value: 50%}
  - {op: replace, path: /spec/selector/matchLabels/app, value: x}
  - {op: remove, path: /spec/template/spec/containers/1}
  - {op: add, path: /spec/lifecycle, value: {a: [1, 2.5, null, true]}}
  - {op: add, path: /spec/lifecycle/a/-, value: 3}`,
			want: map[string]any{
				"/spec/updateStrategy/partition": "50%",
				"/spec/selector/matchLabels/app": "x",
				containers + "/1":                nil,
				"/spec/lifecycle":                map[string]any{"a": []any{int64(1), 2.5, nil, true, int64(3)}},
			},
		},
		"patches of labels": {
			overrides: `
- patches:
  - {op: add, path: /metadata/labels/a, value: b}
  - {op: replace, path: /metadata/labels/app, value: other}`,
			want: map[string]any{"/metadata/labels/a": "b", "/metadata/labels/app": "other"},
		},
		"an override may build on an earlier one": {
			overrides: `
- patches: [{op: add, path: /spec/template/spec/containers/-, value: {name: extra, image: extra}}]
- images: [{container: extra, tag: v2}]`,
			want: map[string]any{containers + "/2": map[string]any{"name": "extra", "image": "extra:v2"}},
		},
		"replacing a parent is fine as long as what is protected stays": {
			overrides: `[{patches: [{op: replace, path: /spec, value: {replicas: 12}}]}]`,
			want:      map[string]any{"/spec": map[string]any{"replicas": int64(12)}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from, pristine := object(t, template), object(t, template)
			set, err := override.Compile(overridesOf(t, tc.overrides), cloneSet)
			if err != nil {
				t.Fatal(err)
			}
			if err := set.Validate(from); err != nil {
				t.Errorf("Validate: %v", err)
			}
			for range 2 { // nothing of the first run is left in the set
				got, err := set.Target(from, m1)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(edited(t, pristine, tc.want), got.Object); diff != "" {
					t.Errorf("Target (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(pristine, from); diff != "" {
				t.Errorf("the template was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// edited returns a copy with the values put at their paths.
func edited(t *testing.T, o *unstructured.Unstructured, values map[string]any) map[string]any {
	t.Helper()
	result := o.DeepCopy().Object
	for path, value := range values {
		var at any = result
		tokens := strings.Split(path, "/")[1:]
		for i, token := range tokens {
			token = strings.ReplaceAll(token, "~1", "/")
			last := i == len(tokens)-1
			switch parent := at.(type) {
			case map[string]any:
				if list, ok := parent[token].([]any); ok && i == len(tokens)-2 {
					parent[token] = editedList(t, list, tokens[i+1], value)
					last = true
				} else if last && value == nil {
					delete(parent, token)
				} else if last {
					parent[token] = value
				}
				at = parent[token]
			case []any:
				var index int
				if _, err := fmt.Sscan(token, &index); err != nil {
					t.Fatal(err)
				}
				at = parent[index]
			default:
				t.Fatalf("nothing at %s", path)
			}
			if last {
				break
			}
		}
	}
	return result
}

func editedList(t *testing.T, list []any, token string, value any) []any {
	t.Helper()
	var index int
	if _, err := fmt.Sscan(token, &index); err != nil {
		t.Fatal(err)
	}
	switch {
	case value == nil:
		return append(list[:index:index], list[index+1:]...)
	case index == len(list):
		return append(list, value)
	default:
		list[index] = value
		return list
	}
}

func TestCompileRefuses(t *testing.T) {
	cases := map[string]struct {
		overrides string
		paths     *override.Paths
		code      backends.Code
		want      string
	}{
		"a selector that does not compile": {
			overrides: `[{}, {clusters: {selector: {matchExpressions: [{key: a, operator: Near}]}}}]`,
			want:      `spec.overrides[1].clusters.selector: the selector cannot be compiled: "Near" is not a valid label selector operator; correct the selector`,
		},
		"an image for a kind without pods": {
			overrides: `[{images: [{container: a, tag: b}]}]`,
			paths:     &override.Paths{},
			want:      `spec.overrides[0].images[0]: the template's kind has no pod template; change the manifest with patches instead`,
		},
		"a registry without a dot or a port, which would be read as part of the repository": {
			overrides: `[{images: [{container: nginx, registry: mirror}]}]`,
			want:      `spec.overrides[0].images[0].registry "mirror": this is no registry of an image; write a host with a dot or a port`,
		},
		"a registry with a path": {
			overrides: `[{images: [{container: nginx, registry: r.example.com/mirror}]}]`,
			want:      `spec.overrides[0].images[0].registry "r.example.com/mirror": this is no registry of an image`,
		},
		"a registry with a scheme": {
			overrides: `[{images: [{container: nginx, registry: "https://r.example.com"}]}]`,
			want:      `images[0].registry "https://r.example.com": this is no registry of an image`,
		},
		"a repository with a tag": {
			overrides: `[{images: [{container: nginx, repository: "a:1"}]}]`,
			want:      `images[0].repository "a:1": this is no repository of an image; write the path behind the registry in lower case`,
		},
		"a tag with a colon": {
			overrides: `[{images: [{container: nginx, tag: ":1"}]}]`,
			want:      `images[0].tag ":1": this is no tag of an image; write a tag without the colon, such as 1.29`,
		},
		"a short digest": {
			overrides: `[{images: [{container: nginx, digest: "sha256:abc"}]}]`,
			want:      `images[0].digest "sha256:abc": this is no digest of an image`,
		},
		"a variable both set and removed": {
			overrides: `[{env: [{container: nginx, set: [{name: A}], remove: [A]}]}]`,
			want:      `spec.overrides[0].env[0].set[0].name "A": the variable is both set and removed; do one of the two`,
		},
		"a negative quantity": {
			overrides: `[{resources: [{container: nginx, limits: {memory: 1Gi, cpu: -1}}]}]`,
			want:      `spec.overrides[0].resources[0].limits[cpu] "-1": a quantity must not be negative; write a number with an optional unit, such as 1, 500m or 1Gi`,
		},
		"a label of pods of the operator's": {
			overrides: `[{podLabels: {remove: [fleetworkload.io/uid]}}]`,
			want:      `spec.overrides[0].podLabels.remove[0] "fleetworkload.io/uid": the key belongs to the operator`,
		},
		"an annotation of pods that is none": {
			overrides: `[{podAnnotations: {set: {"a b": c}}}]`,
			want:      `spec.overrides[0].podAnnotations.set[a b] "a b": `,
		},
		"labels for a kind without pods": {
			overrides: `[{podLabels: {set: {a: b}}}]`,
			paths:     &override.Paths{},
			want:      `spec.overrides[0].podLabels: the template's kind has no pod template; change the manifest with patches instead`,
		},
		"a label of the operator's": {
			overrides: `[{labels: {set: {fleetworkload.io/uid: x}}}]`,
			want:      `spec.overrides[0].labels.set[fleetworkload.io/uid] "fleetworkload.io/uid": the key belongs to the operator; use keys of another prefix than fleetworkload.io/`,
		},
		"removing an annotation of the operator's": {
			overrides: `[{annotations: {remove: [a, fleetworkload.io/revision]}}]`,
			want:      `spec.overrides[0].annotations.remove[1] "fleetworkload.io/revision": the key belongs to the operator`,
		},
		"a label value that the API server would refuse": {
			overrides: `[{labels: {set: {a: "b c"}}}]`,
			want:      `spec.overrides[0].labels.set[a] "b c": a valid label must be`,
		},
		"a label key that the API server would refuse": {
			overrides: `[{labels: {set: {Example.com/a: b}}}]`,
			want:      `spec.overrides[0].labels.set[Example.com/a] "Example.com/a": prefix part`,
		},
		"a label both set and removed": {
			overrides: `[{labels: {set: {a: b}, remove: [a]}}]`,
			want:      `spec.overrides[0].labels.set[a] "a": the key is both set and removed`,
		},
		"a path without a slash": {
			overrides: `[{patches: [{op: remove, path: spec}]}]`,
			want:      `spec.overrides[0].patches[0].path "spec": the path does not begin with a slash; write a JSON pointer`,
		},
		"a path with an empty part": {
			overrides: `[{patches: [{op: remove, path: /spec/paused/}]}]`,
			want:      `path "/spec/paused/": the path has an empty part`,
		},
		"a path with a stray tilde": {
			overrides: `[{patches: [{op: remove, path: /spec/~2}]}]`,
			want:      `path "/spec/~2": the path has a ~ that is followed by neither 0 nor 1`,
		},
		"a patch of the name of a kind without replicas": {
			overrides: `[{patches: [{op: replace, path: /metadata/name, value: x}]}]`,
			paths:     &override.Paths{},
			want:      `spec.overrides[0].patches[0].path "/metadata/name": an override must not change /metadata/name`,
		},
		"an operation that is none of the three": {
			overrides: `[{patches: [{op: move, path: /spec/a}]}]`,
			want:      `spec.overrides[0].patches[0].op "move": there is no such operation; use add, remove or replace`,
		},
		"adding nothing": {
			overrides: `[{patches: [{op: add, path: /spec/a}]}]`,
			want:      `spec.overrides[0].patches[0].value: there is no value to add; set value, or use op remove`,
		},
		"removing a value": {
			overrides: `[{patches: [{op: remove, path: /spec/a, value: 1}]}]`,
			want:      `spec.overrides[0].patches[0].value: remove takes no value; leave value out, or use op replace`,
		},
	}
	for path, remedy := range map[string]string{
		"/apiVersion":                            "/apiVersion; change it in spec.template, for every cluster",
		"/kind":                                  "/kind; change it in spec.template, for every cluster",
		"/metadata/name":                         "/metadata/name; change it in spec.template, for every cluster",
		"/metadata/namespace":                    "/metadata/namespace; change it",
		"/metadata/finalizers/-":                 "/metadata/finalizers; of metadata only labels and annotations can be overridden",
		"/metadata/ownerReferences":              "/metadata/ownerReferences; of metadata only",
		"/metadata/labels/fleetworkload.io~1uid": "/metadata/labels/fleetworkload.io~1uid; use keys of another prefix",
		"/metadata/annotations/fleetworkload.io~1revision": "/metadata/annotations/fleetworkload.io~1revision; use",
		"/spec/replicas":   "/spec/replicas; give clusters numbers of their own with spec.overrides[].replicas, or shares with spec.placement.division.weights",
		"/status/replicas": "/status; leave it out: every member cluster writes its own",
	} {
		tc := cases["a path without a slash"]
		tc.overrides = fmt.Sprintf(`[{patches: [{op: add, path: /spec/a, value: 1}, {op: remove, path: %s}]}]`, path)
		tc.want = fmt.Sprintf("spec.overrides[0].patches[1].path %q: an override must not change %s", path, remedy)
		cases["a patch of the protected "+path] = tc
	}
	for length, shown := range map[int]string{200: strings.Repeat("é", 200), 201: strings.Repeat("é", 200) + "..."} {
		tc := cases["a path without a slash"]
		tc.overrides = fmt.Sprintf(`[{patches: [{op: remove, path: %s}]}]`, strings.Repeat("é", length))
		tc.want = fmt.Sprintf(`path %q: the path does not begin with a slash`, shown)
		cases[fmt.Sprintf("a path of %d letters", length)] = tc
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			paths := cloneSet
			if tc.paths != nil {
				paths = *tc.paths
			}
			_, err := override.Compile(overridesOf(t, tc.overrides), paths)
			want := tc.code
			if want == "" {
				want = backends.CodeInvalidOverride
			}
			checkRefusal(t, "Compile", err, want, tc.want)
		})
	}
}

func checkRefusal(t *testing.T, what string, err error, code backends.Code, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s:\n got %v\nwant %s", what, err, want)
	}
	var refusal *backends.Error
	if errors.As(err, &refusal) && (refusal.Code != code || refusal.Field == "" || refusal.Remedy == "") {
		t.Errorf("%s: got code %q, field %q and remedy %q, want code %q", what, refusal.Code, refusal.Field, refusal.Remedy, code)
	}
}

func TestTargetAndValidateRefuse(t *testing.T) {
	large := strings.Repeat("x", 256<<10)
	cases := map[string]struct{ overrides, want string }{
		"a container that is not there": {
			overrides: `[{images: [{container: ngnix, tag: b}]}]`,
			want:      `spec.overrides[0].images[0].container "ngnix": the pod template has no container of that name; it has nginx, sidecar, setup; name one of the template's containers or init containers`,
		},
		"parts that make another image together": {
			overrides: `[{images: [{container: nginx, repository: r.io/x}]}]`,
			want:      `container "nginx": the image would become "r.io/x:1.19", which does not have the parts asked for; set registry together with repository`,
		},
		"adding under a missing parent": {
			overrides: `[{}, {}, {patches: [{op: add, path: /spec/foo/bar, value: 1}]}]`,
			want:      `spec.overrides[2].patches[0].path "/spec/foo/bar": the manifest has no /spec/foo; the path must exist in the template; add its parent first`,
		},
		"adding under a missing parent in a list's element": {
			overrides: `[{patches: [{op: add, path: /spec/template/spec/containers/0/foo/bar, value: 1}]}]`,
			want:      `: the manifest has no /spec/template/spec/containers/0/foo; the path must exist`,
		},
		"adding under a string": {
			overrides: `[{patches: [{op: add, path: /spec/updateStrategy/type/x, value: 1}]}]`,
			want:      `: /spec/updateStrategy/type is neither a map nor a list; the path must exist`,
		},
		"adding beyond the end of a list": {
			overrides: `[{patches: [{op: add, path: /spec/template/spec/containers/3, value: {}}]}]`,
			want:      `: /spec/template/spec/containers is a list of 2 and has no element 3; the path must`,
		},
		"replacing what is not there, behind patches that apply": {
			overrides: `[{patches: [{op: add, path: /spec/a, value: 1}, {op: remove, path: /spec/a}, {op: replace, path: /spec/a, value: 1}]}]`,
			want:      `spec.overrides[0].patches[2].path "/spec/a": the manifest has no /spec/a; replace only what the template has, or use op add`,
		},
		"removing what is not there": {
			overrides: `[{patches: [{op: remove, path: /metadata/labels/nowhere}]}]`,
			want:      `the manifest has no /metadata/labels/nowhere; remove only what the template has, or leave the patch out`,
		},
		"a negative list index": {
			overrides: `[{patches: [{op: remove, path: /spec/template/spec/containers/-1}]}]`,
			want:      `containers is a list of 2 and has no element -1`,
		},
		"replacing the whole spec with other replicas": {
			overrides: `[{patches: [{op: replace, path: /spec, value: {replicas: 3}}]}]`,
			want:      `patches[0].path "/spec": the patch would change /spec/replicas, which an override must not; give clusters numbers of their own`,
		},
		"replacing metadata without the name": {
			overrides: `[{patches: [{op: replace, path: /metadata, value: {}}]}]`,
			want:      `the patch would change /metadata/name, which an override must not`,
		},
		"replacing metadata with a finalizer more": {
			overrides: `[{patches: [{op: replace, path: /metadata, value: {name: web, namespace: shop, finalizers: [a]}}]}]`,
			want:      `the patch would change /metadata, which an override must not; of metadata only`,
		},
		"replacing all labels, the operator's too": {
			overrides: `[{patches: [{op: replace, path: /metadata/labels, value: {app: web}}]}]`,
			want:      `the patch would change the marks of the operator and of backends in /metadata/labels, which an override must not; patch single keys, such as /metadata/labels/<key>`,
		},
		"a new label that no API server takes": {
			overrides: `[{patches: [{op: add, path: /metadata/labels/a, value: b c}]}]`,
			want:      `the patch would change /metadata/labels to what no API server takes: "a": a valid label must`,
		},
		"a label changed to what no API server takes": {
			overrides: `[{patches: [{op: replace, path: /metadata/labels/app, value: b c}]}]`,
			want:      `the patch would change /metadata/labels to what no API server takes: "app": a valid label must`,
		},
		"a patch with more than annotations may have": {
			overrides: `[{patches: [{op: add, path: /metadata/annotations/a, value: ` + large + `}]}]`,
			want:      `the patch would change /metadata/annotations to what no API server takes: larger than 256 KiB`,
		},
		"more than annotations may have": {
			overrides: `[{annotations: {set: {a: ` + large + `}}}]`,
			want:      `spec.overrides[0].annotations: the manifest's /metadata/annotations would be larger than 256 KiB; correct the key`,
		},
		"labels of pods that are no strings": {
			overrides: `[{patches: [{op: add, path: /spec/template/metadata/labels/a, value: 1}]}, {podLabels: {set: {b: c}}}]`,
			want:      `spec.overrides[1].podLabels: the manifest's /spec/template/metadata/labels are no map of strings; correct them`,
		},
		"variables of what is no list": {
			overrides: `
- patches: [{op: replace, path: /spec/template/spec/containers/0/env, value: {A: b}}]
- env: [{container: nginx, set: [{name: A, value: c}]}]`,
			want: `spec.overrides[1].env[0].container "nginx": the container's env is not a list; correct the container's env`,
		},
		"resources that are no map": {
			overrides: `
- patches: [{op: replace, path: /spec/template/spec/containers/0/resources, value: much}]
- resources: [{container: nginx, requests: {cpu: 1}}]`,
			want: `spec.overrides[1].resources[0].container "nginx": the container's resources are not what they should be: `,
		},
		"an image that is none": {
			overrides: `
- patches: [{op: replace, path: /spec/template/spec/containers/0/image, value: "a b"}]
- images: [{container: nginx, tag: v2}]`,
			want: `spec.overrides[1].images[0].container "nginx": the image "a b" of the container cannot be parsed: `,
		},
		"a label that is a number": {
			overrides: `[{patches: [{op: add, path: /metadata/labels/a, value: 1}]}]`,
			want:      `the patch would change /metadata/labels to something else than strings, which an override must not; write strings`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := override.Compile(overridesOf(t, tc.overrides), cloneSet)
			if err != nil {
				t.Fatal(err)
			}
			_, err = set.Target(object(t, template), m1)
			checkRefusal(t, "Target", err, backends.CodeInvalidOverride, tc.want)
			checkRefusal(t, "Validate", set.Validate(object(t, template)), backends.CodeInvalidOverride, tc.want)
		})
	}
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		overrides string
		want      string // empty when nothing is refused
	}{
		"a mistake for a cluster that is not there yet is found": {
			overrides: `[{clusters: {names: [later]}, patches: [{op: replace, path: /spec/x/y, value: 1}]}]`,
			want:      `spec.overrides[0].patches[0].path "/spec/x/y": the manifest has no /spec/x`,
		},
		"a patch that depends on an earlier override of every cluster passes": {
			overrides: `
- patches: [{op: add, path: /spec/x, value: {}}]
- {clusters: {names: [a]}, patches: [{op: add, path: /spec/x/y, value: 1}]}`,
		},
		"a patch that depends on an earlier override of some clusters passes": {
			overrides: `
- {clusters: {names: [a]}, patches: [{op: add, path: /spec/x, value: {}}]}
- {clusters: {names: [b]}, patches: [{op: add, path: /spec/z, value: {}}]}
- {clusters: {names: [a]}, patches: [{op: add, path: /spec/x/y, value: 1}]}`,
		},
		"a container that an earlier override adds on some clusters passes": {
			overrides: `
- {clusters: {names: [a]}, patches: [{op: add, path: /spec/template/spec/containers/-, value: {name: extra, image: x}}]}
- {clusters: {names: [a]}, images: [{container: extra, tag: v2}]}`,
		},
		"a mistake is found behind unrelated overrides of some clusters": {
			overrides: `
- {clusters: {names: [a]}, images: [{container: nginx, tag: v2}], labels: {set: {x: "y"}}}
- {clusters: {names: [b]}, patches: [{op: add, path: /spec/z, value: {}}]}
- {clusters: {names: [b]}, images: [{container: ngnix, tag: v2}]}`,
			want: `spec.overrides[2].images[0].container "ngnix"`,
		},
		"a patch that depends on a later override is refused": {
			overrides: `
- {clusters: {names: [a]}, patches: [{op: add, path: /spec/x/y, value: 1}]}
- {clusters: {names: [a]}, patches: [{op: add, path: /spec/x, value: {}}]}`,
			want: `spec.overrides[0].patches[0].path`,
		},
		"an override of every cluster that stands on doubtful ground is in doubt itself": {
			overrides: `
- {clusters: {names: [a]}, patches: [{op: add, path: /spec/x, value: {}}]}
- patches: [{op: add, path: /spec/x/y, value: {}}]
- patches: [{op: add, path: /spec/x/y/z, value: {}}]`,
		},
		"an override of every cluster, with selectors that leave none out, takes the ground away": {
			overrides: `
- {clusters: {names: [], exclude: [], attributes: [], selector: {matchLabels: {}, matchExpressions: []}}, patches: [{op: remove, path: /spec/updateStrategy}]}
- {clusters: {names: [a]}, patches: [{op: replace, path: /spec/updateStrategy/type, value: x}]}`,
			want: `spec.overrides[1].patches[0].path "/spec/updateStrategy/type": the manifest has no /spec/updateStrategy`,
		},
		"a protected field is in no doubt": {
			overrides: `
- {clusters: {names: [a]}, patches: [{op: add, path: /spec/x, value: {}}]}
- {clusters: {names: [a]}, patches: [{op: replace, path: /spec, value: {}}]}`,
			want: `the patch would change /spec/replicas`,
		},
	}
	for _, some := range []string{
		`{names: [a]}`, `{exclude: [b]}`, `{attributes: [{key: Region, operator: In, values: [eu]}]}`,
		`{selector: {matchLabels: {a: b}}}`, `{selector: {matchExpressions: [{key: a, operator: Exists}]}}`,
	} {
		tc := cases["a protected field is in no doubt"]
		tc.overrides = fmt.Sprintf(`
- {clusters: %s, patches: [{op: remove, path: /spec/updateStrategy}]}
- {clusters: {names: [b]}, patches: [{op: replace, path: /spec/updateStrategy/type, value: x}]}`, some)
		tc.want = ""
		cases["what an override takes away from "+some+" is there on other clusters"] = tc
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := override.Compile(overridesOf(t, tc.overrides), cloneSet)
			if err != nil {
				t.Fatal(err)
			}
			err = set.Validate(object(t, template))
			if tc.want == "" {
				if err != nil {
					t.Errorf("Validate: %v", err)
				}
				return
			}
			checkRefusal(t, "Validate", err, backends.CodeInvalidOverride, tc.want)
		})
	}
}

func TestAValueThatIsNotJSON(t *testing.T) {
	o := v1alpha1.Override{Patches: []v1alpha1.PatchOperation{{Op: v1alpha1.PatchOpAdd, Path: "/a", Value: &apiextensionsv1.JSON{Raw: []byte("{")}}}}
	_, err := override.Compile([]v1alpha1.Override{o}, cloneSet)
	checkRefusal(t, "Compile", err, backends.CodeInvalidOverride, "spec.overrides[0]: a value of a patch is not JSON: ")
}

func TestPodLikeKindsHaveContainersInTheirOwnSpec(t *testing.T) {
	set, err := override.Compile(overridesOf(t, `[{images: [{container: a, tag: v2}]}]`), override.Paths{PodTemplate: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := set.Target(object(t, `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: b:v1}]}}`), m1)
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: b:v2}]}}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Target (-want +got):\n%s", diff)
	}
}

func TestMarksAreProtected(t *testing.T) {
	for _, key := range []string{
		v1alpha1.LabelManagedBy, v1alpha1.LabelUID, v1alpha1.AnnotationOwner, v1alpha1.AnnotationRevision,
	} {
		o := v1alpha1.Override{Annotations: &v1alpha1.MetadataOverride{Remove: []string{key}}}
		if _, err := override.Compile([]v1alpha1.Override{o}, cloneSet); backends.CodeOf(err) != backends.CodeInvalidOverride {
			t.Errorf("removing %s: got error %v", key, err)
		}
	}
}

// TestValidateRefusesNothingThatWorks tries random lists of overrides on one cluster for every combination of
// selectors. What Validate refuses must fail on every one of them that has the refused override.
func TestValidateRefusesNothingThatWorks(t *testing.T) {
	rng := rand.New(rand.NewSource(7))
	base := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Thing", "a": map[string]any{"b": []any{"x"}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "b", "image": "b"}}},
	}}
	var refused int
	for range 4000 {
		overrides := randomOverrides(rng)
		set, err := override.Compile(overrides, override.Paths{PodTemplate: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		err = set.Validate(base)
		if err == nil {
			continue
		}
		refused++
		var index int
		var refusal *backends.Error
		if !errors.As(err, &refusal) {
			t.Fatal(err)
		}
		if _, err := fmt.Sscanf(refusal.Field, "spec.overrides[%d]", &index); err != nil {
			t.Fatal(err)
		}
		for members := range 1 << len(overrides) {
			cluster := backends.Cluster{Name: "c", Labels: map[string]string{}}
			for i := range overrides {
				if members&(1<<i) != 0 {
					cluster.Labels[fmt.Sprint("o", i)] = ""
				}
			}
			if overrides[index].Clusters != nil && members&(1<<index) == 0 {
				continue
			}
			if _, works := set.Target(base, cluster); works == nil {
				t.Fatalf("refused with %q, but works on %v:\n%s", err, cluster.Labels, dump(overrides))
			}
		}
	}
	if refused < 400 || refused > 3600 {
		t.Errorf("%d of 4000 refused: the generator is too tame", refused)
	}
}

func randomOverrides(rng *rand.Rand) []v1alpha1.Override {
	paths := []string{
		"/a", "/a/b", "/a/b/0", "/a/b/1", "/a/b/-", "/a/b/0/c", "/a/c", "/a/c/d", "/e", "/e/f",
		"/spec/containers/-", "/spec/containers/0", "/spec/containers/1/image", "/spec/containers/0/env", "/spec/initContainers",
	}
	values := []string{
		`{}`, `[]`, `"x"`, `{"c":{}}`, `{"name":"b","image":"c"}`, `{"name":"z","image":"c"}`, `[{"name":"z","image":"c"}]`,
	}
	overrides := make([]v1alpha1.Override, 1+rng.Intn(5))
	for i := range overrides {
		o := &overrides[i]
		if rng.Intn(3) > 0 {
			o.Clusters = &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{
				MatchLabels: map[string]string{fmt.Sprint("o", i): ""},
			}}
		}
		for range rng.Intn(3) {
			p := v1alpha1.PatchOperation{
				Op:    []v1alpha1.PatchOp{v1alpha1.PatchOpAdd, v1alpha1.PatchOpAdd, v1alpha1.PatchOpReplace, v1alpha1.PatchOpRemove}[rng.Intn(4)],
				Path:  paths[rng.Intn(len(paths))],
				Value: &apiextensionsv1.JSON{Raw: []byte(values[rng.Intn(len(values))])},
			}
			if p.Op == v1alpha1.PatchOpRemove {
				p.Value = nil
			}
			o.Patches = append(o.Patches, p)
		}
		container := []string{"b", "z"}[rng.Intn(2)]
		switch rng.Intn(5) {
		case 0:
			o.Images = []v1alpha1.ImageOverride{{Container: container, Tag: "t"}}
		case 1:
			o.Env = []v1alpha1.EnvOverride{{Container: container, Set: []v1alpha1.EnvVar{{Name: "E"}}}}
		}
	}
	return overrides
}

func dump(v any) string {
	out, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func BenchmarkTarget(b *testing.B) {
	encoded, err := yaml.YAMLToJSON([]byte(template))
	if err != nil {
		b.Fatal(err)
	}
	from := &unstructured.Unstructured{}
	if err := from.UnmarshalJSON(encoded); err != nil {
		b.Fatal(err)
	}
	overrides := []v1alpha1.Override{{
		Images: []v1alpha1.ImageOverride{{Container: "nginx", Tag: "1.20"}},
		Patches: []v1alpha1.PatchOperation{
			{Op: v1alpha1.PatchOpAdd, Path: "/spec/updateStrategy/partition", Value: &apiextensionsv1.JSON{Raw: []byte(`"50%"`)}},
		},
	}}
	set, err := override.Compile(overrides, cloneSet)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := set.Target(from, m1); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPodLabelsOfTheSelectorStay: a workload whose pods lose what its selector asks for does not find them any more.
func TestPodLabelsOfTheSelectorStay(t *testing.T) {
	united := override.Paths{PodTemplate: []string{"spec", "template", "cloneSetTemplate", "spec", "template"}, Selector: []string{"spec", "selector"}}
	const inner = `{apiVersion: a/v1, kind: A, spec: {selector: {matchLabels: {app: web}}, template: {cloneSetTemplate: {spec: {
		selector: {matchLabels: {app: web, subset: x}}, template: {metadata: {labels: {app: web, subset: x, free: z}}}}}}}}`
	const expressions = `{apiVersion: a/v1, kind: A, spec: {selector: {matchExpressions: [{key: tier, operator: In, values: [a, b]}]}, template: {metadata: {labels: {tier: a, app: web}}}}}`
	for name, tc := range map[string]struct {
		manifest, overrides string
		paths               override.Paths
		refused             string
	}{
		"set":                       {template, `[{podLabels: {set: {app: other}}}]`, cloneSet, "app"},
		"removed":                   {template, `[{podLabels: {remove: [app]}}]`, cloneSet, "app"},
		"another one":               {template, `[{podLabels: {set: {b: c}, remove: [d]}}]`, cloneSet, ""},
		"an annotation of that key": {template, `[{podAnnotations: {set: {app: other}}}]`, cloneSet, ""},
		"by an expression":          {expressions, `[{podLabels: {set: {tier: b}}}]`, cloneSet, "tier"},
		"beside an expression":      {expressions, `[{podLabels: {set: {app: b}}}]`, cloneSet, ""},
		"by the outer selector":     {inner, `[{podLabels: {set: {app: b}}}]`, united, "app"},
		"by the inner selector":     {inner, `[{podLabels: {remove: [subset]}}]`, united, "subset"},
		"by no selector":            {inner, `[{podLabels: {remove: [free]}}]`, united, ""},
	} {
		set, err := override.Compile(overridesOf(t, tc.overrides), tc.paths)
		if err != nil {
			t.Fatal(err)
		}
		_, err = set.Target(object(t, tc.manifest), m1)
		if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(),
			`spec.overrides[0].podLabels "`+tc.refused+`": the workload's selector chooses pods by this label`)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPartitionAndUnused(t *testing.T) {
	set, err := override.Compile(overridesOf(t, `[{clusters: {names: [m1, m2]}, partition: 50%}, {clusters: {names: [m2]}, partition: 3}, {clusters: {names: [m3]}}]`), override.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"m1": "spec.overrides[0].partition 50%", "m2": "spec.overrides[1].partition 3", "m3": " <nil>"} {
		field, partition := set.Partition(backends.Cluster{Name: name})
		if got := fmt.Sprint(field, " ", partition); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	got := set.Unused([]backends.Cluster{{Name: "m1"}, {Name: "m4"}})
	if diff := cmp.Diff([]string{"spec.overrides[1]", "spec.overrides[2]"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestCostGrowsWithWhatIsGoneOver: an author is refused by what overrides cost, so that none may cost less for doing more.
func TestCostGrowsWithWhatIsGoneOver(t *testing.T) {
	const size, pass = 1 << 20, 1 << 16 // going over the template once costs a sixteenth of copying it
	cost := func(overrides, selected string) int64 {
		set, err := override.Compile(overridesOf(t, overrides), cloneSet)
		if err != nil {
			t.Fatal(err)
		}
		return set.Cost(size, selected)
	}
	for name, tc := range map[string]struct {
		overrides string
		// passes are how often the template is gone over, beside the copy of it.
		passes int64
	}{
		"nothing":                {`[{}]`, 0},
		"an image":               {`[{images: [{container: a, tag: b}]}]`, 1},
		"two images":             {`[{images: [{container: a, tag: b}, {container: c, tag: b}]}]`, 2},
		"variables":              {`[{env: [{container: a, set: [{name: A}, {name: B}], remove: [C, D, E]}]}]`, 6},
		"a label":                {`[{labels: {set: {a: b}}}]`, 16},
		"a list that moves":      {`[{patches: [{op: remove, path: /spec/list/0}]}]`, 1},
		"a key":                  {`[{patches: [{op: remove, path: /spec/list}]}]`, 0},
		"all of a list":          {`[{patches: [{op: remove, path: /spec/list/0}, {op: remove, path: /spec/list/0}]}]`, 2},
		"what is kept an eye on": {`[{patches: [{op: remove, path: /metadata/labels}]}]`, 16},
	} {
		got := cost(tc.overrides, "1")
		// What is over is the override's own size.
		if own := got - size - tc.passes*pass; own < 2 || own > 200 || cost(tc.overrides, "") != got || cost(tc.overrides, "0") != 0 {
			t.Errorf("%s: %d passes and %d bytes; %d alone, %d unselected", name, (got-size)/pass, own, cost(tc.overrides, ""), cost(tc.overrides, "0"))
		}
	}
	const three = `[{labels: {set: {a: b}}}, {images: [{container: a, tag: b}]}, {}]`
	first, second := cost(three, "100"), cost(three, "010")
	if both := cost(three, "110"); both != first+second-size {
		t.Errorf("two cost %d, one %d, the other one %d", both, first, second)
	}
	if alone := cost(three, ""); alone != first+second+cost(three, "001") {
		t.Errorf("each one alone: %d", alone)
	}
	set, err := override.Compile(overridesOf(t, three), cloneSet)
	if err != nil {
		t.Fatal(err)
	}
	if none, one, all := set.Size(size, "000"), set.Size(size, "100"), set.Size(size, "111"); none != size || one <= none || all <= one {
		t.Errorf("sizes %d, %d, %d", none, one, all)
	}
}
