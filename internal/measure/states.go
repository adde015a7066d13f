package measure

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// readTimeout bounds one look at the cache, which waits while that is not filled yet.
const readTimeout = 5 * time.Second

// other stands for backends that are not configured, so that authors cannot make series.
const other = "other"

// States counts FleetWorkloads each time it is scraped. It keeps nothing, so that a restart changes nothing.
type States struct {
	opts StatesOptions

	count, since                       *prometheus.Desc
	scheduled, updated, healthy, stale *prometheus.Desc
	migrations, waveStart              *prometheus.Desc
}

// StatesOptions of States.
type StatesOptions struct {
	// Reader reads FleetWorkloads from a cache.
	Reader client.Reader
	// Elected is closed once this replica leads: the others count nothing, or a sum would have each FleetWorkload more than once.
	Elected <-chan struct{}
	// Backends are the names of those that are configured.
	Backends []string
	Log      logr.Logger
}

var _ prometheus.Collector = (*States)(nil)

// NewStates registers the metrics.
func NewStates(registry prometheus.Registerer, opts StatesOptions) (*States, error) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	s := &States{
		opts: opts,
		count: desc("fleetworkload_fleetworkloads",
			"FleetWorkloads, by the backend that has them, their state (New, Ready, Reconciling, Stalled or Paused) and the reason of the condition Ready.",
			"backend", "state", "reason"),
		since: desc("fleetworkload_state_start_timestamp_seconds",
			"Since when the FleetWorkload that has been in the state for longest has been in it. Not told of Ready. Its reason may have changed meanwhile.",
			"backend", "state", "reason"),
		scheduled: desc("fleetworkload_scheduled_clusters", "Clusters that FleetWorkloads are to run on, a cluster counted once for each.", "backend"),
		updated: desc("fleetworkload_updated_clusters",
			"Clusters that report for the newest revision of a FleetWorkload, counted once for each.", "backend"),
		healthy: desc("fleetworkload_healthy_clusters", "Clusters that report a FleetWorkload healthy, counted once for each.", "backend"),
		stale: desc("fleetworkload_stale_clusters",
			"Clusters of a FleetWorkload that cannot be reached, so that what they report is old, counted once for each.", "backend"),
		migrations: desc("fleetworkload_migrations", "Migrations to another backend that are under way, by phase.", "from", "to", "phase"),
		waveStart: desc("fleetworkload_migration_wave_start_timestamp_seconds",
			"When the wave began that has taken longest, of the migrations under way that wait for no person.", "from", "to", "phase"),
	}
	if err := registry.Register(s); err != nil {
		return nil, fmt.Errorf("register the counts of FleetWorkloads: %w", err)
	}
	return s, nil
}

// Describe implements prometheus.Collector.
func (s *States) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.count, s.since, s.scheduled, s.updated, s.healthy, s.stale, s.migrations, s.waveStart} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (s *States) Collect(metrics chan<- prometheus.Metric) {
	select {
	case <-s.opts.Elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout) //nolint:forbidigo // a collector is given none
	defer cancel()
	var list v1alpha1.FleetWorkloadList
	if err := s.opts.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		s.opts.Log.Error(err, "FleetWorkloads cannot be counted for this scrape")
		return
	}
	t := tallyOf(list.Items, s.opts.Backends)
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for at, n := range t.states {
		send(s.count, float64(n.count), at.backend, at.state, at.reason)
		if at.state != stateReady {
			send(s.since, seconds(n.since), at.backend, at.state, at.reason)
		}
	}
	for backend, n := range t.clusters {
		send(s.scheduled, float64(n.scheduled), backend)
		send(s.updated, float64(n.updated), backend)
		send(s.healthy, float64(n.healthy), backend)
		send(s.stale, float64(n.stale), backend)
	}
	for at, n := range t.migrations {
		send(s.migrations, float64(n.count), at.from, at.to, at.phase)
		if !n.since.IsZero() {
			send(s.waveStart, seconds(n.since), at.from, at.to, at.phase)
		}
	}
}

func seconds(t time.Time) float64 { return float64(t.Unix()) }

// What a FleetWorkload can be in: the condition that is True, or New before it has any and Paused when it has none of them.
const (
	stateNew         = "New"
	stateReady       = v1alpha1.ConditionReady
	stateReconciling = v1alpha1.ConditionReconciling
	stateStalled     = v1alpha1.ConditionStalled
	statePaused      = "Paused"
)

type stateKey struct{ backend, state, reason string }

type migrationKey struct{ from, to, phase string }

// number is how many there are, and since when the oldest.
type number struct {
	count int
	since time.Time
}

func (n number) with(since time.Time) number {
	n.count++
	if !since.IsZero() && (n.since.IsZero() || since.Before(n.since)) {
		n.since = since
	}
	return n
}

type clusters struct{ scheduled, updated, healthy, stale int }

// tally is what is counted.
type tally struct {
	states     map[stateKey]number
	clusters   map[string]clusters
	migrations map[migrationKey]number
}

// tallyOf counts FleetWorkloads. A configured backend without any has zeros of clusters, so that its series do not come and go.
func tallyOf(all []v1alpha1.FleetWorkload, backends []string) tally {
	t := tally{states: map[stateKey]number{}, clusters: map[string]clusters{}, migrations: map[migrationKey]number{}}
	for _, name := range backends {
		t.clusters[name] = clusters{}
	}
	known := func(name string) string {
		if slices.Contains(backends, name) {
			return name
		}
		return other
	}
	for i := range all {
		fw := &all[i]
		backend := known(cmp.Or(fw.Status.Backend, fw.Spec.Backend))
		state, reason, since := stateOf(fw)
		at := stateKey{backend, state, reason}
		t.states[at] = t.states[at].with(since)
		if s := fw.Status.ClusterSummary; s != nil {
			t.clusters[backend] = t.clusters[backend].with(*s)
		}
		if m := fw.Status.Migration; m != nil && m.Phase != "" {
			at := migrationKey{known(m.From), known(m.To), string(m.Phase)}
			t.migrations[at] = t.migrations[at].with(waveStart(fw))
		}
	}
	return t
}

func (c clusters) with(s v1alpha1.ClusterSummary) clusters {
	c.scheduled += int(ptr.Deref(s.Scheduled, 0))
	c.updated += int(ptr.Deref(s.UpToDate, 0))
	c.healthy += int(ptr.Deref(s.Healthy, 0))
	c.stale += int(ptr.Deref(s.Stale, 0))
	return c
}

// stateOf tells what a FleetWorkload is in, why, and since when.
func stateOf(fw *v1alpha1.FleetWorkload) (state, reason string, since time.Time) {
	ready := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return stateNew, "", fw.CreationTimestamp.Time
	}
	for _, kind := range []string{stateReady, stateReconciling, stateStalled} {
		if c := meta.FindStatusCondition(fw.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return kind, ready.Reason, c.LastTransitionTime.Time
		}
	}
	return statePaused, ready.Reason, ready.LastTransitionTime.Time
}

// waveStart is since when a migration is in its wave; zero where it has not begun, and while it waits for a person, who may take their time.
func waveStart(fw *v1alpha1.FleetWorkload) time.Time {
	m := fw.Status.Migration
	if m.WaveStartedAt == nil || m.Phase == v1alpha1.MigrationPhaseValidating || meta.IsStatusConditionTrue(fw.Status.Conditions, stateStalled) {
		return time.Time{}
	}
	return m.WaveStartedAt.Time
}
