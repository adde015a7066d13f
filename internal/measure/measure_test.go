package measure

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func after(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(began.Add(d))) }

// in is a status with one of the three conditions True, or none.
func in(kind, reason string, since time.Duration) v1alpha1.FleetWorkloadStatus {
	var s v1alpha1.FleetWorkloadStatus
	for _, t := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		c := metav1.Condition{Type: t, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: *after(since)}
		if t == kind {
			c.Status = metav1.ConditionTrue
		}
		s.Conditions = append(s.Conditions, c)
	}
	return s
}

func (f fleet) with(status v1alpha1.FleetWorkloadStatus, change func(*v1alpha1.FleetWorkload)) fleet {
	fw := v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("w%d", len(f)), CreationTimestamp: *after(0)}, Status: status}
	fw.Spec.Backend = "ocm"
	if change != nil {
		change(&fw)
	}
	return append(f, fw)
}

type fleet []v1alpha1.FleetWorkload

// scrape returns a line for each series.
func scrape(t *testing.T, gatherer prometheus.Gatherer) []string {
	t.Helper()
	families, err := gatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := fmt.Sprint(m.GetGauge().GetValue())
			if f.GetType() == dto.MetricType_HISTOGRAM {
				value = fmt.Sprintf("%d in %vs", m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum())
			}
			lines = append(lines, fmt.Sprintf("%s{%s} %s", strings.TrimPrefix(f.GetName(), "fleetworkload_"), strings.Join(labels, ","), value))
		}
	}
	return lines
}

func reader(t *testing.T, all fleet) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithLists(&v1alpha1.FleetWorkloadList{Items: all}).Build()
}

func states(t *testing.T, read client.Reader, elected <-chan struct{}) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if _, err := NewStates(registry, StatesOptions{Reader: read, Elected: elected, Backends: []string{"karmada", "ocm"}, Log: logr.Discard()}); err != nil {
		t.Fatal(err)
	}
	return registry
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func equal(t *testing.T, got []string, want string) {
	t.Helper()
	wanted := strings.FieldsFunc(strings.ReplaceAll(want, "\t", ""), func(r rune) bool { return r == '\n' })
	slices.Sort(wanted)
	slices.Sort(got)
	if !slices.Equal(got, wanted) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}

func moving(phase v1alpha1.MigrationPhase, wave time.Duration) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Status.Migration = &v1alpha1.MigrationStatus{From: "ocm", To: "karmada", Phase: phase, WaveStartedAt: after(wave)}
	}
}

func TestStates(t *testing.T) {
	counted := func(fw *v1alpha1.FleetWorkload) {
		fw.Status.ClusterSummary = &v1alpha1.ClusterSummary{Scheduled: ptr.To[int32](3), UpToDate: ptr.To[int32](2), Healthy: ptr.To[int32](2), Stale: ptr.To[int32](1)}
	}
	all := fleet{}.
		with(v1alpha1.FleetWorkloadStatus{}, nil).
		with(in(v1alpha1.ConditionReady, "Ready", 0), counted).
		with(in(v1alpha1.ConditionReady, "Ready", 0), counted).
		with(in(v1alpha1.ConditionStalled, "RemovalHeld", time.Hour), nil).
		with(in(v1alpha1.ConditionStalled, "RemovalHeld", time.Minute), nil).
		with(in("", "Suspended", time.Second), nil).
		with(in(v1alpha1.ConditionReconciling, "Migrating", 2*time.Second), moving(v1alpha1.MigrationPhaseHandingOver, 3*time.Second)).
		with(in(v1alpha1.ConditionStalled, "MigrationFailed", 2*time.Second), moving(v1alpha1.MigrationPhaseRolledBack, time.Second)).
		with(in(v1alpha1.ConditionReconciling, "Progressing", 0), func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "made up by its author" })
	at := func(d time.Duration) string { return fmt.Sprint(float64(began.Add(d).Unix())) }
	equal(t, scrape(t, states(t, reader(t, all), closed())), `
		fleetworkloads{backend=ocm,reason=,state=New} 1
		fleetworkloads{backend=ocm,reason=Ready,state=Ready} 2
		fleetworkloads{backend=ocm,reason=RemovalHeld,state=Stalled} 2
		fleetworkloads{backend=ocm,reason=MigrationFailed,state=Stalled} 1
		fleetworkloads{backend=ocm,reason=Suspended,state=Paused} 1
		fleetworkloads{backend=ocm,reason=Migrating,state=Reconciling} 1
		fleetworkloads{backend=other,reason=Progressing,state=Reconciling} 1
		state_start_timestamp_seconds{backend=ocm,reason=,state=New} `+at(0)+`
		state_start_timestamp_seconds{backend=ocm,reason=RemovalHeld,state=Stalled} `+at(time.Minute)+`
		state_start_timestamp_seconds{backend=ocm,reason=MigrationFailed,state=Stalled} `+at(2*time.Second)+`
		state_start_timestamp_seconds{backend=ocm,reason=Suspended,state=Paused} `+at(time.Second)+`
		state_start_timestamp_seconds{backend=ocm,reason=Migrating,state=Reconciling} `+at(2*time.Second)+`
		state_start_timestamp_seconds{backend=other,reason=Progressing,state=Reconciling} `+at(0)+`
		scheduled_clusters{backend=ocm} 6
		updated_clusters{backend=ocm} 4
		healthy_clusters{backend=ocm} 4
		stale_clusters{backend=ocm} 2
		scheduled_clusters{backend=karmada} 0
		updated_clusters{backend=karmada} 0
		healthy_clusters{backend=karmada} 0
		stale_clusters{backend=karmada} 0
		migrations{from=ocm,phase=HandingOver,to=karmada} 1
		migrations{from=ocm,phase=RolledBack,to=karmada} 1
		migration_wave_start_timestamp_seconds{from=ocm,phase=HandingOver,to=karmada} `+at(3*time.Second))
}

func TestOnlyTheLeaderCounts(t *testing.T) {
	if got := scrape(t, states(t, reader(t, fleet{}.with(in("", "Suspended", 0), nil)), make(chan struct{}))); len(got) > 0 {
		t.Errorf("a replica that does not lead tells %v", got)
	}
}

func measured(t *testing.T) (*Changes, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	c, err := NewChanges(registry)
	if err != nil {
		t.Fatal(err)
	}
	return c, registry
}

func TestRollouts(t *testing.T) {
	type step struct {
		status     v1alpha1.FleetWorkloadStatus
		generation int64
		at         time.Duration
	}
	ready, busy := in(v1alpha1.ConditionReady, "Ready", 0), in(v1alpha1.ConditionReconciling, "Applying", 0)
	stalled := in(v1alpha1.ConditionStalled, "RemovalHeld", 0)
	moves := in(v1alpha1.ConditionReconciling, "Migrating", 0)
	moves.Conditions = append(moves.Conditions, metav1.Condition{Type: v1alpha1.ConditionMigrating, Status: metav1.ConditionTrue})
	const one = "rollout_duration_seconds{backend=ocm} 1 in "
	for name, c := range map[string]struct {
		steps []step
		want  string
	}{
		"a new one":                   {[]step{{busy, 1, 1}, {busy, 1, 5}, {ready, 1, 8}}, one + "7s"},
		"an edit":                     {[]step{{ready, 1, 1}, {busy, 2, 10}, {ready, 2, 30}, {ready, 2, 60}}, one + "20s"},
		"edits on the way":            {[]step{{ready, 1, 1}, {busy, 2, 10}, {busy, 3, 20}, {ready, 3, 50}}, one + "40s"},
		"nothing to do":               {[]step{{ready, 1, 1}, {ready, 2, 10}}, ""},
		"a cluster was lost and back": {[]step{{ready, 1, 1}, {busy, 1, 10}, {ready, 1, 20}}, ""},
		"a person had to act":         {[]step{{ready, 1, 1}, {busy, 2, 2}, {stalled, 2, 3}, {busy, 2, 90}, {ready, 2, 99}}, ""},
		"moved":                       {[]step{{ready, 1, 1}, {moves, 2, 2}, {ready, 2, 99}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			changes, registry := measured(t)
			var before v1alpha1.FleetWorkloadStatus
			for _, s := range c.steps {
				s.status.Backend, s.status.ObservedGeneration = "ocm", ptr.To(s.generation)
				changes.Written(types.NamespacedName{Name: "w"}, before, s.status, began.Add(s.at*time.Second))
				before = s.status
			}
			equal(t, scrape(t, registry), c.want)
			if len(changes.since) > 0 {
				t.Errorf("remembers %v", changes.since)
			}
		})
	}
}

func TestForgets(t *testing.T) {
	changes, _ := measured(t)
	busy := in(v1alpha1.ConditionReconciling, "Applying", 0)
	busy.ObservedGeneration = ptr.To[int64](1)
	changes.Written(types.NamespacedName{Name: "w"}, v1alpha1.FleetWorkloadStatus{}, busy, began)
	if len(changes.since) != 1 {
		t.Error("a rollout is not remembered")
	}
	if changes.Forget(types.NamespacedName{Name: "w"}); len(changes.since) > 0 {
		t.Error("what is gone is remembered")
	}
}

func TestMigrations(t *testing.T) {
	changes, registry := measured(t)
	migration := func(phase v1alpha1.MigrationPhase, history ...v1alpha1.MigrationRecord) v1alpha1.FleetWorkloadStatus {
		return v1alpha1.FleetWorkloadStatus{Migration: &v1alpha1.MigrationStatus{Phase: phase, StartedAt: after(0), History: history}}
	}
	first := v1alpha1.MigrationRecord{From: "ocm", To: "karmada", Phase: v1alpha1.MigrationPhaseCompleted, FinishedAt: *after(time.Minute)}
	name := types.NamespacedName{Name: "w"}
	written := func(before, now v1alpha1.FleetWorkloadStatus) { changes.Written(name, before, now, began) }
	written(migration(v1alpha1.MigrationPhaseHandingOver), migration(v1alpha1.MigrationPhaseReleasing))
	written(migration(v1alpha1.MigrationPhaseReleasing), migration("", first))
	written(migration("", first), migration("", first))
	written(migration(v1alpha1.MigrationPhaseValidating, first), migration("", first)) // asked for and taken back
	equal(t, scrape(t, registry), "migration_duration_seconds{from=ocm,outcome=Completed,to=karmada} 1 in 60s")
}

// TestNamesAndHelp asks Prometheus' own rules.
func TestNamesAndHelp(t *testing.T) {
	registry := states(t, reader(t, fleet{}.with(in("", "Suspended", 0), moving(v1alpha1.MigrationPhaseHandingOver, 0))), closed())
	changes, err := NewChanges(registry)
	if err != nil {
		t.Fatal(err)
	}
	changes.rollouts.WithLabelValues("ocm")
	changes.migrations.WithLabelValues("ocm", "karmada", "Completed")
	drift, err := NewDrift(registry)
	if err != nil {
		t.Fatal(err)
	}
	drift.Changed("ocm")
	unread, err := NewUnread(registry)
	if err != nil {
		t.Fatal(err)
	}
	unread.Failed("ocm", "apps", "Deployment", "Malformed")
	drivers, err := backends.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	drivers.Up("ocm", true)
	drivers.TokenExpires("ocm", began)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if len(families) != 14 {
		t.Errorf("looked at %d metrics", len(families))
	}
}

// BenchmarkScrape is one look at 10,000 FleetWorkloads, without what the cache takes to list them.
func BenchmarkScrape(b *testing.B) {
	var all fleet
	for range 10000 {
		all = all.with(in(v1alpha1.ConditionReady, "Ready", 0), moving(v1alpha1.MigrationPhaseHandingOver, 0))
	}
	for b.Loop() {
		tallyOf(all, []string{"karmada", "ocm"})
	}
}
