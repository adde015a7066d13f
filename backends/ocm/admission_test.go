package ocm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/crdcheck"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/randomspec"
)

const (
	admittedSpecs = 1000
	// manifestLimit is the webhook's default (ocm pkg/work/webhook/common, ManifestValidator).
	manifestLimit = 500 << 10
	// longestWork and longestPlacement are where OCM's own names and labels made of them become too long: HubHash in ocm
	// pkg/work/helper, and the placement label of decisions.
	longestWork, longestPlacement = 188, 63
	// costPerExpression is a tenth of what OCM lets a whole predicate cost for a cluster (k8s.io/apiserver/pkg/apis/cel).
	costPerExpression = 1_000_000
)

func hubSchemas(t *testing.T) crdcheck.Schemas {
	t.Helper()
	return crdcheck.Load(t, "open-cluster-management.io/api", "work/v1/*manifestworks.crd.yaml",
		"cluster/v1beta1/*placements.crd.yaml", "cluster/v1beta2/*managedclustersetbindings.crd.yaml")
}

// TestTheHubTakesWhatIsRendered sends the objects of random FleetWorkloads, in the forms that they have during a move,
// through the schemas of OCM and the rules of its webhook.
func TestTheHubTakesWhatIsRendered(t *testing.T) {
	schemas := hubSchemas(t)
	carried, objects := 0, 0
	for seed := randomspec.First(t); carried < admittedSpecs; seed++ {
		c := randomspec.New(seed)
		d, err := c.Desired()
		if err != nil {
			demandHelp(t, fmt.Sprint("seed ", seed), err)
			continue
		}
		carried++
		rendered, err := Render(d, Options{ClusterSets: []string{"global"}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		objects += len(rendered)
		for i, obj := range rendered {
			if err := hubTakes(t, schemas, form(obj, int(seed)+i)); err != nil {
				t.Fatalf("seed %d: %s is refused: %v", seed, title(obj), err)
			}
		}
		demandManifests(t, seed, d, rendered)
	}
	t.Logf("%d specs, %d objects", carried, objects)
}

// TestBoundsAreCarriedOutOrRefused: the same at the bounds of the API.
func TestBoundsAreCarriedOutOrRefused(t *testing.T) {
	schemas := hubSchemas(t)
	for what, c := range randomspec.Bounds() {
		t.Run(what, func(t *testing.T) {
			d, err := c.Desired()
			if err != nil {
				demandHelp(t, what, err)
				return
			}
			rendered, err := Render(d, Options{ClusterSets: []string{"global"}})
			if err != nil {
				demandHelp(t, what, err)
				t.Log(err)
				return
			}
			affordable(t, rendered)
			for i := 0; i < len(rendered); i += 1 + len(rendered)/30 { // a thousand clusters have works like each other's
				obj := rendered[i]
				err := hubTakes(t, schemas, obj)
				var large tooLarge
				if errors.As(err, &large) { // the limit is the hub's to set, so it is the hub that refuses
					demandHelp(t, what, explain("apply", err))
				} else if err != nil {
					t.Errorf("%s is refused: %v", title(obj), err)
				}
			}
		})
	}
}

// demandHelp: what a spec may not say is refused in words for its author.
func demandHelp(t *testing.T, what string, err error) {
	t.Helper()
	var refusal *backends.Error
	if !errors.As(err, &refusal) || refusal.Field == "" || refusal.Remedy == "" {
		t.Errorf("%s: %v is no refusal with field and remedy", what, err)
	}
}

// form is one of those that a ManifestWork has in its life.
func form(obj *unstructured.Unstructured, n int) *unstructured.Unstructured {
	moves := []move{deliver, deliver.byForce(), probe, claiming, disown}
	if obj.GroupVersionKind() != manifestWorkGVK {
		return obj
	}
	return variant(obj, moves[n%len(moves)])
}

// hubTakes returns why the hub would refuse an object.
func hubTakes(t *testing.T, schemas crdcheck.Schemas, obj *unstructured.Unstructured) error {
	t.Helper()
	stored, err := schemas.Admit(t.Context(), obj)
	if err != nil {
		return err
	}
	// The list is atomic: a default in it would look like somebody else's change.
	sent, _, _ := unstructured.NestedSlice(obj.Object, "spec", "manifestConfigs")
	kept, _, _ := unstructured.NestedSlice(stored.Object, "spec", "manifestConfigs")
	if diff := cmp.Diff(sent, kept); diff != "" {
		return fmt.Errorf("the hub adds defaults (-sent +stored):\n%s", diff)
	}
	return webhookTakes(obj)
}

// affordable evaluates the predicate within the cost that OCM allows, which else would select nothing
// (ocm pkg/placement/helpers/cel.go).
func affordable(t *testing.T, rendered []*unstructured.Unstructured) {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("managedCluster", cel.MapType(cel.StringType, cel.DynType)), cel.OptionalTypes(), ext.Strings())
	if err != nil {
		t.Fatal(err)
	}
	cluster := map[string]any{"metadata": map[string]any{"name": "none"}, "spec": map[string]any{"hubAcceptsClient": true}}
	for _, obj := range rendered {
		predicates, _, _ := unstructured.NestedSlice(obj.Object, "spec", "predicates")
		for _, p := range predicates {
			expressions, _, err := unstructured.NestedStringSlice(p.(map[string]any), "requiredClusterSelector", "celSelector", "celExpressions")
			if err != nil || len(expressions) == 0 {
				t.Fatalf("%v has no expressions: %v", p, err)
			}
			for _, expression := range expressions {
				ast, issues := env.Compile(expression)
				if issues != nil && issues.Err() != nil {
					t.Fatal(issues.Err())
				}
				program, err := env.Program(ast, cel.CostLimit(costPerExpression))
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := program.Eval(map[string]any{"managedCluster": cluster}); err != nil {
					t.Errorf("%.80s...: %v", expression, err)
				}
			}
		}
	}
}

// tooLarge is worded as the webhook words it.
type tooLarge int

func (size tooLarge) Error() string {
	return fmt.Sprintf("admission webhook denied the request: the size of manifests is %d bytes which exceeds the %d limit", int(size), manifestLimit)
}

// webhookTakes is ValidateManifests in ocm pkg/work/webhook/common, and what no webhook checks of names.
func webhookTakes(obj *unstructured.Unstructured) error {
	switch obj.GroupVersionKind() {
	case placementGVK:
		if name := obj.GetName(); len(name) > longestPlacement {
			return fmt.Errorf("%s is too long for a label", name)
		}
		return nil
	case manifestWorkGVK:
	default:
		return nil
	}
	if name := obj.GetName(); len(name) > longestWork {
		return fmt.Errorf("%s is too long for an AppliedManifestWork", name)
	}
	raw, err := json.Marshal(obj.Object)
	if err != nil {
		return err
	}
	var work workv1.ManifestWork
	if err := json.Unmarshal(raw, &work); err != nil {
		return err
	}
	if len(work.Spec.Workload.Manifests) == 0 {
		return errors.New("it has no manifests")
	}
	size, seen := 0, map[string]bool{}
	for _, manifest := range work.Spec.Workload.Manifests {
		size += manifest.Size()
		var o unstructured.Unstructured
		if err := o.UnmarshalJSON(manifest.Raw); err != nil {
			return err
		}
		id := strings.Join([]string{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}, "/")
		if o.GetName() == "" || o.GetGenerateName() != "" || seen[id] {
			return fmt.Errorf("%s has no name of its own", id)
		}
		seen[id] = true
	}
	if size > manifestLimit {
		return tooLarge(size)
	}
	return nil
}

// demandManifests: each cluster's work carries the plan's manifest.
func demandManifests(t *testing.T, seed uint64, d backends.Desired, rendered []*unstructured.Unstructured) {
	t.Helper()
	works := map[string]*unstructured.Unstructured{}
	for _, obj := range rendered {
		if obj.GetName() == workName(d.Key) {
			works[obj.GetNamespace()] = obj
		}
	}
	targets := d.Wanted()
	if len(works) != len(targets) {
		t.Fatalf("seed %d: %d works for %d clusters", seed, len(works), len(targets))
	}
	for _, target := range targets {
		want, got := target.Manifest.DeepCopy(), firstManifest(works[target.Cluster])
		unstructured.RemoveNestedField(want.Object, "metadata", "creationTimestamp")
		wantJSON, _ := json.Marshal(want.Object)
		gotJSON, _ := json.Marshal(got)
		if string(wantJSON) != string(gotJSON) {
			t.Fatalf("seed %d, cluster %s (-target +rendered):\n%s", seed, target.Cluster, cmp.Diff(want.Object, got))
		}
	}
}
