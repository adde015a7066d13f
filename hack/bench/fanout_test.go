package main

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

func workOf(cluster, name, image string, strategy workv1.UpdateStrategyType) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "w", Generation: 2, UID: "1"}}
	work.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator}
	work.Spec.Workload.Manifests = make([]workv1.Manifest, 1)
	work.Spec.Workload.Manifests[0].Raw = manifest(name, image)
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		UpdateStrategy: &workv1.UpdateStrategy{Type: strategy},
		FeedbackRules: []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{
			{Name: "ready", Path: ".status.readyReplicas"}, {Name: "name", Path: ".metadata.name"},
			{Name: "owner", Path: `.metadata.ownerReferences[?(@.kind=="AppliedManifestWork")].name`},
			{Name: "absent", Path: `.metadata.labels.fleet\.io/uid`},
		}}},
	}}
	return work
}

// A cluster that is asked says that there is nothing; one that is to run the workload runs it.
func TestAnswer(t *testing.T) {
	for _, strategy := range []workv1.UpdateStrategyType{workv1.UpdateStrategyTypeReadOnly, workv1.UpdateStrategyTypeServerSideApply} {
		work := workOf("c", "web", firstImage, strategy)
		if answered(work) {
			t.Errorf("%s: answered at once", strategy)
		}
		var err error
		if work.Status, err = statusOf(work, metav1.Now()); err != nil {
			t.Fatal(err)
		}
		there := strategy == workv1.UpdateStrategyTypeServerSideApply
		if !answered(work) || meta.IsStatusConditionTrue(work.Status.Conditions, workv1.WorkAvailable) != there {
			t.Errorf("%s: conditions are %+v", strategy, work.Status.Conditions)
		}
		var got []string
		for _, v := range work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values {
			got = append(got, v.Name)
			if v.Name == "ready" && *v.Value.Integer != 3 {
				t.Errorf("ready is %d", *v.Value.Integer)
			}
		}
		want := ""
		if there {
			want = "ready name owner"
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: feedback is %v, want %s", strategy, got, want)
		}
		work.Generation++
		if answered(work) {
			t.Errorf("%s: an answer to an earlier generation counts", strategy)
		}
	}
}

func TestDelivered(t *testing.T) {
	is := delivered("web-1", secondImage)
	for name, tc := range map[string]struct {
		work *workv1.ManifestWork
		want bool
	}{
		"delivered":        {workOf("c", "web-1", secondImage, workv1.UpdateStrategyTypeServerSideApply), true},
		"asked for":        {workOf("c", "web-1", secondImage, workv1.UpdateStrategyTypeReadOnly), false},
		"the former image": {workOf("c", "web-1", firstImage, workv1.UpdateStrategyTypeServerSideApply), false},
		"another workload": {workOf("c", "web-10", secondImage, workv1.UpdateStrategyTypeServerSideApply), false},
		"nothing":          {&workv1.ManifestWork{}, false},
	} {
		if is(tc.work) != tc.want {
			t.Errorf("%s: want %t", name, tc.want)
		}
	}
}

// An expectation counts each ManifestWork once, and one that no longer matches not at all.
func TestExpect(t *testing.T) {
	m := &members{works: map[types.NamespacedName]*workv1.ManifestWork{}, expected: map[*expectation]bool{}, manner: answerNothing}
	first, second := workOf("a", "web", firstImage, ""), workOf("b", "web", firstImage, "")
	m.see(first)
	e := m.expect(2, delivered("web", firstImage))
	m.see(first)
	m.forget(first)
	m.see(second)
	select {
	case <-e.met:
		t.Fatal("met with one")
	default:
	}
	m.see(first)
	if err := m.await(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	gone := m.expect(0, mentions("web"))
	m.forget(first)
	m.forget(second)
	if err := m.await(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
}

// Others write what the operator has written, under a name of their own.
func TestCopyOf(t *testing.T) {
	work := workOf("c", "resident", firstImage, workv1.UpdateStrategyTypeServerSideApply)
	work.UID, work.ResourceVersion = "u", "7"
	copied, err := (&model{name: "resident"}).copyOf(work, "web", "somebody")
	if err != nil {
		t.Fatal(err)
	}
	if copied.UID != "" || copied.ResourceVersion != "" || !delivered("web", firstImage)(copied) || mentions("resident")(copied) {
		t.Errorf("got %+v", copied)
	}
}

func TestReadEffort(t *testing.T) {
	e, err := readEffort(strings.NewReader(`# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="fleetworkload",result="error"} 2
controller_runtime_reconcile_total{controller="fleetworkload",result="success"} 40
controller_runtime_reconcile_total_other 7
workqueue_depth{controller="fleetworkload",name="fleetworkload",priority="0"} 3
controller_runtime_active_workers{controller="fleetworkload"} 2
process_cpu_seconds_total 1.5
`))
	if err != nil || e.passes != 42 || e.pending != 5 || e.processor != 1500*time.Millisecond {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestReadStat(t *testing.T) {
	used, err := readStat([]byte("7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 9"))
	if err != nil || used != 2*time.Second {
		t.Errorf("got %s, %v", used, err)
	}
	if _, err := readStat([]byte("7 (a) S 1")); err == nil {
		t.Error("a short stat is read")
	}
}

// Ours may take longer than a bare client, and must be faster than OCM's controller.
func TestFanOutResults(t *testing.T) {
	took := func(clock, processor time.Duration) *measured {
		f := []figures{{clock: clock, processor: processor}}
		return &measured{created: f, changed: f}
	}
	f := &fanOut{sides: map[string]*measured{
		sideOurs: took(14, 30), sideBare: took(10, 15), sideAsking: took(20, 30), sideOCM: took(13, 60),
	}}
	got := map[string]bool{}
	for _, r := range f.results(1000) {
		got[r.name] = r.ok()
	}
	for name, want := range map[string]bool{
		"fanout-create/1000": true, "fanout-create-processor/1000": true, "fanout-create-ocm/1000": true,
		"fanout-create-ocm-processor/1000": true, "fanout-image/1000": true, "fanout-image-processor/1000": false,
		"fanout-image-ocm/1000": false, "fanout-image-ocm-processor/1000": true,
	} {
		if ok, there := got[name]; !there || ok != want {
			t.Errorf("%s is %t (there: %t), want %t", name, ok, there, want)
		}
	}
}
