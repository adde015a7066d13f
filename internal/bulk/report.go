package bulk

import (
	"time"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Outcome is how the moving of many FleetWorkloads ended.
type Outcome string

const (
	// OutcomeComplete is that all that was chosen is on the backend.
	OutcomeComplete Outcome = "Complete"
	// OutcomeIncomplete is that nothing is under way any more, and not all is there.
	OutcomeIncomplete Outcome = "Incomplete"
	// OutcomeStopped is that more have failed than may, and not all is there.
	OutcomeStopped Outcome = "Stopped"
	// OutcomeLeft is that what had begun was not waited for. It goes on by itself.
	OutcomeLeft Outcome = "Left"
	// OutcomeInterrupted is that it was ended from outside. What had begun goes on by itself.
	OutcomeInterrupted Outcome = "Interrupted"
)

// Report is what was moved, and what ran before and after.
type Report struct {
	To        string    `json:"to"`
	Outcome   Outcome   `json:"outcome"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
	Summary   Counts    `json:"summary"`
	// Evidence is about all clusters of which something is known from before and after.
	Evidence  Evidence   `json:"evidence"`
	Workloads []Workload `json:"workloads"`
}

// Evidence counts clusters by whether what runs after is what ran before.
type Evidence struct {
	Clusters int `json:"clusters"`
	// SameObject and OtherObject go by the object's UID; SamePods and OtherPods by the revision of its pods, for kinds that have one.
	SameObject  int `json:"sameObject"`
	OtherObject int `json:"otherObject"`
	SamePods    int `json:"samePodRevision"`
	OtherPods   int `json:"otherPodRevision"`
	// FewerReady is where fewer pods are ready than were.
	FewerReady int `json:"fewerReady"`
	// Restarts is how many restarts of containers were added; absent where nobody may look at pods.
	Restarts *int `json:"restarts,omitempty"`
}

// Workload is what became of one FleetWorkload.
type Workload struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	From      string  `json:"from,omitempty"`
	To        string  `json:"to"`
	Result    State   `json:"result"`
	Message   string  `json:"message,omitempty"`
	Phases    []Phase `json:"phases,omitempty"`
	// StartedAt and EndedAt are absent when they were not seen.
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// Clusters are as in status.migration: what ran before and what runs after.
	Clusters []v1alpha1.MigrationClusterStatus `json:"clusters,omitempty"`
}

// Report tells how it stands now. Times are given to the second.
func (m *Migration) Report(outcome Outcome, started, now time.Time) Report {
	r := Report{
		To: m.rules.To, Outcome: outcome, StartedAt: toTheSecond(started), EndedAt: toTheSecond(now), Summary: m.counts, Workloads: []Workload{},
	}
	for _, e := range m.entries {
		w := workloadOf(e.Entry, m.rules.To)
		for _, c := range w.Clusters {
			r.Evidence.add(c)
		}
		r.Workloads = append(r.Workloads, w)
	}
	return r
}

// Outcome is how it ends when nobody interrupts it.
func (m *Migration) Outcome() Outcome {
	switch {
	case m.counts.Left() == 0:
		return OutcomeComplete
	case m.stopped:
		return OutcomeStopped
	case m.counts.Busy() > 0:
		return OutcomeLeft
	default:
		return OutcomeIncomplete
	}
}

func workloadOf(e Entry, to string) Workload {
	fw := e.FleetWorkload
	w := Workload{
		Namespace: fw.Namespace, Name: fw.Name, From: e.From, To: to, Result: e.State, Message: e.Message,
		StartedAt: toTheSecond(e.Begun), EndedAt: toTheSecond(e.Ended), Clusters: recordedOf(fw, to),
	}
	for _, p := range e.Phases {
		p.Since = toTheSecond(p.Since)
		w.Phases = append(w.Phases, p)
	}
	if last := cameTo(fw, to); last != nil && there(fw, to) {
		w.EndedAt = toTheSecond(last.FinishedAt.Time)
	}
	return w
}

// recordedOf is what is on record of a FleetWorkload's clusters for the migration to that backend: the one under way, or else the newest.
func recordedOf(fw *v1alpha1.FleetWorkload, to string) []v1alpha1.MigrationClusterStatus {
	m := fw.Status.Migration
	if m != nil && m.Phase != "" && m.To == to {
		return m.Clusters
	}
	if last := newest(fw); last != nil && last.To == to {
		return last.Clusters
	}
	return nil
}

func (ev *Evidence) add(c v1alpha1.MigrationClusterStatus) {
	if c.Before == nil || c.After == nil {
		return
	}
	ev.Clusters++
	compare(c.Before.UID, c.After.UID, &ev.SameObject, &ev.OtherObject)
	compare(c.Before.PodRevision, c.After.PodRevision, &ev.SamePods, &ev.OtherPods)
	if was, is := c.Before.Ready, c.After.Ready; was != nil && is != nil && *is < *was {
		ev.FewerReady++
	}
	if was, is := c.Before.Restarts, c.After.Restarts; was != nil && is != nil {
		added := int(*is - *was)
		if ev.Restarts != nil {
			added += *ev.Restarts
		}
		ev.Restarts = &added
	}
}

// compare counts what is known. What is not known proves nothing.
func compare(before, after string, same, other *int) {
	switch {
	case before == "" || after == "":
	case before == after:
		*same++
	default:
		*other++
	}
}

func toTheSecond(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Second)
}
