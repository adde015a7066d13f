package histories

import (
	"hash/fnv"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// TestHistories plays random histories. HISTORIES is how many, TEST_SEED where they begin; HISTORY plays one again by its seed, and tells
// it step by step.
func TestHistories(t *testing.T) {
	kinds := registry()
	if seed, err := strconv.ParseUint(os.Getenv("HISTORY"), 10, 64); err == nil {
		for _, v := range random(seed).play(kinds, "", t.Logf).oracle.violations {
			t.Errorf("%s: %s", v.Kind, v.Text)
		}
		return
	}
	count := 300
	if n, err := strconv.Atoi(os.Getenv("HISTORIES")); err == nil {
		count = n
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(os.Getenv("TEST_SEED")))
	first := hash.Sum64() >> 16
	var next, passes, failures atomic.Int64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(count) && failures.Load() < mostFailures; i = next.Add(1) - 1 {
				seed := first + uint64(i)
				w := random(seed).play(kinds, "", nil)
				passes.Add(int64(w.passes))
				if w.oracle.failed() {
					failures.Add(1)
					short := shrink(random(seed), kinds, "")
					v := short.play(kinds, "", nil).oracle.violations[0]
					t.Errorf("HISTORY=%d: %s: %s\n%s", seed, v.Kind, v.Text, short.source(strconv.FormatUint(seed, 10)))
				}
			}
		})
	}
	wait.Wait()
	t.Logf("%d histories, %d passes", min(next.Load(), int64(count)), passes.Load())
}

// mostFailures is after how many failures no more histories are played.
const mostFailures = 10

// play plays a history, such as one that was found, and tells it.
func play(t *testing.T, h history) {
	t.Helper()
	for _, v := range h.play(registry(), "", t.Logf).oracle.violations {
		t.Errorf("%s: %s", v.Kind, v.Text)
	}
}
