package interpreter

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	kruise "github.com/openkruise/kruise-api/apps/v1alpha1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetworkload/fleetworkload/backends"
)

type cloneSet struct{}

func (cloneSet) Resource() string          { return "clonesets" }
func (cloneSet) ReplicasPath() []string    { return []string{"spec", "replicas"} }
func (cloneSet) PodTemplatePath() []string { return []string{"spec", "template"} }
func (cloneSet) SelectorPath() []string    { return []string{"spec", "selector"} }

func (cloneSet) Feedback() []backends.FeedbackField {
	return statusFields("observedGeneration", "replicas", "readyReplicas", "updatedReplicas", "availableReplicas",
		"updatedReadyReplicas")
}

// State follows OpenKruise's own notion of a finished update (pkg/controller/cloneset/utils): updated pods count
// against the partition.
func (cloneSet) State(report Report) (State, error) {
	var status kruise.CloneSetStatus
	if err := decode(report.Status, &status); err != nil {
		return State{}, err
	}
	var spec kruise.CloneSetSpec
	if err := decodeSpec(report, &spec); err != nil {
		return State{}, err
	}
	c := counts{
		desired: desired(report, spec.Replicas), replicas: status.Replicas, ready: status.ReadyReplicas,
		updated: status.UpdatedReplicas, available: status.AvailableReplicas, paused: spec.UpdateStrategy.Paused,
	}
	kept, err := keptOld(spec.UpdateStrategy.Partition, c.desired)
	if err != nil {
		return State{}, err
	}
	c.expectedUpdated = c.desired - kept
	return c.state(), nil
}

// keptOld is how many pods a partition keeps on the old revision: OpenKruise rounds percentages up, and lets at least
// one pod go unless the partition is 100% (pkg/util/tools.go, CalculatePartitionReplicas).
func keptOld(partition *intstr.IntOrString, replicas int32) (int32, error) {
	if partition == nil {
		return 0, nil
	}
	if partition.Type == intstr.Int {
		return min(max(partition.IntVal, 0), replicas), nil
	}
	number, isPercent := strings.CutSuffix(partition.StrVal, "%")
	percent, err := strconv.ParseFloat(number, 64)
	if !isPercent || err != nil || math.IsNaN(percent) || percent < 0 || percent > 100 {
		return 0, fmt.Errorf("partition %q is neither a number nor a percentage from 0%% to 100%%", partition.StrVal)
	}
	kept := int32(math.Ceil(percent * float64(replicas) / 100))
	if replicas > 1 && kept == replicas && percent < 100 {
		kept--
	}
	return kept, nil
}
