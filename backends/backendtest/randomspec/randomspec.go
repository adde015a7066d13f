// Package randomspec draws FleetWorkloads at random, for tests that compare what backends make of them. The same seed
// draws the same ones.
package randomspec

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/aggregate"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/tenancy"
)

// Case is a FleetWorkload and the clusters it meets.
type Case struct {
	Workload *v1alpha1.FleetWorkload
	Fleet    backends.Fleet
	// Typed is true for built-in kinds, of which an API server keeps only what their Go types have.
	Typed bool
}

// First is the seed that a run begins with: another one for each commit that CI tests, since it sets TEST_SEED.
func First(tb testing.TB) uint64 {
	tb.Helper()
	hash := fnv.New32a()
	fmt.Fprint(hash, os.Getenv("TEST_SEED"))
	first := uint64(hash.Sum32())
	tb.Logf("the first seed is %d, of TEST_SEED=%s", first, os.Getenv("TEST_SEED"))
	return first
}

// New draws the case of a seed.
func New(seed uint64) Case {
	r := random{rand.New(rand.NewPCG(seed, 1))}
	k := pick(r, kinds...)
	return r.next(k, seed)
}

// Next draws another spec for the workload of a case, as a user who edits it would.
func (c Case) Next(seed uint64) Case {
	r := random{rand.New(rand.NewPCG(seed, 2))}
	for _, k := range kinds {
		if gvk := c.object().GroupVersionKind(); gvk.GroupVersion().String() == k.apiVersion && gvk.Kind == k.kind {
			next := r.next(k, seed)
			next.Workload.ObjectMeta = c.Workload.ObjectMeta
			return next
		}
	}
	panic("a case has a kind of the generator's")
}

func (r random) next(k kind, seed uint64) Case {
	template := r.template(k)
	fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{
		Namespace: pick(r, "shop", "team-a"), Name: r.name(), UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", seed)),
	}}
	fw.Spec.Backend = "any"
	fw.Spec.Template = runtime.RawExtension{Raw: encode(template)}
	if fw.Spec.Placement.Clusters = r.selector(); fw.Spec.Placement.Clusters == nil || r.percent(60) {
		fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{}
	}
	fw.Spec.ConflictPolicy = pick(r, "", v1alpha1.ConflictPolicyFail, v1alpha1.ConflictPolicyAdopt)
	if r.percent(10) {
		suspend := true
		fw.Spec.Suspend = &suspend
	}
	if k.replicated {
		r.division(fw)
	}
	containers := containerNames(template, k.pod)
	for number := range r.IntN(4) {
		fw.Spec.Overrides = append(fw.Spec.Overrides, r.override(number, template, k.pod != "", containers))
	}
	c := Case{Workload: fw, Fleet: r.fleet(), Typed: k.typed}
	if k.replicated && r.percent(30) {
		r.ownNumber(c)
	}
	return c
}

// ownNumber gives one of the clusters a number of its own that goes with the one that is divided.
func (r random) ownNumber(c Case) {
	spec, n := &c.Workload.Spec, int32(r.IntN(8))
	if d := spec.Placement.Division; d != nil && d.Type == v1alpha1.DivisionTypeDivided {
		all := equality.Semantic.DeepEqual(spec.Placement.Clusters, &v1alpha1.ClusterSelector{})
		if !all || len(c.Fleet.Clusters) < 2 || spec.Replicas == nil {
			return
		}
		n = min(n, *spec.Replicas)
	}
	name := pick(r, c.Fleet.Clusters...).Name
	spec.Overrides = append(spec.Overrides, v1alpha1.Override{Name: "own", Clusters: &v1alpha1.ClusterSelector{Names: []string{name}}, Replicas: &n})
}

func (r random) division(fw *v1alpha1.FleetWorkload) {
	if n := int32(r.IntN(8)) - 1; n >= 0 {
		fw.Spec.Replicas = &n
	}
	if r.percent(50) {
		return
	}
	fw.Spec.Placement.Division = &v1alpha1.Division{Type: pick(r, v1alpha1.DivisionTypeDivided, v1alpha1.DivisionTypeDuplicated)}
	if r.percent(50) && fw.Spec.Placement.Division.Type == v1alpha1.DivisionTypeDivided {
		heavy, light := int32(3), int32(1)
		fw.Spec.Placement.Division.Weights = []v1alpha1.ClusterWeight{
			{Clusters: &v1alpha1.ClusterSelector{Exclude: []string{"m1"}}, Weight: &heavy}, {Clusters: &v1alpha1.ClusterSelector{}, Weight: &light},
		}
	}
}

func (r random) fleet() backends.Fleet {
	var fleet backends.Fleet
	for i := range 1 + r.IntN(5) {
		fleet.Clusters = append(fleet.Clusters, backends.Cluster{
			Name: fmt.Sprint("m", i+1), Labels: map[string]string{"env": pick(r, "prod", "dev")},
			Attributes: map[v1alpha1.Attribute]string{v1alpha1.AttributeRegion: pick(r, "", "eu", "us")},
		})
	}
	return fleet
}

func containerNames(template object, pod string) []string {
	if pod == "" {
		return nil
	}
	var names []string
	for _, list := range []string{"containers", "initContainers"} {
		value, _, _ := unstructured.NestedFieldNoCopy(template, append(strings.Split(pod, "."), "spec", list)...)
		containers, _ := value.([]any)
		for _, c := range containers {
			names = append(names, c.(object)["name"].(string))
		}
	}
	return names
}

func (c Case) object() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(c.Workload.Spec.Template.Raw); err != nil {
		panic(err)
	}
	return obj
}

// Desired is what a driver is asked to carry out. Where no cluster is chosen that is the placement alone, without targets. Its errors are
// those that the FleetWorkload's author gets to see.
func (c Case) Desired() (backends.Desired, error) {
	d, problem, err := c.rehearse(true)
	if err == nil && problem != nil && problem.Reason == v1alpha1.ReasonNoClusterSelected {
		d, problem, err = c.rehearse(false)
	}
	switch {
	case err != nil:
		return backends.Desired{}, err
	case problem != nil:
		return backends.Desired{}, cmp.Or(d.Err(), errors.New(problem.Message))
	default:
		return *d.Orders[0].Apply, nil
	}
}

// Decide decides with a backend that has nothing of the workload, and whose choice of clusters is settled. The problem is what the status
// would say of one; an error is the test's own.
func (c Case) Decide() (*pass.Decision, *aggregate.Problem, error) { return c.rehearse(true) }

// rehearse decides with a backend that has nothing of the workload, and that has settled the choice of clusters or has not.
func (c Case) rehearse(settled bool) (*pass.Decision, *aggregate.Problem, error) {
	kinds, err := interpreter.New()
	if err != nil {
		return nil, nil, err
	}
	fleet := backends.Fleet{Clusters: slices.Clone(c.Fleet.Clusters)}
	for i := range fleet.Clusters {
		fleet.Clusters[i].Ready = metav1.ConditionTrue
	}
	read := func(in *pass.In, reads pass.Reads) {
		for _, read := range reads.Sides {
			side := &pass.Side{Features: backends.Features{}, Fleet: &fleet, Live: read.Live()}
			if read.Query != nil {
				side.Observed = &backends.Observation{Selection: backends.Selection{Settled: settled}}
				side.Observed.Selection.Clusters, side.Err = fleet.Select(read.Query.Selectors...)
			}
			in.Sides[read.Backend] = side
		}
		for _, access := range reads.Access {
			in.Access[access] = pass.Answer{Allowed: true}
		}
	}
	d, problem := pass.Rehearse(pass.In{
		Settings:      pass.Settings{Kinds: kinds, MaxRemovalPercent: 100, Tenancy: tenancy.Everything()},
		FleetWorkload: c.Workload, Now: time.Unix(0, 0), Rivals: &[]pass.Rival{}, Namespace: &pass.Namespace{},
	}, read)
	return d, problem, nil
}
