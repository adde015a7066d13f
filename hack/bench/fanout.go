package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"
)

// fanOut compares how long it takes to bring a workload, and then another image of it, to many clusters: by a
// FleetWorkload, by a bare client that writes the same ManifestWorks, and by OCM's own controller.
type fanOut struct {
	hub      *hub
	members  *members
	operator *operator
	// processes are all that take part.
	processes []int
	sides     map[string]*measured
	order     []string
}

// measured is a side with its figures, one a round.
type measured struct {
	side
	// meanwhile is what the clusters answer while a creation is measured.
	meanwhile manner
	// changes tells that its change of the image is measured too.
	changes          bool
	created, changed []figures
}

// figures are what one creation, or one change, took.
type figures struct {
	clock time.Duration
	// first is when the first ManifestWork was as wanted, on the clock.
	first time.Duration
	// processor is the time of all processes that take part, operator that of the operator alone.
	processor, operator time.Duration
	// passes are those of the operator.
	passes int
}

func (f figures) since(before figures) figures {
	return figures{
		processor: f.processor - before.processor, operator: f.operator - before.operator, passes: f.passes - before.passes,
	}
}

func (f figures) String() string {
	return fmt.Sprintf("%s, the first after %s (processor time %s; operator %s, %d passes)", f.clock.Round(time.Millisecond),
		f.first.Round(time.Millisecond), f.processor.Round(time.Millisecond), f.operator.Round(time.Millisecond), f.passes)
}

// Names of the sides.
const (
	sideOurs   = "ours"
	sideBare   = "bare"
	sideAsking = "bare-asking"
	sideOCM    = "ocm"
)

// fanOutComparisons measures in rounds and returns the lines. Progress and what explains the figures go to progress.
func fanOutComparisons(ctx context.Context, clusters, rounds int, progress io.Writer) (results []result, err error) {
	err = onHub(ctx, clusters, progress, func(ctx context.Context, h *hub, o *operator, m *members) error {
		f := &fanOut{hub: h, members: m, operator: o}
		f.processes = append(h.lab.Processes(), o.command.Process.Pid, os.Getpid())
		if err := f.run(ctx, rounds, progress); err != nil {
			return err
		}
		results = f.results(clusters)
		return nil
	})
	return results, err
}

// run begins with a FleetWorkload that stays. It shows what others have to write, and leaves on the clusters what all
// workloads of its kind and namespace share.
func (f *fanOut) run(ctx context.Context, rounds int, progress io.Writer) error {
	const resident = "resident"
	first := &byOperator{hub: f.hub}
	if _, _, err := f.turn(ctx, &measured{side: first}, resident, false); err != nil {
		return err
	}
	m, err := readModel(ctx, f.hub, first.workload)
	if err != nil {
		return err
	}
	bare := byBareClient{hub: f.hub, model: m}
	f.order = []string{sideOurs, sideBare, sideOCM, sideAsking}
	f.sides = map[string]*measured{
		sideOurs:   {side: &byOperator{hub: f.hub}, meanwhile: answerQuestions, changes: true},
		sideBare:   {side: &bare, meanwhile: answerNothing, changes: true},
		sideAsking: {side: &byAskingClient{byBareClient: bare, members: f.members}, meanwhile: answerQuestions},
		sideOCM:    {side: &byReplicaSet{hub: f.hub, model: m}, meanwhile: answerNothing, changes: true},
	}
	for round := range rounds {
		for i := range f.order {
			// Each round begins with another side: none is always the one behind a certain other.
			name := f.order[(i+round)%len(f.order)]
			s := f.sides[name]
			created, changed, err := f.turn(ctx, s, fmt.Sprintf("%s-%d", name, round), true)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			s.created, s.changed = append(s.created, created), append(s.changed, changed)
			fmt.Fprintf(progress, "round %d %-12s created in %s\n", round+1, name, created)
			if s.changes {
				fmt.Fprintf(progress, "round %d %-12s changed in %s\n", round+1, name, changed)
			}
		}
	}
	return nil
}

// turn has one side bring a workload to all clusters, and change its image.
func (f *fanOut) turn(ctx context.Context, s *measured, name string, remove bool) (created, changed figures, err error) {
	if err := s.prepare(ctx, name); err != nil {
		return created, changed, err
	}
	f.members.setManner(s.meanwhile)
	if created, err = f.measure(ctx, delivered(name, firstImage), s.create); err != nil {
		return created, changed, fmt.Errorf("create: %w", err)
	}
	if err := f.settle(ctx, s, name, firstImage); err != nil {
		return created, changed, err
	}
	if s.changes {
		f.members.setManner(answerNothing)
		if changed, err = f.measure(ctx, delivered(name, secondImage), s.change); err != nil {
			return created, changed, fmt.Errorf("change: %w", err)
		}
		if err := f.settle(ctx, s, name, secondImage); err != nil {
			return created, changed, err
		}
	}
	if remove {
		err = f.remove(ctx, s, name)
	}
	return created, changed, err
}

func (f *fanOut) remove(ctx context.Context, s *measured, name string) error {
	gone := f.members.expect(0, mentions(name))
	if err := s.remove(ctx); err != nil {
		return err
	}
	return f.members.await(ctx, gone)
}

// measure tells what it takes from before do until all ManifestWorks match.
func (f *fanOut) measure(
	ctx context.Context, match func(*workv1.ManifestWork) bool, do func(context.Context) error,
) (figures, error) {
	runtime.GC()
	before, err := f.used(ctx)
	if err != nil {
		return figures{}, err
	}
	all := f.members.expect(len(f.hub.clusters), match)
	start := time.Now()
	if err := do(ctx); err != nil {
		return figures{}, err
	}
	if err := f.members.await(ctx, all); err != nil {
		return figures{}, err
	}
	after, err := f.used(ctx)
	took := after.since(before)
	took.clock, took.first = all.at.Sub(start), all.first.Sub(start)
	return took, err
}

// used is what has been used until now.
func (f *fanOut) used(ctx context.Context) (figures, error) {
	processor, err := processorTimeOf(f.processes)
	if err != nil {
		return figures{}, err
	}
	e, err := f.operator.effort(ctx)
	return figures{processor: processor, operator: e.processor, passes: e.passes}, err
}

// settle lets all clusters answer, and the side take it in.
func (f *fanOut) settle(ctx context.Context, s *measured, name, image string) error {
	f.members.setManner(answerAll)
	is := delivered(name, image)
	all := f.members.expect(len(f.hub.clusters), func(work *workv1.ManifestWork) bool { return is(work) && answered(work) })
	if err := f.members.await(ctx, all); err != nil {
		return fmt.Errorf("let the clusters answer: %w", err)
	}
	return s.settle(ctx)
}

// mentions matches the ManifestWorks with the workload of that name.
func mentions(name string) func(*workv1.ManifestWork) bool {
	quoted := fmt.Appendf(nil, "%q", name)
	return func(work *workv1.ManifestWork) bool {
		manifests := work.Spec.Workload.Manifests
		return len(manifests) == 1 && bytes.Contains(manifests[0].Raw, quoted)
	}
}

// delivered matches the ManifestWorks that have a cluster run the image.
func delivered(name, image string) func(*workv1.ManifestWork) bool {
	named, quoted := mentions(name), fmt.Appendf(nil, "%q", image)
	return func(work *workv1.ManifestWork) bool {
		return named(work) && !asks(work) && bytes.Contains(work.Spec.Workload.Manifests[0].Raw, quoted)
	}
}

// results are the lines: times on the clock, then processor times.
func (f *fanOut) results(clusters int) []result {
	ours, bare, asking, ocm := f.sides[sideOurs], f.sides[sideBare], f.sides[sideAsking], f.sides[sideOCM]
	var lines []result
	for _, unit := range []struct {
		suffix string
		// fasterThanOCM is no bar for processor time: OCM's controller writes one ManifestWork after the other.
		fasterThanOCM float64
		of            func(figures) time.Duration
	}{
		{"", 1, func(f figures) time.Duration { return f.clock }},
		{"-processor", 0, func(f figures) time.Duration { return f.processor }},
	} {
		line := func(name string, bar float64, slower bool, ours, peer []figures) {
			c := comparison{name: fmt.Sprintf("fanout-%s%s/%d", name, unit.suffix, clusters), bar: bar, slower: slower}
			lines = append(lines, result{comparison: c, oursTime: medianOf(ours, unit.of), peerTime: medianOf(peer, unit.of)})
		}
		line("create", 1.5, true, ours.created, asking.created)
		// No bar: OCM's controller asks nobody, and takes over what it finds.
		line("create-ocm", 0, false, ours.created, ocm.created)
		line("image", 1.5, true, ours.changed, bare.changed)
		line("image-ocm", unit.fasterThanOCM, false, ours.changed, ocm.changed)
	}
	return lines
}

func medianOf(all []figures, of func(figures) time.Duration) time.Duration {
	var times []time.Duration
	for _, f := range all {
		times = append(times, of(f))
	}
	return median(times)
}
