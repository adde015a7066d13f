package pass

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/proposal"
)

// Proposed is what a FleetWorkload's spec comes to, which somebody only asks about: see proposal.Decode. read answers what is asked. Nothing of in is
// changed, and nothing is carried out.
func Proposed(in In, read func(*In, Reads)) v1alpha1.ProposalStatus {
	fw := in.FleetWorkload
	switch from := fw.Status.Backend; {
	case !fw.DeletionTimestamp.IsZero():
		return v1alpha1.ProposalStatus{Refused: "it is being deleted: nothing else becomes of it"}
	case HandsOver(fw):
		return v1alpha1.ProposalStatus{Refused: "it is being handed over: edits wait until that is over"}
	case from != "" && from != fw.Spec.Backend:
		return wouldMove(fw)
	}
	planned := rehearsed(in, read)
	if planned.Problem != "" {
		return v1alpha1.ProposalStatus{Refused: planned.summary()}
	}
	return planned.told(planned.summary())
}

// told is the answer to who has asked about it.
func (p Planned) told(message string) v1alpha1.ProposalStatus {
	out := v1alpha1.ProposalStatus{Message: message}
	out.Clusters, out.Truncated = p.shownClusters()
	out.Companions, out.CompanionsTruncated = shownCompanions(p.Companions)
	return out
}

// wouldMove says what a change of backend moves. Whether it may is found out when it begins.
func wouldMove(fw *v1alpha1.FleetWorkload) v1alpha1.ProposalStatus {
	var planned Planned
	for name, n := range guard.Decided(fw.Status.Placement) {
		planned.Clusters = append(planned.Clusters, v1alpha1.PlannedCluster{Name: name, Action: v1alpha1.PlannedMove, Replicas: &n, ReplicasBefore: &n})
	}
	slices.SortFunc(planned.Clusters, func(a, b v1alpha1.PlannedCluster) int { return strings.Compare(a.Name, b.Name) })
	return planned.told(fmt.Sprintf("it would be handed over from backend %s to %s: %s", fw.Status.Backend, fw.Spec.Backend,
		cmp.Or(planned.onClusters(), "nothing runs yet")))
}

// Answered is what the status says of a proposal: nothing where none is made, and what it says already where that one was answered. answer looks at another one.
func Answered(fw *v1alpha1.FleetWorkload, now metav1.Time, answer func(value string) v1alpha1.ProposalStatus) *v1alpha1.ProposalStatus {
	value := fw.Annotations[v1alpha1.AnnotationPropose]
	if value == "" {
		return nil
	}
	hash := proposal.Hash(value)
	if fw.Status.Proposal != nil && fw.Status.Proposal.Hash == hash {
		return fw.Status.Proposal
	}
	answered := answer(value)
	answered.Hash, answered.AnsweredAt = hash, &now
	answered.Refused = brief.Cut(answered.Refused, mostSummary)
	return &answered
}
