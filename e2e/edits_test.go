//go:build e2e

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// edited is a workload with what it ran before somebody edited it.
type edited struct {
	fw     *v1alpha1.FleetWorkload
	pods   map[string]string
	before map[string]any
}

// runningOn makes a CloneSet run on clusters with a label of its own, on one backend.
func runningOn(ctx context.Context, backend, name string, replicas int32, weights func(label string) []v1alpha1.ClusterWeight) (e *edited, label string) {
	GinkgoHelper()
	namespace := newNamespace(ctx, "edits")
	label = "example.com/" + namespace
	for _, cluster := range world.members {
		labelCluster(ctx, backend, cluster, label, "on")
		DeferCleanup(func(ctx SpecContext) { labelCluster(ctx, backend, cluster, label, "") })
	}
	fw := workload(namespace, name, backend, cloneSet, replicas)
	fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "on"}}}
	fw.Spec.Placement.Division = divided(weights(label)...)
	create(ctx, fw)
	becomesReady(ctx, fw)
	return &edited{fw: fw, pods: podUIDs(ctx, fw), before: specs(ctx, fw, cloneSet)}, label
}

func evenly(string) []v1alpha1.ClusterWeight { return nil }

// unchanged wants nothing to have gone or changed, for a while.
func (e *edited) unchanged(ctx context.Context) {
	GinkgoHelper()
	nothingRemoved(ctx, e.fw, cloneSet, e.pods, e.before)
}

// keeps wants the pods of clusters to stay, for a while; others may come.
func (e *edited) keeps(ctx context.Context, clusters ...string) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		now := podUIDs(ctx, e.fw)
		for _, cluster := range clusters {
			for pod, uid := range of(cluster, e.pods) {
				g.Expect(now).To(HaveKeyWithValue(pod, uid), "%s of %s", pod, cluster)
			}
		}
	}).WithContext(ctx).WithTimeout(hold).Should(Succeed())
}

func becomesSuspended(ctx context.Context, fw *v1alpha1.FleetWorkload) {
	GinkgoHelper()
	eventually(ctx, fw, readyTimeout, func(g Gomega) {
		g.Expect(isObserved(fw)).To(BeTrue())
		g.Expect(condition(fw, v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonSuspended), describe(fw))
	})
}

var _ = Describe("What people edit", Label("laws", "law1", "law2", "edits"), func() {
	BeforeEach(func(ctx SpecContext) { sharedOperator(ctx) })

	for _, backend := range backends {
		Context("on "+backend, Label(backend), func() {
			It("waits while it is suspended, whatever it is, and is carried out then", func(ctx SpecContext) {
				m := world.members
				e, label := runningOn(ctx, backend, "suspended", 6, evenly)
				yes, no := true, false
				edit(ctx, e.fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = &yes })
				edit(ctx, e.fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters = on(m[0], m[1]) })
				becomesSuspended(ctx, e.fw)
				edit(ctx, e.fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(2)) })
				labelCluster(ctx, backend, m[0], label, "")
				edit(ctx, e.fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
				becomesSuspended(ctx, e.fw)
				e.unchanged(ctx)
				edit(ctx, e.fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageOld) })
				edit(ctx, e.fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = &no })
				becomesReady(ctx, e.fw)
				one := want{1, imageOld, "info"}
				runs(ctx, e.fw, cloneSet, map[string]want{m[0]: one, m[1]: one})
			})

			It("does not carry a held removal out by scaling up", func(ctx SpecContext) {
				m := world.members
				e, label := runningOn(ctx, backend, "held", 6, func(string) []v1alpha1.ClusterWeight {
					return []v1alpha1.ClusterWeight{weight(1, m[0], m[1]), weight(4, m[2])}
				})
				labelCluster(ctx, backend, m[2], label, "")
				becomesStalled(ctx, e.fw, v1alpha1.ReasonRemovalHeld)
				edit(ctx, e.fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(9)) })
				becomesStalled(ctx, e.fw, v1alpha1.ReasonRemovalHeld)
				e.keeps(ctx, m...)
				labelCluster(ctx, backend, m[2], label, "on")
				becomesReady(ctx, e.fw)
				e.keeps(ctx, m...)
			})

			It("remembers what ran when clusters lose a label one by one", func(ctx SpecContext) {
				m := world.members
				e, label := runningOn(ctx, backend, "onebyone", 6, evenly)
				labelCluster(ctx, backend, m[2], label, "")
				eventuallyAbsent(ctx, member(m[2]), cloneSet, client.ObjectKeyFromObject(e.fw))
				becomesReady(ctx, e.fw)
				labelCluster(ctx, backend, m[1], label, "")
				becomesStalled(ctx, e.fw, v1alpha1.ReasonRemovalHeld)
				e.keeps(ctx, m[0], m[1])
			})

			It("moves no replicas for a typing error in a label that weights choose by", func(ctx SpecContext) {
				m := world.members
				e, _ := runningOn(ctx, backend, "typo", 10, func(label string) []v1alpha1.ClusterWeight {
					// The heavy cluster has a label of its own.
					labelCluster(ctx, backend, m[0], label+"-heavy", "yes")
					return []v1alpha1.ClusterWeight{
						{Weight: ptr(int32(8)), Clusters: &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label + "-heavy": "yes"}}}},
						weight(1, m[1], m[2]),
					}
				})
				heavy := "example.com/" + e.fw.Namespace + "-heavy"
				DeferCleanup(func(ctx SpecContext) { labelCluster(ctx, backend, m[0], heavy, "") })
				Expect(of(m[0], e.pods)).To(HaveLen(8))
				labelCluster(ctx, backend, m[0], heavy, "yse")
				becomesStalled(ctx, e.fw, v1alpha1.ReasonRemovalHeld)
				e.unchanged(ctx)
				labelCluster(ctx, backend, m[0], heavy, "yes")
				becomesReady(ctx, e.fw)
				e.unchanged(ctx)
			})
		})
	}
})
