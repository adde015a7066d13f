//go:build e2e

package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// One FleetWorkload through its life: 6 replicas divided 2:1 over member1 and member2, an override on member2.
var _ = forEach("A workload's life", func(backend string, k kind) {
	var (
		fw *v1alpha1.FleetWorkload
		m  []string
	)

	BeforeAll(func(ctx SpecContext) {
		sharedOperator(ctx)
		m = world.members
		fw = workload(newNamespace(ctx, "life"), "web", backend, k, 6)
		fw.Spec.Placement.Clusters = on(m[0], m[1])
		fw.Spec.Placement.Division = divided(weight(2, m[0]), weight(1, m[1]))
		override := envOverride("debug", m[1])
		override.Labels = &v1alpha1.MetadataOverride{Set: map[string]string{"channel": "canary"}, Remove: []string{"team"}}
		override.Annotations = &v1alpha1.MetadataOverride{Set: map[string]string{"example.com/note": "careful"}}
		fw.Spec.Overrides = []v1alpha1.Override{override}
		create(ctx, fw)
	})

	It("is applied", func(ctx SpecContext) {
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {4, imageOld, "info"}, m[1]: {2, imageOld, "debug"}})
		plain, err := object(ctx, member(m[0]), k, client.ObjectKeyFromObject(fw))
		Expect(err).NotTo(HaveOccurred())
		Expect(plain.GetLabels()).To(And(HaveKeyWithValue("team", "shop"), Not(HaveKey("channel")),
			HaveKeyWithValue(v1alpha1.LabelUID, identity(fw))))
		Expect(plain.GetAnnotations()).To(And(HaveKeyWithValue("example.com/owner", "shop"), Not(HaveKey("example.com/note")),
			HaveKeyWithValue(v1alpha1.AnnotationRevision, fw.Status.Revision)))
		other, err := object(ctx, member(m[1]), k, client.ObjectKeyFromObject(fw))
		Expect(err).NotTo(HaveOccurred())
		Expect(other.GetLabels()).To(And(Not(HaveKey("team")), HaveKeyWithValue("channel", "canary")))
		Expect(other.GetAnnotations()).To(And(HaveKeyWithValue("example.com/owner", "shop"), HaveKeyWithValue("example.com/note", "careful")))
	})

	It("shows its status", func(ctx SpecContext) {
		Expect(*fw.Status.DesiredReplicas).To(BeEquivalentTo(6))
		Expect(*fw.Status.ReadyReplicas).To(BeEquivalentTo(6))
		Expect(row(fw, m[0]).Desired).To(HaveValue(BeEquivalentTo(4)))
		Expect(row(fw, m[1]).Desired).To(HaveValue(BeEquivalentTo(2)))
		Expect(fw.Status.Backend).To(Equal(backend))
		lines := strings.Split(strings.TrimSpace(kubectl(ctx, "get", "fw", fw.Name, "-n", fw.Namespace)), "\n")
		Expect(lines).To(HaveLen(2))
		Expect(strings.Fields(lines[0])).To(Equal([]string{"NAME", "BACKEND", "READY", "UPDATED", "CLUSTERS", "STATUS", "AGE"}))
		Expect(strings.Fields(lines[1])[:6]).To(Equal([]string{"web", backend, "6/6", "6", "2/2", "Ready"}))
		kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=1s", "fw/web", "-n", fw.Namespace)
	})

	It("is scaled with kubectl", func(ctx SpecContext) {
		kubectl(ctx, "scale", "fw/web", "-n", fw.Namespace, "--replicas=9")
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {6, imageOld, "info"}, m[1]: {3, imageOld, "debug"}})
		// What a HorizontalPodAutoscaler reads.
		scale := kubectl(ctx, "get", "--raw", "/apis/apps.fleetworkload.io/v1alpha1/namespaces/"+fw.Namespace+"/fleetworkloads/web/scale")
		Expect(scale).To(And(ContainSubstring(`"selector":"app=web"`), ContainSubstring(`"status":{"replicas":9`)))
	})

	It("gets another image", func(ctx SpecContext) {
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {6, imageNew, "info"}, m[1]: {3, imageNew, "debug"}})
	})

	It("gets another override, and only there something changes", func(ctx SpecContext) {
		before, pods := specs(ctx, fw, k), podUIDs(ctx, fw)
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Overrides[0].Env[0].Set[0].Value = "trace" })
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {6, imageNew, "info"}, m[1]: {3, imageNew, "trace"}})
		Expect(specs(ctx, fw, k)).To(HaveKeyWithValue(m[0], before[m[0]]))
		Expect(of(m[0], podUIDs(ctx, fw))).To(Equal(of(m[0], pods)))
	})

	It("loses its override", func(ctx SpecContext) {
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Overrides = nil })
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {6, imageNew, "info"}, m[1]: {3, imageNew, "info"}})
		obj, err := object(ctx, member(m[1]), k, client.ObjectKeyFromObject(fw))
		Expect(err).NotTo(HaveOccurred())
		Expect(obj.GetLabels()).To(And(HaveKeyWithValue("team", "shop"), Not(HaveKey("channel"))))
		Expect(obj.GetAnnotations()).NotTo(HaveKey("example.com/note"))
	})

	It("is duplicated instead of divided", func(ctx SpecContext) {
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Replicas, fw.Spec.Placement.Division = ptr(int32(2)), nil
			fw.Spec.Placement.Clusters = on(m...)
		})
		becomesReady(ctx, fw)
		w := want{2, imageNew, "info"}
		runs(ctx, fw, k, map[string]want{m[0]: w, m[1]: w, m[2]: w})
	})

	It("leaves a cluster, and stays untouched on the others", func(ctx SpecContext) {
		before, pods := specs(ctx, fw, k), podUIDs(ctx, fw)
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters = on(m[0], m[2]) })
		becomesReady(ctx, fw)
		w := want{2, imageNew, "info"}
		runs(ctx, fw, k, map[string]want{m[0]: w, m[2]: w})
		delete(before, m[1])
		Expect(specs(ctx, fw, k)).To(Equal(before))
		for _, name := range []string{m[0], m[2]} {
			Expect(of(name, podUIDs(ctx, fw))).To(Equal(of(name, pods)))
		}
	})

	It("is deleted, and nothing is left", func(ctx SpecContext) {
		remove(ctx, fw)
		nothingLeft(ctx, fw, k)
		for _, name := range m {
			marked, err := labelled(ctx, member(name), ofWorkload(fw))
			Expect(err).NotTo(HaveOccurred())
			Expect(marked).To(BeEmpty(), "left on %s", name)
			Eventually(func(g Gomega) {
				pods, err := podsOf(ctx, fw, name)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(pods).To(BeEmpty())
			}).WithContext(ctx).WithTimeout(30 * time.Second).Should(Succeed())
		}
	})
}, Label("lifecycle"), Ordered)

// Orphan: the operator goes, the pods stay.
var _ = forEach("An orphaned workload", func(backend string, k kind) {
	It("runs on", func(ctx SpecContext) {
		sharedOperator(ctx)
		m := world.members
		fw := workload(newNamespace(ctx, "orphan"), "web", backend, k, 2)
		fw.Spec.Placement.Clusters = on(m[0], m[1])
		fw.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
		create(ctx, fw)
		becomesReady(ctx, fw)
		pods, before := podUIDs(ctx, fw), specs(ctx, fw, k)
		Expect(pods).To(HaveLen(4))
		remove(ctx, fw)
		nothingLeft(ctx, fw, k)
		check := func(g Gomega) {
			for _, name := range m[:2] {
				obj, err := object(ctx, member(name), k, client.ObjectKeyFromObject(fw))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(obj).NotTo(BeNil(), "%s on %s", fw.Name, name)
				g.Expect(obj.GetDeletionTimestamp()).To(BeNil())
				g.Expect(obj.GetOwnerReferences()).To(BeEmpty(), "owners on %s", name)
				g.Expect(obj.GetLabels()).NotTo(HaveKey("karmada.io/managed"))
			}
			g.Expect(specs(ctx, fw, k)).To(Equal(before))
			g.Expect(podUIDs(ctx, fw)).To(Equal(pods))
		}
		check(NewWithT(GinkgoT()))
		Consistently(check).WithContext(ctx).WithTimeout(hold).Should(Succeed())
	})
}, Label("lifecycle", "orphan"))
