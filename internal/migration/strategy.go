package migration

import (
	"time"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// defaultTimeout is how long a wave may take when spec.migration.timeout does not say it.
const defaultTimeout = 10 * time.Minute

// Waves are the settings of all waves, with that of the clusters that no wave selects as the last.
func Waves(strategy *v1alpha1.MigrationStrategy) []Wave {
	var all []Wave
	if strategy != nil {
		for _, w := range strategy.Waves {
			wave := Wave{Manual: w.Approval == v1alpha1.ApprovalPolicyManual}
			if w.Soak != nil {
				wave.Soak = w.Soak.Duration
			}
			all = append(all, wave)
		}
	}
	return append(all, Wave{})
}

// WaveOf returns the settings of the wave of that number; the first one is 1. A number that no wave has counts as the nearest: a record
// may be from when there were more waves, or when they were counted from 0.
func WaveOf(waves []Wave, number int32) Wave {
	return waves[min(max(int(number), 1), len(waves))-1]
}

// Timeout is how long a wave may take, soak not counted.
func Timeout(strategy *v1alpha1.MigrationStrategy) time.Duration {
	if strategy == nil || strategy.Timeout == nil {
		return defaultTimeout
	}
	return strategy.Timeout.Duration
}

// Pauses tells whether a wave that fails stays as it is, and does not go back.
func Pauses(strategy *v1alpha1.MigrationStrategy) bool {
	return strategy != nil && strategy.OnFailure == v1alpha1.FailureActionPause
}
