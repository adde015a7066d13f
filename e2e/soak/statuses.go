// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

// followStatuses tells the judge which FleetWorkloads say that they are as asked.
func (s *soak) followStatuses(ctx context.Context) {
	ticker := time.NewTicker(again)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		at := time.Now()
		list, err := s.list(ctx)
		if err != nil {
			continue // the management cluster is down for the moment
		}
		for i := range list {
			if fw := &list[i]; isReady(fw) {
				s.judge.sawReady(history.Key{Namespace: fw.Namespace, Name: fw.Name}, string(fw.UID), fw.Generation, at)
			}
		}
	}
}

// list are the FleetWorkloads of the soak.
func (s *soak) list(ctx context.Context) ([]v1alpha1.FleetWorkload, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	var all v1alpha1.FleetWorkloadList
	if err := s.hub().List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list FleetWorkloads: %w", err)
	}
	ours := all.Items[:0]
	for _, fw := range all.Items {
		for _, k := range choice.Keys() {
			if k == (history.Key{Namespace: fw.Namespace, Name: fw.Name}) {
				ours = append(ours, fw)
			}
		}
	}
	return ours, nil
}

// isReady tells whether a FleetWorkload says that its newest generation runs, on the backend that it asks for.
func isReady(fw *v1alpha1.FleetWorkload) bool {
	moving := fw.Status.Migration != nil && fw.Status.Migration.Phase != ""
	observed := fw.Status.ObservedGeneration != nil && *fw.Status.ObservedGeneration == fw.Generation
	return observed && !moving && fw.DeletionTimestamp == nil && fw.Status.Backend == fw.Spec.Backend &&
		meta.IsStatusConditionTrue(fw.Status.Conditions, v1alpha1.ConditionReady)
}

// conditions are what a FleetWorkload says of itself, in one line.
func conditions(fw *v1alpha1.FleetWorkload) string {
	parts := []string{fmt.Sprintf("backend %s, generation %d", fw.Status.Backend, fw.Generation)}
	if fw.Status.ObservedGeneration != nil {
		parts = append(parts, fmt.Sprintf("observed %d", *fw.Status.ObservedGeneration))
	}
	if m := fw.Status.Migration; m != nil && m.Phase != "" {
		parts = append(parts, fmt.Sprintf("moving from %s to %s: %s", m.From, m.To, m.Phase))
	}
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionStalled} {
		if c := meta.FindStatusCondition(fw.Status.Conditions, kind); c != nil && (kind == v1alpha1.ConditionReady || c.Status == metav1.ConditionTrue) {
			parts = append(parts, fmt.Sprintf("%s %s %s: %.300s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return strings.Join(parts, ", ")
}
