package measure

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Changes measures how long rollouts and migrations take, from one written status to the next. Since when a rollout goes on is known to this
// process alone: one that is under way when the operator starts is not measured.
type Changes struct {
	rollouts   *prometheus.HistogramVec
	migrations *prometheus.HistogramVec

	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// NewChanges registers the metrics.
func NewChanges(registry prometheus.Registerer) (*Changes, error) {
	c := &Changes{
		since: map[types.NamespacedName]time.Time{},
		rollouts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fleetworkload_rollout_duration_seconds",
			Help: "Time from when the operator saw a new spec until all clusters ran it and were healthy. Not observed when nothing was to do, " +
				"when a person had to act or the workload was moved meanwhile, and when the operator was restarted.",
			Buckets: []float64{1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1800, 3600},
		}, []string{"backend"}),
		migrations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fleetworkload_migration_duration_seconds",
			Help:    "Time a migration to another backend took, with its soak times and approvals, by how it ended: Completed or RolledBack.",
			Buckets: []float64{15, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600},
		}, []string{"from", "to", "outcome"}),
	}
	for _, collector := range []prometheus.Collector{c.rollouts, c.migrations} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register how long changes take: %w", err)
		}
	}
	return c, nil
}

// Written learns that a status was written.
func (c *Changes) Written(name types.NamespacedName, before, after v1alpha1.FleetWorkloadStatus, now time.Time) {
	if c == nil {
		return
	}
	if took, ended := c.rollout(name, before, after, now); ended {
		c.rollouts.WithLabelValues(after.Backend).Observe(took.Seconds())
	}
	if m := before.Migration; m != nil && m.StartedAt != nil && migrationEnds(before, after) {
		last := after.Migration.History[0]
		c.migrations.WithLabelValues(last.From, last.To, string(last.Phase)).Observe(last.FinishedAt.Sub(m.StartedAt.Time).Seconds())
	}
}

// Forget learns that a FleetWorkload is gone.
func (c *Changes) Forget(name types.NamespacedName) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, name)
}

// rollout tells how long a rollout took that has ended. Edits that come before its end belong to it.
func (c *Changes) rollout(name types.NamespacedName, before, after v1alpha1.FleetWorkloadStatus, now time.Time) (took time.Duration, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, goesOn := c.since[name]
	moves := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionMigrating) != nil
	switch {
	case meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionReady):
		delete(c.since, name)
		return now.Sub(since), goesOn
	case moves || !meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionReconciling):
		delete(c.since, name)
	case !goesOn && ptr.Deref(before.ObservedGeneration, 0) != ptr.Deref(after.ObservedGeneration, 0):
		c.since[name] = now
	}
	return 0, false
}

// migrationEnds tells whether a migration that had begun is in the history now.
func migrationEnds(before, after v1alpha1.FleetWorkloadStatus) bool {
	return before.Migration.Phase != "" && after.Migration != nil && after.Migration.Phase == "" && len(after.Migration.History) > 0 &&
		(len(before.Migration.History) == 0 || !before.Migration.History[0].FinishedAt.Equal(&after.Migration.History[0].FinishedAt))
}
