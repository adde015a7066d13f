//go:build e2e

package e2e

import (
	"context"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// clusterGVKs are the types of the backends' cluster objects.
var clusterGVKs = map[string]schema.GroupVersionKind{
	"karmada": {Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "Cluster"},
	"ocm":     {Group: "cluster.open-cluster-management.io", Version: "v1", Kind: "ManagedCluster"},
}

// labelCluster sets a label of a cluster on a backend, or takes it away when value is empty.
func labelCluster(ctx context.Context, backend, name, key, value string) {
	GinkgoHelper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(clusterGVKs[backend])
	Expect(controlOf(backend).Get(ctx, client.ObjectKey{Name: name}, obj)).To(Succeed())
	before := obj.DeepCopy()
	labels := obj.GetLabels()
	delete(labels, key)
	if value != "" {
		labels[key] = value
	}
	obj.SetLabels(labels)
	Expect(controlOf(backend).Patch(ctx, obj, client.MergeFrom(before))).To(Succeed())
}

// nothingRemoved looks for a while whether pods or objects go or change.
func nothingRemoved(ctx context.Context, fw *v1alpha1.FleetWorkload, k kind, pods map[string]string, before map[string]any) {
	GinkgoHelper()
	Expect(pods).NotTo(BeEmpty())
	Consistently(func(g Gomega) {
		g.Expect(podUIDs(ctx, fw)).To(Equal(pods))
		g.Expect(specs(ctx, fw, k)).To(Equal(before))
	}).WithContext(ctx).WithTimeout(hold).Should(Succeed())
}

// Law 2: emptiness is suspicious.
var _ = forEach("A removal that nobody asked for", func(backend string, k kind) {
	var (
		fw    *v1alpha1.FleetWorkload
		m     []string
		label string
	)

	BeforeAll(func(ctx SpecContext) {
		sharedOperator(ctx)
		m = world.members
		namespace := newNamespace(ctx, "guard")
		label = "example.com/" + namespace
		for _, name := range m {
			labelCluster(ctx, backend, name, label, "on")
			DeferCleanup(func(ctx SpecContext) { labelCluster(ctx, backend, name, label, "") })
		}
		fw = workload(namespace, "web", backend, k, 6)
		fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "on"}}}
		// Four of six on one cluster: to lose it alone is too much, in one write.
		fw.Spec.Placement.Division = divided(weight(1, m[0], m[1]), weight(4, m[2]))
		create(ctx, fw)
		becomesReady(ctx, fw)
		one := want{1, imageOld, "info"}
		runs(ctx, fw, k, map[string]want{m[0]: one, m[1]: one, m[2]: {4, imageOld, "info"}})
	})

	It("is held when a selector matches nothing", func(ctx SpecContext) {
		pods, before := podUIDs(ctx, fw), specs(ctx, fw, k)
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters.Selector.MatchLabels[label] = "off" })
		message := becomesStalled(ctx, fw, v1alpha1.ReasonNoClusterSelected)
		Expect(message).To(And(ContainSubstring("What runs is left alone"), ContainSubstring(backend), ContainSubstring(m[0])))
		nothingRemoved(ctx, fw, k, pods, before)
		Expect(row(fw, m[2]).Ready).To(HaveValue(BeEquivalentTo(4)), "the row stays")
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters.Selector.MatchLabels[label] = "on" })
		becomesReady(ctx, fw)
		nothingRemoved(ctx, fw, k, pods, before)
	})

	It("is held when all clusters lose a label", func(ctx SpecContext) {
		pods, before := podUIDs(ctx, fw), specs(ctx, fw, k)
		// From the largest on, so that every step on the way is too much as well.
		for _, name := range []string{m[2], m[1], m[0]} {
			labelCluster(ctx, backend, name, label, "")
		}
		eventually(ctx, fw, readyTimeout, func(g Gomega) {
			g.Expect(condition(fw, v1alpha1.ConditionStalled).Reason).To(Equal(v1alpha1.ReasonNoClusterSelected))
			g.Expect(condition(fw, v1alpha1.ConditionStalled).Status).To(Equal(metav1.ConditionTrue))
		})
		nothingRemoved(ctx, fw, k, pods, before)
		for _, name := range m {
			labelCluster(ctx, backend, name, label, "on")
		}
		becomesReady(ctx, fw)
		nothingRemoved(ctx, fw, k, pods, before)
	})

	It("is held when the largest cluster loses a label, until a person confirms", func(ctx SpecContext) {
		pods, before := podUIDs(ctx, fw), specs(ctx, fw, k)
		labelCluster(ctx, backend, m[2], label, "")
		message := becomesStalled(ctx, fw, v1alpha1.ReasonRemovalHeld)
		Expect(message).To(And(ContainSubstring(m[2]+" (4 to 0)"), ContainSubstring("4 of 6 replicas away, which no change of the spec asks for"),
			ContainSubstring("nothing was changed")))
		nothingRemoved(ctx, fw, k, pods, before)
		command := regexp.MustCompile(`kubectl (annotate .* --overwrite)`).FindStringSubmatch(message)
		Expect(command).To(HaveLen(2), "the message has no command: %s", message)
		kubectl(ctx, strings.Fields(command[1])...)
		becomesReady(ctx, fw)
		w := want{3, imageOld, "info"}
		runs(ctx, fw, k, map[string]want{m[0]: w, m[1]: w})
		now := podUIDs(ctx, fw)
		for _, name := range m[:2] {
			for pod, uid := range of(name, pods) {
				Expect(now).To(HaveKeyWithValue(pod, uid))
			}
		}
	})
}, Label("laws", "law2"), Ordered)

// What joins counts once it runs: clusters may join one by one, though in the end most replicas have left the first one.
var _ = forEach("Clusters that join one by one", func(backend string, k kind) {
	It("share the replicas", func(ctx SpecContext) {
		sharedOperator(ctx)
		m := world.members
		namespace := newNamespace(ctx, "joining")
		label := "example.com/" + namespace
		for _, name := range m {
			DeferCleanup(func(ctx SpecContext) { labelCluster(ctx, backend, name, label, "") })
		}
		labelCluster(ctx, backend, m[0], label, "on")
		fw := workload(namespace, "web", backend, k, 12)
		fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "on"}}}
		fw.Spec.Placement.Division = divided()
		create(ctx, fw)
		for i, n := range []int32{12, 6, 4} {
			labelCluster(ctx, backend, m[i], label, "on")
			wants := map[string]want{}
			for _, name := range m[:i+1] {
				wants[name] = want{int(n), imageOld, "info"}
			}
			eventually(ctx, fw, readyTimeout, func(g Gomega) {
				g.Expect(isReady(fw)).To(BeTrue())
				g.Expect(row(fw, m[i]).Ready).To(HaveValue(Equal(n)))
			})
			runs(ctx, fw, k, wants)
		}
	})
}, Label("laws", "law2"))

// A removal that the spec asks for, or a small one, is not held.
var _ = forEach("A removal that is small", func(backend string, k kind) {
	It("is carried out", func(ctx SpecContext) {
		sharedOperator(ctx)
		m := world.members
		namespace := newNamespace(ctx, "small")
		label := "example.com/" + namespace
		for _, name := range m {
			labelCluster(ctx, backend, name, label, "on")
			DeferCleanup(func(ctx SpecContext) { labelCluster(ctx, backend, name, label, "") })
		}
		fw := workload(namespace, "web", backend, k, 1)
		fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "on"}}}
		create(ctx, fw)
		becomesReady(ctx, fw)
		pods := podUIDs(ctx, fw)
		Expect(pods).To(HaveLen(3))
		labelCluster(ctx, backend, m[1], label, "")
		eventuallyAbsent(ctx, member(m[1]), k, client.ObjectKeyFromObject(fw))
		eventually(ctx, fw, readyTimeout, func(g Gomega) {
			g.Expect(isReady(fw)).To(BeTrue())
			g.Expect(row(fw, m[1])).To(BeZero())
		})
		w := want{1, imageOld, "info"}
		runs(ctx, fw, k, map[string]want{m[0]: w, m[2]: w})
		Expect(of(m[0], podUIDs(ctx, fw))).To(Equal(of(m[0], pods)))
		Expect(of(m[2], podUIDs(ctx, fw))).To(Equal(of(m[2], pods)))
	})
}, Label("laws", "law2"))
