package controllers

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/aggregate"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/placement"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// scope carries what one pass has learned. What was not learned is nil, and counts as unknown.
type scope struct {
	// fw is what the API server has; it is not changed.
	fw *v1alpha1.FleetWorkload
	// spec is fw with the spec that is carried out: another one than the newest during a hand-over.
	spec *v1alpha1.FleetWorkload
	// here is spec with clusters' names as the backend has them.
	here *v1alpha1.FleetWorkload
	now  metav1.Time

	// backend is the name of the backend that owns, or will own, the workload.
	backend string
	driver  backends.Driver
	query   backends.Query
	kind    *interpreter.Kind

	fleet    *backends.Fleet
	observed *backends.Observation

	plan    *plan.Plan
	asked   guard.Asked
	choice  *placement.Choice
	targets []backends.Target
	// keeps are the targets that are given up and keep what they run for now.
	keeps []string
	// looking are the clusters that are asked what they run, before it is taken over.
	looking []string
	// unused are the overrides that select no chosen cluster.
	unused  []string
	waiting string
	// missing are clusters that the backend no longer chooses, and that are not left yet.
	missing []string
	// backendAgain is after what time a backend's next step may be another one; 0 when time alone changes nothing.
	backendAgain time.Duration
	// waitsForTurn is true while other FleetWorkloads are being handed over first.
	waitsForTurn bool

	// joined are the reports, once targets are known.
	joined []aggregate.Report

	// companions travel along; keep says which others stay.
	companions []backends.Companion
	keep       backends.Keep
	// lacking is what pods need and the management cluster lacks; notes are about the rest.
	lacking []plan.Need
	notes   []string

	// handOver is nil but in a pass with two backends.
	handOver *handOver

	// record is what the pass wants to remember in the status.
	record record
	// stop ends the pass without an error.
	stop bool
	// gone is true when nothing is left to do for a deleted FleetWorkload.
	gone bool
}

// record are the small explicit facts that the status keeps (law 6).
type record struct {
	backend   string
	workload  *v1alpha1.WorkloadReference
	placement *v1alpha1.PlacementRecord
	migration *v1alpha1.MigrationStatus
}

func suspended(fw *v1alpha1.FleetWorkload) bool { return fw.Spec.Suspend != nil && *fw.Spec.Suspend }

func newScope(fw *v1alpha1.FleetWorkload, now time.Time) *scope {
	return &scope{
		fw: fw, spec: fw, here: fw,
		// Until a driver is found for it, too: messages name the backend.
		backend: cmp.Or(fw.Status.Backend, fw.Spec.Backend),
		now:     metav1.NewTime(now.Truncate(time.Second)),
		record: record{
			backend: fw.Status.Backend, workload: fw.Status.Workload, placement: fw.Status.Placement,
			migration: fw.Status.Migration.DeepCopy(),
		},
	}
}
