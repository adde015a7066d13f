package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/migration"
)

// mostNames is how many clusters one line names.
const mostNames = 8

// write shows the problems, what happens to each cluster, and the order of it.
func (r *rehearsal) write(out io.Writer) error {
	w := r.fw.Status.Workload
	what := ""
	if w != nil {
		what = fmt.Sprintf(": %s %s", w.Kind, w.Name)
	}
	fmt.Fprintf(out, "%s/%s%s, from backend %s to %s. A dry run: nothing was changed\n",
		r.fw.Namespace, r.fw.Name, what, r.from.name, r.to)
	for _, note := range r.notes() {
		fmt.Fprintln(out, "note: "+note)
	}
	for _, problem := range r.problems {
		fmt.Fprintln(out, "problem: "+oneLine(problem))
	}
	if len(r.clusters) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if err := r.writeClusters(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	r.writeOrder(out)
	return nil
}

// notes are facts without which the rest could be misread.
func (r *rehearsal) notes() []string {
	var out []string
	s := r.fw.Status
	if !looked(r.fw) {
		out = append(out, "the operator has not looked at the newest spec yet")
	}
	switch on := r.fw.Spec.Backend; {
	case on == r.to:
		out = append(out, fmt.Sprintf("spec.backend is %s already: the migration begins as soon as no problem stands against it", on))
	case on != s.Backend:
		out = append(out, fmt.Sprintf("spec.backend is %s, and that migration has not begun; --to %s gives it up for this one",
			on, r.to))
	}
	var more []string
	for _, o := range r.reports() {
		if _, stays := r.targetOf(v1alpha1.MigrationClusterStatus{Name: o.Cluster}); !stays {
			more = append(more, o.Cluster)
		}
	}
	if len(more) > 0 {
		out = append(out, "clusters that it is being taken off are not shown: "+brief.First(more, mostNames))
	}
	return out
}

// writeClusters says cluster by cluster what stays and what happens.
func (r *rehearsal) writeClusters(out io.Writer) error {
	renamed := slices.ContainsFunc(r.clusters, func(c v1alpha1.MigrationClusterStatus) bool { return c.TargetName != "" })
	w := printers.GetNewTabWriter(out)
	line := func(cluster, there string, rest ...string) {
		row := []string{cluster}
		if renamed {
			row = append(row, there)
		}
		fmt.Fprintln(w, strings.Join(append(row, rest...), "\t"))
	}
	line("CLUSTER", "ON "+strings.ToUpper(r.to), "WAVE", "REPLICAS", "READY", "STEPS")
	for _, c := range r.clusters {
		t, _ := r.targetOf(c)
		line(c.Name, migration.NameOnTarget(c), number(c.Wave), number(t.Replicas), number(r.ready(t)),
			strings.Join(r.stepsOf(c), ", "))
	}
	return w.Flush()
}

// stepsOf are what happens to a cluster, one after the other.
func (r *rehearsal) stepsOf(c v1alpha1.MigrationClusterStatus) []string {
	return slices.Concat([]string{"observe", "hand over"}, r.steps(*c.Wave), []string{"release"})
}

// steps are what follows when the clusters of a wave are handed over, before the next one begins.
func (r *rehearsal) steps(wave int32) (steps []string) {
	w := waveOf(r.fw.Spec.Migration, wave)
	if w.Soak > 0 {
		steps = append(steps, "soak "+duration.HumanDuration(w.Soak))
	}
	if w.Manual {
		steps = append(steps, "approval")
	}
	return steps
}

// waveOf reads a wave's settings.
func waveOf(strategy *v1alpha1.MigrationStrategy, wave int32) migration.Wave {
	return migration.WaveOf(migration.Waves(strategy), wave)
}

// writeOrder says what happens one after the other, and what when it does not go well.
func (r *rehearsal) writeOrder(out io.Writer) {
	step := 0
	say := func(format string, args ...any) {
		step++
		fmt.Fprintf(out, "%d. %s\n", step, fmt.Sprintf(format, args...))
	}
	say("observe: backend %s gets the manifests of all clusters and writes none; both must speak of the same objects", r.to)
	last := int32(0)
	for _, c := range r.clusters {
		last = max(last, *c.Wave)
	}
	for wave := int32(1); wave <= last; wave++ {
		names := r.namesIn(wave)
		if len(names) == 0 {
			say("wave %d: no cluster is left for it, and it is left out", wave)
			continue
		}
		say("wave %d, %s: %s confirms that %s has stopped, then %s takes over with the replicas as they are",
			wave, brief.First(names, mostNames), lowest(r.from.kind), r.from.name, r.to)
		fmt.Fprintln(out, "   goes on when applied, with the same objects and pods' revision, no fewer pods ready and no worse health")
		r.writeGate(out, wave)
	}
	say("release: the objects on backend %s are removed, and nothing on the clusters", r.from.name)
	fmt.Fprintln(out)
	r.writeOtherwise(out)
}

// writeGate says what must pass before the next step.
func (r *rehearsal) writeGate(out io.Writer, wave int32) {
	w := waveOf(r.fw.Spec.Migration, wave)
	if w.Soak > 0 {
		fmt.Fprintf(out, "   soak: that must stay so for %s\n", duration.HumanDuration(w.Soak))
	}
	if w.Manual {
		fmt.Fprintf(out, "   approval: %s\n", r.command("approve"))
	}
}

func (r *rehearsal) writeOtherwise(out io.Writer) {
	strategy := r.fw.Spec.Migration
	does := "goes back to " + r.from.name
	if migration.Pauses(strategy) {
		does = "stays as it is"
	}
	fmt.Fprintf(out, "A wave that does not pass within %s, or gets worse while it soaks, %s; earlier ones stay on %s.\n",
		duration.HumanDuration(migration.Timeout(strategy)), does, r.to)
	fmt.Fprintln(out, "Then a person has it tried again with approve, or turns round.")
	fmt.Fprintf(out, "Turn round at any time before the release: %s --to %s\n", r.command("migrate"), r.from.name)
	fmt.Fprintln(out, "Meanwhile it can be scaled; other edits of the spec wait until it is over.")
}

func (r *rehearsal) namesIn(wave int32) (names []string) {
	for _, c := range r.clusters {
		if *c.Wave == wave {
			names = append(names, c.Name)
		}
	}
	return names
}

// lowest are the objects of a backend by which it is known that it has stopped.
func lowest(kind config.Type) string {
	if kind == config.TypeKarmada {
		return "each Work"
	}
	return "each ManifestWork"
}
