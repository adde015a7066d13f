package relation

import (
	"slices"
	"testing"
)

// TestRelation: what is forgotten leaves nothing behind, and what others have stays.
func TestRelation(t *testing.T) {
	var r Relation[string, int]
	r.Add("a", 1)
	r.Add("a", 2)
	r.Add("b", 1)
	r.Add("c", 1)
	r.Add("c", 1)
	of := func(a string, want ...int) {
		t.Helper()
		if got := r.Of(a); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("of %s: %v, want %v", a, got, want)
		}
	}
	of("a", 1, 2)
	of("nothing")
	dropped := r.Drop(1, map[string]bool{"c": true})
	if slices.Sort(dropped); !slices.Equal(dropped, []string{"a", "b"}) {
		t.Errorf("dropped %v", dropped)
	}
	of("a", 2)
	of("b")
	of("c", 1)
	r.Remove("c", 2)
	of("c", 1)
	r.Remove("c", 1)
	r.Remove("a", 2)
	if len(r.by) > 0 {
		t.Errorf("left: %v", r.by)
	}
}
