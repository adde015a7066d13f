package pass

import (
	"math"
	"testing"

	"k8s.io/utils/ptr"
)

// TestWhatPausedClustersKeep: numbers that are too large together leave nothing for others, and never more than was asked for.
func TestWhatPausedClustersKeep(t *testing.T) {
	most := ptr.To(int32(math.MaxInt32))
	for name, test := range map[string]struct {
		pinned map[string]*int32
		want   int32
	}{
		"none":                        {nil, 0},
		"a kind without replicas":     {map[string]*int32{"m1": nil}, 0},
		"two":                         {map[string]*int32{"m1": ptr.To(int32(3)), "m2": ptr.To(int32(4))}, 7},
		"more than a number can hold": {map[string]*int32{"m1": most, "m2": most}, math.MaxInt32},
	} {
		d := moving(t)
		d.placed.pinned = test.pinned
		if got := d.kept(); got != test.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}
