package drivers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/crdcheck"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/randomspec"
	"github.com/fleetworkload/fleetworkload/backends/karmada"
	"github.com/fleetworkload/fleetworkload/backends/ocm"
)

const definition = "../../config/crd/bases/apps.fleetworkload.io_fleetworkloads.yaml"

// mostAllocated is how many bytes may be allocated while one FleetWorkload is decided, some times over as more is read, and rendered by
// both drivers. It is a bound on work; what is in memory at a time is less.
const mostAllocated = 256 << 20

// mostLive is how much memory one may keep at a time, with what one driver has rendered; mostTime is how much processor time it may take.
const (
	mostLive = 64 << 20
	mostTime = time.Second
)

// words are strings that mean something to one field or another, and some that mean nothing anywhere.
var words = []string{
	"", "a", "m1", "m2", "web", "c0", "10m", "1h30m", "999999h999999m999999.999s", "50%", "3", "0", "100%", "1Gi", "500m", "-1", "1e400", "1.5",
	"example.com/a", "fleetworkload.io/owner", "karmada.io/managed", "nginx", "registry.example.com:5000/a/b:c@sha256:d", "\u2028", "ünï", "~", "a/b~c",
	"/metadata", "/metadata/labels", "/metadata/labels/x", "/metadata/name", "/spec", "/spec/", "/spec/replicas", "/spec/template/spec/containers/0",
	"/spec/template/spec/containers/-", "/spec/template/spec/containers/0/image", "/spec/list/0", "/spec/a~1b~0c", "/status", "/a", "/kind", "/~2", "/spec/x",
	"In", "NotIn", "Exists", "DoesNotExist", "Secret", "v1", "apps/v1",
}

// hints are words by the last part of a path.
var hints = map[string][]string{
	"operator": {"In", "NotIn", "Exists", "DoesNotExist"}, "container": {"c0"}, "names[]": {"m1", "m2", "m3"}, "key": {"a", "example.com/a"},
	"timeout": {"10m", "1h30m", "999999h999999m999999.999s"}, "soak": {"10m", "1h30m", "0s"}, "backend": {"karmada", "ocm"},
}

// drawn makes up a FleetWorkload by the CRD's schema.
func drawn(schemas crdcheck.Schemas, seed uint64, choices []byte) map[string]any {
	r := rand.New(rand.NewPCG(seed, 1))
	d := &crdcheck.Draw{Rand: r, Choices: choices, Room: 1 << (8 + r.IntN(13)), Words: words}
	base := randomspec.New(seed)
	d.Free = func(path string) any {
		switch {
		case strings.HasSuffix(path, ".template") && r.IntN(20) > 0:
			return template(r, base)
		case strings.HasSuffix(path, ".companions[]") && r.IntN(10) > 0:
			return map[string]any{"apiVersion": "v1", "kind": words[len(words)-3], "metadata": map[string]any{"name": fmt.Sprint("c", r.IntN(1000))},
				"data": map[string]any{"a": strings.Repeat("x", r.IntN(max(1, d.Room/4)))}, "n": r.Int64()}
		case strings.HasPrefix(path, ".spec.backendOptions") && r.IntN(2) > 0:
			return map[string]any{"schedulePriority": map[string]any{"priorityClassName": "a"}, "manifestConfigs": []any{nil}}
		default:
			return anything(r, 3)
		}
	}
	d.Hint = func(path string) []string { return hints[path[strings.LastIndexByte(path, '.')+1:]] }
	spec := schemas.Structural("FleetWorkload").Properties["spec"]
	obj := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "FleetWorkload",
		"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "00000000-0000-4000-8000-000000000000"},
		"spec":     d.Value(&spec, ".spec"),
	}
	if r.IntN(5) > 0 {
		mend(obj["spec"].(map[string]any)["placement"].(map[string]any))
	}
	return obj
}

// mend takes out of a placement what excludes each other, so that most objects are admitted.
func mend(placement map[string]any) {
	if placement["clusters"] != nil {
		delete(placement, "groups")
	} else if placement["groups"] == nil {
		placement["clusters"] = map[string]any{}
	}
	if division, is := placement["division"].(map[string]any); is && (division["type"] != "Divided" || division["preference"] != nil) {
		delete(division, "weights")
		if division["type"] != "Divided" {
			delete(division, "preference")
		}
	}
	delete(placement, "tolerations") // rules across four of their fields
}

// template is one that is sound, grown to some size and damaged at times.
func template(r *rand.Rand, base randomspec.Case) any {
	var t map[string]any
	if err := utiljson.Unmarshal(base.Workload.Spec.Template.Raw, &t); err != nil {
		panic(err)
	}
	spec, _ := t["spec"].(map[string]any)
	if r.IntN(2) == 0 {
		list := make([]any, r.IntN(1<<r.IntN(18)))
		for i := range list {
			list[i] = int64(i)
		}
		spec["list"] = list
	}
	switch r.IntN(6) {
	case 0:
		spec[[]string{"replicas", "template", "selector", "updateStrategy", "topology", "x"}[r.IntN(6)]] = anything(r, 4)
	case 1:
		t["metadata"] = anything(r, 3)
	}
	return t
}

// anything is any JSON.
func anything(r *rand.Rand, depth int) any {
	switch n := r.IntN(12); {
	case n < 3 && depth > 0:
		list := make([]any, r.IntN(5))
		for i := range list {
			list[i] = anything(r, depth-1)
		}
		return list
	case n < 7 && depth > 0:
		m := map[string]any{}
		for range r.IntN(5) {
			m[words[r.IntN(len(words))]] = anything(r, depth-1)
		}
		return m
	default:
		return []any{words[r.IntN(len(words))], r.Int64(), -r.Int64(), r.NormFloat64(), 1e300, true, int64(0), map[string]any{}, []any{}}[r.IntN(9)]
	}
}

// names adds the clusters that selectors name to the fleet, or else a typing error would be all there is to find.
func names(value any, into map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			list, _ := below.([]any)
			for _, name := range list {
				if word, is := name.(string); is && key == "names" && word != "" {
					into[word] = true
				}
			}
			names(below, into)
		}
	case []any:
		for _, below := range v {
			names(below, into)
		}
	}
}

// outcome counts what became of objects.
type outcome struct {
	admitted, refused, carried int
	// longest is how much processor time one took to decide and to render, most what that allocated, and live what of it was in use at a
	// time, in bytes.
	longest time.Duration
	most    uint64
	live    uint64
}

// processor is the time that the process has had. Other programs on the machine take none of it.
func processor() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// inUse is what the process keeps.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// try puts an object through all that an operator does with it before it writes: what the API server admits is decoded, decided and
// rendered by both drivers, or refused in words for its author.
func try(t *testing.T, schemas crdcheck.Schemas, obj map[string]any, o *outcome) {
	t.Helper()
	raw, err := json.Marshal(obj)
	if err != nil {
		return
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil || len(raw) > 3<<19 { // etcd takes no more
		return
	}
	stored, err := schemas.Admit(t.Context(), object)
	if err != nil {
		return
	}
	o.admitted++
	if raw, err = stored.MarshalJSON(); err != nil {
		t.Fatal(err)
	}
	fw := &v1alpha1.FleetWorkload{}
	if err := utiljson.Unmarshal(raw, fw); err != nil {
		t.Fatalf("it is admitted, and cannot be decoded: %v\n%.2000s", err, raw)
	}
	c := randomspec.Case{Workload: fw}
	clusters := map[string]bool{"m1": true, "m2": true, "m3": true}
	names(stored.Object["spec"], clusters)
	if len(raw)%8 == 0 { // at times a fleet is as large as selectors may name
		for i := range 1000 {
			clusters[fmt.Sprintf("m%04d", i)] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		c.Fleet.Clusters = append(c.Fleet.Clusters, backends.Cluster{Name: name, Labels: map[string]string{"a": "m1"},
			Attributes: map[v1alpha1.Attribute]string{v1alpha1.AttributeRegion: name[:1], v1alpha1.AttributeZone: name}})
	}
	decide(t, c, raw, o)
}

func decide(t *testing.T, c randomspec.Case, raw []byte, o *outcome) {
	t.Helper()
	var before, after runtime.MemStats
	base := inUse()
	look := func(kept any) time.Duration { // measuring is not counted
		start := processor()
		o.live = max(o.live, max(inUse(), base)-base)
		runtime.KeepAlive(kept)
		return processor() - start
	}
	runtime.ReadMemStats(&before)
	start, measuring := processor(), time.Duration(0)
	defer func() {
		o.longest = max(o.longest, processor()-start-measuring)
		runtime.ReadMemStats(&after)
		o.most = max(o.most, after.TotalAlloc-before.TotalAlloc)
	}()
	d, problem, err := c.Decide()
	if err != nil {
		t.Fatal(err)
	}
	measuring += look(d)
	if problem != nil {
		o.refused++
		if problem.Reason == v1alpha1.ReasonInternalError || problem.Message == "" {
			t.Fatalf("no refusal that helps its author: %+v\n%.2000s", problem, raw)
		}
		return
	}
	for _, order := range d.Orders {
		objects, err := karmada.Render(*order.Apply)
		measuring += look(objects)
		demandRefusal(t, "Karmada", err, raw)
		objects, other := ocm.Render(*order.Apply, ocm.Options{})
		measuring += look(objects)
		demandRefusal(t, "OCM", other, raw)
		if err == nil && other == nil {
			o.carried++
		}
	}
}

func demandRefusal(t *testing.T, backend string, err error, raw []byte) {
	t.Helper()
	var refusal *backends.Error
	if err != nil && (!errors.As(err, &refusal) || refusal.Field == "" || refusal.Remedy == "") {
		t.Fatalf("%s: %v is no refusal with field and remedy\n%.2000s", backend, err, raw)
	}
}

// FuzzAdmitted: whatever the CRD admits is decoded, decided and rendered, or refused in words for its author; nothing panics.
func FuzzAdmitted(f *testing.F) {
	schemas := crdcheck.LoadFile(f, definition)
	for seed := range uint64(100) {
		f.Add(seed, []byte(nil))
	}
	f.Add(uint64(0), []byte{9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 9, 0})
	f.Fuzz(func(t *testing.T, seed uint64, choices []byte) {
		try(t, schemas, drawn(schemas, seed, choices), &outcome{})
	})
}

// FuzzAdmittedText does the same for specs as text.
func FuzzAdmittedText(f *testing.F) {
	schemas := crdcheck.LoadFile(f, definition)
	files, err := filepath.Glob("../../config/samples/*-*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("there are no samples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		raw, err := yaml.YAMLToJSON(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for seed := range uint64(20) {
		raw, err := json.Marshal(drawn(schemas, seed, nil))
		if err == nil && len(raw) < 10_000 {
			f.Add(raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var obj map[string]any
		if utiljson.Unmarshal(raw, &obj) == nil && obj != nil {
			try(t, schemas, obj, &outcome{})
		}
	})
}

// TestTheLargestIsBounded (law 11): what is as large as may be, on 1,000 clusters, takes a second and 64 MiB at most.
func TestTheLargestIsBounded(t *testing.T) {
	const template = `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"web"}},` +
		`"template":{"metadata":{"labels":{"app":"web"},"annotations":{"a":%q}},"spec":{"containers":[{"name":"web","image":"nginx:1"}]}}}}`
	companions := func(n, size int) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) {
			for i := range n {
				fw.Spec.Companions = append(fw.Spec.Companions, k8sruntime.RawExtension{Raw: fmt.Appendf(nil,
					`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d"},"data":{"a":%q}}`, i, strings.Repeat("<x", size/2))})
			}
		}
	}
	for name, test := range map[string]struct {
		text   int
		change func(*v1alpha1.FleetWorkload)
	}{
		"one large companion":  {0, companions(1, 62<<10)},
		"many companions":      {0, companions(16, 3<<10)},
		"a hundred shares":     {200 << 10, shares(100)},
		"a thousand shares":    {30 << 10, shares(1000)},
		"a thousand manifests": {3 << 10, overridden},
	} {
		c := randomspec.New(1)
		c.Fleet = backends.Fleet{}
		for i := range 1000 {
			c.Fleet.Clusters = append(c.Fleet.Clusters, backends.Cluster{Name: fmt.Sprintf("x%04d", i), Labels: bits(i)})
		}
		c.Workload = &v1alpha1.FleetWorkload{ObjectMeta: c.Workload.ObjectMeta, Spec: v1alpha1.FleetWorkloadSpec{
			Backend: "karmada", Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}},
			Template: k8sruntime.RawExtension{Raw: fmt.Appendf(nil, template, strings.Repeat("x", test.text))},
		}}
		test.change(c.Workload)
		var o outcome
		for range 3 { // the first time something else may be collected
			o = outcome{}
			if decide(t, c, nil, &o); o.longest <= mostTime {
				break
			}
		}
		t.Logf("%s: %+v", name, o)
		if o.carried != 1 || o.live > mostLive || o.longest > mostTime || o.most > mostAllocated {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// shares divides replicas over clusters so that n of them, all, get different numbers.
func shares(n int) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Replicas = ptr.To(int32(1_000_000))
		fw.Spec.Placement.Division = &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Preference: v1alpha1.DivisionPreferenceWeighted}
		for i := range 100 {
			var clusters []string
			for j := i; j < n; j += 100 {
				clusters = append(clusters, fmt.Sprintf("x%04d", j))
			}
			fw.Spec.Placement.Division.Weights = append(fw.Spec.Placement.Division.Weights,
				v1alpha1.ClusterWeight{Weight: ptr.To(int32(1 + i)), Clusters: &v1alpha1.ClusterSelector{Names: clusters}})
		}
	}
}

// bits are labels of which no two clusters have the same.
func bits(i int) map[string]string {
	labels := map[string]string{}
	for j := range 10 {
		labels[fmt.Sprint("bit", j)] = fmt.Sprint(i >> j & 1)
	}
	return labels
}

// overridden gives every cluster a manifest of its own.
func overridden(fw *v1alpha1.FleetWorkload) {
	for j := range 10 {
		fw.Spec.Overrides = append(fw.Spec.Overrides, v1alpha1.Override{
			Name: fmt.Sprint("o", j), Patches: []v1alpha1.PatchOperation{{
				Op: v1alpha1.PatchOpAdd, Path: fmt.Sprint("/spec/x", j), Value: &apiextensionsv1.JSON{Raw: []byte("1")}}},
			Clusters: &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprint("bit", j): "1"}}}})
	}
}

// TestAdmittedIsBounded (law 11): time and memory do not depend on what an author has made up, and the generator reaches all ends.
func TestAdmittedIsBounded(t *testing.T) {
	schemas := crdcheck.LoadFile(t, definition)
	first, all := randomspec.First(t), outcome{}
	for seed := first; seed < first+400; seed++ {
		try(t, schemas, drawn(schemas, seed, nil), &all)
		if all.most > mostAllocated || all.live > mostLive || all.longest > mostTime {
			t.Fatalf("seed %d: %+v", seed, all)
		}
	}
	t.Logf("%+v", all)
	if all.admitted < 100 || all.refused < 20 || all.carried < 20 {
		t.Errorf("%+v: the test tells little", all)
	}
}
