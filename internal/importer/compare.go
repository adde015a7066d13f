package importer

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// Change is what would become another on a cluster.
type Change struct {
	Cluster string `json:"cluster"`
	// What happens to the object as a whole; empty when it is there and stays.
	What string `json:"what,omitempty"`
	// Pods is true when the pod template differs, so that most kinds make their pods anew.
	Pods bool `json:"pods,omitempty"`
	// Differences turn what runs into what would run.
	Differences []jsondiff.Op `json:"differences,omitempty"`
}

// What happens to an object as a whole.
const (
	Starts = "runs nothing of it now, and the operator would start it"
	Stays  = "runs it now, and the operator would not take it over: it stays as it is, and belongs to nobody"
)

// Compare tells what would change if the targets, which the operator's own code has made, took the place of what runs. What API servers and
// orchestrators add is left out on both sides, since the operator neither sends nor removes it.
func Compare(running map[string]*unstructured.Unstructured, targets []backends.Target, kind *interpreter.Kind) (changes []Change) {
	wanted := map[string]*unstructured.Unstructured{}
	for _, t := range targets {
		if t.Manifest != nil {
			wanted[t.Cluster] = t.Manifest
		}
	}
	clusters := slices.Collect(maps.Keys(wanted))
	for cluster := range running {
		if wanted[cluster] == nil {
			clusters = append(clusters, cluster)
		}
	}
	slices.Sort(clusters)
	for _, cluster := range clusters {
		is, want := running[cluster], wanted[cluster]
		switch {
		case is == nil:
			changes = append(changes, Change{Cluster: cluster, What: Starts})
		case want == nil:
			changes = append(changes, Change{Cluster: cluster, What: Stays})
		default:
			if ops := jsondiff.Diff(clean(is).Object, clean(want).Object); len(ops) > 0 {
				changes = append(changes, Change{Cluster: cluster, Differences: ops, Pods: inPods(ops, kind.PodTemplatePath(want))})
			}
		}
	}
	return changes
}

// inPods tells whether any of the operations is about the pod template.
func inPods(ops []jsondiff.Op, template []string) bool {
	at := jsondiff.Pointer(template...)
	return template != nil && slices.ContainsFunc(ops, func(op jsondiff.Op) bool {
		return op.Path == at || strings.HasPrefix(op.Path, at+"/") || strings.HasPrefix(at, op.Path+"/")
	})
}
