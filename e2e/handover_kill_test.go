//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

// moving is the change of backend of a workload that runs, from wherever it is.
var moving = act{
	label: "move", kind: cloneSet,
	before: func(ctx context.Context, r *attempt) {
		isRunning(ctx, r)
		r.pods = podUIDs(ctx, r.fw)
	},
	begin: func(ctx context.Context, r *attempt) {
		edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = otherBackend(r.backend) })
	},
	ended: func(ctx context.Context, g Gomega, r *attempt) {
		endsReady(ctx, g, r)
		g.Expect(r.fw.Status.Backend).To(Equal(otherBackend(r.backend)))
		g.Expect(r.fw.Status.Migration.Phase).To(BeEmpty())
		g.Expect(podUIDs(ctx, r.fw)).To(Equal(r.pods))
	},
}

// shuttle moves there and back, with a kill after the k-th write of each way as long as there are so many.
func (r *attempt) shuttle(ctx context.Context, k int, alone map[string]*outcome) map[string]*outcome {
	GinkgoHelper()
	came := map[string]*outcome{}
	for range backends {
		from := r.backend
		kill := k
		if alone[from] != nil && k > len(alone[from].writes) {
			kill = 0
		}
		came[from] = moving.perform(ctx, r, kill, alone[from])
		r.backend = otherBackend(from)
	}
	return came
}

// Law 6 for hand-overs. What has moved moves on: nothing has to be made anew for the next write.
var _ = Describe("An operator that is killed during a hand-over", Label("laws", "law6", "sweep", "handover", "karmada", "ocm"), long, func() {
	It("ends in the same state, whichever write was its last", func(ctx SpecContext) {
		stopShared(ctx)
		var cleaning, shuttles sync.WaitGroup
		defer cleaning.Wait()
		first := moving.prepare(ctx, backends[0], "move-0", false, &cleaning)
		begun := false
		defer func() {
			if !begun {
				first.retire()
			}
		}()
		moving.before(ctx, first)
		alone := first.shuttle(ctx, 0, nil)
		most, certain := 0, math.MaxInt
		for from, o := range alone {
			most, certain = max(most, len(o.writes)), min(certain, o.certain())
			AddReportEntry("writes from "+from+" when left alone", ReportEntryVisibilityFailureOrVerbose, proxy.Describe(o.writes))
		}
		var mu sync.Mutex
		kills := map[string]int{}
		turns := make(chan int)
		shuttle := func(r *attempt) {
			defer GinkgoRecover()
			defer r.explain("a hand-over that was killed")
			for k := range turns {
				for from, o := range r.shuttle(ctx, k, alone) {
					if o.killed {
						mu.Lock()
						kills[from]++
						mu.Unlock()
					}
				}
			}
		}
		begun = true
		shuttles.Go(func() { shuttle(first) })
		for i := range atOnce - 1 {
			shuttles.Go(func() {
				defer GinkgoRecover()
				r := moving.prepare(ctx, backends[(i+1)%len(backends)], fmt.Sprintf("move-%d", i+1), i%2 == 0, &cleaning)
				moving.before(ctx, r)
				shuttle(r)
			})
		}
		failed := make(chan struct{})
		go func() {
			shuttles.Wait()
			close(failed)
		}()
		sample := sweep("move", most, certain)
		for _, k := range sample {
			select {
			case turns <- k:
			case <-failed:
				return // each has said why
			}
		}
		close(turns)
		shuttles.Wait()
		for from, o := range alone {
			o.wasStruck(sample, kills[from])
		}
	}, SpecTimeout(25*time.Minute))
})
