package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/division"
)

const preferenceField = "spec.placement.division.preference"

// ByRoom tells whether replicas are divided by what clusters can still take, which only their backend knows.
func (p *Plan) ByRoom() bool {
	if p.Replicas == nil || p.Division() != v1alpha1.DivisionTypeDivided {
		return false
	}
	preference := p.fw.Spec.Placement.Division.Preference
	return preference == v1alpha1.DivisionPreferenceAggregated || preference == v1alpha1.DivisionPreferenceAvailableCapacity
}

// byRoom divides by what clusters can still take. What runs stays where it is. After a scale to zero, the clusters that
// kept the object are filled again, if they can take all.
func (p *Plan) byRoom(total int32, clusters []backends.Cluster, current map[string]int32,
	divide func(int32, []division.Room) (map[string]int32, error),
) (map[string]int32, error) {
	rooms := make([]division.Room, 0, len(clusters))
	var kept []division.Room
	running := int32(0)
	for _, c := range clusters {
		n, has := current[c.Name]
		free, err := p.room(c, n)
		if err != nil {
			return nil, err
		}
		room := division.Room{Cluster: c.Name, Current: n, Free: free}
		rooms = append(rooms, room)
		running += n
		if has {
			kept = append(kept, room)
		}
	}
	if running == 0 && len(kept) > 0 {
		if shares, err := divide(total, kept); err == nil {
			for _, c := range clusters {
				shares[c.Name] += 0
			}
			return shares, nil
		}
	}
	return divide(total, rooms)
}

// room is how many more pods of the cluster's manifest the cluster can take. Where it is not known what is free, what this
// workload runs is taken from what nodes can give in all.
func (p *Plan) room(c backends.Cluster, current int32) (int64, error) {
	if c.Free == nil && c.Allocatable == nil {
		return 0, &backends.Error{
			Code: backends.CodeNoCapacity, Field: preferenceField, Value: string(p.fw.Spec.Placement.Division.Preference),
			Message: fmt.Sprintf("the backend does not know what is free on cluster %q", c.Name),
			Remedy:  "use " + string(v1alpha1.DivisionPreferenceWeighted) + ", or have the backend collect the clusters' resources (docs/placement.md)",
		}
	}
	manifest, err := p.overridden(c)
	if err != nil {
		return 0, err
	}
	requests, err := p.requests(manifest)
	if err != nil {
		return 0, err
	}
	if c.Free == nil {
		return max(0, fit(c.Allocatable, requests)-int64(current)), nil
	}
	return fit(c.Free, requests), nil
}

// requests are what one pod asks for.
func (p *Plan) requests(manifest *unstructured.Unstructured) (corev1.ResourceList, error) {
	raw, _, err := unstructured.NestedMap(manifest.Object, p.Kind.PodTemplatePath(manifest)...)
	if err != nil {
		return nil, fmt.Errorf("read the pod template: %w", err)
	}
	var pod corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &pod); err != nil {
		return nil, &backends.Error{Code: backends.CodeInvalidTemplate, Field: "spec.template",
			Message: "the pod template cannot be read", Remedy: "correct it", Err: err}
	}
	return resourcehelper.PodRequests(&corev1.Pod{Spec: pod.Spec}, resourcehelper.PodResourcesOptions{}), nil
}

// fit is how often requests fit into what is free. A pod takes one of the pods that nodes allow, where that is known.
func fit(free, requests corev1.ResourceList) int64 {
	room := int64(math.MaxInt32)
	if pods, known := free[corev1.ResourcePods]; known {
		room = min(room, max(0, pods.Value()))
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		asked, has := requests[name], free[name]
		if asked.IsZero() {
			continue
		}
		// Processors are counted in thousandths; of bytes there may be more than thousandths can count.
		if name == corev1.ResourceCPU {
			room = min(room, max(0, has.MilliValue())/asked.MilliValue())
			continue
		}
		room = min(room, max(0, has.Value())/max(1, asked.Value()))
	}
	return room
}
