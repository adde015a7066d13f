package main

import (
	"runtime/debug"
	"testing"
)

// gcPercent is what the garbage collector goes by.
func gcPercent() int {
	percent := debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	return percent
}

func TestGarbageIsCollectedEarlyUnlessTheEnvironmentSaysWhen(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "off")
	limit := debug.SetMemoryLimit(-1)
	before := debug.SetGCPercent(77)
	t.Cleanup(func() {
		debug.SetGCPercent(before)
		debug.SetMemoryLimit(limit)
	})
	t.Setenv("GOGC", "100")
	limitMemory()
	if got := gcPercent(); got != 77 {
		t.Errorf("with GOGC in the environment the percentage was set to %d: that is Go's own to read", got)
	}
	t.Setenv("GOGC", "")
	limitMemory()
	if got := gcPercent(); got != garbagePercent {
		t.Errorf("without GOGC in the environment the percentage is %d, want %d", got, garbagePercent)
	}
	if got := debug.SetMemoryLimit(-1); got != limit {
		t.Errorf("GOMEMLIMIT=off was overruled by %d", got)
	}
}
