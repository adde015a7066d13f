package pass

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	pointer "k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/migration"
)

// countRestarts completes the evidence of the next record: before a cluster's turn, when it has been taken over, and when its
// wave ends. In between it stays. Nothing depends on it: where nobody answers it is left out.
func (d *Decision) countRestarts(next *v1alpha1.MigrationStatus) error {
	d.keepRestarts(next)
	pods, err := podSelector(d.work.plan.Template)
	if err != nil || pods == nil || d.work.plan.Query.Workload.Namespace == "" {
		return nil //nolint:nilerr // what has no namespace has no pods of its own, and evidence is no reason to fail
	}
	record := d.record.migration
	moves := next.Phase != record.Phase || pointer.Deref(next.Wave, -1) != pointer.Deref(record.Wave, -1)
	for i := range next.Clusters {
		is, was := &next.Clusters[i], v1alpha1.MigrationClusterStatus{}
		if i < len(record.Clusters) {
			was = record.Clusters[i]
		}
		if begins := migration.IsTargets(is.Phase) && !migration.IsTargets(was.Phase); begins && is.Before != nil {
			d.count(*is, is.Before, pods)
		}
		ends := moves && pointer.Equal(is.Wave, record.Wave)
		if is.After != nil && (was.After == nil || ends) {
			d.count(*is, is.After, pods)
		}
	}
	if len(d.Reads.Restarts) > 0 {
		return errEnough
	}
	return nil
}

// count adds what the backends have said, or has them asked.
func (d *Decision) count(c v1alpha1.MigrationClusterStatus, e *v1alpha1.MigrationEvidence, pods *metav1.LabelSelector) {
	if n, known := d.in.Restarts[c.Name]; known {
		if n != nil {
			e.Restarts = n
		}
		return
	}
	read := RestartsRead{Cluster: c.Name, Namespace: d.work.plan.Query.Workload.Namespace, Pods: pods}
	h := d.handOver
	read.OnSource, read.OnTarget = h.source.ready(c), h.target.ready(c)
	d.Reads.Restarts = append(d.Reads.Restarts, read)
}

// ready is the name of a cluster that can be reached; a lost member would only take its time.
func (s handSide) ready(c v1alpha1.MigrationClusterStatus) string {
	if known, _ := s.fleet.Get(s.nameOf(c)); known.Ready != metav1.ConditionTrue {
		return ""
	}
	return s.nameOf(c)
}

// keepRestarts takes the counts over where the evidence is of the same object.
func (d *Decision) keepRestarts(next *v1alpha1.MigrationStatus) {
	record := d.record.migration
	for i := range next.Clusters {
		if i >= len(record.Clusters) {
			return
		}
		keepRestarts(next.Clusters[i].Before, record.Clusters[i].Before)
		keepRestarts(next.Clusters[i].After, record.Clusters[i].After)
	}
}

func keepRestarts(is, was *v1alpha1.MigrationEvidence) {
	if is != nil && was != nil && is.UID == was.UID {
		is.Restarts = was.Restarts
	}
}

// podSelector is how the template's kind chooses its pods; nil for kinds that do not say.
func podSelector(template *unstructured.Unstructured) (*metav1.LabelSelector, error) {
	raw, found, err := unstructured.NestedMap(template.Object, "spec", "selector")
	if err != nil || !found || len(raw) == 0 {
		return nil, err
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, selector); err != nil {
		return nil, fmt.Errorf("spec.selector of the template: %w", err)
	}
	return selector, nil
}
