package karmada

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/backends"
)

// When a member object seems to have gone, Karmada makes it again at once, and says so in Applied when that fails
// (handleDeleteEvent in pkg/controllers/status). The object may be there all the same: the answer was lost, it was restored,
// or the cluster has joined under a second name, under which Karmada saw it too early. Nothing takes the word back then: the
// execution controller sees a Work only when its spec changes. A Work that is suspended for a moment changes, and no member
// does.

// reasonRecreateFailed is that word's reason.
const reasonRecreateFailed = "ReCreateFailed"

// unrevised tells whether Applied is that word, and the execution controller has not looked at the Work since.
func (w work) unrevised() bool {
	applied, dispatching := w.applied(), meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDispatching)
	return applied != nil && applied.Status == metav1.ConditionFalse && applied.Reason == reasonRecreateFailed &&
		dispatching != nil && dispatching.Status == metav1.ConditionTrue && !dispatching.LastTransitionTime.After(applied.LastTransitionTime.Time)
}

// toRecheck names the clusters that are held until Karmada has taken that up, each with the reason. While the gate would
// not open again soon there are none.
func toRecheck(desired backends.Desired, want *rendered, live currentState) map[string]string {
	out := map[string]string{}
	for _, t := range desired.Targets {
		if w, found := live.work(t.Cluster); found && t.Mode.Owns() && !probes(t) && w.unrevised() {
			out[t.Cluster] = "Karmada to check again what it could not make again: " + w.applied().Message
		}
	}
	if len(out) > 0 && unfinished(desired, want, live) != "" {
		return nil
	}
	return out
}
