package ocm

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// TestCELMeansSelect compares what the rendered predicate selects, evaluated as OCM's placement controller does, with
// backends.Fleet.Select over the fleet that Clusters reports.
func TestCELMeansSelect(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("managedCluster", cel.MapType(cel.StringType, cel.DynType)),
		cel.OptionalTypes(), ext.Strings())
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewSource(1))
	opts := Options{}.withDefaults()
	opts.Attributes[v1alpha1.AttributeProvider] = AttributeSource{Label: "fleetworkload.io/provider"}
	for range 2000 {
		selector := randomSelector(random)
		clusters := randomClusters(random)
		want, err := translateFleet(clusters, opts).Select(*selector)
		if err != nil {
			t.Fatal(err)
		}
		labelSelector := labels.Everything()
		if selector.Selector != nil {
			if labelSelector, err = metav1.LabelSelectorAsSelector(selector.Selector); err != nil {
				t.Fatal(err)
			}
		}
		programs := compile(t, env, celExpressions(selector, opts))
		var got []string
		for i := range clusters {
			if labelSelector.Matches(labels.Set(clusters[i].Labels)) && holds(t, programs, &clusters[i]) {
				got = append(got, clusters[i].Name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("selector %+v: OCM selects %q, Select selects %q", selector, got, want)
		}
	}
}

func compile(t *testing.T, env *cel.Env, expressions []string) []cel.Program {
	t.Helper()
	var programs []cel.Program
	for _, expression := range expressions {
		ast, issues := env.Compile(expression)
		if issues != nil && issues.Err() != nil {
			t.Fatalf("%s: %v", expression, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, program)
	}
	return programs
}

// holds evaluates like ocm pkg/placement/helpers/cel.go, but an error fails the test.
func holds(t *testing.T, programs []cel.Program, cluster *clusterv1.ManagedCluster) bool {
	t.Helper()
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cluster)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		result, _, err := program.Eval(map[string]any{"managedCluster": obj})
		if err != nil {
			t.Fatalf("cluster %+v: %v", cluster, err)
		}
		if value, ok := result.Value().(bool); !ok || !value {
			return false
		}
	}
	return true
}

var (
	nasty  = []string{"", "a", "b", `q"uo\te`, "línea\nnew\t", "${x}", "😀", "\x7f\u2028"}
	names  = []string{"m1", "m2", "m3", "m4", "m5"}
	states = []string{"env", "tier", "topology.kubernetes.io/region", "topology.kubernetes.io/zone", "fleetworkload.io/provider"}
)

func pick(random *rand.Rand, from []string, most int) []string {
	var picked []string
	for range random.Intn(most + 1) {
		picked = append(picked, from[random.Intn(len(from))])
	}
	return picked
}

func randomSelector(random *rand.Rand) *v1alpha1.ClusterSelector {
	s := &v1alpha1.ClusterSelector{Names: pick(random, names, 3), Exclude: pick(random, names, 2)}
	for range random.Intn(3) {
		s.Attributes = append(s.Attributes, v1alpha1.AttributeRequirement{
			Key: []v1alpha1.Attribute{
				v1alpha1.AttributeProvider, v1alpha1.AttributeRegion, v1alpha1.AttributeZone,
			}[random.Intn(3)],
			Operator: []v1alpha1.AttributeOperator{
				v1alpha1.AttributeOperatorIn, v1alpha1.AttributeOperatorNotIn,
			}[random.Intn(2)],
			Values: append(pick(random, nasty, 3), nasty[random.Intn(len(nasty))]),
		})
	}
	if random.Intn(3) == 0 {
		s.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "env", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"},
		}}}
	}
	return s
}

func randomClusters(random *rand.Rand) []clusterv1.ManagedCluster {
	var clusters []clusterv1.ManagedCluster
	for _, name := range names {
		c := clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.HubAcceptsClient = random.Intn(8) > 0
		for range random.Intn(4) {
			if c.Labels == nil {
				c.Labels = map[string]string{}
			}
			c.Labels[states[random.Intn(len(states))]] = nasty[random.Intn(len(nasty))]
		}
		for range random.Intn(4) {
			c.Status.ClusterClaims = append(c.Status.ClusterClaims, clusterv1.ManagedClusterClaim{
				Name: []string{
					"platform.open-cluster-management.io", "region.open-cluster-management.io", "zone.open-cluster-management.io", "",
				}[random.Intn(4)],
				Value: nasty[random.Intn(len(nasty))],
			})
		}
		clusters = append(clusters, c)
	}
	return clusters
}
