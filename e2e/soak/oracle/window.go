// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/share"
)

// lag is how much later than the API server we may know of something.
const lag = 3 * time.Second

// Span is when something has happened: between two moments. It is short while a cluster is watched, and longer when a watch
// was interrupted.
type Span struct{ From, To time.Time }

// want is what one cluster may have been asked for.
type want struct {
	absent   bool
	replicas int
	pods     history.Template
	// why is the action that asked for it; empty for what was settled.
	why string
}

func (w want) String() string {
	text := "settled"
	if w.why != "" {
		text = w.why
	}
	if w.absent {
		return "nothing (" + text + ")"
	}
	return fmt.Sprintf("%d of %s/%s (%s)", w.replicas, w.pods.Image, w.pods.Env, text)
}

// outcome is what the clusters may have been asked for together; without a spec: nothing.
type outcome struct {
	spec   *history.Spec
	shares share.Shares
	why    string
}

// window is what outcomes depend on.
type window struct {
	first, last, firstFact, lastFact int
	runs                             string
}

// wants are what a cluster may have been asked for at that time.
func (o *Oracle) wants(w *workload, cluster string, span Span) []want {
	var wants []want
	add := func(next want) {
		same := func(w want) bool { w.why = next.why; return w == next }
		if !slices.ContainsFunc(wants, same) {
			wants = append(wants, next)
		}
	}
	for _, out := range o.possible(w, span) {
		if replicas, chosen := out.shares[cluster]; chosen {
			add(want{replicas: replicas, pods: out.spec.On(cluster), why: out.why})
		} else {
			add(want{absent: true, why: out.why})
		}
	}
	// A cluster that leaves the fleet takes along what runs there, whatever the workload asks for.
	for _, f := range o.facts[w.window.firstFact:w.window.lastFact] {
		if !f.clusters[cluster].Joined {
			add(want{absent: true, why: why(f.why, true)})
		}
	}
	return wants
}

// possible are the outcomes since the workload was last settled before the span.
func (o *Oracle) possible(w *workload, span Span) []outcome {
	start := w.marks[0]
	for _, m := range w.marks {
		if !m.at.After(span.From) {
			start = m
		}
	}
	now := window{first: start.version, firstFact: start.fact, last: len(w.versions), lastFact: len(o.facts)}
	for now.last > now.first+1 && w.versions[now.last-1].begin.After(span.To) {
		now.last--
	}
	for now.lastFact > now.firstFact+1 && o.facts[now.lastFact-1].at.After(span.To) {
		now.lastFact--
	}
	for _, cluster := range o.Facts().Names() {
		if w.runs(cluster) {
			now.runs += cluster + " "
		}
	}
	if w.outcomes == nil || w.window != now {
		w.window, w.outcomes = now, o.compute(w, now)
	}
	return w.outcomes
}

// compute tries each version that asks for something with the replicas of each other one, since these do not wait for a
// change of backend to end and everything else does, and under all facts.
func (o *Oracle) compute(w *workload, in window) []outcome {
	var all []outcome
	var asking []int
	for i := in.first; i < in.last; i++ {
		switch v := w.versions[i]; {
		case i > in.first && !v.asks():
		case v.absent:
			all = append(all, outcome{why: why(v.why, i > in.first)})
		case !v.silent:
			asking = append(asking, i)
		}
	}
	facts := o.relevant(w, in)
	start := mark{version: in.first, fact: in.firstFact}
	for _, i := range asking {
		seen := map[int]bool{}
		for _, j := range asking {
			spec := w.versions[i].spec.Clone()
			spec.Replicas = w.versions[j].spec.Replicas
			if seen[spec.Replicas] {
				continue
			}
			seen[spec.Replicas] = true
			later := w.versions[max(i, j)]
			for _, f := range facts {
				reason := why(later.why, max(i, j) > in.first)
				if reason == "" {
					reason = why(o.facts[f].why, f > in.firstFact)
				}
				all = append(all, o.under(w, &spec, later.base, o.seen(w.key, in.firstFact, f), reason)...)
				// As long as an edit has not been carried out, a removal is measured by what ran before it.
				after := share.Of(w.key, spec, o.facts[f].clusters)
				if max(i, j) > in.first && o.excuses(w, start, after, o.facts[f].clusters) {
					all = append(all, outcome{spec: &spec, shares: after, why: reason})
				}
			}
		}
	}
	return all
}

// seen are the facts that may be acted upon: those of now, and those with the labels that clusters had until then, one after the other. A cluster
// that loses its label is gone on with for half a minute, whatever others do meanwhile.
func (o *Oracle) seen(k history.Key, first, last int) []history.Facts {
	facts := o.facts[last].clusters
	all := []history.Facts{facts}
	for i := last - 1; i >= first; i-- {
		earlier, more := o.facts[i].clusters, false
		for _, name := range earlier.Names() {
			if c := facts[name]; earlier[name].Labels[k] && c.Joined && !c.Labels[k] {
				labels := maps.Clone(c.Labels)
				if labels == nil {
					labels = map[history.Key]bool{}
				}
				labels[k] = true
				c.Labels = labels
				facts, more = facts.With(name, c), true
			}
		}
		if more {
			all = append(all, facts)
		}
	}
	return all
}

// justUnlabelled tells whether a cluster of the fleet has lost its label so shortly before that it may be gone on with.
func (o *Oracle) justUnlabelled(k history.Key, at time.Time) bool {
	for i := len(o.facts) - 1; i > 0 && at.Sub(o.facts[i].at) < patience; i-- {
		for name, c := range o.facts[i-1].clusters {
			if now := o.facts[i].clusters[name]; c.Labels[k] && now.Joined && !now.Labels[k] {
				return true
			}
		}
	}
	return false
}

func why(text string, asked bool) string {
	if !asked {
		return ""
	}
	return text
}

// under are the outcomes of one spec under any of some facts.
func (o *Oracle) under(w *workload, spec *history.Spec, base history.Facts, seen []history.Facts, why string) []outcome {
	var all []outcome
	for _, facts := range seen {
		for _, out := range share.Cases(w.key, *spec, base, facts, w.runs) {
			shares, _ := share.Asked(w.key, *spec, share.Without(base, out), share.Without(facts, out))
			all = append(all, outcome{spec: spec, shares: shares, why: why})
		}
	}
	return all
}

// relevant are the facts of a window but for those that came and went while nothing was asked for.
func (o *Oracle) relevant(w *workload, in window) []int {
	relevant := []int{in.firstFact}
	for i := in.firstFact + 1; i < in.lastFact; i++ {
		var until time.Time
		if i+1 < in.lastFact {
			until = o.facts[i+1].at.Add(lag) // what has changed is not known at once
		}
		if w.asksBetween(in, o.facts[i].at, until) {
			relevant = append(relevant, i)
		}
	}
	return relevant
}

// asksBetween tells whether some version let things be changed between two moments, a zero one being not yet.
func (w *workload) asksBetween(in window, from, until time.Time) bool {
	for i := in.first; i < in.last; i++ {
		v := w.versions[i]
		if !v.asks() {
			continue
		}
		var ends time.Time
		if i+1 < in.last && !w.versions[i+1].done.IsZero() {
			ends = w.versions[i+1].done.Add(lag)
		}
		if (ends.IsZero() || from.Before(ends)) && (until.IsZero() || v.begin.Before(until)) {
			return true
		}
	}
	return false
}
