package migration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Kept is what is kept of a spec for the time of a migration: all but what never waits for its end.
func Kept(spec v1alpha1.FleetWorkloadSpec) v1alpha1.FleetWorkloadSpec {
	kept := *spec.DeepCopy()
	kept.Replicas, kept.Suspend, kept.Approval, kept.Backend, kept.ServiceAccountName, kept.RevisionHistoryLimit = nil, nil, "", "", "", nil
	return kept
}

// KeptName names the object that keeps a spec of a generation. What it holds, and whose it is, is part of the name, so that nothing
// else is ever taken for it.
func KeptName(fw *v1alpha1.FleetWorkload, kept v1alpha1.FleetWorkloadSpec, generation int64) (string, error) {
	sum, err := keptHash(fw, kept)
	return fmt.Sprintf("%s-migration-%d-%s", fw.Name, generation, sum), err
}

// Names tells whether a name is that of the spec.
func Names(name string, fw *v1alpha1.FleetWorkload, kept v1alpha1.FleetWorkloadSpec) bool {
	sum, err := keptHash(fw, kept)
	return err == nil && strings.HasSuffix(name, "-"+sum)
}

func keptHash(fw *v1alpha1.FleetWorkload, kept v1alpha1.FleetWorkloadSpec) (string, error) {
	raw, err := json.Marshal(kept)
	if err != nil {
		return "", fmt.Errorf("encode spec: %w", err)
	}
	sum := sha256.Sum256(append([]byte(fw.UID), raw...))
	return hex.EncodeToString(sum[:])[:16], nil
}
