package histories

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// shrink makes a history that fails as short and as calm as it can be, so that it still fails in the same way.
func shrink(h history, kinds *interpreter.Registry, planted string) history {
	kind := h.play(kinds, planted, nil).oracle.violations[0].Kind
	fails := func(h history) bool {
		w := h.play(kinds, planted, nil)
		return w.oracle.failed() && w.oracle.violations[0].Kind == kind && (planted == "" || !h.play(kinds, "", nil).oracle.failed())
	}
	for {
		next, shorter := smaller(h, fails)
		if !shorter {
			return h
		}
		h = next
	}
}

// smaller tries all that makes a history simpler, and keeps what still fails.
func smaller(h history, fails func(history) bool) (history, bool) {
	found := false
	try := func(next history) bool {
		if !fails(next) {
			return false
		}
		h, found = next, true
		return true
	}
	for n := len(h.Steps) / 2; n > 0; n /= 2 {
		for i := 0; i+n <= len(h.Steps); {
			if !try(h.without(i, n, false)) && !try(h.without(i, n, true)) {
				i++
			}
		}
	}
	for i := range h.Steps {
		for _, change := range simpler() {
			next := h
			next.Steps = slices.Clone(h.Steps)
			if change(&next.Steps[i]); next.Steps[i] != h.Steps[i] {
				try(next)
			}
		}
	}
	for _, change := range []func(*history){
		func(h *history) { h.Workloads = max(1, h.Workloads-1) },
		func(h *history) { h.Clusters = max(1, h.Clusters-1) },
		func(h *history) { h.AtOnce = 0 },
	} {
		next := h
		if change(&next); next.Clusters != h.Clusters && next.names(h.Clusters) || next.Workloads != h.Workloads || next.AtOnce != h.AtOnce {
			try(next)
		}
	}
	return h, found
}

// names tells whether no step speaks of a cluster.
func (h history) names(cluster int) bool {
	name := fmt.Sprint("c", cluster)
	return !slices.ContainsFunc(h.Steps, func(s step) bool { return strings.Contains(s.S, name) })
}

// without is a history without some steps; the time before them may stay.
func (h history) without(i, n int, wait bool) history {
	next := h
	next.Steps = slices.Clone(h.Steps[:i])
	if wait {
		lasts := 0
		for _, s := range h.Steps[i : i+n] {
			lasts += s.Wait
		}
		if last := h.Steps[i+n-1]; last.Do == "" && n == 1 || lasts == 0 {
			return h.without(i, n, false)
		}
		next.Steps = append(next.Steps, step{Wait: lasts, Luck: h.Steps[i].Luck})
	}
	next.Steps = append(next.Steps, h.Steps[i+n:]...)
	return next
}

// simpler are the ways in which one step may be made a simpler one.
func simpler() []func(*step) {
	changes := []func(*step){
		func(s *step) { s.Luck = 0 },
		func(s *step) { s.Wait = 0 },
		func(s *step) { s.Wait /= 2 },
		func(s *step) { s.Wait -= min(s.Wait, 1) },
		func(s *step) { s.W = 0 },
	}
	for luck := range uint64(3) { // a simpler chance
		changes = append(changes, func(s *step) { s.Luck = min(s.Luck, luck+1) })
	}
	return changes
}

// source is a history as a test that can be pasted.
func (h history) source(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "func TestHistory%s(t *testing.T) {\n\tplay(t, history{Clusters: %d, Workloads: %d", name, h.Clusters, h.Workloads)
	if h.AtOnce > 0 {
		fmt.Fprintf(&b, ", AtOnce: %d", h.AtOnce)
	}
	b.WriteString(", Steps: []step{\n")
	for _, s := range h.Steps {
		var parts []string
		if s.Wait > 0 {
			parts = append(parts, fmt.Sprint("Wait: ", s.Wait))
		}
		if s.Luck > 0 {
			parts = append(parts, fmt.Sprint("Luck: ", s.Luck))
		}
		if s.Do != "" {
			parts = append(parts, fmt.Sprintf("Do: %q", s.Do))
		}
		if s.W > 0 {
			parts = append(parts, fmt.Sprint("W: ", s.W))
		}
		if s.S != "" {
			parts = append(parts, fmt.Sprintf("S: %q", s.S))
		}
		if s.N != 0 {
			parts = append(parts, fmt.Sprint("N: ", s.N))
		}
		fmt.Fprintf(&b, "\t\t{%s},\n", strings.Join(parts, ", "))
	}
	b.WriteString("\t}})\n}\n")
	return b.String()
}
