package main

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// writeCompanions prints what becomes of the objects that travel with a workload, and then what of them becomes different. more counts the rows that
// are not told.
func writeCompanions(out io.Writer, rows []v1alpha1.PlannedCompanion, more int) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	cells := [][]string{{"COMPANION", "ACTION", "CLUSTERS", "WHY"}}
	for _, r := range rows {
		cells = append(cells, []string{titleOf(r), companionAction(r.Action), clustersOf(r), orNone(becauseOfCompanion[r.Reason])})
	}
	if err := writeRows(out, cells, 0, 2); err != nil {
		return fmt.Errorf("print companions: %w", err)
	}
	if more > 0 {
		fmt.Fprintf(out, "and %s\n", counted(more, "companion more", "companions more"))
	}
	if lines := companionChanges(rows); len(lines) > 0 {
		fmt.Fprintln(out)
		writeLines(out, "what changes of companions", lines)
	}
	return nil
}

// titleOf is KIND/NAME of a companion. Its namespace is the FleetWorkload's.
func titleOf(r v1alpha1.PlannedCompanion) string { return r.Kind + "/" + r.Name }

func companionAction(action v1alpha1.CompanionAction) string {
	switch action {
	case v1alpha1.CompanionCreateOrAdopt:
		return "create, or adopt"
	case v1alpha1.CompanionGiveUp:
		return "give up"
	case v1alpha1.CompanionLeave:
		return "leave as it is"
	default:
		return strings.ToLower(string(action))
	}
}

// clustersOf names a row's clusters, of which the status may list some alone.
func clustersOf(r v1alpha1.PlannedCompanion) string {
	if more := ptr.Deref(r.Truncated, 0); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(r.Clusters, ", "), more)
	}
	return brief.List(r.Clusters)
}

// companionChanges are the fields of companions that become different, a line each.
func companionChanges(rows []v1alpha1.PlannedCompanion) (lines []string) {
	for _, r := range rows {
		for _, change := range r.Changes {
			lines = append(lines, titleOf(r)+": "+change)
		}
		if more := ptr.Deref(r.ChangesTruncated, 0); more > 0 {
			lines = append(lines, fmt.Sprintf("%s: and %s more", titleOf(r), counted(int(more), "field", "fields")))
		}
	}
	return lines
}

// becauseOfCompanion words why something becomes of a companion, or why nothing does.
var becauseOfCompanion = map[v1alpha1.CompanionReason]string{
	v1alpha1.CompanionNotListed:           "it is no longer listed, nor referred to",
	v1alpha1.CompanionWorkloadRemoved:     "the workload goes from there",
	v1alpha1.CompanionKeepsData:           "a claim is never deleted",
	v1alpha1.CompanionSomebodyElses:       "somebody else's object is there, and is used as it is",
	v1alpha1.CompanionBlocksWorkload:      "somebody else's object is there, and keeps the workload from starting",
	v1alpha1.CompanionOtherBackends:       "another backend delivers it",
	v1alpha1.CompanionUsedByOthers:        "other FleetWorkloads use it",
	v1alpha1.CompanionMayBeNeeded:         "a FleetWorkload may need it that was moved or given up",
	v1alpha1.CompanionDependenciesIgnored: "what pods refer to is no longer sent, and what was sent stays",
	v1alpha1.CompanionMissing:             "the management cluster lacks it: nothing is started or changed there",
	v1alpha1.CompanionClusterPaused:       "the cluster is paused",
}
