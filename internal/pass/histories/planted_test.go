package histories

import (
	"fmt"
	"testing"
)

// plantedFaults are faults of the world, between what is decided and what members get, or in what is told to who decides. Each breaks a
// law, and the oracle has to find it. The number is from which history on it is looked for, so that it does not take long.
func plantedFaults() map[string]uint64 {
	return map[string]uint64{
		"ignore hold":                       32,
		"both write":                        7,
		"no gate":                           86,
		"adopt makes it anew":               7,
		"restart pods on adopt":             7,
		"take what is foreign":              1971,
		"scale while held":                  45,
		"mix versions":                      86,
		"replicas in two steps":             3,
		"delete in spite of Orphan":         652,
		"forget the baseline":               40,
		"forget for how long it is missing": 8,
		"a confirmation stays":              2359,
		"an old observation for ever":       0,
		"half a choice for ever":            3,
		"write at each pass":                0,
	}
}

// mostTries is in how many histories a fault must be found.
const mostTries = 1500

// TestPlanted sees that the oracle is awake: each planted fault is found by a violation that the same history does not have without it.
func TestPlanted(t *testing.T) {
	kinds := registry()
	for fault, from := range plantedFaults() {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			for i := range mostTries {
				h := random(from + uint64(i))
				w := h.play(kinds, fault, nil)
				if !w.oracle.failed() || h.play(kinds, "", nil).oracle.failed() {
					continue
				}
				v := w.oracle.violations[0]
				t.Logf("found by history %d: %s: %s", from+uint64(i), v.Kind, v.Text)
				if testing.Verbose() {
					t.Log(fmt.Sprint("\n", shrink(h, kinds, fault).source("")))
				}
				return
			}
			t.Errorf("not found in %d histories", mostTries)
		})
	}
}
