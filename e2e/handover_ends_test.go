//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

var _ = Describe("A workload that is deleted during its hand-over", Label("handover", "orphan", "karmada", "ocm"), func() {
	BeforeEach(func(ctx SpecContext) { sharedOperator(ctx) })

	It("goes from both backends, or stays in the members, as asked", func(ctx SpecContext) {
		orphan := func(fw *v1alpha1.FleetWorkload) { fw.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan }
		var makers []func(namespace, backend string) *livedOn
		for _, name := range []string{"shadowing", "handing", "verifying", "releasing", "back"} {
			makers = append(makers, onTwo(name), onTwo("orphan-"+name, orphan))
		}
		convoys := newConvoys(ctx, "doomed", makers...)
		both := func(name string) []*livedOn { return named(convoys, name, "orphan-"+name) }
		doom := func(all []*livedOn) {
			GinkgoHelper()
			for _, r := range all {
				Expect(hub().Delete(ctx, r.fw)).To(Succeed())
			}
		}
		By("Shadowing")
		release := brakes()
		turn(ctx, named(convoys)...)
		inPhase(ctx, v1alpha1.MigrationPhaseShadowing, named(convoys)...)
		doom(both("shadowing"))
		release()
		By("Verifying, one cluster handed over")
		asks(ctx, 1, slices.Concat(both("handing"), both("verifying"), both("back"))...)
		approve(ctx, 1, both("releasing")...)
		doom(both("verifying"))
		asks(ctx, 2, both("releasing")...)
		By("HandingOver, Releasing and RollingBack")
		release = brakes()
		approve(ctx, 1, both("handing")...)
		approve(ctx, 2, both("releasing")...)
		turn(ctx, both("back")...)
		inPhase(ctx, v1alpha1.MigrationPhaseHandingOver, both("handing")...)
		inPhase(ctx, v1alpha1.MigrationPhaseReleasing, both("releasing")...)
		inPhase(ctx, v1alpha1.MigrationPhaseRollingBack, both("back")...)
		doom(both("handing"))
		doom(both("releasing"))
		doom(both("back"))
		release()
		for _, r := range named(convoys) {
			// An agent that does not see an object is asked again after 90 seconds (blindness in backends/ocm).
			goneWithin(ctx, r.fw, deleteTimeout+2*time.Minute)
		}
		for _, c := range convoys {
			for _, r := range c.all {
				for _, name := range world.members {
					if !strings.HasPrefix(r.name, "orphan-") {
						eventuallyAbsent(ctx, member(name), cloneSet, r.memberKey())
					}
				}
			}
			now, uids := imprints(ctx, c.all), []string{}
			for _, r := range c.all {
				uids = append(uids, identity(r.fw))
				if !strings.HasPrefix(r.name, "orphan-") {
					continue
				}
				Expect(now[r.name]).To(Equal(c.before[r.name]), r.name)
				Expect(podUIDs(ctx, r.fw)).To(HaveLen(6))
				unowned(ctx, r)
			}
			for _, b := range backends {
				Expect(leftOn(ctx, b, uids)).To(BeEmpty(), "left on %s", b)
			}
		}
	}, SpecTimeout(12*time.Minute))
})

var _ = Describe("A workload that is made again in the middle of its hand-over", Label("handover", "orphan", "karmada", "ocm"), func() {
	BeforeEach(func(ctx SpecContext) { sharedOperator(ctx) })

	It("takes over what stayed, on either backend, with the same pods", func(ctx SpecContext) {
		orphan := func(fw *v1alpha1.FleetWorkload) { fw.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan }
		convoys := newConvoys(ctx, "again", onTwo("stays", orphan), onTwo("moves", orphan))
		turn(ctx, named(convoys)...)
		asks(ctx, 1, named(convoys)...) // one cluster is the target's, the other one the source's
		for _, c := range convoys {
			for _, r := range c.all {
				Expect(hub().Delete(ctx, r.fw)).To(Succeed())
			}
		}
		for _, c := range convoys {
			for _, r := range c.all {
				goneWithin(ctx, r.fw, deleteTimeout+2*time.Minute)
				backend := r.backend
				if r.name == "moves" {
					backend = otherBackend(r.backend)
				}
				r.fw = onTwo(r.name)(c.namespace, backend).fw
				r.fw.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
				create(ctx, r.fw)
			}
		}
		for _, c := range convoys {
			for _, r := range c.all {
				becomesReady(ctx, r.fw)
			}
			c.unharmed(ctx)
		}
	}, SpecTimeout(12*time.Minute))
})

// unowned wants no backend to know a workload's objects on members as its own. A word of Karmada that means nothing
// without its label stays: nobody is left to take it away.
func unowned(ctx context.Context, r *livedOn) {
	GinkgoHelper()
	for name, obj := range r.objects(ctx) {
		Expect(obj.GetOwnerReferences()).To(BeEmpty(), "owners of %s on %s", r.name, name)
		for key := range obj.GetLabels() {
			Expect(key).NotTo(ContainSubstring("karmada.io/"), "%s on %s", r.name, name)
		}
		for key := range obj.GetAnnotations() {
			if key != "work.karmada.io/conflict-resolution" {
				Expect(key).NotTo(ContainSubstring("karmada.io/"), "%s on %s", r.name, name)
			}
		}
	}
}

var _ = Describe("A cluster with two names", Label("handover", "karmada", "ocm"), func() {
	It("is the same by its identity, and in a spec by its aliases", func(ctx SpecContext) {
		cluster, label := world.members[2], "example.com/alias"
		alias := "alias-" + cluster
		names := map[string]string{"karmada": alias, "ocm": cluster}
		o, _ := ownOperator(ctx, "alias", operatorOptions{everywhere: true, aliases: []any{names}})
		renamed(ctx, cluster, alias, label)
		o.start(ctx)
		placed := func(name string, selector *v1alpha1.ClusterSelector) func(namespace, backend string) *livedOn {
			return func(namespace, backend string) *livedOn {
				fw := workload(namespace, name, backend, cloneSet, 2)
				fw.Spec.Placement.Clusters = selector
				fw.Spec.Overrides = []v1alpha1.Override{envOverride("debug", alias)}
				return carried(fw, cloneSet)
			}
		}
		convoys := newConvoys(ctx, "alias", placed("named", on(cluster)),
			placed("labelled", &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "on"}}}))
		all := named(convoys)
		for range 2 {
			turn(ctx, all...)
			arrive(ctx, all...)
			for _, r := range all {
				eventually(ctx, r.fw, readyTimeout, func(g Gomega) {
					g.Expect(rowNames(r.fw)).To(Equal([]string{names[r.fw.Status.Backend]}))
				})
			}
			ended(v1alpha1.MigrationPhaseCompleted, all...)
		}
		for _, c := range convoys {
			for _, r := range c.all {
				Expect(c.before[r.name]).To(HaveLen(1))
				runs(ctx, r.fw, cloneSet, map[string]want{cluster: {2, imageOld, "debug"}})
			}
			c.unharmed(ctx)
		}
	}, SpecTimeout(12*time.Minute))
})

var clusterGVK = schema.GroupVersionKind{Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "Cluster"}

// renamed makes a member known to Karmada under another name until the spec ends, with a label that it has on OCM too.
// The Cluster with its own name says for that time that it is another one.
func renamed(ctx context.Context, cluster, alias, label string) {
	GinkgoHelper()
	karmada := controlOf("karmada")
	known := &unstructured.Unstructured{}
	known.SetGroupVersionKind(clusterGVK)
	Expect(karmada.Get(ctx, client.ObjectKey{Name: cluster}, known)).To(Succeed())
	id, _, _ := unstructured.NestedString(known.Object, "spec", "id")
	Expect(id).NotTo(BeEmpty())
	other := &unstructured.Unstructured{Object: map[string]any{"spec": known.DeepCopy().Object["spec"]}}
	other.SetGroupVersionKind(clusterGVK)
	other.SetName(alias)
	other.SetLabels(map[string]string{label: "on"})
	identify := func(ctx context.Context, id string) {
		GinkgoHelper()
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"id": id}})
		Expect(err).NotTo(HaveOccurred())
		Expect(karmada.Patch(ctx, known, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	}
	DeferCleanup(func(ctx SpecContext) {
		labelCluster(ctx, "ocm", cluster, label, "")
		Expect(client.IgnoreNotFound(karmada.Delete(ctx, other))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(client.IgnoreNotFound(karmada.Get(ctx, client.ObjectKey{Name: alias}, other.DeepCopy()))).To(Succeed())
			g.Expect(karmada.Get(ctx, client.ObjectKey{Name: alias}, other.DeepCopy())).NotTo(Succeed())
		}).WithContext(ctx).Should(Succeed())
		identify(ctx, id)
	}, NodeTimeout(2*time.Minute))
	identify(ctx, "not-"+id)
	labelCluster(ctx, "ocm", cluster, label, "on")
	Expect(karmada.Create(ctx, other)).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(karmada.Get(ctx, client.ObjectKey{Name: alias}, other)).To(Succeed())
		enablements, _, _ := unstructured.NestedSlice(other.Object, "status", "apiEnablements")
		g.Expect(enablements).NotTo(BeEmpty())
		conditions, _, _ := unstructured.NestedSlice(other.Object, "status", "conditions")
		g.Expect(conditions).To(ContainElement(And(HaveKeyWithValue("type", "Ready"), HaveKeyWithValue("status", "True"))))
	}).WithContext(ctx).Should(Succeed())
}
