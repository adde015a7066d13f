package interpreter

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

type deployment struct{}

func (deployment) Resource() string          { return "deployments" }
func (deployment) ReplicasPath() []string    { return []string{"spec", "replicas"} }
func (deployment) PodTemplatePath() []string { return []string{"spec", "template"} }
func (deployment) SelectorPath() []string    { return []string{"spec", "selector"} }

func (deployment) Feedback() []backends.FeedbackField {
	return statusFields("observedGeneration", "replicas", "readyReplicas", "updatedReplicas", "availableReplicas")
}

// State follows kubectl rollout status (k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go).
func (deployment) State(report Report) (State, error) {
	var status appsv1.DeploymentStatus
	if err := decode(report.Status, &status); err != nil {
		return State{}, err
	}
	var spec appsv1.DeploymentSpec
	if err := decodeSpec(report, &spec); err != nil {
		return State{}, err
	}
	counts := counts{
		desired: desired(report, spec.Replicas), replicas: status.Replicas, ready: status.ReadyReplicas,
		updated: status.UpdatedReplicas, available: status.AvailableReplicas,
	}
	counts.expectedUpdated = counts.desired
	counts.paused = spec.Paused
	return counts.state(), nil
}

func decodeSpec(report Report, into any) error {
	if report.Manifest == nil {
		return nil
	}
	spec, ok := report.Manifest.Object["spec"].(map[string]any)
	if !ok {
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, into); err != nil {
		return fmt.Errorf("read spec: %w", err)
	}
	return nil
}

func desired(report Report, inSpec *int32) int32 {
	switch {
	case report.Desired != nil:
		return *report.Desired
	case inSpec != nil:
		return *inSpec
	default:
		return 1
	}
}

// counts is a replicated workload in numbers.
type counts struct {
	desired, replicas, ready, updated, available int32
	// expectedUpdated is how many the spec wants on the newest revision.
	expectedUpdated int32
	paused          bool
}

func (c counts) state() State {
	s := State{Replicas: c.replicas, Ready: c.ready, Updated: c.updated, Available: c.available}
	switch {
	case c.updated < c.expectedUpdated && c.paused:
		s.Health, s.Message = v1alpha1.HealthSuspended, fmt.Sprintf("paused with %d of %d updated", c.updated, c.expectedUpdated)
	case c.updated < c.expectedUpdated:
		s.Health, s.Message = v1alpha1.HealthProgressing, fmt.Sprintf("%d of %d updated", c.updated, c.expectedUpdated)
	case c.replicas < c.desired:
		s.Health, s.Message = v1alpha1.HealthProgressing, fmt.Sprintf("%d of %d created", c.replicas, c.desired)
	case c.replicas > c.desired:
		s.Health, s.Message = v1alpha1.HealthProgressing, fmt.Sprintf("%d more than %d wanted", c.replicas-c.desired, c.desired)
	case c.available < c.desired:
		s.Health, s.Message = v1alpha1.HealthProgressing, fmt.Sprintf("%d of %d available", c.available, c.desired)
	case c.expectedUpdated < c.desired:
		s.Health, s.Message = v1alpha1.HealthHealthy, fmt.Sprintf("update held at its partition: %d of %d updated as asked", c.updated, c.desired)
	default:
		s.Health = v1alpha1.HealthHealthy
	}
	return s
}
