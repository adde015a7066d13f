//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// What spec.placement.failover asks for: others take the place of a lost cluster, and nothing happens to what they run.
var _ = Describe("A cluster that is lost for long", Label("placement", "karmada", "ocm"), long, func() {
	It("is replaced, and given up when it is back", func(ctx SpecContext) {
		twoReplicas(ctx, "failover")
		lost, kept, spare := world.members[1], world.members[0], world.members[2]
		namespace := newNamespace(ctx, "failover")
		var replaced, moves, stays []*v1alpha1.FleetWorkload
		for _, b := range backends {
			for prefix, list := range map[string]*[]*v1alpha1.FleetWorkload{"replaced-": &replaced, "moves-": &moves} {
				fw := workload(namespace, prefix+b, b, cloneSet, 4)
				fw.Spec.Placement = v1alpha1.Placement{
					Clusters: &v1alpha1.ClusterSelector{}, NumberOfClusters: ptr(int32(2)), Division: divided(),
					Failover: &v1alpha1.Failover{TolerationSeconds: ptr(int32(5))},
				}
				*list = append(*list, create(ctx, fw))
			}
			// Nothing can take the place of a cluster that is named.
			named := workload(namespace, "stays-"+b, b, cloneSet, 1)
			named.Spec.Placement = v1alpha1.Placement{Clusters: on(lost), Failover: &v1alpha1.Failover{TolerationSeconds: ptr(int32(5))}}
			stays = append(stays, create(ctx, named))
		}
		twos := slices.Concat(replaced, moves)
		becomesReady(ctx, slices.Concat(twos, stays)...)
		var before []map[string]string
		for _, fw := range twos {
			Expect(row(fw, lost).Desired).To(HaveValue(BeEquivalentTo(2)))
			before = append(before, of(kept, podUIDs(ctx, fw)))
		}

		resume := func(ctx SpecContext) { Expect(world.fleet.ResumeMember(ctx, lost)).To(Succeed()) }
		DeferCleanup(resume, NodeTimeout(2*time.Minute))
		Expect(world.fleet.PauseMember(ctx, lost)).To(Succeed())
		for _, fw := range twos {
			eventually(ctx, fw, 3*time.Minute, func(g Gomega) {
				g.Expect(isReady(fw)).To(BeTrue())
				g.Expect(row(fw, lost).GivenUp).To(Equal(metav1.ConditionTrue))
				g.Expect(row(fw, spare).Ready).To(HaveValue(BeEquivalentTo(2)))
				g.Expect(fw.Status.Ready).To(Equal("4/4"))
			})
		}
		for _, fw := range stays {
			eventually(ctx, fw, time.Minute, func(g Gomega) {
				g.Expect(condition(fw, v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonStale))
				g.Expect(row(fw, lost).GivenUp).To(BeEmpty())
			})
		}
		By("nothing moves to another backend while the lost cluster has what it is to lose")
		for _, fw := range moves {
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = otherBackend(fw.Spec.Backend) })
		}
		for _, fw := range moves {
			Expect(becomesStalled(ctx, fw, v1alpha1.ReasonMigrationNotPossible)).To(ContainSubstring(lost))
			Expect(fw.Status.Ready).To(Equal("4/4"))
		}

		resume(ctx)
		for i, fw := range twos {
			// Karmada tries again with delays that have grown while the cluster was lost.
			eventually(ctx, fw, 4*time.Minute, func(g Gomega) {
				g.Expect(isReady(fw)).To(BeTrue())
				g.Expect(fw.Status.Clusters).To(HaveLen(2))
				g.Expect(fw.Status.Backend).To(Equal(fw.Spec.Backend))
			})
			eventuallyAbsent(ctx, member(lost), cloneSet, client.ObjectKeyFromObject(fw))
			Expect(of(kept, podUIDs(ctx, fw))).To(Equal(before[i]), "pods of %s were touched", kept)
		}
		becomesReady(ctx, stays...)
	}, SpecTimeout(15*time.Minute))
})

// A taint keeps new workloads away, and takes nothing off a cluster.
var _ = Describe("Taints", Label("placement", "karmada", "ocm"), func() {
	It("mean the same on both backends", func(ctx SpecContext) {
		sharedOperator(ctx)
		tainted := world.members[1]
		namespace := newNamespace(ctx, "taints")
		var running, fresh, tolerant []*v1alpha1.FleetWorkload
		for _, b := range backends {
			running = append(running, create(ctx, workload(namespace, "running-"+b, b, cloneSet, 1)))
		}
		becomesReady(ctx, running...)
		taint(ctx, tainted)
		for _, b := range backends {
			fresh = append(fresh, create(ctx, workload(namespace, "fresh-"+b, b, cloneSet, 1)))
			fw := workload(namespace, "tolerant-"+b, b, cloneSet, 1)
			fw.Spec.Placement.Tolerations = []v1alpha1.ClusterToleration{{Key: "example.com/e2e", Operator: "Exists"}}
			tolerant = append(tolerant, create(ctx, fw))
		}
		becomesReady(ctx, append(fresh, tolerant...)...)
		for i := range backends {
			Expect(fresh[i].Status.Clusters).To(HaveLen(2))
			Expect(condition(fresh[i], v1alpha1.ConditionScheduled).Message).To(ContainSubstring("left out: " + tainted + ": tainted"))
			Expect(tolerant[i].Status.Clusters).To(HaveLen(3))
			refresh(ctx, running[i])
			Expect(running[i].Status.Clusters).To(HaveLen(3))
		}
	})
})

// taint puts a taint on a cluster on both backends, until the spec ends.
func taint(ctx context.Context, name string) {
	GinkgoHelper()
	for b, at := range map[string]struct{ apiVersion, kind, effect string }{
		"karmada": {"cluster.karmada.io/v1alpha1", "Cluster", "NoSchedule"},
		"ocm":     {"cluster.open-cluster-management.io/v1", "ManagedCluster", "NoSelectIfNew"},
	} {
		patch := func(ctx context.Context, taints string) {
			GinkgoHelper()
			cluster := &unstructured.Unstructured{}
			cluster.SetAPIVersion(at.apiVersion)
			cluster.SetKind(at.kind)
			cluster.SetName(name)
			raw := fmt.Sprintf(`{"spec":{"taints":%s}}`, taints)
			Expect(controlOf(b).Patch(ctx, cluster, client.RawPatch(types.MergePatchType, []byte(raw)))).To(Succeed())
		}
		patch(ctx, fmt.Sprintf(`[{"key":"example.com/e2e","effect":%q,"timeAdded":%q}]`, at.effect, time.Now().UTC().Format(time.RFC3339)))
		DeferCleanup(func(ctx SpecContext) { patch(ctx, "null") })
	}
}
