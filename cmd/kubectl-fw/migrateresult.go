package main

import (
	"errors"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/internal/migration"
)

// comesTo is what asking for a backend would come to.
type comesTo string

const (
	// comesToBegin: the migration would begin.
	comesToBegin comesTo = "Begins"
	// comesToNothing: problems stand against it.
	comesToNothing comesTo = "Refused"
	// comesToGoOn: a migration is under way already; the message says what becomes of it.
	comesToGoOn comesTo = "UnderWay"
	// comesToStay: the backend has the workload already.
	comesToStay comesTo = "There"
)

// rehearsed is a dry run for scripts.
type rehearsed struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	From      string  `json:"from"`
	To        string  `json:"to"`
	State     comesTo `json:"state"`
	// Message says what becomes of a migration that is under way, or why there is nothing to do.
	Message  string             `json:"message,omitempty"`
	Problems []string           `json:"problems"`
	Notes    []string           `json:"notes"`
	Clusters []rehearsedCluster `json:"clusters"`
}

// rehearsedCluster is what happens to a cluster. Numbers are null when they are not known.
type rehearsedCluster struct {
	Name string `json:"name"`
	// NameOnTarget is the cluster's name on the new backend.
	NameOnTarget string   `json:"nameOnTarget"`
	Wave         *int32   `json:"wave"`
	Replicas     *int32   `json:"replicas"`
	Ready        *int32   `json:"ready"`
	Steps        []string `json:"steps"`
}

// print runs the dry run, as a text or for scripts. It fails when the migration would not begin.
func (r *rehearsal) print(out io.Writer, now time.Time, as *output) error {
	if as.isText() {
		return r.run(out, now)
	}
	state, message, err := r.where()
	if err != nil {
		return err
	}
	var refused error
	if state == comesToBegin {
		if err := r.validate(); err != nil {
			return err
		}
		if refused = r.refused(); refused != nil {
			state = comesToNothing
		}
	}
	var about []named
	if state == comesToBegin {
		about = append(about, namedFleetWorkload(r.fw.Name))
	}
	return errors.Join(as.write(out, r.result(state, message), about...), refused)
}

func (r *rehearsal) result(state comesTo, message string) rehearsed {
	key := client.ObjectKeyFromObject(r.fw)
	result := rehearsed{
		Namespace: key.Namespace, Name: key.Name, From: r.fw.Status.Backend, To: r.to, State: state, Message: message,
		Problems: orEmpty(r.problems), Notes: []string{}, Clusters: []rehearsedCluster{},
	}
	if state != comesToBegin && state != comesToNothing {
		return result
	}
	result.Notes = orEmpty(r.notes())
	for _, c := range r.clusters {
		t, _ := r.targetOf(c)
		result.Clusters = append(result.Clusters, rehearsedCluster{
			Name: c.Name, NameOnTarget: migration.NameOnTarget(c), Wave: c.Wave, Replicas: t.Replicas, Ready: r.ready(t), Steps: r.stepsOf(c),
		})
	}
	return result
}

// rehearsedFleet is a dry run of several, in the order in which they begin, for scripts.
type rehearsedFleet struct {
	To             string            `json:"to"`
	FleetWorkloads []rehearsedMember `json:"fleetWorkloads"`
}

// rehearsedMember is one of them. Numbers are null when they are not known.
type rehearsedMember struct {
	// Order is 1 for the first to begin; null for those that do not.
	Order     *int   `json:"order"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	From      string `json:"from"`
	Clusters  *int   `json:"clusters"`
	Replicas  *int32 `json:"replicas"`
	State     string `json:"state"`
	// Messages are what stands against it, when somebody could be asked, or why it does not begin.
	Messages []string `json:"messages"`
}

// writeFor prints the rows for scripts.
func (f *fleet) writeFor(out io.Writer, as *output, rows []fleetRow) error {
	result, about := rehearsedFleet{To: f.rules.To, FleetWorkloads: []rehearsedMember{}}, []named(nil)
	for _, row := range rows {
		fw := row.entry.FleetWorkload
		member := rehearsedMember{
			Namespace: fw.Namespace, Name: fw.Name, From: row.entry.From, Replicas: fw.Status.DesiredReplicas, State: string(row.entry.State), Messages: []string{},
		}
		if row.order > 0 {
			member.Order = &row.order
			about = append(about, namedFleetWorkload(fw.Name))
		}
		if row.entry.Clusters > 0 {
			member.Clusters = &row.entry.Clusters
		}
		if text := strings.Join(row.messages, ""); text != "" {
			member.Messages = row.messages
		}
		result.FleetWorkloads = append(result.FleetWorkloads, member)
	}
	return as.write(out, result, about...)
}
