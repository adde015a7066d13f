package ocm

import (
	"testing"

	"github.com/fleetworkload/fleetworkload/backends"
)

// The fleet is translated once until it changes, also when it changes while it is being translated.
func TestTranslated(t *testing.T) {
	var kept translated
	calls := 0
	get := func(meanwhile func()) {
		if _, err := kept.get(func() (backends.Fleet, error) { calls++; meanwhile(); return backends.Fleet{}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func() {}
	for _, step := range []struct {
		do   func()
		want int
	}{
		{func() { get(nothing) }, 1},
		{func() { get(nothing) }, 1},
		{func() { kept.forget(); get(kept.forget) }, 2},
		{func() { get(nothing) }, 3},
		{func() { get(nothing) }, 3},
	} {
		if step.do(); calls != step.want {
			t.Fatalf("translated %d times, want %d", calls, step.want)
		}
	}
}
