// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

const tidyTime = 3 * time.Minute

// tidy takes everything of a soak off a fleet that goes on, with the operators' help.
func (s *soak) tidy(ctx context.Context) {
	for server := range servers {
		s.operators.cut(server, proxy.Forward)
	}
	for _, one := range s.operators.all {
		one.allow(true)
	}
	s.processes.release()
	facts := choice.Facts()
	for _, part := range []struct {
		what string
		do   func(ctx context.Context) error
	}{
		{"clusters", func(ctx context.Context) error {
			for _, name := range facts.Names() {
				if err := s.plain(ctx, name); err != nil {
					return err
				}
			}
			return nil
		}},
		{"FleetWorkloads", s.withoutFleetWorkloads},
		{"namespaces", s.withoutNamespaces},
	} {
		if err := persist(ctx, part.do); err != nil {
			s.out.say("tidying up %s: %v", part.what, err)
		}
	}
}

// persist tries until it succeeds, for a while.
func persist(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, tidyTime)
	defer cancel()
	for {
		limited, end := context.WithTimeout(ctx, attempt)
		err := do(limited)
		end()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(again):
		}
	}
}

// plain makes a cluster one that has joined and has nothing of the soak's on it.
func (s *soak) plain(ctx context.Context, name string) error {
	if !s.judge.facts()[name].Joined {
		if err := s.join(ctx, history.Action{Cluster: name}); err != nil {
			return fmt.Errorf("join %s: %w", name, err)
		}
	}
	for _, k := range choice.Keys() {
		if err := s.setLabel(ctx, name, k, false); err != nil {
			return err
		}
	}
	return s.untaint(ctx, history.Action{Cluster: name})
}

func (s *soak) withoutFleetWorkloads(ctx context.Context) error {
	list, err := s.list(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	for i := range list {
		fw := &list[i]
		if fw.Spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan || fw.Spec.Suspend != nil && *fw.Spec.Suspend {
			fw.Spec.DeletionPolicy, fw.Spec.Suspend = v1alpha1.DeletionPolicyDelete, nil
			if err := s.hub().Update(ctx, fw); err != nil {
				return fmt.Errorf("have %s deleted: %w", fw.Name, err)
			}
		}
		if err := client.IgnoreNotFound(s.hub().Delete(ctx, fw)); err != nil {
			return fmt.Errorf("delete %s: %w", fw.Name, err)
		}
	}
	return fmt.Errorf("%d FleetWorkloads are still there, the first: %s", len(list), conditions(&list[0]))
}

func (s *soak) withoutNamespaces(ctx context.Context) error {
	left := ""
	for cluster, c := range s.clusters {
		for _, name := range namespaces() {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			err := c.Delete(ctx, ns)
			if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
				return fmt.Errorf("delete namespace %s on %s: %w", name, cluster, err)
			}
			if !apierrors.IsNotFound(err) {
				left += " " + name + " on " + cluster
			}
		}
	}
	if left != "" {
		return fmt.Errorf("namespaces are still there:%s", left)
	}
	return nil
}
