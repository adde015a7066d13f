// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/oracle"
	"github.com/fleetworkload/fleetworkload/hack/install"
)

const (
	// pollEnd is how often it is looked whether the end has come.
	pollEnd = time.Second
	// silence is how long the operators must have written nothing for the rest to begin.
	silence = 10 * time.Second
)

// finish heals everything, and wants all to be as the last specs say, nothing to be left behind, and then no write.
func (s *soak) finish(ctx context.Context, plan choice.Plan) error {
	healed := time.Now()
	s.out.say("healing")
	for _, a := range plan.End {
		s.carryOut(a)
	}
	confirmed := map[string]bool{}
	agree := func(ctx context.Context) []string {
		s.confirmHeld(ctx, confirmed)
		s.tryAgain(ctx)
		return s.unfinished(ctx)
	}
	if s.becomes(ctx, healed.Add(s.opts.end), agree) {
		s.out.sum("everything is as asked %s after the last heal", time.Since(healed).Round(time.Second))
		s.rest(ctx, healed.Add(s.opts.end))
	}
	if s.out.hasFailed() {
		s.evidence(ctx)
	}
	s.account()
	return ctx.Err()
}

// becomes waits until nothing stands against something, and tells what does at the end of the time.
func (s *soak) becomes(ctx context.Context, deadline time.Time, against func(ctx context.Context) []string) bool {
	ticker := time.NewTicker(pollEnd)
	defer ticker.Stop()
	for {
		problems := against(ctx)
		if len(problems) == 0 {
			return true
		}
		if time.Now().After(deadline) {
			for _, p := range problems {
				s.out.fail("NOT AS ASKED after %s: %s\n          seed %d: %s", s.opts.end, p, s.opts.seed, s.out.repeat())
			}
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-s.out.enough:
			return false
		case <-ticker.C:
		}
	}
}

// unfinished is everything that is not as asked. What takes long to find out is asked last.
func (s *soak) unfinished(ctx context.Context) []string {
	for _, against := range []func(ctx context.Context) []string{
		func(context.Context) []string { return s.lanes.pending() }, s.notReady, s.different, s.leftBehind,
	} {
		if problems := against(ctx); len(problems) > 0 {
			return problems
		}
	}
	return nil
}

// confirmHeld lets removals proceed, as a person would, that are rightly held at the end, or since a cluster could not be had for a while.
func (s *soak) confirmHeld(ctx context.Context, confirmed map[string]bool) {
	list, err := s.list(ctx)
	if err != nil {
		return
	}
	for i := range list {
		fw := &list[i]
		k := history.Key{Namespace: fw.Namespace, Name: fw.Name}
		stalled := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionStalled)
		if stalled == nil || stalled.Reason != v1alpha1.ReasonRemovalHeld || confirmed[stalled.Message] || !s.judge.unsure(k) && !s.judge.holds(k) {
			continue
		}
		confirmed[stalled.Message] = true
		s.carryOut(history.Action{Kind: "confirm", Verb: history.Confirm, Workload: k})
	}
}

// tryAgain has waves tried again, as a person would, that have failed because an object is another one. It is when its cluster left and came back
// meanwhile; the judge knows who else has replaced it.
func (s *soak) tryAgain(ctx context.Context) {
	list, err := s.list(ctx)
	if err != nil {
		return
	}
	for i := range list {
		fw := &list[i]
		m := fw.Status.Migration
		if m == nil || m.Approval == "" || fw.Annotations[v1alpha1.AnnotationApproveMigration] == m.Approval || !strings.Contains(m.Failure, ": the object was ") {
			continue
		}
		before := fw.DeepCopy()
		metav1.SetMetaDataAnnotation(&fw.ObjectMeta, v1alpha1.AnnotationApproveMigration, m.Approval)
		s.out.say("trying the migration of %s/%s again: %s", fw.Namespace, fw.Name, m.Failure)
		if err := s.hub().Patch(ctx, fw, client.MergeFrom(before)); err != nil {
			s.out.say("it cannot be tried again yet: %v", err)
		}
	}
}

// notReady are the FleetWorkloads that do not say that they are as asked.
func (s *soak) notReady(ctx context.Context) []string {
	list, err := s.list(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for i := range list {
		if fw := &list[i]; !isReady(fw) {
			all = append(all, fmt.Sprintf("%s/%s is not ready: %s", fw.Namespace, fw.Name, conditions(fw)))
		}
	}
	return all
}

// different are the workloads of which members run something else than the last spec says.
func (s *soak) different(context.Context) []string {
	var all []string
	for _, k := range choice.Keys() {
		if text := s.judge.differs(k); text != "" {
			all = append(all, fmt.Sprintf("%s: %s", k, text))
		}
	}
	return all
}

// rest wants the operators to write nothing for a while, once they have come to rest.
func (s *soak) rest(ctx context.Context, deadline time.Time) {
	wrote, since := -1, time.Now()
	calm := s.becomes(ctx, deadline.Add(silence), func(context.Context) []string {
		entries := s.operators.written()
		if len(entries) != wrote {
			wrote, since = len(entries), time.Now()
		}
		if time.Since(since) >= silence {
			return nil
		}
		return []string{"the operators go on writing: " + last(entries)}
	})
	if !calm {
		return
	}
	s.operators.forget()
	s.out.say("at rest; for %s nothing may be written", s.opts.calm)
	select {
	case <-ctx.Done():
		return
	case <-time.After(s.opts.calm):
	}
	entries := s.operators.written()
	s.out.sum("writes in %s of rest: %d", s.opts.calm, len(entries))
	if len(entries) > 0 {
		s.out.fail("%d writes in %s of rest:\n%s", len(entries), s.opts.calm, proxy.Describe(entries[:min(len(entries), 20)]))
	}
	if problems := append(s.notReady(ctx), s.different(ctx)...); len(problems) > 0 {
		s.out.fail("no longer as asked after a rest: %s", short(problems))
	}
}

// last shows the newest of many.
func last(entries []proxy.Entry) string {
	const most = 5
	var parts []string
	for _, e := range entries[max(0, len(entries)-most):] {
		parts = append(parts, e.String())
	}
	return strings.Join(parts, ", ")
}

// account adds to the summary what has been seen.
func (s *soak) account() {
	s.judge.mu.Lock()
	pods, events, settled := len(s.judge.pods), s.judge.events, s.judge.settled
	s.judge.mu.Unlock()
	s.out.sum("watched: %d pods, %d events; seen settled %d times", pods, events, settled)
	s.judge.with(func(o *oracle.Oracle) {
		s.out.sum("what went, came or changed, by what asked for it: %s", counted(o.Licences))
	})
	starts := 0
	for _, one := range s.operators.all {
		one.mu.Lock()
		starts += one.starts
		one.mu.Unlock()
	}
	s.processes.mu.Lock()
	revived := s.processes.revived
	s.processes.mu.Unlock()
	s.out.sum("operators were started %d times, components %d times again", starts, revived)
}

// evidence writes what there is on both backends into the folder that is kept.
func (s *soak) evidence(ctx context.Context) {
	for control, types := range map[string]string{
		lab.Hub:     "fleetworkloads,manifestworks,placements.cluster.open-cluster-management.io,placementdecisions,managedclusters",
		lab.Karmada: "clusters,works,resourcebindings,propagationpolicies,overridepolicies,deployments.apps,clonesets,statefulsets.apps.kruise.io",
	} {
		file, err := os.Create(filepath.Join(s.dir, control+".yaml"))
		if err != nil {
			s.out.say("keep evidence: %v", err)
			return
		}
		if err := install.Kubectl(ctx, s.fleet, file, control, "get", types, "-A", "-o", "yaml"); err != nil {
			s.out.say("keep evidence of %s: %.300v", control, err)
		}
		_ = file.Close()
	}
}
