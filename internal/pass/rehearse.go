package pass

import (
	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/aggregate"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// MostReads bounds how often one pass may ask: each answer lets it ask for something else, a few times. One that asks more often asks for
// what nobody answers, and would do so for ever.
const MostReads = 20

// mostRehearsed bounds how many passes only record something before one has an order: claiming and deciding are one each.
const mostRehearsed = 10

// Rehearse plays passes as if the spec had been approved, each status were written at once and nothing else happened, until one has something
// to order, or ends with a problem. read answers what they ask. Nothing of in is changed.
func Rehearse(in In, read func(*In, Reads)) (*Decision, *aggregate.Problem) {
	var d *Decision
	fw, err := approved(in.FleetWorkload, in.Now)
	if err != nil {
		return &Decision{in: in, err: err}, &aggregate.Problem{Reason: v1alpha1.ReasonInternalError, Message: err.Error()}
	}
	in.FleetWorkload, in.rehearsed = fw, true
	reads := 0
	for range mostRehearsed {
		in.Sides, in.Objects, in.Restarts = map[string]*Side{}, map[string]Object{}, map[string]*int32{}
		in.Access = map[Access]Answer{}
		in.Turn, in.Preflight, in.Kept, in.Planned = nil, nil, nil, nil
		for d = Decide(in); !d.Reads.Empty(); d = Decide(in) {
			if reads++; reads > mostRehearsed*MostReads {
				return d, &aggregate.Problem{Reason: v1alpha1.ReasonInternalError, Message: "what it asks is not answered"}
			}
			read(&in, d.Reads)
		}
		if d.err != nil || len(d.Orders) > 0 {
			problem, _ := problemOf(d.err, d.backend)
			return d, problem
		}
		fw := in.FleetWorkload.DeepCopy()
		fw.Status = d.Conclude(nil).Status
		in.FleetWorkload = fw
	}
	return d, &aggregate.Problem{Reason: v1alpha1.ReasonInternalError, Message: "it records and never orders anything"}
}

// Err is why the decision came to nothing; nil when it has not.
func (d *Decision) Err() error { return d.err }

// Targets are what the clusters of the present backend are to run.
func (d *Decision) Targets() []backends.Target { return d.wanted() }

// Observed is what the workload's backend reports; nil when it was not asked.
func (d *Decision) Observed() *backends.Observation { return d.observed }

// Kind is the workload's kind.
func (d *Decision) Kind() *interpreter.Kind { return d.work.kind }

// Revision is that of the manifests; empty when the spec is not understood.
func (d *Decision) Revision() string {
	if d.work.plan == nil {
		return ""
	}
	return d.work.plan.Revision
}

// Beginning is what a change of spec.backend comes to that has not begun: the clusters that would change hands, and all that stands
// against it. It is nil when none is asked for, or when it was not looked at.
func (d *Decision) Beginning() *v1alpha1.MigrationStatus {
	if d.begins == nil || d.begins.err != nil {
		return nil
	}
	return &d.begins.next
}
