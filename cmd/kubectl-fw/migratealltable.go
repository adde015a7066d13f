package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/internal/bulk"
)

// fleetPicture shows how far a fleet is.
type fleetPicture interface {
	begin(*fleet, time.Time)
	draw(*fleet, time.Time)
	// end shows the last state.
	end(*fleet, time.Time)
	// every is how often it is drawn although nothing has happened; 0: never.
	every() time.Duration
}

func fleetPictureOn(out io.Writer) fleetPicture {
	if isTerminal(out) {
		return &fleetScreen{picture: inPlace{out: out}}
	}
	return &fleetJournal{out: out}
}

// fleetScreen draws in place.
type fleetScreen struct {
	picture inPlace
	last    time.Time
}

// drawnAtMost is how often a screen is drawn when much happens: more than that nobody sees.
const drawnAtMost = 100 * time.Millisecond

func (s *fleetScreen) begin(*fleet, time.Time) {}

func (s *fleetScreen) every() time.Duration { return time.Second }

func (s *fleetScreen) draw(f *fleet, now time.Time) {
	f.News() // its rows tell them
	if now.Sub(s.last) >= drawnAtMost {
		s.write(f, now, false)
	}
}

func (s *fleetScreen) end(f *fleet, now time.Time) { s.write(f, now, true) }

func (s *fleetScreen) write(f *fleet, now time.Time, last bool) {
	_ = s.picture.draw(last, func(on io.Writer) error { // a terminal that is gone has nobody to tell
		writeFleet(on, f, now)
		return nil
	})
	s.last = now
}

// fleetJournal has a line for each change, under its time.
type fleetJournal struct{ out io.Writer }

func (j *fleetJournal) begin(f *fleet, now time.Time) {
	j.write(now, fmt.Sprintf("%s to backend %s: %s", counted(f.Counts().Chosen, "FleetWorkload", "FleetWorkloads"), f.rules.To, standingOfAll(f.Counts())))
	for _, e := range f.All() {
		if e.State == bulk.Skipped || e.State == bulk.Failed || e.State == bulk.Waiting || e.State == bulk.Deleted {
			j.write(now, "  "+f.told(e))
		}
	}
}

func (j *fleetJournal) every() time.Duration { return 0 }

func (j *fleetJournal) draw(f *fleet, now time.Time) {
	for _, e := range f.News() {
		text := f.told(e)
		if e.State == bulk.Moved {
			text += "; " + f.progress(now)
		}
		j.write(now, text)
	}
}

func (j *fleetJournal) end(f *fleet, now time.Time) {
	j.draw(f, now)
	fmt.Fprintln(j.out)
	writeHead(j.out, f, now)
}

func (j *fleetJournal) write(now time.Time, text string) {
	fmt.Fprintf(j.out, "%s %s\n", now.Format(time.TimeOnly), text)
}

// told is what there is to say of one, in a line.
func (f *fleet) told(e bulk.Entry) string {
	what := map[bulk.State]string{
		bulk.ToGo: "can begin now", bulk.UnderWay: "is under way", bulk.Waiting: "waits for a person", bulk.Failing: "fails, and goes back",
		bulk.Failed: "has failed", bulk.Moved: "is on backend " + f.rules.To, bulk.AlreadyThere: "is on backend " + f.rules.To,
		bulk.Deleted: "is left out", bulk.Skipped: "is skipped",
	}[e.State]
	text := fmt.Sprintf("%s %s", client.ObjectKeyFromObject(e.FleetWorkload), what)
	switch {
	case e.State == bulk.Moved:
		text += ", after " + duration.HumanDuration(e.Ended.Sub(e.Begun))
	case e.State == bulk.UnderWay:
		text += ", from backend " + orNone(e.From)
	case e.Message != "":
		text += ": " + oneLine(e.Message)
	}
	return text + f.remedy(e)
}

// remedy is what a person may do about one that waits, or has failed.
func (f *fleet) remedy(e bulk.Entry) string {
	fw := e.FleetWorkload
	m := fw.Status.Migration
	asks := m != nil && m.Approval != ""
	approve, back := commandFor(f.program, "approve", fw), fmt.Sprintf("%s --to %s", commandFor(f.program, "migrate", fw), e.From)
	switch {
	case e.State == bulk.Waiting && asks:
		return "; let it go on with: " + approve
	case e.State == bulk.Failed && asks:
		return fmt.Sprintf("; try it again with: %s, or turn round with: %s", approve, back)
	case e.State == bulk.Failed && fw.Spec.Backend == f.rules.To:
		return "; it goes on by itself when that is mended, or give it up with: " + back
	default:
		return ""
	}
}

// progress is how many have arrived, and how long the others may take.
func (f *fleet) progress(now time.Time) string {
	c := f.Counts()
	text := fmt.Sprintf("%d of %d there", c.There(), c.Chosen)
	if left := f.Left(now); left > 0 {
		text += ", about " + duration.HumanDuration(left) + " left"
	}
	return text
}

// standingOfAll is how many count as what.
func standingOfAll(c bulk.Counts) string {
	text := fmt.Sprintf("%d there", c.There())
	if rest := restOf(c); rest != "" {
		text += ", " + rest
	}
	return text
}

// restOf is as what those count that are not there.
func restOf(c bulk.Counts) string {
	var parts []string
	for _, p := range []struct {
		n    int
		text string
	}{
		{c.UnderWay, "under way"}, {c.Waiting, "waiting"}, {c.Failed, "failed"}, {c.ToGo, "to go"},
		{c.Skipped, "skipped"}, {c.Deleted, "deleted"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.text))
		}
	}
	return strings.Join(parts, ", ")
}

// writeHead shows the whole, in lines of at most 80 columns but for a long name of the backend.
func writeHead(out io.Writer, f *fleet, now time.Time) {
	c := f.Counts()
	const width = 20
	done := 0
	if c.Chosen > 0 {
		done = c.There() * width / c.Chosen
	}
	fmt.Fprintf(out, "%s to backend %s\n", counted(c.Chosen, "FleetWorkload", "FleetWorkloads"), f.rules.To)
	fmt.Fprintf(out, "[%s%s] %d of %d there, %d of %d clusters\n", strings.Repeat("#", done), strings.Repeat("-", width-done),
		c.There(), c.Chosen, c.HandedOver, c.Clusters)
	if rest := restOf(c); rest != "" {
		fmt.Fprintln(out, rest)
	}
	text := "for " + duration.HumanDuration(now.Sub(f.began))
	if left := f.Left(now); left > 0 {
		text += ", about " + duration.HumanDuration(left) + " left"
	}
	fmt.Fprintln(out, text)
	if f.Stopped() {
		fmt.Fprintf(out, "no more begin: more have failed than --max-failures %d\n", f.rules.MaxFailures)
	}
}

// widest is how much of a FleetWorkload's name a row shows, so that there is room for what is said of it.
const widest = 28

// writeFleet shows the whole, and a row for each that is under way, waits or has failed.
func writeFleet(out io.Writer, f *fleet, now time.Time) {
	writeHead(out, f, now)
	rows := f.Notable()
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(out)
	w := newTable(out)
	fmt.Fprintln(w, "FLEETWORKLOAD\tPHASE\tCLUSTERS\tFOR\tMESSAGE")
	for _, e := range rows[:min(len(rows), mostOnScreen)] {
		fmt.Fprintf(w, "%s\t%s\t%d/%s\t%s\t%s\n", shortened(client.ObjectKeyFromObject(e.FleetWorkload).String()), phaseOf(e), e.HandedOver, known(e.Clusters),
			age(&metav1.Time{Time: e.Begun}, now), orNone(oneLine(e.Message)))
	}
	_ = w.Flush() // the screen is a buffer
	if left := len(rows) - mostOnScreen; left > 0 {
		fmt.Fprintf(out, "and %d more\n", left)
	}
}

func shortened(name string) string {
	if len(name) <= widest {
		return name
	}
	return "..." + name[len(name)-widest+len("..."):]
}

// phaseOf is the phase of one that goes on by itself, and otherwise why it does not.
func phaseOf(e bulk.Entry) string {
	switch m := e.FleetWorkload.Status.Migration; {
	case e.State == bulk.Waiting:
		return "waits"
	case e.State == bulk.Failed:
		return "failed"
	case m == nil || m.Phase == "":
		return none
	default:
		return string(m.Phase)
	}
}

// mostOfEach is how many of one state are listed at the end; the report has them all.
const mostOfEach = 20

// writeFleetEnd says what is proven, what is left, and what a person may do about it.
func writeFleetEnd(out io.Writer, f *fleet, outcome bulk.Outcome, now time.Time) {
	if ev := f.Report(outcome, f.began, now).Evidence; ev.Clusters > 0 {
		restarts := "restarts are not known"
		if ev.Restarts != nil {
			restarts = counted(*ev.Restarts, "restart of a container", "restarts of containers")
		}
		fmt.Fprintf(out, "evidence of %s: same objects on %d, others on %d; other pods' revision on %d; fewer ready on %d; %s\n",
			counted(ev.Clusters, "cluster", "clusters"), ev.SameObject, ev.OtherObject, ev.OtherPods, ev.FewerReady, restarts)
	}
	for _, state := range []bulk.State{bulk.Failing, bulk.Failed, bulk.Waiting, bulk.Skipped, bulk.Deleted} {
		n := 0
		for _, e := range f.All() {
			if e.State != state {
				continue
			}
			if n++; n <= mostOfEach {
				fmt.Fprintln(out, f.told(e))
			}
		}
		if n > mostOfEach {
			fmt.Fprintf(out, "and %d more; --report has them all\n", n-mostOfEach)
		}
	}
}

// verdict is the error with which the command ends; nil when all is well.
func (f *fleet) verdict(outcome bulk.Outcome) error {
	c := f.Counts()
	standing := standingOfAll(c)
	switch {
	case outcome == bulk.OutcomeComplete:
		return nil
	case outcome == bulk.OutcomeLeft && c.Failed+c.Skipped == 0:
		return nil
	case outcome == bulk.OutcomeInterrupted:
		return errors.New("interrupted: " + standing + "; what is under way goes on by itself, and the same command goes on with the rest")
	case outcome == bulk.OutcomeStopped:
		return errors.New("stopped, more have failed than may: " + standing + "; mend them, and the same command goes on with the rest")
	default:
		return errors.New("not all are on backend " + f.rules.To + ": " + standing)
	}
}
