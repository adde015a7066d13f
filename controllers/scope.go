package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// scope carries what one pass has learned. What was not learned is nil, and counts as unknown.
type scope struct {
	// fw is what the API server has; it is not changed.
	fw  *v1alpha1.FleetWorkload
	now metav1.Time

	// backend is the name of the backend that owns, or will own, the workload.
	backend string
	driver  backends.Driver

	kind     interpreter.Kind
	query    backends.Query
	template *unstructured.Unstructured
	revision string
	replicas *int32

	fleet    *backends.Fleet
	observed *backends.Observation

	overrides targetRenderer
	// chosen are the clusters the placement selects, sorted; nil until the backend has settled.
	chosen  []string
	targets []backends.Target
	waiting string

	// record is what the pass wants to remember in the status.
	record record
	// stop ends the pass without an error.
	stop bool
	// gone is true when nothing is left to do for a deleted FleetWorkload.
	gone bool
}

// record are the small explicit facts that the status keeps (law 6).
type record struct {
	backend       string
	workload      *v1alpha1.WorkloadReference
	placementHash string
}

// targetRenderer renders the manifest of one cluster.
type targetRenderer interface {
	Target(template *unstructured.Unstructured, cluster backends.Cluster) (*unstructured.Unstructured, error)
}

func newScope(fw *v1alpha1.FleetWorkload, now time.Time) *scope {
	return &scope{
		fw:  fw,
		now: metav1.NewTime(now.Truncate(time.Second)),
		query: backends.Query{
			Key:       backends.Key{NamespacedName: client.ObjectKeyFromObject(fw), UID: fw.UID},
			Placement: fw.Spec.Placement,
			Options:   fw.Spec.BackendOptions,
		},
		record: record{
			backend: fw.Status.Backend, workload: fw.Status.Workload, placementHash: fw.Status.PlacementHash,
		},
	}
}

// division is spec.placement.division.type with its default.
func (s *scope) division() v1alpha1.DivisionType {
	if d := s.fw.Spec.Placement.Division; d != nil && d.Type != "" {
		return d.Type
	}
	return v1alpha1.DivisionTypeDuplicated
}

// suspended is spec.suspend with its default.
func (s *scope) suspended() bool { return s.fw.Spec.Suspend != nil && *s.fw.Spec.Suspend }
