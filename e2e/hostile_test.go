//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// The hostile namespace has so many FleetWorkloads, each of which takes about all that one may take before it is refused, and somebody edits
// them all the time, as often as the operator's workers can take, which leaves the API server to others.
const (
	hostileOnes = 200
	editPace    = 50 * time.Millisecond
)

var _ = Describe("A namespace full of the most expensive FleetWorkloads", Label("laws"), Serial, func() {
	for _, backend := range backends {
		It("holds no other namespace's change up on "+backend, Label(backend), func(ctx SpecContext) {
			sharedOperator(ctx)
			fw := create(ctx, workload(newNamespace(ctx, "team"), "web", backend, deployment, 1))
			becomesReady(ctx, fw)
			alone := changesLand(ctx, fw)

			namespace := newNamespace(ctx, "hostile")
			for i := range hostileOnes {
				create(ctx, expensive(namespace, fmt.Sprint("h", i), backend))
			}
			last := expensive(namespace, fmt.Sprint("h", hostileOnes-1), backend)
			Expect(becomesStalled(ctx, last, v1alpha1.ReasonInvalidOverride)).To(ContainSubstring("/spec/nowhere"))
			edits := editAllTheTime(ctx, namespace)
			beside := changesLand(ctx, fw)

			Expect(edits()).To(BeNumerically(">", 0))
			AddReportEntry("how long a change takes to land", fmt.Sprintf("alone %v, beside them %v", alone, beside))
			// The second is the API server's, which is as busy.
			Expect(beside).To(BeNumerically("<=", 2*alone+time.Second), "alone %v", alone)
		}, SpecTimeout(8*time.Minute))
	}
})

// expensive is a FleetWorkload whose overrides patch a large template again and again, and that is refused for the last patch.
func expensive(namespace, name, backend string) *v1alpha1.FleetWorkload {
	GinkgoHelper()
	fw := workload(namespace, name, backend, deployment, 1)
	var manifest map[string]any
	Expect(json.Unmarshal(fw.Spec.Template.Raw, &manifest)).To(Succeed())
	manifest["metadata"] = map[string]any{"annotations": map[string]any{"filler": strings.Repeat("x", 64<<10)}}
	var err error
	fw.Spec.Template.Raw, err = json.Marshal(manifest)
	Expect(err).NotTo(HaveOccurred())
	for i := range 20 {
		patch := patchOverride(v1alpha1.PatchOpAdd, "/spec/minReadySeconds", "0")
		fw.Spec.Overrides = append(fw.Spec.Overrides, v1alpha1.Override{Name: fmt.Sprint("o", i), Patches: []v1alpha1.PatchOperation{patch}})
	}
	end := patchOverride(v1alpha1.PatchOpReplace, "/spec/nowhere", "1")
	fw.Spec.Overrides[19].Patches = append(fw.Spec.Overrides[19].Patches, end)
	return fw
}

// editAllTheTime edits the FleetWorkloads of a namespace until the count of edits is asked for, which stops it.
func editAllTheTime(ctx context.Context, namespace string) (stop func() int) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan int)
	go func() {
		defer GinkgoRecover()
		edits, tick := 0, time.NewTicker(editPace)
		defer tick.Stop()
		for ; ctx.Err() == nil; <-tick.C {
			fw := &v1alpha1.FleetWorkload{}
			fw.Namespace, fw.Name = namespace, fmt.Sprint("h", edits%hostileOnes)
			patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, 2+edits%50)
			if err := hub().Patch(ctx, fw, client.RawPatch(types.MergePatchType, patch)); err == nil {
				edits++
			} else if ctx.Err() == nil {
				Fail(err.Error())
			}
		}
		ended <- edits
	}()
	return func() int {
		cancel()
		return <-ended
	}
}

// changesLand is how long a change of the image takes until all clusters run it, in the middle of some.
func changesLand(ctx context.Context, fw *v1alpha1.FleetWorkload) time.Duration {
	GinkgoHelper()
	var took []time.Duration
	for i := range 5 {
		begin := time.Now()
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, []string{imageNew, imageOld}[i%2]) })
		becomesReady(ctx, fw)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took[len(took)/2]
}
