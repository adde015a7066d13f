package histories

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// dice are where choices come from.
type dice struct {
	*rand.Rand
	clusters []string
	numbers  int
}

func (d *dice) chance(percent int) bool { return d.IntN(100) < percent }

func (d *dice) word(words ...string) string { return words[d.IntN(len(words))] }

func (d *dice) cluster() string { return d.word(d.clusters...) }

// fresh is a number that was never used before.
func (d *dice) fresh() int {
	d.numbers++
	return d.numbers
}

// some are some of the clusters, at least one.
func (d *dice) some() string {
	var names []string
	for _, name := range d.clusters {
		if d.chance(55) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = append(names, d.cluster())
	}
	return strings.Join(names, " ")
}

func (d *dice) weights() string {
	var parts []string
	for _, name := range d.clusters {
		if d.chance(85) {
			parts = append(parts, fmt.Sprintf("%s=%d", name, 1+d.IntN(5)))
		}
	}
	return strings.Join(parts, " ")
}

func (d *dice) groups() string {
	n := 1 + d.IntN(len(d.clusters)-1)
	names := slices.Clone(d.clusters)
	d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return strings.Join(names[:n], " ") + "|" + strings.Join(names[n:], " ")
}

func (d *dice) wait() int {
	switch roll := d.IntN(100); {
	case roll < 30:
		return d.IntN(4)
	case roll < 60:
		return 3 + d.IntN(8)
	case roll < 80:
		return 28 + d.IntN(8)
	case roll < 95:
		return 40 + d.IntN(60)
	default:
		return 300 + d.IntN(400)
	}
}

// choice is one kind of step with its weight.
type choice struct {
	weight int
	make   func(d *dice) []step
}

func one(do string, s string, n int) []step { return []step{{Do: do, S: s, N: n}} }

// choices are all kinds of steps. Some come with what mends them, later.
func choices() []choice {
	return slices.Concat(edits(), people(), events(), faults())
}

func edits() []choice {
	return []choice{
		{8, func(d *dice) []step { return one("image", "", d.fresh()) }},
		{3, func(d *dice) []step { return one("env", "", d.fresh()) }},
		{4, func(d *dice) []step { return one("over", d.cluster(), d.fresh()) }},
		{2, func(d *dice) []step { return one("over", d.cluster(), 0) }},
		{6, func(d *dice) []step { return one("own", d.cluster(), d.IntN(6)) }},
		{4, func(d *dice) []step { return one("own", d.cluster(), -1) }},
		{10, func(d *dice) []step { return one("replicas", "", d.IntN(13)) }},
		{6, func(d *dice) []step { return one("names", d.some(), 0) }},
		{2, func(*dice) []step { return one("names", "", 0) }},
		{4, func(d *dice) []step { return one("exclude", d.word("", d.cluster()), 0) }},
		{8, func(d *dice) []step { return one("label", "", d.IntN(4)) }},
		{5, func(d *dice) []step { return one("weights", d.word("", d.weights(), d.weights()), 0) }},
		{3, func(d *dice) []step { return one("divided", "", d.IntN(2)) }},
		{2, func(d *dice) []step { return one("prefer", d.word("AvailableCapacity", "Aggregated"), 0) }},
		{2, func(d *dice) []step { return one("number", "", d.IntN(4)) }},
		{2, func(d *dice) []step { return one("groups", d.groups(), 0) }},
		{4, func(d *dice) []step {
			return one("failover", d.word("", "Graceful", "Immediate", "Never"), d.IntN(2)*30)
		}},
		{6, func(d *dice) []step { return one("paused", d.word(d.cluster(), d.some()), 0) }},
		{5, func(*dice) []step { return one("paused", "", 0) }},
		{8, func(*dice) []step { return one("suspend", "", 1) }},
		{6, func(*dice) []step { return one("suspend", "", 0) }},
		{2, func(d *dice) []step { return one("orphan", "", d.IntN(2)) }},
		{2, func(d *dice) []step { return one("adopt", "", d.IntN(2)) }},
		{10, func(d *dice) []step { return one("backend", d.word(gated, plain), 0) }},
		{2, func(d *dice) []step { return one("wave", d.word("", "1", "50%"), d.IntN(2)*20) }},
		{1, func(d *dice) []step { return one("manual", "", d.IntN(2)) }},
		{1, func(d *dice) []step { return one("timeout", "", d.IntN(2)*60) }},
		{1, func(d *dice) []step { return one("pause", "", d.IntN(2)) }},
	}
}

func people() []choice {
	return []choice{
		{3, func(*dice) []step { return one("delete", "", 0) }},
		{5, func(*dice) []step { return one("create", "", 0) }},
		{10, func(d *dice) []step { return one("confirm", "", max(0, d.IntN(5)-3)) }},
		{2, func(*dice) []step { return one("rebuilt", "", 0) }},
		{4, func(d *dice) []step { return one("approve", "", max(0, d.IntN(5)-3)) }},
		{2, func(d *dice) []step { return one("foreign", d.cluster(), 1+d.IntN(6)) }},
	}
}

// mistake is a label that is lost on clusters, confirmed, mended, and lost again.
func mistake(d *dice) []step {
	clusters := d.clusters[1:]
	all := []step{{Do: "label", N: 1}, {Do: "divided", N: d.IntN(2)}}
	for range 2 {
		for _, name := range clusters {
			all = append(all, step{Do: "label off", S: name})
		}
		all = append(all, step{Wait: 45, Do: "confirm"}, step{Wait: 20})
		for _, name := range clusters {
			all = append(all, step{Do: "label on", S: name})
		}
		all = append(all, step{Wait: 25, Do: "confirm"}, step{Wait: 25})
	}
	return all
}

// rejoins are clusters that leave and come back while the workload changes hands.
func rejoins(d *dice) []step {
	soon := func() int { return 1 + d.IntN(12) }
	all := []step{{Do: "backend", S: d.word(gated, plain)}}
	for range 1 + d.IntN(3) {
		name, from := d.cluster(), d.IntN(3)
		all = append(all, step{Wait: soon(), Do: "leave", S: name, N: from})
		switch d.IntN(6) {
		case 0:
			all = append(all, step{Wait: soon(), Do: "replicas", N: d.IntN(13)})
		case 1:
			all = append(all, step{Wait: soon(), Do: d.word("die", "fail"), N: d.IntN(6)})
		case 2:
			all = append(all, step{Wait: soon(), Do: "backend", S: d.word(gated, plain)})
		}
		if d.chance(80) {
			all = append(all, step{Wait: soon(), Do: "join", S: name})
		}
	}
	return all
}

func events() []choice {
	return []choice{
		{2, mistake},
		{3, rejoins},
		{14, func(d *dice) []step { return one("label off", d.cluster(), 0) }},
		{8, func(d *dice) []step { return one("label on", d.cluster(), 0) }},
		{3, func(d *dice) []step { return one("taint", d.cluster(), d.IntN(2)) }},
		{3, func(d *dice) []step { return one("untaint", d.cluster(), 0) }},
		{5, func(d *dice) []step { return one("lose", d.cluster(), 0) }},
		{6, func(d *dice) []step { return one("back", d.cluster(), 0) }},
		{2, func(d *dice) []step { return one("leave", d.cluster(), d.IntN(3)) }},
		{4, func(d *dice) []step { return one("join", d.cluster(), 0) }},
		{3, func(d *dice) []step { return []step{{Do: "hide", W: d.IntN(2), S: d.cluster(), N: 1 + d.IntN(20)}} }},
	}
}

func faults() []choice {
	return []choice{
		{3, func(d *dice) []step { return one("down", d.word(gated, plain), 0) }},
		{4, func(d *dice) []step { return one("up", d.word(gated, plain), 0) }},
		{10, func(d *dice) []step { return one("die", "", d.IntN(6)) }},
		{6, func(d *dice) []step { return one("fail", "", d.IntN(6)) }},
		{3, func(*dice) []step { return one("restart", "", 0) }},
	}
}

// random makes the history of a seed. In some, changes wait for approval, which comes now and then.
func random(seed uint64) history {
	h, d := upgraded(unasked(seed), seed), &dice{Rand: rand.New(rand.NewPCG(seed, 2))}
	if !d.chance(20) {
		return h
	}
	var steps []step
	for _, s := range h.Steps {
		if s.Do == "create" || d.chance(5) {
			steps = append(steps, step{W: s.W, Do: "approval", N: 1})
		}
		steps = append(steps, s)
		if d.chance(60) {
			steps = append(steps, step{W: s.W, Wait: d.IntN(12), Do: "approve change", N: max(0, d.IntN(12)-10)})
		}
		if d.chance(4) {
			steps = append(steps, step{W: s.W, Do: "approval"})
		}
	}
	h.Steps = steps
	return h
}

// upgraded has clusters serve a newer version of the kind one after the other, in some histories, while the spec asks for one or the other.
func upgraded(h history, seed uint64) history {
	d := &dice{Rand: rand.New(rand.NewPCG(seed, 3))}
	if !d.chance(20) {
		return h
	}
	var steps []step
	for i := range h.Clusters {
		if name := fmt.Sprint("c", i+1); d.chance(60) {
			steps, d.clusters = append(steps, step{Do: "older", S: name}), append(d.clusters, name)
		}
	}
	for _, s := range h.Steps {
		steps = append(steps, s)
		if d.chance(15) {
			steps = append(steps, step{W: s.W, Wait: d.IntN(12), Do: "version", N: d.IntN(3)})
		}
		if len(d.clusters) > 0 && d.chance(10) {
			steps = append(steps, step{Wait: d.IntN(12), Do: "upgrade", S: d.cluster()})
		}
	}
	h.Steps = steps
	return h
}

// unasked makes a history in which nobody has to approve a change.
func unasked(seed uint64) history {
	d := &dice{Rand: rand.New(rand.NewPCG(seed, 1)), numbers: 1}
	h := history{Clusters: 2 + d.IntN(4), Workloads: 1, AtOnce: d.IntN(3)}
	if d.chance(25) {
		h.Workloads += 1 + d.IntN(2)
	}
	for i := range h.Clusters {
		d.clusters = append(d.clusters, fmt.Sprint("c", i+1))
	}
	all, kinds := 0, choices()
	for _, k := range kinds {
		all += k.weight
	}
	for n := range h.Workloads {
		for range d.IntN(4) { // of the draft
			for _, s := range edits()[d.IntN(len(edits()))].make(d) {
				s.W = n
				h.Steps = append(h.Steps, s)
			}
		}
		h.Steps = append(h.Steps, step{Do: "suspend", W: n}, step{Do: "create", W: n})
	}
	if d.chance(70) {
		h.Steps = append(h.Steps, step{Wait: 30 + d.IntN(60), Luck: d.Uint64() % 1000})
	}
	for range 3 + d.IntN(10) {
		roll := d.IntN(all)
		i := slices.IndexFunc(kinds, func(k choice) bool {
			roll -= k.weight
			return roll < 0
		})
		made, who := kinds[i].make(d), d.IntN(h.Workloads)
		for _, s := range made {
			if s.Do != "hide" {
				s.W = who
			}
			if s.Wait == 0 {
				s.Wait = d.wait() / len(made)
			}
			if d.chance(65) {
				s.Luck = d.Uint64()%100000 + 1
			}
			h.Steps = append(h.Steps, s)
		}
	}
	return h
}
