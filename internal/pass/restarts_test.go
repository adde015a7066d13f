package pass

import (
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// TestCountsStayWithTheirObject: evidence is taken anew while a wave is verified; of the same object the count stays, of another none is known.
func TestCountsStayWithTheirObject(t *testing.T) {
	counted := func(uid string) *v1alpha1.MigrationEvidence {
		return &v1alpha1.MigrationEvidence{UID: uid, Restarts: ptr.To(int32(7))}
	}
	for name, test := range map[string]struct {
		was, is *v1alpha1.MigrationEvidence
		want    *int32
	}{
		"the same object": {counted("u1"), &v1alpha1.MigrationEvidence{UID: "u1"}, ptr.To(int32(7))},
		"another object":  {counted("u1"), &v1alpha1.MigrationEvidence{UID: "u2"}, nil},
		"none before":     {nil, &v1alpha1.MigrationEvidence{UID: "u1"}, nil},
		"none now":        {counted("u1"), nil, nil},
	} {
		d := moving(t)
		d.record.migration.Clusters[1].Before, d.record.migration.Clusters[1].After = test.was, test.was
		next := d.record.migration.DeepCopy()
		next.Clusters[1].Before, next.Clusters[1].After = test.is.DeepCopy(), test.is.DeepCopy()
		next.Clusters = append(next.Clusters, v1alpha1.MigrationClusterStatus{Name: "m3", Before: counted("u3")}) // nothing is recorded of it
		d.keepRestarts(next)
		for _, got := range []*v1alpha1.MigrationEvidence{next.Clusters[1].Before, next.Clusters[1].After} {
			if (got == nil) != (test.is == nil) || got != nil && (ptr.Deref(got.Restarts, -1) != ptr.Deref(test.want, -1)) {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if *next.Clusters[2].Before.Restarts != 7 {
			t.Errorf("%s: a cluster of which nothing is recorded: %+v", name, next.Clusters[2].Before)
		}
	}
}

// TestWhenRestartsAreCounted: before a cluster's turn, when it has been taken over, and when its wave ends; in between nobody is asked.
func TestWhenRestartsAreCounted(t *testing.T) {
	const shadowing, handing, verifying = v1alpha1.MigrationPhaseShadowing, v1alpha1.MigrationPhaseHandingOver, v1alpha1.MigrationPhaseVerifying
	evidence := &v1alpha1.MigrationEvidence{UID: "u1"}
	one := func(m *v1alpha1.MigrationStatus, phase, of v1alpha1.MigrationPhase, before, after *v1alpha1.MigrationEvidence) {
		m.Phase = phase
		m.Clusters[0].Phase, m.Clusters[0].Before, m.Clusters[0].After = of, before, after
	}
	for name, test := range map[string]struct {
		was, is func(*v1alpha1.MigrationStatus)
		asks    []string
	}{
		"nothing happens":    {func(*v1alpha1.MigrationStatus) {}, func(*v1alpha1.MigrationStatus) {}, nil},
		"its turn comes":     {func(*v1alpha1.MigrationStatus) {}, func(m *v1alpha1.MigrationStatus) { one(m, handing, handing, evidence, nil) }, []string{"m1"}},
		"it has no evidence": {func(*v1alpha1.MigrationStatus) {}, func(m *v1alpha1.MigrationStatus) { one(m, handing, handing, nil, nil) }, nil},
		"it is taken over": {func(m *v1alpha1.MigrationStatus) { one(m, handing, handing, evidence, nil) },
			func(m *v1alpha1.MigrationStatus) { one(m, handing, verifying, evidence, evidence) }, []string{"m1"}},
		"it is verified": {func(m *v1alpha1.MigrationStatus) { one(m, verifying, verifying, evidence, evidence) },
			func(m *v1alpha1.MigrationStatus) { one(m, verifying, verifying, evidence, evidence) }, nil},
		"its wave ends": {func(m *v1alpha1.MigrationStatus) { one(m, verifying, verifying, evidence, evidence) },
			func(m *v1alpha1.MigrationStatus) {
				one(m, v1alpha1.MigrationPhaseReleasing, verifying, evidence, evidence)
			}, []string{"m1"}},
		"the next wave begins": {func(m *v1alpha1.MigrationStatus) {
			one(m, handing, verifying, evidence, evidence)
			m.Wave, m.Clusters[0].Wave = ptr.To(int32(0)), ptr.To(int32(0))
		}, func(m *v1alpha1.MigrationStatus) { m.Wave = ptr.To(int32(1)) }, []string{"m1"}},
		"another wave ends": {func(m *v1alpha1.MigrationStatus) {
			one(m, handing, verifying, evidence, evidence)
			m.Wave, m.Clusters[0].Wave = ptr.To(int32(1)), ptr.To(int32(0))
		}, func(m *v1alpha1.MigrationStatus) { m.Wave = ptr.To(int32(2)) }, nil},
		"one that is not recorded has come": {func(*v1alpha1.MigrationStatus) {}, func(m *v1alpha1.MigrationStatus) {
			m.Clusters = append(m.Clusters, v1alpha1.MigrationClusterStatus{Name: "m3", After: evidence})
		}, []string{"m3"}},
	} {
		d := moving(t)
		d.record.migration.Phase = shadowing
		test.was(d.record.migration)
		next := d.record.migration.DeepCopy()
		test.is(next)
		err := d.countRestarts(next)
		var asks []string
		for _, read := range d.Reads.Restarts {
			asks = append(asks, read.Cluster)
			if read.Pods == nil || read.Namespace != "shop" {
				t.Errorf("%s: it asks for %+v", name, read)
			}
		}
		if !slices.Equal(asks, test.asks) || errors.Is(err, errEnough) != (len(asks) > 0) {
			t.Errorf("%s: it asks %v, %v", name, asks, err)
		}
	}
}

// TestWhoIsAskedForRestarts: each backend by its name of the cluster, unless that is out of its reach; an answer is noted, and none is no failure.
func TestWhoIsAskedForRestarts(t *testing.T) {
	d := moving(t)
	d.record.migration.Clusters[0].TargetName = "t1"
	d.handOver.target.fleet.Clusters = []backends.Cluster{{Name: "m2", Ready: metav1.ConditionTrue}, {Name: "t1", Ready: metav1.ConditionTrue}}
	ask := func() (RestartsRead, *int32) {
		next, evidence := d.record.migration.DeepCopy(), &v1alpha1.MigrationEvidence{UID: "u1"}
		d.Reads = Reads{}
		next.Clusters[0].Phase, next.Clusters[0].Before = v1alpha1.MigrationPhaseHandingOver, evidence
		_ = d.countRestarts(next)
		if len(d.Reads.Restarts) == 0 {
			return RestartsRead{}, evidence.Restarts
		}
		return d.Reads.Restarts[0], evidence.Restarts
	}
	if got, _ := ask(); got.OnSource != "m1" || got.OnTarget != "t1" {
		t.Errorf("it asks %+v", got)
	}
	d.handOver.source.fleet.Clusters[0].Ready = metav1.ConditionUnknown
	if got, _ := ask(); got.OnSource != "" || got.OnTarget != "t1" {
		t.Errorf("with one out of reach it asks %+v", got)
	}
	d.in.Restarts = map[string]*int32{"m1": ptr.To(int32(3))}
	if read, n := ask(); read.Cluster != "" || n == nil || *n != 3 {
		t.Errorf("answered: it asks %+v and notes %v", read, n)
	}
	d.in.Restarts["m1"] = nil
	if read, n := ask(); read.Cluster != "" || n != nil {
		t.Errorf("not answered: it asks %+v and notes %v", read, n)
	}
}

// TestWithoutPodsOfItsOwnNothingIsCounted: of kinds that do not say how they choose pods, and of those without a namespace.
func TestWithoutPodsOfItsOwnNothingIsCounted(t *testing.T) {
	for name, change := range map[string]func(*Decision){
		"no selector":  func(d *Decision) { unstructured.RemoveNestedField(d.work.plan.Template.Object, "spec", "selector") },
		"an odd one":   func(d *Decision) { d.work.plan.Template.Object["spec"] = map[string]any{"selector": "app=web"} },
		"no namespace": func(d *Decision) { d.work.plan.Query.Workload.Namespace = "" },
	} {
		d := moving(t)
		change(d)
		next := d.record.migration.DeepCopy()
		next.Clusters[0].Phase, next.Clusters[0].Before = v1alpha1.MigrationPhaseHandingOver, &v1alpha1.MigrationEvidence{UID: "u1"}
		if err := d.countRestarts(next); err != nil || len(d.Reads.Restarts) > 0 {
			t.Errorf("%s: it asks %+v, %v", name, d.Reads.Restarts, err)
		}
	}
}

// TestPodSelector: of kinds that do not say how they choose pods nothing is counted, and what cannot be read is no selector.
func TestPodSelector(t *testing.T) {
	for name, test := range map[string]struct {
		selector any
		want     bool
		failed   bool
	}{
		"labels":       {map[string]any{"matchLabels": map[string]any{"app": "web"}}, true, false},
		"none":         {nil, false, false},
		"empty":        {map[string]any{}, false, false},
		"not a map":    {"app=web", false, true},
		"not a filter": {map[string]any{"matchLabels": "app=web"}, false, true},
	} {
		template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		if test.selector != nil {
			template.Object["spec"] = map[string]any{"selector": test.selector}
		}
		got, err := podSelector(template)
		if (got != nil) != test.want || (err != nil) != test.failed || test.want && got.MatchLabels["app"] != "web" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
