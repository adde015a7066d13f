package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// none stands for what is not known. It is not zero.
const none = "-"

// writeTable shows a FleetWorkload to a person: a headline, the conditions that matter, a row a cluster. Wide, it has all conditions, and all that a
// cluster reports.
func writeTable(out io.Writer, fw *v1alpha1.FleetWorkload, now time.Time, wide bool) error {
	writeHeadline(out, fw)
	conditions := fw.Status.Conditions
	if !wide {
		conditions = matter(conditions)
	}
	if err := writeConditions(out, conditions, now); err != nil {
		return err
	}
	return writeClusters(out, fw.Status, now, wide)
}

func writeHeadline(out io.Writer, fw *v1alpha1.FleetWorkload) {
	s := fw.Status
	what := ""
	if w := s.Workload; w != nil {
		what = fmt.Sprintf(": %s %s", w.Kind, w.Name)
	}
	fmt.Fprintf(out, "%s/%s%s on backend %s\n", fw.Namespace, fw.Name, what, orNone(s.Backend))
	fmt.Fprintf(out, "ready %s replicas, healthy %s clusters, revision %s\n", orNone(s.Ready), orNone(s.ClustersReady), orNone(s.Revision))
	for _, note := range notes(fw) {
		fmt.Fprintln(out, "note: "+note)
	}
}

// notes are facts without which the rest could be misread.
func notes(fw *v1alpha1.FleetWorkload) []string {
	var out []string
	s := fw.Status
	if !fw.DeletionTimestamp.IsZero() {
		out = append(out, "it is being deleted")
	}
	switch {
	case s.ObservedGeneration == nil:
		out = append(out, "the operator has not looked at it yet")
	case *s.ObservedGeneration != fw.Generation:
		out = append(out, fmt.Sprintf("the status is of generation %d, the spec is at %d", *s.ObservedGeneration, fw.Generation))
	}
	if fw.Spec.Suspend != nil && *fw.Spec.Suspend {
		out = append(out, "spec.suspend is true: changes do not reach any cluster")
	}
	if paused := pausedOf(s); len(paused) > 0 {
		out = append(out, "spec.placement.paused: nothing changes on "+strings.Join(paused, ", "))
	}
	if s.Backend != "" && s.Backend != fw.Spec.Backend {
		out = append(out, fmt.Sprintf("spec.backend is %s, but backend %s owns the workload", fw.Spec.Backend, s.Backend))
	}
	if m := s.Migration; m != nil {
		out = append(out, fmt.Sprintf("migration from %s to %s: %s", orNone(m.From), orNone(m.To), orNone(string(m.Phase))))
	}
	return out
}

// pausedOf are the clusters that are paused and have the workload.
func pausedOf(s v1alpha1.FleetWorkloadStatus) (names []string) {
	for _, c := range s.Clusters {
		if c.Paused == metav1.ConditionTrue {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

func writeConditions(out io.Writer, conditions []metav1.Condition, now time.Time) error {
	if len(conditions) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := newTable(out)
	fmt.Fprintln(w, "CONDITION\tSTATUS\tREASON\tSINCE\tMESSAGE")
	for _, c := range conditions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.Type, c.Status, c.Reason, age(&c.LastTransitionTime, now), oneLine(c.Message))
	}
	return w.Flush()
}

// matter picks the conditions that tell something: Ready always, the others when they are not as in a quiet state or
// say the same as one before.
func matter(all []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range all {
		quiet := metav1.ConditionFalse
		switch c.Type {
		case v1alpha1.ConditionScheduled, v1alpha1.ConditionApplied, v1alpha1.ConditionHealthy:
			quiet = metav1.ConditionTrue
		}
		said := slices.ContainsFunc(out, func(o metav1.Condition) bool { return o.Reason == c.Reason && o.Message == c.Message })
		if c.Type == v1alpha1.ConditionReady || (c.Status != quiet && (!said || c.Type == v1alpha1.ConditionStalled)) {
			out = append(out, c)
		}
	}
	return out
}

func writeClusters(out io.Writer, s v1alpha1.FleetWorkloadStatus, now time.Time, wide bool) error {
	fmt.Fprintln(out)
	if len(s.Clusters) == 0 {
		fmt.Fprintln(out, "no cluster has anything of it")
		return nil
	}
	head, row := "CLUSTER\tREADY\tUPDATED\tSTATUS\tAGE\tMESSAGE", clusterRow
	if wide {
		head, row = "CLUSTER\tDESIRED\tREADY\tUPDATED\tAVAILABLE\tREVISION\tAPPLIED\tHEALTH\tSTALE\tAGE\tMESSAGE", wideClusterRow
	}
	rows := [][]string{strings.Split(head, "\t")}
	for _, c := range s.Clusters {
		rows = append(rows, append(row(c), age(c.LastTransitionTime, now), orNone(oneLine(c.Message))))
	}
	if err := writeRows(out, rows, 0); err != nil {
		return err
	}
	if s.Truncated != nil && *s.Truncated > 0 {
		fmt.Fprintf(out, "and %d more clusters without a row, in the counts above; placement.clusters of -o yaml has what each is to run\n",
			*s.Truncated)
	}
	return nil
}

func clusterRow(c v1alpha1.ClusterStatus) []string {
	return []string{c.Name, readyOf(c), number(c.Updated), clusterState(c)}
}

func wideClusterRow(c v1alpha1.ClusterStatus) []string {
	return []string{
		c.Name, number(c.Desired), number(c.Ready), number(c.Updated), number(c.Available), orNone(c.Revision), orNone(string(c.Applied)),
		orNone(string(c.Health)), orNone(string(c.Stale)),
	}
}

func number(n *int32) string {
	if n == nil {
		return none
	}
	return fmt.Sprint(*n)
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

// age is how long ago something was, as kubectl shows it.
func age(t *metav1.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return none
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// oneLine keeps a message within its row.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
