package controllers

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	pointer "k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/migration"
)

// restartReaders bounds in how many clusters pods are counted at once.
const restartReaders = 10

// countRestarts completes the evidence of the next record: before a cluster's turn, when it has been taken over, and when its
// wave ends. In between it stays. Nothing depends on it: where nobody answers it is left out.
func (s *scope) countRestarts(ctx context.Context, next *v1alpha1.MigrationStatus) {
	pods, err := podSelector(s.plan.Template)
	if err != nil || pods == nil || s.plan.Query.Workload.Namespace == "" {
		return // what has no namespace has no pods of its own
	}
	record := s.record.migration
	moves := next.Phase != record.Phase || pointer.Deref(next.Wave, -1) != pointer.Deref(record.Wave, -1)
	var due []func()
	for i := range next.Clusters {
		is, was := &next.Clusters[i], v1alpha1.MigrationClusterStatus{}
		if i < len(record.Clusters) {
			was = record.Clusters[i]
		}
		keepRestarts(is.Before, was.Before)
		keepRestarts(is.After, was.After)
		count := func(e *v1alpha1.MigrationEvidence) {
			due = append(due, func() { e.Restarts = cmp.Or(s.restarts(ctx, *is, pods), e.Restarts) })
		}
		if begins := migration.IsTargets(is.Phase) && !migration.IsTargets(was.Phase); begins && is.Before != nil {
			count(is.Before)
		}
		ends := moves && pointer.Equal(is.Wave, record.Wave)
		if is.After != nil && (was.After == nil || ends) {
			count(is.After)
		}
	}
	workqueue.ParallelizeUntil(ctx, restartReaders, len(due), func(i int) { due[i]() })
}

// keepRestarts takes the count over when the evidence is of the same object.
func keepRestarts(is, was *v1alpha1.MigrationEvidence) {
	if is != nil && was != nil && is.UID == was.UID {
		is.Restarts = was.Restarts
	}
}

// restarts asks the backends, one of which may be able to tell.
func (s *scope) restarts(ctx context.Context, c v1alpha1.MigrationClusterStatus, pods labels.Selector) *int32 {
	for _, at := range []struct {
		end     end
		cluster string
	}{{s.handOver.source, c.Name}, {s.handOver.target, migration.NameOnTarget(c)}} {
		reader, is := at.end.driver.(backends.PodReader)
		if known, _ := at.end.fleet.Get(at.cluster); !is || known.Ready != metav1.ConditionTrue {
			continue // a lost member would only take its time
		}
		restarts, err := reader.Restarts(ctx, at.cluster, s.plan.Query.Workload.Namespace, pods)
		if err != nil {
			log.FromContext(ctx).Error(err, "Restarts are left out of the evidence", "backend", at.end.name, "cluster", at.cluster)
		}
		if restarts != nil {
			return restarts
		}
	}
	return nil
}

// podSelector is how the template's kind chooses its pods; nil for kinds that do not say.
func podSelector(template *unstructured.Unstructured) (labels.Selector, error) {
	raw, found, err := unstructured.NestedMap(template.Object, "spec", "selector")
	if err != nil || !found || len(raw) == 0 {
		return nil, err
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, selector); err != nil {
		return nil, fmt.Errorf("spec.selector of the template: %w", err)
	}
	return metav1.LabelSelectorAsSelector(selector)
}
