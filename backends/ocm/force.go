package ocm

import (
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// An agent that applies by force takes whatever its ManifestWork has, for as long as there is one: also when the hub is back from a backup,
// after a hand-over, and the fields are another backend's by now. So it is told to force only while it has something to win: what is taken
// over, and what somebody has changed on the member. Such a change it reports as a conflict (ocm pkg/work/spoke/apply, server_side_apply.go),
// at the pace at which it looks anyway. A hub from a backup has nobody who tells it to force.
//
// With spec.drift Report it is told to force each change of the manifest until that is applied, and nothing else. So a manifest that is not
// forced was delivered, and who has a field of it since then has changed it later.

// applying is server-side apply by the agent. The manager is written out although it is the default: the list is atomic, and a default in it
// would look foreign.
func applying(force bool) map[string]any {
	return map[string]any{
		"type":            string(workv1.UpdateStrategyTypeServerSideApply),
		"serverSideApply": map[string]any{"force": force, "fieldManager": workv1.DefaultFieldManager},
	}
}

// forced tells whether the agent is told to win over other managers.
func forced(config map[string]any) bool {
	force, _, _ := unstructured.NestedBool(config, "updateStrategy", "serverSideApply", "force")
	return force
}

// setStrategy is what a move wants of a manifest. What an author has added to server-side apply stays.
func setStrategy(config map[string]any, m move) {
	strategy, _ := config["updateStrategy"].(map[string]any)
	switch apply, is := strategy["serverSideApply"].(map[string]any); {
	case m.strategy != workv1.UpdateStrategyTypeServerSideApply:
		config["updateStrategy"] = map[string]any{"type": string(m.strategy)}
	case is:
		apply["force"] = m.force
	default: // it was something else until now
		config["updateStrategy"] = applying(m.force)
	}
}

// forces tells whether the agent is to win over other managers of the object's fields.
func (s state) forces(in intent) bool {
	switch {
	case in.takeOver:
		return true
	case s.strategy != workv1.UpdateStrategyTypeServerSideApply:
		return in.adopt || in.leaves
	case in.leaves && in.changes:
		return true
	case in.leaves && s.conflict && !s.forced:
		return s.undelivered
	case s.conflict && !s.forced:
		return !in.contested
	default:
		return s.forced && s.applied != metav1.ConditionTrue
	}
}

// isLeft tells whether what others have changed on the member stays there, with spec.drift Report.
func (s state) isLeft() bool {
	return s.conflict && !s.forced && !s.undelivered && !s.observe && !s.leaving && !s.deleting
}

// asLeft is the report of a cluster on which what others have changed stays: it had the manifest, and what it reports is about the object as
// it is now.
func (r report) asLeft(o backends.ClusterObservation, workload backends.Workload) backends.ClusterObservation {
	if !r.state().isLeft() || o.Presence != backends.PresenceActive {
		return o
	}
	o.Applied, o.Left = metav1.ConditionTrue, &backends.Left{Others: r.others()}
	if n, reported := r.values[feedbackReplicas].(int64); reported {
		replicas := int32(n)
		o.Left.Replicas = &replicas
	}
	o.Current = r.object(metav1.ConditionTrue) && r.feedbackSynced() && r.settled(workload)
	if o.Message = r.staleMessage(); r.tooMuch > 0 {
		o.Message = backends.ReportsTooMuch(r.tooMuch, backends.MostReported(1))
	}
	return o
}

// others are who has changed what, in the words of the member's API server.
func (r report) others() string {
	_, others, _ := strings.Cut(r.manifestMessage(), "Apply failed with ")
	_, others, _ = strings.Cut(others, ": ")
	return strings.Join(strings.Fields(others), " ")
}

// changes tells whether a ManifestWork has another manifest than it is to have.
func changes(live, wanted *unstructured.Unstructured) bool {
	if live.GetAnnotations()[annotationHash] == wanted.GetAnnotations()[annotationHash] {
		return false
	}
	has, is := firstManifest(live), firstManifest(wanted)
	return !ssa.Contains(has, is) || !ssa.Contains(is, has)
}

// lostToOthers recognizes what an API server says when other managers have the fields (apimachinery pkg/util/managedfields, conflict.go).
func lostToOthers(message string) bool {
	_, rest, is := strings.Cut(message, "Apply failed with ")
	return is && strings.Contains(rest, "conflict")
}

// contestPace is how often the same manifest is put through against one who changes it on the member again and again. An agent that forces
// looks every four to six minutes, whatever happens.
const contestPace = 4 * time.Minute

// contests remember which manifests were put through by force. They are a help and no position: without them, somebody who changes an
// object as soon as it is written would be answered as fast.
type contests struct {
	mu sync.Mutex
	by map[types.UID]contest
}

type contest struct {
	manifest string
	at       time.Time
	// order is the generation of the ManifestWork that was lost, and others are who has changed what.
	order  int64
	others string
}

// goesOn tells whether a ManifestWork's manifest was put through a moment ago, and lost again.
func (c *contests) goesOn(work *unstructured.Unstructured, s state) bool {
	return s.conflict && c.fought(work.GetUID(), hashOf(firstManifest(work)), time.Now())
}

// note remembers a move by which the manifest is put through.
func (c *contests) note(work *unstructured.Unstructured, s state, m move) {
	if s.conflict && m.force {
		c.add(work.GetUID(), contest{hashOf(firstManifest(work)), time.Now(), work.GetGeneration(), s.others})
	}
}

// lost is what others had changed when the agent was last told to win; nil when it has won since. A pass reads the ManifestWork twice, to observe
// and to apply. When the agent reported the change in between, only the second reading saw it.
func (c *contests) lost(r report) *backends.Delivered {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.by[r.workUID]
	if !known || !r.forced || last.others == "" || last.order >= r.generation {
		return nil
	}
	return &backends.Delivered{Order: backends.Order{UID: r.workUID, Generation: last.order}, Others: last.others}
}

func (c *contests) fought(work types.UID, manifest string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.by[work]
	return known && last.manifest == manifest && now.Before(last.at.Add(contestPace))
}

func (c *contests) add(work types.UID, fought contest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[types.UID]contest{}
	}
	c.by[work] = fought
}

func (c *contests) forget(work types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, work)
}
