// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
)

// Object is a member object as it is seen.
type Object struct {
	UID      string
	Replicas int
	Pods     history.Template
	// Whole is the pod template in full: a change of it makes new pods too.
	Whole       string
	Terminating bool
}

// Pod is a pod as it is seen.
type Pod struct {
	Name, UID string
	// Owner is the UID of the member object that has made it, where that can be told.
	Owner       string
	Pods        history.Template
	Ready       bool
	Restarts    int
	Terminating bool
}

// Violation is something that nothing has asked for.
type Violation struct {
	At       time.Time
	Workload history.Key
	Cluster  string
	// What has happened, and what would have been allowed.
	What, Allowed string
	// Actions are the last ones before it.
	Actions []string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s on %s: %s; allowed: %s", v.Workload, v.Cluster, v.What, v.Allowed)
}

// scene is where and when something is judged.
type scene struct {
	o       *Oracle
	w       *workload
	cluster string
	span    Span
}

func (o *Oracle) scene(k history.Key, cluster string, happened Span) scene {
	happened.From = happened.From.Add(-lag)
	return scene{o: o, w: o.workload(k), cluster: cluster, span: happened}
}

// SeeObject judges what has become of a member object. The same may be told any number of times.
func (o *Oracle) SeeObject(cluster string, k history.Key, now Object, happened Span) {
	s := o.scene(k, cluster, happened)
	m := s.w.on(cluster)
	before := m.object
	switch {
	case before == nil:
		s.appeared(now)
	case before.UID != now.UID:
		s.removed("the object was replaced by another: UID " + before.UID + " is now " + now.UID)
		s.appeared(now)
	default:
		s.changed(*before, now)
	}
	m.object = &now
}

// UID is that of the member object that was seen last; empty when there is none.
func (o *Oracle) UID(cluster string, k history.Key) string {
	if m := o.workload(k).on(cluster); m.object != nil {
		return m.object.UID
	}
	return ""
}

// ObjectGone judges that a member object is no longer there. One that another has replaced is gone already.
func (o *Oracle) ObjectGone(cluster string, k history.Key, uid string, happened Span) {
	m := o.workload(k).on(cluster)
	if m.object == nil || m.object.UID != uid {
		return
	}
	if !m.object.Terminating {
		o.scene(k, cluster, happened).removed("the object was deleted")
	}
	if !o.Facts()[cluster].Joined {
		m.taken = m.object
	}
	m.object = nil
}

func (s scene) appeared(now Object) {
	taken := s.w.on(s.cluster).taken
	s.permit("the object was created with "+describe(now.Replicas, now.Pods), func(w want) bool {
		if w.absent { // see changed: what was kept without pods is kept again by who did not see the cluster leave
			return now.Replicas == 0 && taken != nil && taken.Replicas == 0
		}
		return w.replicas == now.Replicas && w.pods == now.Pods
	})
	if now.Terminating {
		s.removed("the object was deleted")
	}
}

func (s scene) changed(before, now Object) {
	if now.Terminating && !before.Terminating {
		s.removed("the object was deleted")
	}
	if before.Replicas != now.Replicas || before.Pods != now.Pods {
		what := "the object was changed from " + describe(before.Replicas, before.Pods) + " to " + describe(now.Replicas, now.Pods)
		s.permit(what, func(w want) bool {
			// A cluster that gets nothing keeps its object while the workload is handed over.
			return w.absent && now.Replicas == 0 || !w.absent && w.replicas == now.Replicas && w.pods == now.Pods
		})
		return
	}
	if before.Whole != now.Whole {
		s.permit("the pod template was changed where nothing asks for it: "+difference(before.Whole, now.Whole), func(want) bool { return false })
	}
}

func describe(replicas int, pods history.Template) string {
	return fmt.Sprintf("%d of %s/%s", replicas, pods.Image, pods.Env)
}

// difference shows two texts from where they part.
func difference(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	from := max(0, n-30)
	return fmt.Sprintf("…%.90s… became …%.90s…", a[from:], b[from:])
}

func (s scene) removed(what string) {
	s.permit(what, func(w want) bool { return w.absent })
}

// SeePod judges what has become of a pod. The same may be told any number of times.
func (o *Oracle) SeePod(cluster string, k history.Key, now Pod, happened Span) {
	s := o.scene(k, cluster, happened)
	m := s.w.on(cluster)
	before, known := m.pods[now.UID]
	m.pods[now.UID] = now
	switch {
	case !known || before.Terminating:
	case now.Terminating:
		s.goes(before)
	case before.Pods != now.Pods:
		s.permit(fmt.Sprintf("pod %s was changed in place to %s/%s", now.Name, now.Pods.Image, now.Pods.Env),
			func(w want) bool { return !w.absent && w.pods == now.Pods })
	case before.Restarts != now.Restarts:
		s.replaced(fmt.Sprintf("pod %s was restarted: %d times instead of %d", now.Name, now.Restarts, before.Restarts), before)
	case before.Ready && !now.Ready:
		s.replaced(fmt.Sprintf("pod %s is no longer ready", now.Name), now)
	}
}

// PodGone judges that a pod is no longer there.
func (o *Oracle) PodGone(cluster string, k history.Key, uid string, happened Span) {
	m := o.workload(k).on(cluster)
	before, known := m.pods[uid]
	delete(m.pods, uid)
	if known && !before.Terminating {
		o.scene(k, cluster, happened).goes(before)
	}
}

// goes judges a pod on its way out: another one may take its place, or fewer may be wanted.
func (s scene) goes(p Pod) {
	left := len(s.w.on(s.cluster).live())
	s.permit(fmt.Sprintf("pod %s was deleted, and %d are left", p.Name, left), func(w want) bool {
		return w.absent || w.pods != p.Pods || w.replicas <= left
	})
}

// replaced judges what a change of the template does to a pod.
func (s scene) replaced(what string, p Pod) {
	wants := s.o.wants(s.w, s.cluster, s.span)
	other := slices.ContainsFunc(wants, func(w want) bool { return !w.absent && w.pods != p.Pods })
	s.permit(what, func(w want) bool { return w.absent || other })
}

// permit finds what allows a thing, or else notes a violation.
func (s scene) permit(what string, allows func(want) bool) {
	wants := s.o.wants(s.w, s.cluster, s.span)
	var reasons []string
	for _, w := range wants {
		if allows(w) {
			reasons = append(reasons, w.why)
		}
	}
	if len(reasons) > 0 {
		// What was settled all the time is no news; what was asked for since then is.
		s.o.Licences[cmp.Or(slices.Max(reasons), "as it was")]++
		return
	}
	s.o.Violations = append(s.o.Violations, Violation{
		At: s.span.To, Workload: s.w.key, Cluster: s.cluster, What: what, Allowed: told(wants), Actions: s.o.lastBefore(s.span.To),
	})
}

func told(wants []want) string {
	parts := make([]string, 0, len(wants))
	for _, w := range wants {
		parts = append(parts, w.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// lastBefore are the last actions before a moment, with how long before.
func (o *Oracle) lastBefore(at time.Time) []string {
	end := len(o.actions)
	for end > 0 && o.actions[end-1].at.After(at) {
		end--
	}
	var told []string
	for _, e := range o.actions[max(0, end-lastActions):end] {
		told = append(told, fmt.Sprintf("%6.1fs before: %s", at.Sub(e.at).Seconds(), e.what))
	}
	return told
}
