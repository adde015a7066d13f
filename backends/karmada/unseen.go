package karmada

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/backends"
)

// Karmada deletes a member object that its cache of the member has; what that lacks it takes for gone, and lets the Work go (Delete in
// pkg/util/objectwatcher). After a cluster was lost the cache stays behind for a while, and what was made there meanwhile would stay
// for ever. Karmada reports from the same cache. So a Work is not taken away before there is a report of what it has made.

// unseenFor is how long a report can be late: a watch that failed is tried again after at most a minute (the backoff of
// NewReflectorWithOptions in client-go's tools/cache). Where an interpreter fails there is never a report.
const unseenFor = 2 * time.Minute

// refusals are what is said of an object that was not made. Any other failure, as that it exists already, may be of one that was.
var refusals = []string{
	"is invalid", "is forbidden", "denied the request", "failed calling webhook", "not found", "no matches for kind", "cannot be handled",
}

// unseen tells whether Karmada may have made a member object for the Work that its cache does not show yet, and if so after what time
// it must have seen it; 0 when that is not known, as of a lost cluster.
func (w work) unseen(fleet backends.Fleet, now time.Time) (until time.Duration, is bool) {
	if w.reported() || w.terminating() || conflicts(w) || w.spared() || w.probes() {
		return 0, false
	}
	since, applied := w.CreationTimestamp.Time, w.applied()
	cluster, _ := fleet.Get(w.cluster)
	lost := cluster.Ready != metav1.ConditionTrue
	switch {
	case applied != nil:
		since = applied.LastTransitionTime.Time
		if applied.Status != metav1.ConditionTrue && slices.ContainsFunc(refusals, func(s string) bool { return strings.Contains(applied.Message, s) }) {
			return 0, false
		}
	case lost || w.suspended() && !w.dispatched():
		return 0, false // nothing was made
	}
	if lost {
		return 0, true
	}
	if cluster.ReadySince.After(since) {
		since = cluster.ReadySince
	}
	left := since.Add(unseenFor).Sub(now)
	return max(left, 0), left > 0
}

// unseen are the clusters of which Karmada must not take the Work away yet, those of some excepted, and when the first of them ends.
func (l currentState) unseen(fleet backends.Fleet, now time.Time, except func(w work) bool) (clusters []string, requeueAfter time.Duration) {
	for _, w := range l.works {
		until, is := w.unseen(fleet, now)
		if !is || except(w) {
			continue
		}
		clusters, requeueAfter = append(clusters, w.cluster), backends.Sooner(requeueAfter, until)
	}
	return clusters, requeueAfter
}

// unseenMessage says what is awaited of them; a cluster out of contact may take long.
func unseenMessage(clusters []string, fleet backends.Fleet) string {
	message := "Karmada to see what it has made on " + list(clusters)
	lost := slices.DeleteFunc(slices.Clone(clusters), func(cluster string) bool { return fleet.InContact(cluster) })
	if len(lost) > 0 {
		message += "; out of contact: " + list(lost) + ". Bring it back, or unjoin it"
	}
	return message
}
