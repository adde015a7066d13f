package karmada

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
)

// A member may be joined to two Karmadas. Each takes every object with the label karmada.io/managed for its own: it writes it whatever the
// conflict resolution says, and deletes it with its Work (allowUpdate and Delete in pkg/util/objectwatcher). Two of them would write one
// object in turns (https://github.com/karmada-io/karmada/issues/7206).
//
// Before it is written our interpreter sees it (Retain), and refuses what is neither the same FleetWorkload's nor the same binding's, unless
// it is to be adopted: an object that a Karmada has left has the label too. What Karmada says then ends like its own word on an object that
// is nobody's, so that it is a Conflict wherever that is one. And its Work is spared before it goes.

// anotherMessage is for the person who has to decide whose the object is to be.
const anotherMessage = "another Karmada has put an object of that name there (it has the label karmada.io/managed), and nothing was written: choose " +
	"another name, or release it on that Karmada (preserveResourcesOnDeletion, then delete its template) and set conflictPolicy: Adopt"

// ofAnother tells whether Karmada was kept from writing an object that another Karmada has.
func (w work) ofAnother() bool {
	applied := w.applied()
	return applied != nil && applied.Status == metav1.ConditionFalse && strings.Contains(applied.Message, lua.Another)
}

// neverTried tells whether Karmada has not looked at what is on the member for this Work: dispatching is suspended, and was from the start.
// A report is no proof: where another Karmada has the same name for the cluster, its Work has this one's name, and Karmada goes by that.
func (l currentState) neverTried(w work) bool { return w.untried() && !l.dispatches(w) }

// beingTried tells whether Karmada is about to look: the Work says so later than the policy and the binding.
func (l currentState) beingTried(w work) bool {
	return w.untried() && l.dispatches(w) && !w.terminating()
}

func (w work) untried() bool { return w.applied() == nil && w.suspended() }

// dispatches tells whether the suspension of a Work may be about to end, or to come back.
func (l currentState) dispatches(w work) bool {
	return l.policy != nil && !suspendsOn(policySuspension(l.policy), w.cluster) || !takenUp(l)
}

// anothers are the clusters that have another Karmada's object: with its Work ours would delete it.
func (l currentState) anothers() []string {
	return l.clustersOf(func(w work) bool { return w.ofAnother() || !isApplied(w) && w.spared() })
}

// leftAlone are the clusters that have nothing of ours, and may have another Karmada's object.
func (l currentState) leftAlone() []string { return union(l.anothers(), l.clustersOf(l.neverTried)) }

func (l currentState) clustersOf(holds func(work) bool) (clusters []string) {
	for _, w := range l.works {
		if holds(w) {
			clusters = append(clusters, w.cluster)
		}
	}
	return clusters
}
