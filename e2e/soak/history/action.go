// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"strings"
)

// Verb is what an action does.
type Verb string

// What people do to FleetWorkloads.
const (
	// Apply makes Spec the FleetWorkload's spec, and creates it when it is not there.
	Apply Verb = "apply"
	// Delete deletes the FleetWorkload, with the deletion policy of Spec.
	Delete Verb = "delete"
	// Clear deletes on members what a deletion with the policy Orphan has left.
	Clear Verb = "clear"
	// Confirm lets a removal proceed that is held.
	Confirm Verb = "confirm"
	// Touch changes the ConfigMap that the pods of a namespace refer to.
	Touch Verb = "touch"
)

// What happens to clusters: from now on the cluster is as Fact says.
const (
	// Label sets or removes the label by which a workload chooses clusters.
	Label Verb = "label"
	// Taint adds a taint of the effect in Mode, and Untaint removes all.
	Taint   Verb = "taint"
	Untaint Verb = "untaint"
	// Lose ends the cluster's API server, and Return starts it again.
	Lose   Verb = "lose"
	Return Verb = "return"
	// Leave takes the cluster out of both backends, and Join brings it back.
	Leave Verb = "leave"
	Join  Verb = "join"
)

// What fails. None of these gives anybody leave to touch a pod.
const (
	// Kill ends a process, which is started again at once.
	Kill Verb = "kill"
	// Stop halts a process, and Continue lets it go on.
	Stop     Verb = "stop"
	Continue Verb = "continue"
	// End ends a process, and Start starts it again.
	End   Verb = "end"
	Start Verb = "start"
	// Cut has connections of the operators to a server fail as Mode says, and Mend mends them.
	Cut  Verb = "cut"
	Mend Verb = "mend"
	// Unlease deletes the operators' lease.
	Unlease Verb = "unlease"
)

// Action is one thing that is done.
type Action struct {
	// Kind is the row of the generator's table from which it comes.
	Kind string
	Verb Verb
	// Workload and the whole Spec after the action, of edits.
	Workload Key
	Spec     *Spec
	// Cluster and all that is true of it after the action.
	Cluster string
	Fact    *Cluster
	// Process is what fails: a component of the fleet, or an operator.
	Process string
	// Mode says how, where there is more than one way.
	Mode string
}

// Lane is in whose order the action is carried out; those of different lanes do not wait for each other.
func (a Action) Lane() string {
	switch {
	case a.Verb == Label:
		return a.Workload.String() // nobody else chooses by it
	case a.Cluster != "":
		return a.Cluster
	case a.Process != "":
		return a.Process
	default:
		return a.Workload.String()
	}
}

func (a Action) String() string {
	parts := []string{a.Kind}
	switch {
	case a.Workload.Name != "":
		parts = append(parts, a.Workload.String())
	case a.Workload.Namespace != "":
		parts = append(parts, a.Workload.Namespace)
	}
	for _, part := range []string{a.Cluster, a.Process, a.Mode} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if a.Spec != nil {
		parts = append(parts, fmt.Sprintf("[%s]", a.Spec))
	}
	return strings.Join(parts, " ")
}
