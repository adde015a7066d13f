package backendtest

import (
	"fmt"
	"slices"
	"testing"
)

// TestSample: without a seed a case runs with all of its kinds, with one with one, and over some seeds with each.
func TestSample(t *testing.T) {
	c := Case{Name: "R1: a case", kinds: bothKinds}
	if got := c.sample(""); len(got) != len(bothKinds) {
		t.Errorf("without a seed it runs with %d kinds, want %d", len(got), len(bothKinds))
	}
	met := map[string]bool{}
	for _, seed := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		one := c.sample(seed)
		if len(one) != 1 || one[0].gvk != c.sample(seed)[0].gvk {
			t.Fatalf("seed %s: %v", seed, one)
		}
		met[one[0].gvk.Kind] = true
	}
	if len(met) != len(bothKinds) {
		t.Errorf("eight seeds have met %v only", met)
	}
}

// TestSweep: without a seed a sweep has every write, with one two of them at most, and over some seeds each.
func TestSweep(t *testing.T) {
	if got := sweep("R3: a case", "", 3); !slices.Equal(got, []int64{0, 1, 2}) {
		t.Errorf("without a seed it is cut off after %v of 3 writes", got)
	}
	for n := int64(1); n < 20; n++ {
		met := map[int64]bool{}
		for seed := range 40 {
			sample := sweep("R3: a case", fmt.Sprint(seed), n)
			if len(sample) == 0 || len(sample) > 2 {
				t.Fatalf("seed %d: cut off after %v of %d writes", seed, sample, n)
			}
			for _, k := range sample {
				met[k] = true
			}
		}
		if int64(len(met)) != n {
			t.Errorf("forty seeds have met %d of %d writes", len(met), n)
		}
	}
}
