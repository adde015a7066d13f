package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/default/thirdparty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/aggregate"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// aggregation compares how what clusters report of a CloneSet becomes one status, by the code that the operator runs and
// by the interpreter that Karmada has built in. Both begin with the raw JSON of all clusters.
func aggregation() ([]comparison, error) {
	var raw, growth []comparison
	var last work
	before := 0
	for _, size := range []struct {
		clusters int
		// bar is about half of what was measured. Part of the peer's time is the same for any number of clusters, so the ratio is
		// best where they are few.
		bar float64
	}{{10, 3}, {100, 1.2}, {1000, 1}} {
		n := size.clusters
		f, err := newFleet(n)
		if err != nil {
			return nil, err
		}
		if err := f.agree(); err != nil {
			return nil, fmt.Errorf("aggregate %d clusters: %w", n, err)
		}
		raw = append(raw, comparison{name: fmt.Sprintf("aggregate-raw/%d", n), ours: f.operator, peer: f.karmada, bar: size.bar})
		if before > 0 {
			// Ten times the clusters take ten times as long; half of that again is left for what no longer fits into caches.
			growth = append(growth, comparison{
				name: fmt.Sprintf("aggregate-raw-growth/%d-%d", before, n), ours: f.operator, peer: last,
				bar: 1.5 * float64(n) / float64(before), slower: true,
			})
		}
		last, before = f.operator, n
	}
	return append(raw, growth...), nil
}

const (
	// generation of the CloneSet on the control plane and on each cluster.
	generation = 3
	// revision of the manifest that every cluster has.
	revision = "7c4b8d9f6"
)

// fleet is a CloneSet on clusters, each of which has reported a status.
type fleet struct {
	kind     *interpreter.Kind
	template *unstructured.Unstructured
	// statuses are what the clusters have reported, in the order of targets.
	statuses [][]byte

	// What a pass of the operator has beside them: the clusters, what it wants of each, and the status so far.
	clusters backends.Fleet
	targets  []backends.Target
	before   v1alpha1.FleetWorkloadStatus

	peer *thirdparty.ConfigurableInterpreter
	// items are the peer's input.
	items []v1alpha2.AggregatedStatusItem
}

func newFleet(n int) (*fleet, error) {
	kinds, err := interpreter.New()
	if err != nil {
		return nil, err
	}
	kind := kinds.For(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"})
	f := &fleet{kind: kind, peer: thirdparty.NewConfigurableInterpreter(), template: template(kind)}
	for i := range n {
		f.add(fmt.Sprintf("member-%04d", i), int32(10+i%7), int32(i%5))
	}
	// A pass finds the status that the one before it has left.
	f.before, err = f.aggregated()
	return f, err
}

// add adds a cluster that runs so many replicas, so many of them updated.
func (f *fleet) add(name string, replicas, updated int32) {
	raw := status(replicas, updated)
	f.statuses = append(f.statuses, raw)
	f.clusters.Clusters = append(f.clusters.Clusters, backends.Cluster{Name: name, Ready: metav1.ConditionTrue})
	manifest := f.template.DeepCopy()
	manifest.Object["spec"].(map[string]any)["replicas"] = int64(replicas)
	f.targets = append(f.targets, backends.Target{Cluster: name, Replicas: &replicas, Manifest: manifest})
	f.items = append(f.items, v1alpha2.AggregatedStatusItem{
		ClusterName: name, Applied: true, Health: v1alpha2.ResourceHealthy, Status: &runtime.RawExtension{Raw: raw},
	})
}

// status is what Karmada's interpreter reflects from a member cluster.
func status(replicas, updated int32) []byte {
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

// operator aggregates as a pass of the operator does.
func (f *fleet) operator(n int) error {
	for range n {
		if _, err := f.aggregated(); err != nil {
			return err
		}
	}
	return nil
}

// aggregated is the status of the FleetWorkload, from facts as internal/pass makes them.
func (f *fleet) aggregated() (v1alpha1.FleetWorkloadStatus, error) {
	reports := make([]aggregate.Report, 0, len(f.targets))
	for i, target := range f.targets {
		report, err := f.report(target, f.statuses[i])
		if err != nil {
			return v1alpha1.FleetWorkloadStatus{}, fmt.Errorf("cluster %s: %w", target.Cluster, err)
		}
		reports = append(reports, report)
	}
	return aggregate.Fleet(f.before, aggregate.Facts{
		Generation: generation, Now: metav1.Time{Time: time.Unix(1_800_000_000, 0)}, Revision: revision,
		Selector: interpreter.Selector(f.kind, f.template), Reported: true, Settled: true, Reports: reports,
	}), nil
}

// report reads what one cluster has reported, as the driver for Karmada decodes it and a pass interprets it.
func (f *fleet) report(target backends.Target, raw []byte) (aggregate.Report, error) {
	observed := &backends.ClusterObservation{
		Cluster: target.Cluster, Asked: target.Replicas, Revision: revision, Applied: metav1.ConditionTrue, Current: true,
	}
	if err := json.Unmarshal(raw, &observed.Status); err != nil {
		return aggregate.Report{}, fmt.Errorf("decode its status: %w", err)
	}
	state, err := f.kind.State(interpreter.Report{Manifest: target.Manifest, Desired: target.Replicas, Status: observed.Status})
	if err != nil {
		return aggregate.Report{}, err
	}
	cluster, _ := f.clusters.Get(target.Cluster)
	return aggregate.Report{
		Name: target.Cluster, Target: true, Desired: target.Replicas, Observed: observed, Cluster: &cluster, State: &state,
	}, nil
}

// karmada aggregates with the peer.
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

// agree is an error unless the numbers that both give are the same, and both have heard of every cluster: a comparison of
// different work says nothing.
func (f *fleet) agree() error {
	ours, err := f.aggregated()
	if err != nil {
		return err
	}
	theirs, err := f.aggregatedByKarmada()
	if err != nil {
		return err
	}
	if n := *ours.ClusterSummary.UpToDate; int(n) != len(f.targets) {
		return fmt.Errorf("ours has heard of %d of %d clusters", n, len(f.targets))
	}
	for name, n := range map[string]*int32{
		"replicas": ours.Replicas, "readyReplicas": ours.ReadyReplicas,
		"updatedReplicas": ours.UpdatedReplicas, "availableReplicas": ours.AvailableReplicas,
	} {
		if n == nil || fmt.Sprint(*n) != fmt.Sprint(theirs[name]) {
			return fmt.Errorf("%s: ours are %+v, Karmada's %v", name, ours, theirs)
		}
	}
	if observed := theirs["observedGeneration"]; fmt.Sprint(observed) != fmt.Sprint(generation) {
		return fmt.Errorf("Karmada's have observed generation %v, not %d", observed, generation)
	}
	return nil
}
