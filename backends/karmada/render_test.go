package karmada

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// TestRenderGolden compares with testdata/render/<case>.yaml; UPDATE=1 writes them.
func TestRenderGolden(t *testing.T) {
	const duplicated, divided = v1alpha1.DivisionTypeDuplicated, v1alpha1.DivisionTypeDivided
	cases := map[string]backends.Desired{
		"one-cluster": desiredFor("r1", "pause:1", duplicated, share{cluster: "m1", replicas: 2}),
		"duplicated-with-overrides": desiredFor("r1", "pause:1", duplicated,
			share{cluster: "m1", replicas: 2, greeting: "hola"}, share{cluster: "m2", replicas: 2}, share{cluster: "m3", replicas: 2, greeting: "hola"}),
		"divided-with-hold": desiredFor("r1", "pause:1", divided, share{cluster: "m1", replicas: 4}, share{cluster: "m2", replicas: 2, hold: true}),
		"divided-one-zero":  desiredFor("r1", "pause:1", divided, share{cluster: "m1", replicas: 4}, share{cluster: "m2", replicas: 0}),
		"all-zero":          desiredFor("r1", "pause:1", divided, share{cluster: "m1", replicas: 0}, share{cluster: "m2", replicas: 0}),
		"hand-over": desiredFor("r1", "pause:1", divided, share{cluster: "m1", replicas: 4, owner: backends.ModeObserve},
			share{cluster: "m2", replicas: 2, owner: backends.ModeAdopt}, share{cluster: "m3", replicas: 1, hold: true}),
	}
	overwriting := desiredFor("r1", "pause:1", duplicated, share{cluster: "m1", replicas: 2, owner: backends.ModeObserve},
		share{cluster: "m2", replicas: 2, owner: backends.ModeAdopt})
	overwriting.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	cases["hand-over-with-conflict-policy-adopt"] = overwriting
	adopt := desiredFor("r1", "pause:1", duplicated, share{cluster: "m1", replicas: 2})
	adopt.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	adopt.Options = policyOptions(`{"schedulePriority":{"priorityClassSource":"KubePriorityClass","priorityClassName":"high"}}`)
	cases["adopt-with-options"] = adopt
	noReplicas := desiredFor("r1", "pause:1", divided, share{cluster: "m1"}, share{cluster: "m2"})
	noReplicas.Workload.ReplicasPath = nil
	for i := range noReplicas.Targets {
		noReplicas.Targets[i].Replicas = nil
		noReplicas.Targets[i].Manifest = noReplicas.Template
	}
	cases["without-replicas"] = noReplicas
	for name, d := range cases {
		t.Run(name, func(t *testing.T) {
			before := d.Template.DeepCopy()
			objects, err := Render(d)
			if err != nil {
				t.Fatal(err)
			}
			var docs []string
			for _, o := range objects {
				out, err := yaml.Marshal(o.Object)
				if err != nil {
					t.Fatal(err)
				}
				docs = append(docs, string(out))
			}
			got := strings.Join(docs, "---\n")
			path := filepath.Join("testdata", "render", name+".yaml")
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-golden +rendered):\n%s", diff)
			}
			if diff := cmp.Diff(before.Object, d.Template.Object); diff != "" {
				t.Errorf("the template was changed:\n%s", diff)
			}
		})
	}
}

func policyOptions(policy string) *v1alpha1.BackendOptions {
	return &v1alpha1.BackendOptions{Karmada: &v1alpha1.KarmadaOptions{PropagationPolicy: &runtime.RawExtension{Raw: []byte(policy)}}}
}

// TestOptionsAreRefused has ways to rewrite what the workload is, where it goes and when, in other letter cases and from above too.
func TestOptionsAreRefused(t *testing.T) {
	for policy, field := range map[string]string{
		`{"resourceSelectors":[]}`:                       ".resourceSelectors",
		`{"ResourceSelectors":[]}`:                       ".ResourceSelectors",
		`{"\u0072esourceSelectors":[]}`:                  ".resourceSelectors",
		`{"resourceSelectors":null}`:                     ".resourceSelectors",
		`{"placement":null}`:                             ".placement",
		`{"placement":{"clusterAffinities":[]}}`:         ".placement",
		`{"placement":{"clusterTolerations":[]}}`:        ".placement",
		`{"suspension":{"dispatching":false}}`:           ".suspension",
		`{"activationPreference":"Lazy"}`:                ".activationPreference",
		`{"preserveResourcesOnDeletion":true}`:           ".preserveResourcesOnDeletion",
		`{"conflictResolution":"Overwrite"}`:             ".conflictResolution",
		`{"propagateDeps":true}`:                         ".propagateDeps",
		`{"dependentOverrides":["other"]}`:               ".dependentOverrides",
		`{"failover":{"application":{}}}`:                ".failover",
		`{"schedulerName":"other"}`:                      ".schedulerName",
		`{"priority":1}`:                                 ".priority",
		`{"prioritty":1}`:                                ".prioritty",
		`{"schedulePriority":"high"}`:                    "",
		`{"schedulePriority":{"priorityClass":"a"}}`:     "",
		`{"schedulePriority":{},"resourceSelectors":[]}`: ".resourceSelectors",
		`[]`: "",
	} {
		d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDuplicated, share{cluster: "m1", replicas: 2})
		d.Options = policyOptions(policy)
		_, err := Render(d)
		var e *backends.Error
		if backends.CodeOf(err) != backends.CodeInvalidOptions || !asError(err, &e) || e.Field != policyOption().Field+field || e.Remedy == "" {
			t.Errorf("%s: %v", policy, err)
		}
	}
}

func TestNamesAreShortAndDistinct(t *testing.T) {
	q := testQuery()
	if got := policyName(q); got != "fw-web" {
		t.Error(got)
	}
	wide := q
	wide.Workload.Namespace = ""
	if got := policyName(wide); got != "fw-"+q.Key.Namespace+".web" {
		t.Error(got)
	}
	q.Key.Name = strings.Repeat("a", 70) + "1"
	first := policyName(q)
	q.Key.Name = strings.Repeat("a", 70) + "2"
	if second := policyName(q); len(first) > 63 || first == second {
		t.Errorf("%q and %q", first, second)
	}
}
