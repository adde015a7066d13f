//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// converged waits until the operator has nothing to do and has written nothing for a while.
func converged(ctx context.Context, o *operator) {
	GinkgoHelper()
	const calm = 3 * time.Second
	written, since := -1, time.Now()
	Eventually(func(g Gomega) {
		_, idle, err := o.reconciles()
		g.Expect(err).NotTo(HaveOccurred())
		if n := len(o.journal.Entries()); n != written || !idle {
			written, since = n, time.Now()
		}
		g.Expect(time.Since(since)).To(BeNumerically(">", calm), "the operator goes on writing:\n%s", o.writes())
	}).WithContext(ctx).WithTimeout(60 * time.Second).Should(Succeed())
}

// Law 3: nothing to do means no write.
var _ = Describe("A converged fleet", Label("laws", "law3", "karmada", "ocm"), Ordered, func() {
	var (
		o         *operator
		workloads []*v1alpha1.FleetWorkload
	)

	BeforeAll(func(ctx SpecContext) {
		var namespace string
		o, namespace = ownOperator(ctx, "quiet", operatorOptions{})
		o.start(ctx)
		m := world.members
		for _, backend := range backends {
			for _, k := range kinds {
				fw := workload(namespace, backend+"-"+k.label, backend, k, 6)
				fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Exclude: []string{m[2]}}
				fw.Spec.Placement.Division = divided(weight(2, m[0]), weight(1, m[1]))
				override := envOverride("debug", m[1])
				override.Images = []v1alpha1.ImageOverride{{Container: "web", Tag: "1.1"}}
				override.Labels = &v1alpha1.MetadataOverride{Set: map[string]string{"channel": "canary"}, Remove: []string{"team"}}
				override.Patches = []v1alpha1.PatchOperation{patchOverride(v1alpha1.PatchOpAdd, "/spec/minReadySeconds", "0")}
				fw.Spec.Overrides = []v1alpha1.Override{override}
				workloads = append(workloads, create(ctx, fw))
			}
		}
		becomesReady(ctx, workloads...)
		converged(ctx, o)
	})

	// settled waits until every workload went through all steps of a pass, as often as asked since the counts were
	// taken, and none is left to do.
	settled := func(ctx context.Context, before map[string]float64, times int) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			_, idle, err := o.reconciles()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(idle).To(BeTrue())
			for _, backend := range backends {
				n, err := o.calls(backend, "Apply")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(n-before[backend]).To(BeNumerically(">=", times*len(kinds)), "passes on %s", backend)
			}
		}).WithContext(ctx).WithTimeout(60 * time.Second).Should(Succeed())
	}

	It("sees no mutating request while the operator reconciles", func(ctx SpecContext) {
		before := map[string]float64{}
		for _, backend := range backends {
			n, err := o.calls(backend, "Apply")
			Expect(err).NotTo(HaveOccurred())
			before[backend] = n
		}
		o.journal.Reset()
		const times = 3
		for i := range times {
			for _, fw := range workloads {
				edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
					fw.Annotations = map[string]string{"example.com/look-again": fmt.Sprint(i)}
				})
			}
			settled(ctx, before, i+1)
		}
		Expect(o.journal.Entries()).To(BeEmpty(), "writes of an operator with nothing to do:\n%s", o.writes())
		becomesReady(ctx, workloads...)
	})

	It("sees no mutating request when the operator is restarted", func(ctx SpecContext) {
		o.stop(ctx)
		o.journal.Reset()
		o.start(ctx)
		o.reaches(ctx, true, backends...)
		settled(ctx, nil, 1)
		Consistently(o.journal.Entries).WithContext(ctx).WithTimeout(hold).Should(BeEmpty(), "writes of a restarted operator")
		becomesReady(ctx, workloads...)
	})

	It("sees no mutating request when the operator was killed", func(ctx SpecContext) {
		o.kill()
		o.journal.Reset()
		o.start(ctx)
		o.reaches(ctx, true, backends...)
		settled(ctx, nil, 1)
		Consistently(o.journal.Entries).WithContext(ctx).WithTimeout(hold).Should(BeEmpty(), "writes of a restarted operator")
		becomesReady(ctx, workloads...)
	})
})
