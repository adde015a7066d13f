package backendtest

import "testing"

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
