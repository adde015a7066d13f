package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/migration"
)

// view is what a migration is shown with.
type view struct {
	now     time.Time
	program string
	// began is the spec from the beginning of the migration; nil when it is not known.
	began *v1alpha1.FleetWorkloadSpec
	// most is how many clusters are shown; 0: all.
	most int
}

// noteFrozen begins the note that nothing can be decided for now.
const noteFrozen = "frozen since"

// writeMigration shows how far a migration is, where each cluster stands, and the evidence.
func writeMigration(out io.Writer, fw *v1alpha1.FleetWorkload, v view) error {
	m := fw.Status.Migration
	fmt.Fprintf(out, "%s/%s: from backend %s to %s, since %s\n", fw.Namespace, fw.Name, m.From, m.To,
		clockTime(m.StartedAt, v.now))
	fmt.Fprintln(out, progressOf(m))
	for _, note := range migrationNotes(fw, v) {
		fmt.Fprintln(out, note)
	}
	if len(m.Clusters) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := newTable(out)
	fmt.Fprintln(w, "CLUSTER\tWAVE\tPHASE\tREADY BEFORE\tREADY AFTER\tSAME OBJECT\tSAME PODS' REVISION\tRESTARTS\tMESSAGE")
	shown := rows(m, v.most)
	for _, c := range shown {
		before, after := evidence(c.Before), evidence(c.After)
		fmt.Fprintln(w, strings.Join([]string{
			clusterName(c), number(c.Wave), orNone(string(c.Phase)), number(before.Ready), number(after.Ready),
			same(before.UID, after.UID), same(before.PodRevision, after.PodRevision), more(before.Restarts, after.Restarts),
			orNone(oneLine(c.Message)),
		}, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if left := len(m.Clusters) - len(shown); left > 0 {
		fmt.Fprintf(out, "and %s, in the count above\n", counted(left, "cluster more", "clusters more"))
	}
	return nil
}

// clusterName is the cluster's name, with the one on the other backend when that differs.
func clusterName(c v1alpha1.MigrationClusterStatus) string {
	if c.TargetName != "" && c.TargetName != c.Name {
		return c.Name + " (" + c.TargetName + ")"
	}
	return c.Name
}

func evidence(e *v1alpha1.MigrationEvidence) v1alpha1.MigrationEvidence {
	if e == nil {
		return v1alpha1.MigrationEvidence{}
	}
	return *e
}

// rows are the clusters to show: when these are too many, those that something is said about, and those of the present wave.
func rows(m *v1alpha1.MigrationStatus, most int) []v1alpha1.MigrationClusterStatus {
	if most == 0 || len(m.Clusters) <= most {
		return m.Clusters
	}
	rank := func(c v1alpha1.MigrationClusterStatus) int {
		switch {
		case c.Message != "":
			return 0
		case c.Wave != nil && m.Wave != nil && *c.Wave == *m.Wave:
			return 1
		default:
			return 2
		}
	}
	sorted := slices.Clone(m.Clusters)
	slices.SortStableFunc(sorted, func(a, b v1alpha1.MigrationClusterStatus) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted[:most]
}

// progressOf is phase, wave and progress in one line.
func progressOf(m *v1alpha1.MigrationStatus) string {
	text := string(m.Phase)
	if m.Wave != nil {
		text += fmt.Sprintf(", wave %d", *m.Wave)
	}
	if len(m.Clusters) == 0 {
		return text
	}
	handed := 0
	for _, c := range m.Clusters {
		if c.Phase == v1alpha1.MigrationPhaseVerifying || c.Phase == v1alpha1.MigrationPhaseReleasing {
			handed++
		}
	}
	const width = 20
	done := handed * width / len(m.Clusters)
	bar := strings.Repeat("#", done) + strings.Repeat("-", width-done)
	return fmt.Sprintf("%s [%s] %d of %d clusters handed over", text, bar, handed, len(m.Clusters))
}

// migrationNotes say what is waited for, and what went wrong.
func migrationNotes(fw *v1alpha1.FleetWorkload, v view) (notes []string) {
	m := fw.Status.Migration
	for _, problem := range m.Problems {
		notes = append(notes, "problem: "+oneLine(problem))
	}
	if m.Failure != "" {
		notes = append(notes, "failed: "+oneLine(m.Failure))
	}
	if m.FrozenSince != nil {
		why := "a backend cannot be read"
		if ready := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			why = oneLine(ready.Message)
		}
		notes = append(notes, fmt.Sprintf("%s %s, while the workload runs on: %s",
			noteFrozen, clockTime(m.FrozenSince, v.now), why))
	}
	if until := soaksUntil(fw, v); until != nil {
		notes = append(notes, fmt.Sprintf("wave %s soaks until %s", number(m.Wave), clockTime(until, v.now)))
	}
	if m.Approval != "" && m.Approval != fw.Annotations[v1alpha1.AnnotationApproveMigration] {
		notes = append(notes, "waits for a person: "+commandFor(v.program, "approve", fw))
	}
	if edits := waiting(fw, v.began); edits != "" {
		notes = append(notes, edits)
	}
	return notes
}

// soaksUntil is when the soak of the present wave ends; nil when none is under way.
func soaksUntil(fw *v1alpha1.FleetWorkload, v view) *metav1.Time {
	m, spec := fw.Status.Migration, v.began
	if spec == nil {
		spec = &fw.Spec
	}
	if m.Phase != v1alpha1.MigrationPhaseVerifying || m.Wave == nil || m.PassingSince == nil || m.FrozenSince != nil {
		return nil
	}
	until := metav1.NewTime(m.PassingSince.Add(waveOf(spec.Migration, *m.Wave).Soak))
	if !until.After(v.now) {
		return nil
	}
	return &until
}

// waiting names the fields of the spec that were changed since the beginning and that wait until it is over.
func waiting(fw *v1alpha1.FleetWorkload, began *v1alpha1.FleetWorkloadSpec) string {
	revision, known := fw.Status.Migration.SpecRevision, *fw // as backends know it
	known.UID = cmp.Or(types.UID(fw.Status.Identity), fw.UID)
	if revision == "" || migration.Names(revision, &known, migration.Kept(fw.Spec)) {
		return ""
	}
	if began == nil {
		return "the spec was changed meanwhile: what is not replicas, suspend or migration waits until it is over"
	}
	was, is := fieldsOf(*began), fieldsOf(fw.Spec)
	names := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
	slices.Sort(names)
	var changed []string
	for _, name := range slices.Compact(names) {
		atOnce := slices.Contains([]string{"backend", "migration", "replicas", "revisionHistoryLimit", "serviceAccountName", "suspend"}, name)
		if !atOnce && !reflect.DeepEqual(was[name], is[name]) {
			changed = append(changed, "spec."+name)
		}
	}
	if len(changed) == 0 {
		return ""
	}
	return "changed meanwhile, and waits until it is over: " + strings.Join(changed, ", ")
}

// fieldsOf are the fields of a spec by their names in JSON.
func fieldsOf(spec v1alpha1.FleetWorkloadSpec) map[string]any {
	fields := map[string]any{}
	raw, err := json.Marshal(spec)
	if err != nil || utiljson.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

// clockTime is the time of day, with the day when it is another one.
func clockTime(t *metav1.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return none
	}
	local := t.In(now.Location())
	if local.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return local.Format(time.DateTime)
	}
	return local.Format(time.TimeOnly)
}

// more is how many have been added since; none when that is not known.
func more(before, after *int32) string {
	if before == nil || after == nil {
		return none
	}
	return fmt.Sprint(*after - *before)
}

// same compares evidence from before and after. What is not known proves nothing.
func same(before, after string) string {
	switch {
	case before == "" || after == "":
		return none
	case before == after:
		return "yes"
	default:
		return "NO"
	}
}
