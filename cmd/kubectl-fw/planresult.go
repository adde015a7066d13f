package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/pass"
)

// planResult is what a change of a FleetWorkload comes to. The text is printed from it. Fields that status.change has as well have its names.
type planResult struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Backend is that of the spec.
	Backend string `json:"backend"`
	// Changes tells whether something would change, or waits; false when Refused or Error says why not.
	Changes bool `json:"changes"`
	// New: there is no such FleetWorkload, or nothing of it has been shipped.
	New bool `json:"new"`
	// Edits are what changes of the FleetWorkload, a line each; null when it is new, or when that is not known.
	Edits []string `json:"edits"`
	// Message says in a line what it comes to, where the operator was asked.
	Message string `json:"message,omitempty"`
	// Elsewhere says where to look, as a hand-over has a dry run of its own.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Refused is why the operator would not carry it out, or why it cannot be approved yet.
	Refused string `json:"refused,omitempty"`
	// Error is why that could not be found out.
	Error string `json:"error,omitempty"`
	// Clusters are what becomes of each; null when nobody has looked.
	Clusters []planCluster `json:"clusters"`
	// Truncated is how many more clusters there are.
	Truncated  *int32                      `json:"truncated,omitempty"`
	Companions []v1alpha1.PlannedCompanion `json:"companions"`
	// CompanionsTruncated is how many more entries there are.
	CompanionsTruncated *int32 `json:"companionsTruncated,omitempty"`
	// Follows are the steps that come by themselves after this one, or wait for something.
	Follows []string `json:"follows"`
	// Notes are what else must be known to read the rest rightly.
	Notes []string `json:"notes"`
	// Approval is what approves the change, and ExpiresAt until when; empty when none waits.
	Approval  string       `json:"approval,omitempty"`
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// planCluster is what becomes of a cluster. Numbers are null when they are not known, or there are none.
type planCluster struct {
	Name           string        `json:"name"`
	Action         clusterAction `json:"action"`
	Replicas       *int32        `json:"replicas"`
	ReplicasBefore *int32        `json:"replicasBefore"`
	Why            string        `json:"why,omitempty"`
}

// clusterAction is an action of the API, or one of those that change nothing.
type clusterAction string

const (
	// clusterHold: it is suspended, or the cluster is paused.
	clusterHold clusterAction = "Hold"
	// clusterLeave: the operator does not touch what is there.
	clusterLeave clusterAction = "Leave"
	// clusterNone: there is nothing to do.
	clusterNone clusterAction = "None"
)

// plansOfFile are what applying a file would change, in its order.
type plansOfFile struct {
	FleetWorkloads []*planResult `json:"fleetWorkloads"`
}

// refusal is why the operator would not carry something out.
type refusal string

// Error implements error.
func (r refusal) Error() string { return "it would not be carried out: " + string(r) }

func newPlanResult(fw *v1alpha1.FleetWorkload) *planResult {
	return &planResult{
		Namespace: fw.Namespace, Name: fw.Name, Backend: fw.Spec.Backend,
		Companions: []v1alpha1.PlannedCompanion{}, Follows: []string{}, Notes: []string{},
	}
}

// fail notes why there is no more to say.
func (r *planResult) fail(err error) {
	var refused refusal
	switch {
	case errors.As(err, &refused):
		r.Refused = string(refused)
	case err != nil:
		r.Error = err.Error()
	}
}

// ended is the error with which a command ends that has this result.
func (r *planResult) ended(err error) error {
	if err == nil && r.Changes {
		return somethingChanges
	}
	return err
}

// changing is the FleetWorkload, if something would change.
func (r *planResult) changing() []named {
	if !r.Changes {
		return nil
	}
	return []named{namedFleetWorkload(r.Name)}
}

// tell takes over what a status says of clusters and companions.
func (r *planResult) tell(clusters []v1alpha1.PlannedCluster, more *int32, companions []v1alpha1.PlannedCompanion, moreCompanions *int32) {
	r.Clusters = []planCluster{}
	for _, c := range clusters {
		r.Clusters = append(r.Clusters, plannedOn(pass.Row{
			Cluster: c.Name, Action: c.Action, Replicas: c.Replicas, ReplicasBefore: c.ReplicasBefore, Reason: c.Reason,
		}))
	}
	r.Truncated, r.Companions, r.CompanionsTruncated = more, orEmpty(companions), moreCompanions
	r.Follows = later(r.Clusters, r.Companions)
}

// plannedOn is what becomes of a cluster.
func plannedOn(r pass.Row) planCluster {
	c := planCluster{Name: r.Cluster, Action: clusterAction(r.Action), Replicas: r.Replicas, ReplicasBefore: r.ReplicasBefore, Why: string(r.Reason)}
	switch {
	case r.Held:
		c.Action = clusterHold
	case r.Unsaid:
		c.Action = clusterLeave
	case r.Conflict:
		c.Action, c.Why = clusterNone, "somebody else's object of that name is there"
	default:
		c.Action, c.Why = cmp.Or(c.Action, clusterNone), cmp.Or(c.Why, becauseOf[r.Action])
	}
	return c
}

// becauseOf says more of an action.
var becauseOf = map[v1alpha1.PlannedAction]string{
	v1alpha1.PlannedAdopt: "it is there already", v1alpha1.PlannedCreateOrAdopt: "what there is of that name is taken over",
}

// writeOfFile prints what applying a file would change. Without anything that is known it prints nothing: the error says why.
func (r *planResult) writeOfFile(out io.Writer) error {
	if r.Edits == nil && !r.New {
		return nil
	}
	r.writeHead(out)
	switch {
	case r.New:
		fmt.Fprintln(out, "it is new")
	case len(r.Edits) == 0:
		fmt.Fprintln(out, "nothing of it changes")
	default:
		writeLines(out, "what changes of it", r.Edits)
	}
	for _, line := range []string{r.Elsewhere, r.Message} {
		if line != "" {
			fmt.Fprintln(out, line)
		}
	}
	if r.Clusters == nil {
		r.writeNotes(out)
		return nil
	}
	if err := r.writeOutcome(out); err != nil {
		return err
	}
	if len(r.Notes) > 0 {
		fmt.Fprintln(out)
	}
	r.writeNotes(out)
	return nil
}

// writeOfChange prints a change that waits for approval.
func (r *planResult) writeOfChange(out io.Writer) error {
	if !r.Changes && r.Refused == "" {
		fmt.Fprintf(out, "%s/%s: no change waits for approval\n", r.Namespace, r.Name)
		return nil
	}
	r.writeHead(out)
	if r.Message != "" {
		fmt.Fprintln(out, r.Message)
	}
	if len(r.Edits) > 0 {
		writeLines(out, "what changes of it", r.Edits)
	}
	r.writeNotes(out)
	err := r.writeOutcome(out)
	if r.Changes {
		fmt.Fprintln(out) // before what to do about it
	}
	return err
}

func (r *planResult) writeHead(out io.Writer) {
	fmt.Fprintf(out, "%s/%s on backend %s\n", r.Namespace, r.Name, r.Backend)
}

func (r *planResult) writeNotes(out io.Writer) {
	for _, note := range r.Notes {
		fmt.Fprintln(out, "note: "+note)
	}
}

// writeOutcome prints what becomes of clusters and companions, and what follows. An operator that was asked says itself that there are no clusters.
func (r *planResult) writeOutcome(out io.Writer) error {
	switch {
	case len(r.Clusters) > 0:
		fmt.Fprintln(out)
		rows := [][]string{{"CLUSTER", "ACTION", "REPLICAS", "WHY"}}
		for _, c := range r.Clusters {
			rows = append(rows, []string{c.Name, clusterActionWords(c.Action), c.replicas(), orNone(c.Why)})
		}
		if err := writeRows(out, rows, 0); err != nil {
			return err
		}
	case r.Clusters != nil && r.Message == "":
		fmt.Fprintln(out, "\nno cluster has anything of it")
	}
	if more := ptr.Deref(r.Truncated, 0); more > 0 {
		fmt.Fprintf(out, "and %d clusters more\n", more)
	}
	if err := writeCompanions(out, r.Companions, int(ptr.Deref(r.CompanionsTruncated, 0))); err != nil {
		return err
	}
	if len(r.Follows) > 0 {
		fmt.Fprintln(out)
		writeLines(out, "this is the first step; what follows", r.Follows)
	}
	return nil
}

// clusterActionWords are an action as people say it.
func clusterActionWords(action clusterAction) string {
	switch action {
	case clusterLeave:
		return "leave as it is"
	case clusterAction(v1alpha1.PlannedCreateOrAdopt):
		return "create, or adopt"
	default:
		return strings.ToLower(string(action))
	}
}

// replicas are those before and after, as far as they differ.
func (c planCluster) replicas() string {
	before, after := number(c.ReplicasBefore), number(c.Replicas)
	switch {
	case c.Action == clusterAction(v1alpha1.PlannedRemove):
		return before
	case c.ReplicasBefore != nil && before != after:
		return before + " -> " + after
	default:
		return after
	}
}
