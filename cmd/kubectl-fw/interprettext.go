package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// title names an object as people do.
func (i item) title() string {
	if i.Namespace == "" {
		return i.Kind + " " + orNone(i.Name)
	}
	return i.Kind + " " + i.Namespace + "/" + orNone(i.Name)
}

// writeText shows the objects one after the other, and then, when there are several, what they combine to.
func (r interpretation) writeText(out io.Writer) error {
	var b bytes.Buffer
	for n, i := range r.Items {
		if n > 0 {
			fmt.Fprintln(&b)
		}
		fmt.Fprintf(&b, "%s (%s), from %s\n", i.title(), i.APIVersion, i.Source)
		page := newPage(&b)
		page.line("health", verdict(i.Health, i.Reason, i.Message))
		page.line("replicas", i.Replicas.text(nil, 0))
		page.line("up to date", yesOrNo(i.UpToDate))
		if p := i.Progress; p != nil {
			page.line("progress", fmt.Sprintf("%d of %d", p.Done, p.Total))
		}
		page.list("depends on", i.dependencyLines())
		lines, missing := fieldLines(i.Fields)
		page.status(lines, missing)
		page.flush()
	}
	if len(r.Items) > 1 {
		r.Aggregate.writeText(&b)
	}
	_, err := out.Write(b.Bytes())
	return err
}

func (a aggregate) writeText(b *bytes.Buffer) {
	fmt.Fprintf(b, "\nAggregate of %d objects\n", a.Objects)
	page := newPage(b)
	page.line("health", verdict(a.Health, a.Reason, a.Message))
	if a.Workloads > 1 {
		page.line("not combined", fmt.Sprintf("they are of %d workloads", a.Workloads))
		page.flush()
		return
	}
	page.line("replicas", a.Replicas.text(a.Behind, a.Objects))
	page.line("up to date", yesOrNo(a.UpToDate))
	var lines, missing []string
	for _, f := range a.Fields {
		// Objects that do not agree have told it all the same.
		if f.Objects == 0 {
			missing = append(missing, f.Name)
			continue
		}
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s of %d", f.Name, show(f.Value), f.Combine, f.Objects))
	}
	page.status(lines, missing)
	page.flush()
}

func verdict(health v1alpha1.Health, reason interpreter.Reason, message string) string {
	text := fmt.Sprintf("%s, %s", health, reason)
	if message != "" {
		text += ": " + oneLine(message)
	}
	return text
}

// text lists the numbers; one that not all objects told says how many did.
func (r replicas) text(from *behind, all int) string {
	var parts []string
	add := func(name string, n *int32, told func(*behind) int) {
		if n == nil {
			return
		}
		part := fmt.Sprintf("%d %s", *n, name)
		if from != nil && told(from) < all {
			part += fmt.Sprintf(" (%d of %d objects)", told(from), all)
		}
		parts = append(parts, part)
	}
	add("desired", r.Desired, func(b *behind) int { return b.Desired })
	add("current", r.Current, func(b *behind) int { return b.Current })
	add("ready", r.Ready, func(b *behind) int { return b.Ready })
	add("updated", r.Updated, func(b *behind) int { return b.Updated })
	add("available", r.Available, func(b *behind) int { return b.Available })
	return orNone(strings.Join(parts, ", "))
}

func (i item) dependencyLines() []string {
	var lines []string
	for _, d := range i.Dependencies {
		line := d.Kind + " " + d.Name
		if d.Namespace != "" {
			line = d.Kind + " " + d.Namespace + "/" + d.Name
		}
		if d.Optional {
			line += ", optional"
		}
		lines = append(lines, line)
	}
	return lines
}

// fieldLines returns a line a field, and the names of those that were not reported.
func fieldLines(fields []field) (lines, missing []string) {
	for _, f := range fields {
		if f.Value == nil {
			missing = append(missing, f.Name)
			continue
		}
		lines = append(lines, f.Name+"\t"+show(f.Value))
	}
	return lines, missing
}

func show(v any) string {
	if v == nil {
		return none
	}
	return orNone(oneLine(fmt.Sprint(v)))
}

// yesOrNo words what may be not known.
func yesOrNo(b *bool) string {
	switch {
	case b == nil:
		return none
	case *b:
		return "yes"
	default:
		return "no"
	}
}

// page aligns lines of a label and what belongs to it.
type page struct{ w *tabwriter.Writer }

func newPage(out io.Writer) page { return page{tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)} }

func (p page) line(label, text string) { fmt.Fprintf(p.w, "  %s\t%s\n", label, text) }

// list is a line with several more below it.
func (p page) list(label string, lines []string) {
	if len(lines) == 0 {
		p.line(label, none)
	}
	for n, line := range lines {
		if n > 0 {
			label = ""
		}
		p.line(label, line)
	}
}

// status lists fields, and names those that nobody reported.
func (p page) status(lines, missing []string) {
	p.list("status", lines)
	if len(missing) > 0 {
		p.line("unreported", strings.Join(missing, ", "))
	}
}

// flush writes to a buffer, which does not fail.
func (p page) flush() { _ = p.w.Flush() }
