package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// fanOut compares how long it takes to bring a workload, and then another image of it, to many clusters: by a
// FleetWorkload, by a bare client that writes the same ManifestWorks, and by OCM's own controller.
type fanOut struct {
	hub      *hub
	members  *members
	operator *operator
	sides    map[string]*measured
	order    []string
}

// measured is a side with its figures, one a round.
type measured struct {
	side
	// asks tells that the side needs the clusters' answers while it is measured.
	asks bool
	// changes tells that its change of the image is measured too.
	changes bool
	// created and changed are the times, creating and changing what the operator did meanwhile.
	created, changed   []time.Duration
	creating, changing []effort
}

// Names of the sides.
const (
	sideAdopt   = "ours-adopt"
	sideDefault = "ours-default"
	sideBare    = "bare"
	sideAsking  = "bare-asking"
	sideOCM     = "ocm"
)

// fanOutComparisons measures in rounds and returns the lines. Progress and what explains the figures go to progress.
func fanOutComparisons(ctx context.Context, clusters, rounds int, progress io.Writer) (results []result, err error) {
	dir, err := os.MkdirTemp("", "fleetworkload-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	h, err := startHub(ctx, dir, clusters, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.lab.Stop()) }()
	o, err := startOperator(ctx, dir, h.lab.Kubeconfig(), progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := startMembers(ctx, h.config, h.Client)
	if err != nil {
		return nil, err
	}
	f := &fanOut{hub: h, members: m, operator: o}
	if err := f.run(ctx, rounds, progress); err != nil {
		return nil, errors.Join(err, o.check(), h.lab.Check(context.WithoutCancel(ctx)))
	}
	f.explain(progress)
	return f.results(clusters), nil
}

// run begins with a FleetWorkload that stays. It shows what others have to write, and leaves on the clusters what all
// workloads of its kind and namespace share.
func (f *fanOut) run(ctx context.Context, rounds int, progress io.Writer) error {
	const resident = "resident"
	first := &byOperator{hub: f.hub, conflict: v1alpha1.ConflictPolicyFail}
	if _, _, err := f.turn(ctx, &measured{side: first, asks: true}, resident, false); err != nil {
		return err
	}
	m, err := readModel(ctx, f.hub, first.workload)
	if err != nil {
		return err
	}
	bare := byBareClient{hub: f.hub, model: m}
	f.order = []string{sideDefault, sideBare, sideOCM, sideAdopt, sideAsking}
	f.sides = map[string]*measured{
		sideDefault: {side: &byOperator{hub: f.hub, conflict: v1alpha1.ConflictPolicyFail}, asks: true, changes: true},
		sideAdopt:   {side: &byOperator{hub: f.hub, conflict: v1alpha1.ConflictPolicyAdopt}},
		sideBare:    {side: &bare, changes: true},
		sideAsking:  {side: &byAskingClient{byBareClient: bare, members: f.members}, asks: true},
		sideOCM:     {side: &byReplicaSet{hub: f.hub, model: m}, changes: true},
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
			fmt.Fprintf(progress, "round %d %-12s created in %s, changed in %s\n", round+1, name,
				created.Round(time.Millisecond), changed.Round(time.Millisecond))
		}
	}
	return nil
}

// turn has one side bring a workload to all clusters, and change its image.
func (f *fanOut) turn(ctx context.Context, s *measured, name string, remove bool) (created, changed time.Duration, err error) {
	if err := s.prepare(ctx, name); err != nil {
		return 0, 0, err
	}
	f.members.setQuiet(!s.asks)
	if created, err = f.timed(ctx, delivered(name, firstImage), s.create, &s.creating); err != nil {
		return 0, 0, fmt.Errorf("create: %w", err)
	}
	if err := f.settle(ctx, s, name, firstImage); err != nil {
		return 0, 0, err
	}
	if s.changes {
		f.members.setQuiet(true)
		if changed, err = f.timed(ctx, delivered(name, secondImage), s.change, &s.changing); err != nil {
			return 0, 0, fmt.Errorf("change: %w", err)
		}
		if err := f.settle(ctx, s, name, secondImage); err != nil {
			return 0, 0, err
		}
	}
	if !remove {
		return created, changed, nil
	}
	gone := f.members.expect(0, mentions(name))
	if err := s.remove(ctx); err != nil {
		return 0, 0, err
	}
	_, err = f.members.await(ctx, gone)
	return created, changed, err
}

// timed tells how long it takes from before do until all ManifestWorks match.
func (f *fanOut) timed(
	ctx context.Context, match func(*workv1.ManifestWork) bool, do func(context.Context) error, efforts *[]effort,
) (time.Duration, error) {
	runtime.GC()
	before, err := f.operator.effort(ctx)
	if err != nil {
		return 0, err
	}
	all := f.members.expect(len(f.hub.clusters), match)
	start := time.Now()
	if err := do(ctx); err != nil {
		return 0, err
	}
	end, err := f.members.await(ctx, all)
	if err != nil {
		return 0, err
	}
	after, err := f.operator.effort(ctx)
	*efforts = append(*efforts, after.since(before))
	return end.Sub(start), err
}

// settle lets all clusters answer, and the side take it in.
func (f *fanOut) settle(ctx context.Context, s *measured, name, image string) error {
	f.members.setQuiet(false)
	is := delivered(name, image)
	all := f.members.expect(len(f.hub.clusters), func(work *workv1.ManifestWork) bool { return is(work) && answered(work) })
	if _, err := f.members.await(ctx, all); err != nil {
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

// results are the lines.
func (f *fanOut) results(clusters int) []result {
	line := func(name string, bar float64, slower bool, ours, peer []time.Duration) result {
		c := comparison{name: fmt.Sprintf("fanout-%s/%d", name, clusters), bar: bar, slower: slower}
		return result{comparison: c, oursTime: median(ours), peerTime: median(peer)}
	}
	adopt, ask, bare, asking, ocm := f.sides[sideAdopt], f.sides[sideDefault], f.sides[sideBare], f.sides[sideAsking], f.sides[sideOCM]
	return []result{
		line("create-adopt", 1.5, true, adopt.created, bare.created),
		line("create-adopt-ocm", 1, false, adopt.created, ocm.created),
		line("create-ask", 1.5, true, ask.created, asking.created),
		line("create-ask-ocm", 1, false, ask.created, ocm.created),
		line("image", 1.5, true, ask.changed, bare.changed),
		line("image-ocm", 1, false, ask.changed, ocm.changed),
	}
}

// explain says what the operator has spent.
func (f *fanOut) explain(out io.Writer) {
	say := func(what string, efforts []effort) {
		var passes, processor []time.Duration
		for _, e := range efforts {
			passes, processor = append(passes, time.Duration(e.passes)), append(processor, e.processor)
		}
		fmt.Fprintf(out, "the operator, %s: %d passes, %s of processor time\n", what, median(passes), median(processor).Round(time.Millisecond))
	}
	say("create, adopting", f.sides[sideAdopt].creating)
	say("create, asking", f.sides[sideDefault].creating)
	say("change of the image", f.sides[sideDefault].changing)
	say("while others create", f.sides[sideBare].creating)
}
