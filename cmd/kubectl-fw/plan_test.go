package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// TestPlan shows an edit of a FleetWorkload that runs on three clusters.
func TestPlan(t *testing.T) {
	nothing := func(backends.Query) backends.Observation {
		return backends.Observation{Selection: backends.Selection{Settled: true, Clusters: []string{"member1", "member2", "member3"}}}
	}
	secret := func(value string) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"keys"},"data":{"password":"` + value + `"}}`)}}
		}
	}
	on := func(names ...string) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Names: names} }
	}
	image := func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Template.Raw = []byte(strings.ReplaceAll(string(fw.Spec.Template.Raw), "nginx:1.27", "nginx:1.28"))
	}
	suspend := func(fw *v1alpha1.FleetWorkload) { suspended := true; fw.Spec.Suspend = &suspended }
	refers := func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
		fw.Spec.Template.Raw = []byte(strings.Replace(string(fw.Spec.Template.Raw), `"image":"nginx:1.27"`,
			`"envFrom":[{"configMapRef":{"name":"settings"}},{"secretRef":{"name":"token"}}],"image":"nginx:1.27"`, 1))
	}
	replicas := func(n int32) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = &n }
	}
	for name, test := range map[string]struct {
		was    []func(*v1alpha1.FleetWorkload)
		edits  []func(*v1alpha1.FleetWorkload)
		report func(backends.Query) backends.Observation
		fresh  bool
		// forgotten is true when the status has no record.
		forgotten bool
		// there are the companions that each cluster has, and sources what the management cluster has, of which a kind may not be read.
		there, sources, forbidden string
		// taken is true when another FleetWorkload has the companion.
		taken bool
		// fails is in the error; empty when something changes, "-" when nothing does.
		fails string
		// result is true when what -o json prints is compared as well.
		result bool
	}{
		"same":     {result: true, fails: "-"},
		"image":    {edits: []func(*v1alpha1.FleetWorkload){image}},
		"scaled":   {edits: []func(*v1alpha1.FleetWorkload){replicas(18)}},
		"narrower": {edits: []func(*v1alpha1.FleetWorkload){on("member1", "member2")}},
		"secret": {result: true, was: []func(*v1alpha1.FleetWorkload){secret("b25l")}, edits: []func(*v1alpha1.FleetWorkload){secret("dHdv")},
			there: `[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"keys","namespace":"shop"},"data":{"password":"b25l"}}]`},
		"companions": {edits: []func(*v1alpha1.FleetWorkload){refers, secret("dHdv")}, sources: `[
			{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"},"data":{"level":"debug","app.yaml":"a: 1\nb: 3\n"}},
			{"apiVersion":"v1","kind":"Secret","metadata":{"name":"token","namespace":"shop"},"data":{"token":"dHdv"}}]`,
			result: true, there: `[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"},"data":{"level":"info","app.yaml":"a: 1\nb: 2\n"}},
			{"apiVersion":"v1","kind":"Secret","metadata":{"name":"token","namespace":"shop"},"data":{"token":"b25l"}},
			{"apiVersion":"v1","kind":"Service","metadata":{"name":"old","namespace":"shop"}}]`},
		"missing": {result: true, edits: []func(*v1alpha1.FleetWorkload){refers}, sources: `[
			{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"}}]`},
		"unread": {result: true, edits: []func(*v1alpha1.FleetWorkload){refers}, forbidden: "Secret", sources: `[
			{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"},"data":{"level":"debug"}}]`,
			there: `[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"token","namespace":"shop"},"data":{"token":"b25l"}}]`},
		"taken":   {edits: []func(*v1alpha1.FleetWorkload){secret("dHdv")}, taken: true, fails: "FleetWorkload shop/other has Secret keys on member2 already"},
		"suspend": {result: true, edits: []func(*v1alpha1.FleetWorkload){on("member1"), image, suspend}},
		"new":     {result: true, fresh: true, report: nothing},
		"moves":   {result: true, edits: []func(*v1alpha1.FleetWorkload){func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "ocm" }}},
		"moving": {was: []func(*v1alpha1.FleetWorkload){func(fw *v1alpha1.FleetWorkload) {
			fw.Status.Migration, fw.Spec.Backend = moving(t).Status.Migration, "ocm"
		}},
			edits: []func(*v1alpha1.FleetWorkload){image}},
		// Nobody remembers what the clusters were asked for, so that nobody knows that the edit asks for less.
		"held": {forgotten: true, edits: []func(*v1alpha1.FleetWorkload){on("member1", "member2")},
			fails: "this would take 3 of 12 replicas away, which no change of the spec asks for; nothing was changed"},
		"unknown": {result: true, edits: []func(*v1alpha1.FleetWorkload){on("member1", "membr2")}, fails: `spec.placement.clusters.names[1] "membr2"`},
		"nowhere": {result: true, edits: []func(*v1alpha1.FleetWorkload){func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend, fw.Status.Backend = "argo", "" }}, fails: `spec.backend "argo": no such backend`},
	} {
		t.Run(name, func(t *testing.T) {
			was := moving(t, append([]func(*v1alpha1.FleetWorkload){resting}, test.was...)...)
			inv, err := loadInventory("testdata/migrate/inventory.yaml")
			if err != nil {
				t.Fatal(err)
			}
			from := reporting{inventory: inv, report: test.report}
			if from.report == nil {
				from.report = carriesOut(revisionOf(t, was, inv), 6, 3, 3)
			}
			from.report = having(from.report, objectsIn(t, test.there))
			if !test.forgotten {
				was.Status.Placement = recorded(t, was, from)
			}
			if test.sources != "" {
				from.dependency = reads(objectsIn(t, test.sources), test.forbidden)
			}
			if test.taken {
				from.others = holder(was, "member2")
			}
			p := &preview{was: was, next: was.DeepCopy(), program: "kubectl fw"}
			for _, edit := range test.edits {
				edit(p.next)
			}
			if test.fresh {
				p.was, p.next.Status = nil, v1alpha1.FleetWorkloadStatus{}
			}
			var out bytes.Buffer
			r, err := printedPlan(p, &out, func(p *preview, r *planResult) (bool, error) { return p.decide(from, r) })
			switch {
			case test.fails == "" && !errors.Is(err, somethingChanges), test.fails == "-" && err != nil,
				len(test.fails) > 1 && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Errorf("the error is %v", err)
			}
			compareGolden(t, "plan/"+name+".golden", out.String())
			if test.result {
				out.Reset()
				if err := inFormat("json", true).write(&out, r); err != nil {
					t.Fatal(err)
				}
				compareGolden(t, "plan/"+name+".json", out.String())
			}
		})
	}
}

// printedPlan prints a preview, and returns the error with which the command ends.
func printedPlan(p *preview, out io.Writer, comesTo outcomeOf) (*planResult, error) {
	r, err := p.result(comesTo)
	return r, r.ended(errors.Join(err, r.writeOfFile(out)))
}

// holder has the Secret keys on a cluster, in the same namespace and through the same backend.
func holder(fw *v1alpha1.FleetWorkload, cluster string) func(string) []v1alpha1.FleetWorkload {
	one := int32(1)
	other := v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: fw.Namespace, Name: "other"}}
	other.Status.Backend = fw.Spec.Backend
	other.Status.Placement = &v1alpha1.PlacementRecord{
		Companions: []v1alpha1.WorkloadReference{{APIVersion: "v1", Kind: "Secret", Name: "keys"}},
		Clusters:   []v1alpha1.ClusterShare{{Name: cluster, Replicas: &one}},
	}
	return func(string) []v1alpha1.FleetWorkload { return []v1alpha1.FleetWorkload{other, *fw} }
}

func objectsIn(t *testing.T, list string) (objects []*unstructured.Unstructured) {
	t.Helper()
	if list == "" {
		return nil
	}
	var all []map[string]any
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		t.Fatal(err)
	}
	for _, each := range all {
		objects = append(objects, &unstructured.Unstructured{Object: each})
	}
	return objects
}

// having reports companions on each cluster as well. Services are the FleetWorkload's own, and all else is shared.
func having(report func(backends.Query) backends.Observation, objects []*unstructured.Unstructured) func(backends.Query) backends.Observation {
	return func(q backends.Query) backends.Observation {
		o := report(q)
		for i := range o.Clusters {
			for _, obj := range objects {
				if q.Companions {
					o.Clusters[i].Companions = append(o.Clusters[i].Companions, backends.CompanionObservation{Object: obj, Shared: obj.GetKind() != "Service"})
				}
			}
		}
		return o
	}
}

// reads answers as the management cluster does that has these objects.
func reads(objects []*unstructured.Unstructured, forbidden string) func(string, plan.Need) pass.Object {
	return func(namespace string, need plan.Need) pass.Object {
		if need.Kind == forbidden {
			return pass.Object{Err: errors.New("you may not"), Forbidden: true}
		}
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == need.Kind && o.GetName() == need.Name && o.GetNamespace() == namespace
		})
		if i < 0 {
			return pass.Object{}
		}
		return pass.Object{Found: objects[i]}
	}
}

// recorded is what the operator remembers of what it has decided.
func recorded(t *testing.T, fw *v1alpha1.FleetWorkload, from source) *v1alpha1.PlacementRecord {
	t.Helper()
	kinds, err := from.kinds()
	if err != nil {
		t.Fatal(err)
	}
	b, err := from.backend("karmada")
	if err != nil {
		t.Fatal(err)
	}
	d, err := b.decide(fw, kinds)
	if err != nil {
		t.Fatal(err)
	}
	return d.Conclude(nil).Status.Placement
}

func TestWorst(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		errs []error
		want error
	}{
		"nothing":          {[]error{nil, nil}, nil},
		"something":        {[]error{nil, somethingChanges}, somethingChanges},
		"an error as well": {[]error{somethingChanges, broken, nil}, broken},
	} {
		if got := worst(test.errs); !errors.Is(got, test.want) || errors.Is(got, somethingChanges) != errors.Is(test.want, somethingChanges) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
