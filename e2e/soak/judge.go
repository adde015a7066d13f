// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"

	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/oracle"
)

// judge shares the oracle among those who act and those who see, and tells its violations.
type judge struct {
	out *report

	mu     sync.Mutex
	oracle *oracle.Oracle
	told   int
	// events counts what was seen, and pods those that ever were.
	events  int
	pods    map[string]bool
	settled int
}

func newJudge(out *report) *judge {
	return &judge{out: out, oracle: oracle.New(choice.Facts(), time.Now()), pods: map[string]bool{}}
}

// with gives access to the oracle, and tells what it has found.
func (j *judge) with(do func(o *oracle.Oracle)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	do(j.oracle)
	for ; j.told < len(j.oracle.Violations); j.told++ {
		j.out.violation(j.oracle.Violations[j.told])
	}
}

func (j *judge) begin(a history.Action) {
	j.with(func(o *oracle.Oracle) { o.Begin(a, time.Now()) })
}

func (j *judge) carried(k history.Key, uid string, generation int64) {
	j.with(func(o *oracle.Oracle) { o.Carried(k, uid, generation, time.Now()) })
}

func (j *judge) gone(k history.Key) {
	j.with(func(o *oracle.Oracle) { o.Gone(k, time.Now()) })
}

func (j *judge) differs(k history.Key) (text string) {
	j.with(func(o *oracle.Oracle) { text = o.Differs(k) })
	return text
}

func (j *judge) unsure(k history.Key) (unsure bool) {
	j.with(func(o *oracle.Oracle) { unsure = o.Unsure(k) })
	return unsure
}

func (j *judge) holds(k history.Key) (holds bool) {
	j.with(func(o *oracle.Oracle) { holds = o.Holds(k) })
	return holds
}

func (j *judge) facts() (facts history.Facts) {
	j.with(func(o *oracle.Oracle) { facts = o.Facts() })
	return facts
}

// sawReady hands on that a FleetWorkload said that it is as asked.
func (j *judge) sawReady(k history.Key, uid string, generation int64, at time.Time) {
	j.with(func(o *oracle.Oracle) {
		if o.Settled(k, uid, generation, at) {
			j.settled++
		}
	})
}
