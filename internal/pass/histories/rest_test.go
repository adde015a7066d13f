package histories

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

// restless notes that a world in which nothing happens any more does not come to rest.
func (o *oracle) restless() {
	var parts []string
	for _, s := range o.w.slots {
		if s.object != nil {
			parts = append(parts, s.name+": "+conditions(s.object))
		}
	}
	o.violate(nil, "", "restless", "it does not come to rest: %s", strings.Join(parts, " | "))
}

// gone judges that nothing is left of a FleetWorkload that is no longer there.
func (o *oracle) gone(s *slot, fw *v1alpha1.FleetWorkload) {
	l := o.laws[string(fw.UID)]
	orphan := l.spec(l.newest()).Orphan
	for _, name := range o.w.names {
		c := o.w.clusters[name]
		if c.left[gated] || c.left[plain] {
			continue
		}
		if live := c.objects[s.name]; live != nil && live.owner.uid == l.uid && !o.everLeft(l, name) {
			o.violate(l, name, "left behind", "it is gone, and %s is still there%s", describe(live), flag(orphan, ", with its mark"))
		}
	}
	for _, b := range o.w.backends {
		for w, r := range b.orders {
			if r.uid == l.uid && !c(o.w, w.cluster).left[b.name] {
				o.violate(l, w.cluster, "left behind", "it is gone, and backend %s still has an order", b.name)
			}
		}
	}
}

func c(w *world, name string) *cluster { return w.clusters[name] }

// everLeft tells whether a backend, or some pass, has found the cluster missing: what runs there may be nobody's since.
func (o *oracle) everLeft(l *law, name string) bool {
	return o.missed[name].After(l.versions[0].at) || slices.ContainsFunc(l.reads, func(r *passInfo) bool { return (r.settled || len(r.known) > 0) && !r.known[name].Known })
}

// atRest judges what is, and what statuses say of it, when nothing happens any more.
func (o *oracle) atRest() {
	for _, s := range o.w.slots {
		if s.object != nil && !o.failed() {
			o.judgeRest(o.now[s], s)
		}
	}
}

func (o *oracle) judgeRest(l *law, s *slot) {
	fw := s.object
	v := l.spec(l.newest())
	ready, stalled := condition(fw, v1alpha1.ConditionReady), condition(fw, v1alpha1.ConditionStalled)
	o.judgeIndependent(l, fw)
	o.judgeSaysIndependent(l, v, fw)
	switch {
	case fw.DeletionTimestamp != nil:
		o.violate(l, "", "hangs", "it is being deleted for ever: %s", conditions(fw))
	case fw.Status.ObservedGeneration == nil || *fw.Status.ObservedGeneration != fw.Generation:
		o.violate(l, "", "hangs", "its status is not about the newest spec: %s", conditions(fw))
	case ready.Status == metav1.ConditionTrue:
		o.judgeReady(l, v, fw)
	case !o.mayRest(l, v, ready, stalled):
		o.violate(l, "", "hangs", "nothing goes on: %s", conditions(fw))
	}
}

// judgeSaysIndependent sees that at rest Independent is there when it has moved or is to, and that it is False as long as it has not.
func (o *oracle) judgeSaysIndependent(l *law, v spec, fw *v1alpha1.FleetWorkload) {
	m, says := fw.Status.Migration, condition(fw, v1alpha1.ConditionIndependent).Status
	moves := m != nil && m.Phase != "" && (m.Phase != v1alpha1.MigrationPhaseValidating || v.Backend != fw.Status.Backend)
	switch moved := m != nil && len(m.History) > 0; {
	case fw.DeletionTimestamp != nil:
	case moves && says != metav1.ConditionFalse:
		o.violate(l, "", "untrue", "it is in phase %s, and Independent is %q", m.Phase, says)
	case !moves && moved && v.Backend == fw.Status.Backend && says != metav1.ConditionTrue && says != metav1.ConditionUnknown:
		o.violate(l, "", "untrue", "it has moved, and Independent is %q", says)
	case !moves && !moved && says != "":
		o.violate(l, "", "untrue", "it has never moved, and Independent is %s", says)
	}
}

// mayRest tells whether a FleetWorkload that is not Ready has a reason to wait for a person.
func (o *oracle) mayRest(l *law, v spec, ready, stalled metav1.Condition) bool {
	if stalled.Status != metav1.ConditionTrue {
		// What failover keeps until others are healthy stays while all others are paused.
		pausedOnly := v.Failover != "" && strings.Contains(ready.Message, "(being left)")
		return v.Suspend || v.Approval && ready.Reason == v1alpha1.ReasonAwaitingApproval || (ready.Reason == v1alpha1.ReasonPaused || pausedOnly) && o.keepsPaused(l, v)
	}
	known := o.w.backend(orElse(l.slot.object.Status.Backend, v.Backend)).facts
	var chosen []string
	for _, name := range o.w.names {
		if chooses(v, name, known[name]) {
			chosen = append(chosen, name)
		}
	}
	left := slices.ContainsFunc(slices.Concat(append(slices.Clone(v.Groups), v.Names, slices.Collect(maps.Keys(v.Own)))...), func(name string) bool { return !known[name].Known })
	switch ready.Reason {
	case v1alpha1.ReasonRemovalHeld, v1alpha1.ReasonMigrationFailed:
		return true
	case v1alpha1.ReasonMigrationNotPossible:
		return !strings.Contains(ready.Message, "has handed no cluster over yet") || o.somebodyLeft()
	case v1alpha1.ReasonInvalidOverride:
		return o.contradicts(l, v)
	case v1alpha1.ReasonAdoptionHeld:
		return v.Adopt
	case v1alpha1.ReasonMigrationNeedsApproval:
		return true
	case v1alpha1.ReasonNoClusterSelected:
		return !slices.ContainsFunc(chosen, func(name string) bool { return known[name].Ready && known[name].Taint == "" && !v.pauses(name) })
	case v1alpha1.ReasonClusterNotFound:
		return left
	case v1alpha1.ReasonInvalidPlacement, v1alpha1.ReasonPlacementNotMet:
		return v.Weights != nil
	case v1alpha1.ReasonMemberConflict:
		return !v.Adopt && slices.ContainsFunc(o.w.names, func(name string) bool {
			live := o.w.clusters[name].objects[l.slot.name]
			ours := live != nil && (live.owner == mark{v.Backend, l.uid} || live.owner == mark{l.slot.object.Status.Backend, l.uid})
			// What is left of a cluster's time with another backend may be in the way of the present one.
			return live != nil && (!ours || o.everLeft(l, name))
		})
	}
	return false
}

// contradicts tells whether clusters' own numbers, those of the spec or of the one from the beginning of a hand-over, may not go with the
// number that is divided.
func (o *oracle) contradicts(l *law, v spec) bool {
	return slices.ContainsFunc(l.versions, func(of version) bool {
		s := of.spec
		s.Replicas = v.Replicas
		return (pass.HandsOver(l.slot.object) || of.spec.divisionPart() == v.divisionPart()) &&
			slices.ContainsFunc(subsets(nil, o.w.names), func(pick []string) bool { return s.contradicts(pick, 0) })
	})
}

// keepsPaused tells whether a backend has something of the workload for a paused cluster.
func (o *oracle) keepsPaused(l *law, v spec) bool {
	return slices.ContainsFunc(o.w.backends, func(b *backend) bool {
		return slices.ContainsFunc(v.Paused, func(name string) bool {
			r := b.orders[where{l.slot.name, name}]
			return r != nil && r.uid == l.uid
		})
	})
}

// somebodyLeft tells whether some backend does not know some cluster.
func (o *oracle) somebodyLeft() bool {
	return slices.ContainsFunc(o.w.names, func(name string) bool { return o.w.clusters[name].left[gated] || o.w.clusters[name].left[plain] })
}

// judgeReady sees that what Ready claims is so.
func (o *oracle) judgeReady(l *law, v spec, fw *v1alpha1.FleetWorkload) {
	if fw.Status.Backend != v.Backend {
		o.violate(l, "", "untrue", "it is Ready on backend %s", fw.Status.Backend)
		return
	}
	o.judgeVersions(l, fw)
	b := o.w.backend(v.Backend)
	runs, pods, has := map[string]int{}, 0, []string{}
	for _, name := range o.w.names {
		live := o.w.clusters[name].objects[l.slot.name]
		if live == nil || live.owner.uid != l.uid || !b.facts[name].Known || o.everLeft(l, name) && b.orders[where{l.slot.name, name}] == nil {
			continue // what a cluster runs that has left is nobody's when it is back
		}
		runs[name] = live.Replicas
		has = append(has, name)
		pods += live.ready
		if live.owner.backend != v.Backend {
			o.violate(l, name, "untrue", "it is Ready, and %s is backend %s's", describe(live), live.owner.backend)
		}
		if live.template != v.pods(name) && v.Failover == "" {
			o.violate(l, name, "untrue", "it is Ready, and runs %v instead of %v", live.template, v.pods(name))
		}
	}
	o.judgeNumbers(l, v, runs, has)
	if n := fw.Status.ReadyReplicas; v.Failover == "" && (n == nil && pods > 0 || n != nil && int(*n) != pods) {
		o.violate(l, "", "untrue", "status.readyReplicas is %s, and %d pods are ready", number(n), pods)
	}
	if s := fw.Status.ClusterSummary; v.Failover == "" && (s == nil || s.Healthy == nil || int(*s.Healthy) != len(has)) {
		o.violate(l, "", "untrue", "status.clusterSummary is about another number than %d", len(has))
	}
}

// judgeVersions sees that what is shipped can be returned to: it is the newest of the versions, and not too many are kept beside it.
func (o *oracle) judgeVersions(l *law, fw *v1alpha1.FleetWorkload) {
	is, err := revisions.VersionOf(fw, revisions.Of(&fw.Spec))
	kept, record := o.w.versionsOf[fw.UID], fw.Status.SpecRevision
	switch {
	case err != nil || record == nil || record.Name != is.Name:
		o.violate(l, "", "untrue", "it is Ready with %s, and the newest version on record is %+v", is.Name, record)
	case len(kept) != int(*record.Older)+1 || len(kept) > mostOlder+1:
		o.violate(l, "", "untrue", "%d versions are kept, and %d older ones are on record", len(kept), *record.Older)
	case slices.ContainsFunc(kept, func(k revisions.Kept) bool {
		return k.Number > *record.Number || (k.Name == is.Name) != (k.Number == *record.Number)
	}):
		o.violate(l, "", "untrue", "%+v is on record, and kept are %v", record, kept)
	}
}

func (o *oracle) judgeNumbers(l *law, v spec, runs map[string]int, has []string) {
	sum := 0
	for name, n := range runs {
		sum += n
		if want := shares(v, []string{name})[name]; !v.Divided && n != want && v.Failover == "" {
			o.violate(l, name, "untrue", "it is Ready, and runs %d instead of %d", n, want)
		}
	}
	if v.Divided && sum != v.Replicas && v.Failover == "" {
		o.violate(l, "", "untrue", "it is Ready, and runs %d in all instead of %d: %v", sum, v.Replicas, runs)
	}
	if !v.simple() || v.Prefer != "" || o.failed() {
		return
	}
	b := o.w.backend(v.Backend)
	var clusters []string
	rest := v
	for _, name := range o.w.names {
		f := b.facts[name]
		if v.pauses(name) {
			rest.Replicas -= flagged(v.Divided, runs[name])
			continue
		}
		if chooses(v, name, f) && (f.Ready && f.Taint == "" || runs[name] > 0) {
			clusters = append(clusters, name)
		}
	}
	want := shares(rest, clusters)
	for _, name := range has {
		if v.pauses(name) {
			want[name] = runs[name]
		}
	}
	for _, name := range o.w.names {
		if n, is := runs[name]; n != want[name] || !is && want[name] > 0 {
			o.violate(l, name, "untrue", "it is Ready, and runs %d instead of %d of %v", n, want[name], has)
		}
	}
}

// flagged is the number, or 0.
func flagged(counts bool, n int) int {
	if counts {
		return n
	}
	return 0
}
