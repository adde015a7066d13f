package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// lookAtPods asks each cluster that is ready for pods of a namespace, as the operator does to count restarts, where it is configured to. The rights for
// that are no part of the role that is shipped: they are on Karmada and in each member.
func (d backendDoctor) lookAtPods(ctx context.Context, b backend) []finding {
	if d.Karmada == nil || !d.Karmada.PodEvidence || b.restarts == nil {
		return nil
	}
	namespace := metav1.NamespaceDefault
	if used := d.namespaces(); len(used) > 0 {
		namespace = used[0]
	}
	const some = 10
	errs := make([]error, len(b.fleet.Clusters))
	slots := make(chan struct{}, some)
	var group sync.WaitGroup
	for i, c := range b.fleet.Clusters {
		if c.Ready != metav1.ConditionTrue {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			errs[i] = b.restarts(ctx, c.Name, namespace)
		})
	}
	group.Wait()
	var without []string
	for i, c := range b.fleet.Clusters {
		if errs[i] != nil {
			without = append(without, c.Name)
		}
	}
	if len(without) == 0 {
		return nil
	}
	first := errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
	var told *backends.Error
	if errors.As(first, &told) && told.Err != nil {
		first = told.Err // without the remedy, which is for another right
	}
	return []finding{ill(gradeNote, aspectRights, do("grant the rights of docs/migration.md#proof, or leave karmada.podEvidence out of the configuration"),
		"restarts cannot be counted on %s, so that migrations go on without their number: %v", brief.List(without), first)}
}
