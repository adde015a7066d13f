package ocm

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// presence is what a cluster says about the member object for the newest generation of its ManifestWork.
type presence int

const (
	// presenceUnknown: the agent has not looked since the ManifestWork changed, or could not.
	presenceUnknown presence = iota
	// presenceMissing: there is no such object.
	presenceMissing
	// presenceOurs: there is one with this workload's UID as its label.
	presenceOurs
	// presenceForeign: there is one without.
	presenceForeign
)

// state is where a workload stands on one cluster, read from its ManifestWork alone.
type state struct {
	exists   bool
	deleting bool
	// wasReleased is true while what was released is being deleted.
	wasReleased bool
	held        bool
	// observe is true when the object may be another backend's, whatever else the ManifestWork says.
	observe bool
	// probe is true of an observed one that is there to ask.
	probe    bool
	strategy workv1.UpdateStrategyType
	deletion workv1.DeletePropagationPolicyType
	// applied is Unknown unless the agent has acted on the newest generation; it holds for strategy and deletion too,
	// since the agent adds or removes its ownerReference in the same step (ocm pkg/work/spoke/apply).
	applied        metav1.ConditionStatus
	appliedMessage string
	// forced is true while the agent is told to win over other managers of the object's fields; conflict, when it could not apply because
	// of them. others are who has changed what.
	forced, conflict bool
	others           string
	// undelivered is true when the object on the member is known to be from a manifest before.
	undelivered bool
	object      presence
	// owned is true unless the object is known to have no ownerReference of ours.
	owned bool
	// managed is true while another backend may put its marks back; marks are those to take over.
	managed bool
	marks   string
	// taking is true when the ManifestWork has the agent take marks over; leaving, when it is on its way out.
	taking, leaving bool
	// elsewhere is true of a shared companion that another backend delivers there.
	elsewhere bool
	// notServed is true when the cluster said that it does not know the kind.
	notServed bool
	// untouched is true while the agent has never been told to write.
	untouched bool
	// asked is since when the agent of a cluster that is left has been asked whether the object is there; again is true when it was
	// asked once more since it can no longer be blind.
	asked time.Time
	again bool
}

// intent is what is wanted of one cluster.
type intent struct {
	// wanted is false when the workload is to be removed by policy.
	wanted bool
	policy v1alpha1.DeletionPolicy
	hold   bool
	// observe is true when the object is not to be written or removed.
	observe bool
	// alone is true when no other backend has anything of the workload: what is only observed is nobody else's, and marks that
	// are left stay away once they are taken.
	alone bool
	// probe is true when the cluster is only asked what is there.
	probe bool
	// adopt skips asking the cluster whether a foreign object is there.
	adopt bool
	// takeOver is true in a hand-over: the object's fields are another backend's.
	takeOver bool
	// contested is true when the manifest was put through a moment ago, and somebody has changed the object again.
	contested bool
	// leaves is true when what others have changed on the member stays (spec.drift Report); changes, when there is another manifest to deliver.
	leaves, changes bool
	// ready is true when the cluster is in contact: only then what it said about foreign objects counts.
	ready bool
	// missing says which prerequisite is awaited; empty when all are met.
	missing string
	// now is the time of the pass.
	now time.Time
}

type writeKind int

const (
	writeNothing writeKind = iota
	// writeWork creates the ManifestWork or makes it equal to the variant of strategy and deletion.
	writeWork
	// writeMarks leaves the spec as it is and sets the held mark.
	writeMarks
	// writeDelete deletes the ManifestWork.
	writeDelete
)

// move is the next step for one cluster's ManifestWork.
type move struct {
	write    writeKind
	strategy workv1.UpdateStrategyType
	deletion workv1.DeletePropagationPolicyType
	removing string
	held     bool
	observe  bool
	probe    bool
	// clean are other backends' marks to take over, so that they go with the next write.
	clean string
	// force has the agent win over other managers of the object's fields.
	force bool
	// onEvidence makes the write fail when the ManifestWork has changed since it was read.
	onEvidence bool
	// waiting says what is awaited before the next step; empty when there is none.
	waiting string
}

var (
	probe = move{
		write:    writeWork,
		strategy: workv1.UpdateStrategyTypeReadOnly, deletion: workv1.DeletePropagationPolicyTypeOrphan,
	}
	deliver = move{
		write:    writeWork,
		strategy: workv1.UpdateStrategyTypeServerSideApply, deletion: workv1.DeletePropagationPolicyTypeOrphan,
	}
	// claiming and disown change nothing of the object but the agent's ownerReference. That is why they are CreateOnly:
	// server-side apply would fail before the ownerReference where the manifest is refused, and would write a manifest
	// that is on its way out.
	claiming = move{
		write:    writeWork,
		strategy: workv1.UpdateStrategyTypeCreateOnly, deletion: workv1.DeletePropagationPolicyTypeForeground,
	}
	disown = move{
		write:    writeWork,
		strategy: workv1.UpdateStrategyTypeCreateOnly, deletion: workv1.DeletePropagationPolicyTypeOrphan,
	}
)

// next decides the next step. It looks at the ManifestWork as it is, never at what was decided before.
//
// A new ManifestWork begins ReadOnly: OCM adopts whatever it finds, so with conflictPolicy Fail the cluster is asked
// first. It then stays ServerSideApply with Orphan until it is removed.
func next(s state, in intent) move {
	switch {
	case s.deleting:
		return move{waiting: waitForAgent(in, "the agent to finish the removal")}
	case !in.wanted && (in.policy == v1alpha1.DeletionPolicyOrphan || s.observe && !in.alone):
		return nextOrphaning(s, in)
	case !in.wanted:
		return nextRemoving(s, in)
	case in.probe && (!s.exists || s.probe || s.probing()):
		return nextProbe(s, in)
	case in.observe || in.probe:
		return nextObserve(s, in)
	case s.elsewhere:
		// Of two writers one has to give way, and only we can see the other.
		return probe.wait(elsewhereMessage)
	case in.hold && !s.exists:
		// ReadOnly touches nothing on the cluster; without an object on the hub, nothing could report the hold.
		held := probe
		held.held = true
		return held
	case in.hold && !s.held:
		return move{write: writeMarks}
	case in.hold:
		return move{}
	case !s.exists:
		if in.missing != "" {
			return move{waiting: in.missing}
		}
		if in.adopt {
			return deliver.byForce()
		}
		return probe.wait(waitForAgent(in, "the agent to tell whether the object exists already"))
	case s.strategy == workv1.UpdateStrategyTypeReadOnly && !in.adopt:
		return nextProbing(s, in)
	case s.strategy == workv1.UpdateStrategyTypeReadOnly && in.missing != "":
		return move{waiting: in.missing}
	default:
		m := deliver
		if !s.managed || in.alone {
			m.clean = s.marks
		}
		m.onEvidence = s.probe // what was decided on may have changed
		m.force = m.clean != "" || s.forces(in)
		if s.conflict && !m.force && !in.leaves {
			m.waiting = waitForAgent(in, s.appliedMessage)
		}
		return m
	}
}

// nextObserve has the agent observe and not write. What it owns by an ownerReference it has to give up first: ReadOnly leaves
// that as it is (ocm pkg/work/spoke/apply, ReadOnlyApply).
func nextObserve(s state, in intent) move {
	observe := func(m move, waiting string) move {
		m.observe = true
		return m.wait(waitForAgent(in, waiting))
	}
	switch {
	case s.released():
		m := probe
		m.observe = true
		return m
	case s.strategy == workv1.UpdateStrategyTypeReadOnly && s.owned && (s.object == presenceOurs || s.object == presenceForeign),
		s.strategy == workv1.UpdateStrategyTypeCreateOnly && s.observe && s.applied != metav1.ConditionTrue && s.object != presenceMissing:
		// The object is there, so that CreateOnly writes nothing but the ownerReference.
		return observe(disown, "the agent to give the object up")
	default:
		return observe(probe, "the agent to confirm that it only observes")
	}
}

// nextProbe has the agent probe. What it finds was never owned, so that there is nothing to give up.
func nextProbe(s state, in intent) move {
	m := probe
	m.observe, m.probe = true, true
	switch {
	case s.object != presenceUnknown && s.applied == metav1.ConditionTrue, s.notServed:
		return m
	case s.applied == metav1.ConditionFalse:
		return m.wait(waitForAgent(in, s.appliedMessage))
	default:
		return m.wait(waitForAgent(in, "the agent to tell what runs there already"))
	}
}

// probing tells whether the agent has been asked whether there is a foreign object, and nothing else until now.
func (s state) probing() bool {
	return s.strategy == workv1.UpdateStrategyTypeReadOnly && s.deletion == workv1.DeletePropagationPolicyTypeOrphan && !s.observe &&
		(s.object == presenceForeign || s.object == presenceMissing)
}

// released tells whether the agent has confirmed that it neither writes the object nor would delete it.
func (s state) released() bool {
	return s.wasReleased || s.exists && s.observe && !s.probe && !s.deleting && s.applied == metav1.ConditionTrue &&
		s.strategy == workv1.UpdateStrategyTypeReadOnly && s.deletion == workv1.DeletePropagationPolicyTypeOrphan &&
		(s.object == presenceMissing || s.object != presenceUnknown && !s.owned)
}

func nextProbing(s state, in intent) move {
	switch {
	case s.object == presenceForeign:
		return probe.wait(conflictMessage)
	case s.object == presenceUnknown && s.applied == metav1.ConditionFalse:
		return probe.wait(waitForAgent(in, s.appliedMessage))
	case s.object == presenceUnknown || !in.ready:
		return probe.wait(waitForAgent(in, "the agent to tell whether the object exists already"))
	case in.missing != "":
		return probe.wait(in.missing)
	default:
		m := deliver.evidently()
		m.force = in.leaves // it may run already, with changes of others from before
		return m
	}
}

const conflictMessage = "the object exists already and is not this FleetWorkload's: set conflictPolicy Adopt to take it" +
	" over, or remove it"

const elsewhereMessage = "another backend delivers it there"

// nextRemoving takes the workload off the cluster and the object with it. The object is only ever deleted by an agent
// that has confirmed its ownerReference first.
func nextRemoving(s state, in intent) move {
	removing := func(m move) move { m.removing = string(v1alpha1.DeletionPolicyDelete); return m }
	asking := func(waiting string) move {
		m := probe.wait(waitForAgent(in, waiting))
		m.removing = askedSince(v1alpha1.DeletionPolicyDelete, s, in.now)
		return m
	}
	switch {
	case !s.exists:
		return move{}
	case s.strategy == workv1.UpdateStrategyTypeReadOnly && s.deletion == workv1.DeletePropagationPolicyTypeOrphan:
		switch {
		case s.object == presenceMissing && !s.holdsTrue():
			return asking("the agent to go on saying that the object is not there")
		case s.object == presenceForeign && !s.owned && !s.holdsTrue():
			return asking("the agent to go on saying that the object is not ours")
		case s.object == presenceMissing, s.object == presenceUnknown && s.notServed:
			return move{write: writeDelete, waiting: waitForAgent(in, "the agent to finish the removal")}
		case s.object == presenceForeign && !s.owned:
			return move{write: writeDelete, waiting: waitForAgent(in, "the agent to finish the removal")}
		case s.object == presenceForeign:
			// It carries our ownerReference and not our label: somebody has made it theirs.
			return removing(disown).wait(waitForAgent(in, "the agent to give the object up"))
		case s.object == presenceOurs:
			return removing(claiming).evidently().wait(waitForAgent(in, "the agent to confirm that it owns the object"))
		default:
			return asking("the agent to tell whether the object exists")
		}
	case s.strategy == workv1.UpdateStrategyTypeCreateOnly && s.deletion == workv1.DeletePropagationPolicyTypeForeground:
		switch {
		case s.applied == metav1.ConditionTrue:
			return move{write: writeDelete, waiting: waitForAgent(in, "the agent to remove the object")}
		case s.applied == metav1.ConditionFalse && (s.object == presenceMissing || s.notServed):
			return asking("the agent to tell whether the object exists")
		case s.applied == metav1.ConditionFalse:
			return removing(claiming).wait(waitForAgent(in, s.appliedMessage))
		default:
			return removing(claiming).wait(waitForAgent(in, "the agent to confirm that it owns the object"))
		}
	case s.strategy == workv1.UpdateStrategyTypeCreateOnly && s.object == presenceForeign && s.applied == metav1.ConditionTrue:
		return move{write: writeDelete, waiting: waitForAgent(in, "the agent to finish the removal")}
	case s.object == presenceOurs, s.object == presenceForeign && s.applied == metav1.ConditionTrue:
		return removing(claiming).wait(waitForAgent(in, "the agent to confirm that it owns the object"))
	default:
		// Claiming creates an object that is missing, so the cluster is asked first.
		return asking("the agent to tell whether the object exists")
	}
}

// blindness bounds how long an agent may not see what it has itself written: it looks into a cache, whose watch may have been
// refused or cut off, and which is filled again within a minute (client-go tools/cache, NewReflectorWithOptions: a back-off of
// 30 seconds, doubled by jitter). OCM 1.2.0 keeps such watches for kinds that nobody uses any more, and meanwhile their
// rights may come and go (ocm pkg/work/spoke/objectreader).
const blindness = 90 * time.Second

// holdsTrue tells whether an object that the agent does not see is not there either, and one that it sees without our mark has none. Its
// word says nothing of when it has looked, which may be a while ago (--status-sync-interval): only what it says when it is asked again,
// after the time in which it may be blind, was seen since.
func (s state) holdsTrue() bool { return s.untouched || s.again }

// askedSince is the mark of a ManifestWork that asks before it goes. The time stays what it was when the asking began.
func askedSince(policy v1alpha1.DeletionPolicy, s state, now time.Time) string {
	since, mark := s.asked, askedMark
	if since.IsZero() {
		since = now
	}
	if s.again || now.Sub(since) >= blindness {
		mark = askedAgainMark
	}
	return string(policy) + mark + since.UTC().Format(time.RFC3339)
}

const (
	askedMark = "; asked since "
	// askedAgainMark goes with a change of the spec, so that the agent looks again; see variant.
	askedAgainMark = "; asked again since "
)

// asksAgain reads it.
func asksAgain(mark string) bool { return strings.Contains(mark, askedAgainMark) }

// askedOf is the time in such a mark; zero when there is none.
func askedOf(mark string) time.Time {
	_, since, _ := strings.Cut(mark, " since ")
	at, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return time.Time{}
	}
	return at
}

// nextOrphaning takes the ManifestWork away and leaves the object, once the agent has confirmed that its
// ownerReference is gone: it decides at the time of apply what it deletes later.
func nextOrphaning(s state, in intent) move {
	removing := func(m move) move { m.removing, m.observe = string(v1alpha1.DeletionPolicyOrphan), s.observe; return m }
	gone := move{write: writeDelete, waiting: waitForAgent(in, "the agent to finish the removal")}
	orphan := s.deletion == workv1.DeletePropagationPolicyTypeOrphan
	switch {
	case !s.exists:
		return move{}
	case s.strategy == workv1.UpdateStrategyTypeReadOnly && orphan:
		// ReadOnly leaves an ownerReference as it is (ocm pkg/work/spoke/apply, ReadOnlyApply).
		switch {
		case s.object == presenceMissing, s.object == presenceUnknown && s.notServed:
			return gone
		case s.object == presenceUnknown:
			return removing(probe).wait(waitForAgent(in, "the agent to tell whether the object exists"))
		case s.owned:
			return removing(disown).wait(waitForAgent(in, "the agent to give the object up"))
		default:
			return gone
		}
	case s.leaving && s.strategy == workv1.UpdateStrategyTypeServerSideApply && s.applied == metav1.ConditionUnknown:
		return move{waiting: waitForAgent(in, unmarking)}
	case orphan && s.applied == metav1.ConditionTrue:
		if m, needed := s.unmark(in); needed {
			return removing(m)
		}
		return gone
	case s.object == presenceMissing, s.object == presenceUnknown && s.deletion == workv1.DeletePropagationPolicyTypeOrphan &&
		s.strategy != workv1.UpdateStrategyTypeCreateOnly:
		return removing(probe).wait(waitForAgent(in, "the agent to tell whether the object exists"))
	case s.applied == metav1.ConditionFalse && s.strategy == workv1.UpdateStrategyTypeCreateOnly && orphan:
		if s.notServed {
			return removing(probe).wait(waitForAgent(in, "the agent to tell whether the object exists"))
		}
		return removing(disown).wait(waitForAgent(in, s.appliedMessage))
	default:
		return removing(disown).wait(waitForAgent(in, "the agent to give the object up"))
	}
}

const unmarking = "the agent to take the former backend's marks off the object"

// unmark takes another backend's marks off before the object is left: that backend has let it go and counts on us. It is
// tried once, since whoever puts them back again is none of the workload's backends.
func (s state) unmark(in intent) (m move, needed bool) {
	switch {
	case !in.alone || s.elsewhere || s.strategy != workv1.UpdateStrategyTypeServerSideApply:
		return move{}, false
	case s.taking:
		return deliver.byForce().wait(waitForAgent(in, unmarking)), true
	case s.marks != "" && !s.leaving:
		m = deliver.byForce()
		m.clean = s.marks
		return m.wait(waitForAgent(in, unmarking)), true
	default:
		return move{}, false
	}
}

func (m move) wait(what string) move {
	m.waiting = what
	return m
}

func (m move) byForce() move {
	m.force = true
	return m
}

func (m move) evidently() move {
	m.onEvidence = true
	return m
}

func waitForAgent(in intent, what string) string {
	if !in.ready {
		return what + "; the cluster is out of contact"
	}
	return what
}
