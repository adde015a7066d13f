package main

import (
	"errors"
	"fmt"

	"github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/default/thirdparty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// aggregation compares how the status of a CloneSet is aggregated over clusters, by us and by the interpreter that
// Karmada has built in: from the raw JSON of all clusters, and when one cluster's status has changed. Karmada knows only
// the first way, so it is the peer of both.
func aggregation(sizes ...int) ([]comparison, error) {
	var raw, changed, growth []comparison
	var last work
	for i, n := range sizes {
		f, err := newFleet(n)
		if err != nil {
			return nil, err
		}
		if err := f.agree(); err != nil {
			return nil, fmt.Errorf("aggregate %d clusters: %w", n, err)
		}
		raw = append(raw, comparison{name: fmt.Sprintf("aggregate-raw/%d", n), ours: f.fromRaw, peer: f.karmada, bar: 5})
		changed = append(changed, comparison{
			name: fmt.Sprintf("aggregate-one-changed/%d", n), ours: f.oneChanged(), peer: f.karmada, bar: 50,
		})
		if i > 0 {
			// Ten times the clusters take ten times as long; half of that again is left for what no longer fits into caches.
			growth = append(growth, comparison{
				name: fmt.Sprintf("aggregate-raw-growth/%d-%d", sizes[i-1], n), ours: f.fromRaw, peer: last,
				bar: 1.5 * float64(n) / float64(sizes[i-1]), slower: true,
			})
		}
		last = f.fromRaw
	}
	return append(append(raw, changed...), growth...), nil
}

// generation of the CloneSet on the control plane and on each cluster.
const generation = 3

// fleet is a CloneSet on clusters, each of which reports one of two statuses.
type fleet struct {
	kind     *interpreter.Kind
	names    []string
	statuses [2][][]byte

	peer *thirdparty.ConfigurableInterpreter
	// template and items are the peer's input.
	template *unstructured.Unstructured
	items    []v1alpha2.AggregatedStatusItem
}

func newFleet(n int) (*fleet, error) {
	kinds, err := interpreter.New()
	if err != nil {
		return nil, err
	}
	kind := kinds.For(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"})
	f := &fleet{kind: kind, peer: thirdparty.NewConfigurableInterpreter(), template: template(kind)}
	for i := range n {
		name := fmt.Sprintf("member-%04d", i)
		f.names = append(f.names, name)
		for which := range f.statuses {
			f.statuses[which] = append(f.statuses[which], status(10+i%7, i%5+which))
		}
		f.items = append(f.items, v1alpha2.AggregatedStatusItem{
			ClusterName: name, Applied: true, Health: v1alpha2.ResourceHealthy,
			Status: &runtime.RawExtension{Raw: f.statuses[0][i]},
		})
	}
	return f, nil
}

// status is what Karmada's interpreter reflects from a member cluster: of so many replicas, so many are updated.
func status(replicas, updated int) []byte {
	return fmt.Appendf(nil, `{"availableReplicas":%d,"currentRevision":"web-59df6bd888","expectedUpdatedReplicas":%d,"generation":%d,`+
		`"labelSelector":"app=web","observedGeneration":%d,"readyReplicas":%d,"replicas":%d,"resourceTemplateGeneration":%d,`+
		`"updateRevision":"web-7c4b8d9f6","updatedReadyReplicas":%d,"updatedReplicas":%d}`,
		replicas, replicas, generation, generation, replicas, replicas, generation, updated, updated)
}

// template is the CloneSet on the control plane, as small as it can be: the peer reads all of it each time.
func template(kind *interpreter.Kind) *unstructured.Unstructured {
	labels := map[string]any{"app": "web"}
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "web", "namespace": "shop", "generation": int64(generation)},
		"spec": map[string]any{
			"replicas": int64(12), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "nginx", "image": "nginx:1.28"}}},
			},
		},
	}}
	object.SetGroupVersionKind(kind.GVK())
	return object
}

// fromRaw aggregates everything anew.
func (f *fleet) fromRaw(n int) error {
	for range n {
		fold := interpreter.NewFold(f.kind)
		if err := f.fill(fold); err != nil {
			return err
		}
		if _, err := f.aggregated(fold); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) fill(fold *interpreter.Fold) error {
	for i, name := range f.names {
		if err := fold.PutRaw(name, f.statuses[0][i]); err != nil {
			return err
		}
	}
	return nil
}

// aggregated is the whole outcome, as the peer has it: the status as an object, with the generation that was observed.
func (f *fleet) aggregated(fold *interpreter.Fold) (map[string]any, error) {
	out := fold.Fleet()
	if out.Reported != len(f.names) {
		return nil, fmt.Errorf("%d of %d clusters are in the aggregate", out.Reported, len(f.names))
	}
	status := out.Status()
	if fold.Observed(generation) {
		status["observedGeneration"] = int64(generation)
	}
	return status, nil
}

// oneChanged aggregates again after one cluster has reported something new, one cluster after the other.
func (f *fleet) oneChanged() work {
	fold := interpreter.NewFold(f.kind)
	filled := false
	step := 0
	return func(n int) error {
		if !filled {
			if err := f.fill(fold); err != nil {
				return err
			}
			filled = true
		}
		for range n {
			cluster, which := step%len(f.names), (step/len(f.names)+1)%2
			step++
			if err := fold.PutRaw(f.names[cluster], f.statuses[which][cluster]); err != nil {
				return err
			}
			if _, err := f.aggregated(fold); err != nil {
				return err
			}
		}
		return nil
	}
}

// karmada aggregates with the peer, which does everything anew at each change.
func (f *fleet) karmada(n int) error {
	for range n {
		if _, err := f.aggregatedByKarmada(); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) aggregatedByKarmada() (map[string]any, error) {
	out, enabled, err := f.peer.AggregateStatus(f.template, f.items)
	if err != nil {
		return nil, fmt.Errorf("karmada: %w", err)
	}
	if !enabled {
		return nil, errors.New("karmada: it does not aggregate CloneSets")
	}
	status, _, err := unstructured.NestedMap(out.Object, "status")
	if err != nil {
		return nil, fmt.Errorf("karmada: %w", err)
	}
	return status, nil
}

// agree is an error unless both come to the same: a comparison of different work says nothing.
func (f *fleet) agree() error {
	fold := interpreter.NewFold(f.kind)
	if err := f.fill(fold); err != nil {
		return err
	}
	ours, err := f.aggregated(fold)
	if err != nil {
		return err
	}
	theirs, err := f.aggregatedByKarmada()
	if err != nil {
		return err
	}
	if len(ours) != len(theirs) {
		return fmt.Errorf("ours is %v, Karmada's %v", ours, theirs)
	}
	for name, v := range theirs {
		if fmt.Sprint(ours[name]) != fmt.Sprint(v) {
			return fmt.Errorf("%s: ours is %v, Karmada's %v", name, ours[name], v)
		}
	}
	return nil
}
