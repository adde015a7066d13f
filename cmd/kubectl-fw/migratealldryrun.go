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

// fleetRow is one of those that are chosen.
type fleetRow struct {
	entry bulk.Entry
	// order is 1 for the first to begin, and 0 for those that do not.
	order int
	// messages are what stands against it, or why it does not begin.
	messages []string
}

// rehearse lists what would begin in its order, and what stands against it as far as there is somebody to ask.
func (f *fleet) rehearse(out io.Writer, source source, as *output) error {
	if source != nil {
		if _, err := source.backend(f.rules.To); errors.Is(err, backends.ErrNotConfigured) {
			return noBackend(source, "--to", f.rules.To)
		}
	}
	rows, refused := f.rowsFor(source)
	write := f.writeRows
	if !as.isText() {
		write = func(out io.Writer, rows []fleetRow) error { return f.writeFor(out, as, rows) }
	}
	if err := write(out, rows); err != nil {
		return err
	}
	switch {
	case source == nil && as.isText():
		fmt.Fprintln(out, "\nwith --config, what stands against each is looked for as well")
	case refused > 0:
		return fmt.Errorf("%s would not begin", counted(refused, "FleetWorkload", "FleetWorkloads"))
	}
	return nil
}

// rowsFor are all that are chosen, and how many of them something stands against.
func (f *fleet) rowsFor(source source) (rows []fleetRow, refused int) {
	begin := 0
	for _, e := range f.All() {
		row := fleetRow{entry: e, messages: []string{e.Message}}
		if e.State == bulk.ToGo {
			begin++
			row.order = begin
			if problems := f.problems(e.FleetWorkload, source); len(problems) > 0 {
				row.messages = problems
				refused++
			}
		}
		rows = append(rows, row)
	}
	return rows, refused
}

func (f *fleet) writeRows(out io.Writer, rows []fleetRow) error {
	c := f.Counts()
	fmt.Fprintf(out, "%s to backend %s: %s. A dry run: nothing was changed\n\n", counted(c.Chosen, "FleetWorkload", "FleetWorkloads"), f.rules.To,
		standingOfAll(c))
	w := printers.GetNewTabWriter(out)
	fmt.Fprintln(w, "ORDER\tFLEETWORKLOAD\tFROM\tCLUSTERS\tREPLICAS\tSTATE\tMESSAGE")
	for _, row := range rows {
		e := row.entry
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", known(row.order), client.ObjectKeyFromObject(e.FleetWorkload), orNone(e.From), known(e.Clusters),
			number(e.FleetWorkload.Status.DesiredReplicas), e.State, orNone(oneLine(row.messages[0])))
		for _, message := range row.messages[1:] {
			fmt.Fprintf(w, "\t\t\t\t\t\t%s\n", oneLine(message))
		}
	}
	return w.Flush()
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
