package migration

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// TestJoin: a cluster that joins is handed over behind all others and behind the wave under way, or is at once whose all of them are.
func TestJoin(t *testing.T) {
	first, second := int32(1), int32(2)
	for name, test := range map[string]struct {
		phase   v1alpha1.MigrationPhase
		wave    *int32
		failure string
		want    v1alpha1.MigrationPhase
		in      int32
	}{
		"before the first wave":        {v1alpha1.MigrationPhaseShadowing, nil, "", v1alpha1.MigrationPhaseShadowing, 2},
		"in the first of two waves":    {v1alpha1.MigrationPhaseHandingOver, &first, "", v1alpha1.MigrationPhaseShadowing, 2},
		"while the last one waits":     {v1alpha1.MigrationPhaseVerifying, &second, "", v1alpha1.MigrationPhaseShadowing, 3},
		"while a failed one goes back": {v1alpha1.MigrationPhaseRollingBack, &second, "it failed", v1alpha1.MigrationPhaseShadowing, 3},
		"after one has gone back":      {v1alpha1.MigrationPhaseRolledBack, &second, "it failed", v1alpha1.MigrationPhaseShadowing, 3},
		"while all go back":            {v1alpha1.MigrationPhaseRollingBack, &first, "", v1alpha1.MigrationPhaseRollingBack, 2},
		"while the old one lets go":    {v1alpha1.MigrationPhaseReleasing, &second, "", v1alpha1.MigrationPhaseReleasing, 2},
	} {
		old := v1alpha1.MigrationStatus{Phase: test.phase, Wave: test.wave, Failure: test.failure, Clusters: []v1alpha1.MigrationClusterStatus{
			{Name: "m1", Wave: &first}, {Name: "m3", Wave: &second},
		}}
		next := Join(old, []v1alpha1.MigrationClusterStatus{{Name: "m2", TargetName: "b2"}}, []Wave{{}, {}})
		want := old.DeepCopy()
		want.Clusters = []v1alpha1.MigrationClusterStatus{{Name: "m1", Wave: &first}, {Name: "m2", TargetName: "b2", Phase: test.want, Wave: &test.in}, {Name: "m3", Wave: &second}}
		if diff := cmp.Diff(*want, next); diff != "" || len(old.Clusters) != 2 {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
