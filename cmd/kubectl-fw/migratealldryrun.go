package main

import (
	"errors"
	"fmt"
	"io"

	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/bulk"
)

// rehearse lists what would begin in its order, and what stands against it as far as there is somebody to ask.
func (f *fleet) rehearse(out io.Writer, source source) error {
	if source != nil {
		if _, err := source.backend(f.rules.To); errors.Is(err, backends.ErrNotConfigured) {
			return noBackend(source, "--to", f.rules.To)
		}
	}
	c := f.Counts()
	fmt.Fprintf(out, "%s to backend %s: %s. A dry run: nothing was changed\n\n", counted(c.Chosen, "FleetWorkload", "FleetWorkloads"), f.rules.To,
		standingOfAll(c))
	w := printers.GetNewTabWriter(out)
	fmt.Fprintln(w, "ORDER\tFLEETWORKLOAD\tFROM\tCLUSTERS\tREPLICAS\tSTATE\tMESSAGE")
	begin, refused := 0, 0
	for _, e := range f.All() {
		order, messages := none, []string{e.Message}
		if e.State == bulk.ToGo {
			begin++
			order = fmt.Sprint(begin)
			if problems := f.problems(e.FleetWorkload, source); len(problems) > 0 {
				messages = problems
				refused++
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", order, client.ObjectKeyFromObject(e.FleetWorkload), orNone(e.From), known(e.Clusters),
			number(e.FleetWorkload.Status.DesiredReplicas), e.State, orNone(oneLine(messages[0])))
		for _, message := range messages[1:] {
			fmt.Fprintf(w, "\t\t\t\t\t\t%s\n", oneLine(message))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case source == nil:
		fmt.Fprintln(out, "\nwith --config, what stands against each is looked for as well")
	case refused > 0:
		return fmt.Errorf("%s would not begin", counted(refused, "FleetWorkload", "FleetWorkloads"))
	}
	return nil
}

// known is a number that is not known when it is 0.
func known(n int) string {
	if n == 0 {
		return none
	}
	return fmt.Sprint(n)
}

// problems are those that the dry run of one FleetWorkload finds; none when there is nobody to ask.
func (f *fleet) problems(fw *v1alpha1.FleetWorkload, source source) []string {
	if source == nil {
		return nil
	}
	r := &rehearsal{fw: fw, to: f.rules.To, source: source, program: f.program}
	if err := r.validate(); err != nil {
		return []string{err.Error()}
	}
	return r.problems
}
