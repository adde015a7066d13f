//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// somebodys is the FleetWorkload's object as somebody else would have it.
func somebodys(fw *v1alpha1.FleetWorkload, replicas int64) *unstructured.Unstructured {
	GinkgoHelper()
	obj := &unstructured.Unstructured{}
	Expect(json.Unmarshal(fw.Spec.Template.Raw, &obj.Object)).To(Succeed())
	obj.SetNamespace(fw.Namespace)
	obj.SetName(fw.Name)
	Expect(unstructured.SetNestedField(obj.Object, replicas, "spec", "replicas")).To(Succeed())
	return obj
}

// runsReady waits until as many pods as that are ready on the members.
func runsReady(ctx context.Context, fw *v1alpha1.FleetWorkload, pods map[string]int) {
	GinkgoHelper()
	for name, n := range pods {
		Eventually(func(g Gomega) {
			all, err := podsOf(ctx, fw, name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(all).To(HaveLen(n))
			for i := range all {
				g.Expect(podReady(&all[i])).To(BeTrue())
			}
		}).WithContext(ctx).WithTimeout(readyTimeout).Should(Succeed())
	}
}

// adopting is a FleetWorkload for what runs already on the first two members.
func adopting(namespace, backend string, k kind) *v1alpha1.FleetWorkload {
	GinkgoHelper()
	fw := workload(namespace, "web", backend, k, 6)
	fw.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	fw.Spec.Placement.Clusters = on(world.members[0], world.members[1])
	fw.Spec.Placement.Division = divided(weight(5, world.members[0]), weight(1, world.members[1]))
	return fw
}

var _ = forEach("Taking over what runs already", func(backend string, k kind) {
	It("keeps the pods of what nobody manages, and where they are", func(ctx SpecContext) {
		sharedOperator(ctx)
		m := world.members
		fw := adopting(newNamespace(ctx, "adopt"), backend, k)
		// The third one is chosen, asked, and given nothing.
		fw.Spec.Placement.Clusters, fw.Spec.Placement.Division = on(m[:3]...), divided(weight(1, m[0], m[1]))
		split := map[string]int{m[0]: 5, m[1]: 1}
		for name, n := range split {
			ensureNamespace(ctx, member(name), fw.Namespace)
			Expect(member(name).Create(ctx, somebodys(fw, int64(n)))).To(Succeed())
		}
		runsReady(ctx, fw, split)
		pods, objects := podUIDs(ctx, fw), objectUIDs(ctx, fw, k)
		watched := watchPods(fw.Namespace)

		create(ctx, fw)
		Expect(becomesStalled(ctx, fw, v1alpha1.ReasonAdoptionHeld)).To(And(
			ContainSubstring(m[0]+" runs 5 and would be given 3"), ContainSubstring(fmt.Sprintf("%s: 5, %s: 1", m[0], m[1]))))
		for name := range split {
			obj, err := object(ctx, member(name), k, client.ObjectKeyFromObject(fw))
			Expect(err).NotTo(HaveOccurred())
			Expect(obj.GetLabels()).NotTo(HaveKey(v1alpha1.LabelUID))
		}
		began := time.Now()
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Placement.Division = divided(weight(5, m[0]), weight(1, m[1]))
		})
		becomesReady(ctx, fw)
		AddReportEntry(k.label+" taken over", time.Since(began).Round(time.Millisecond).String())
		runs(ctx, fw, k, map[string]want{m[0]: {5, imageOld, "info"}, m[1]: {1, imageOld, "info"}})
		Expect(podUIDs(ctx, fw)).To(Equal(pods))
		Expect(objectUIDs(ctx, fw, k)).To(Equal(objects))
		watched.undisturbed(0)
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
		becomesReady(ctx, fw)
		runs(ctx, fw, k, map[string]want{m[0]: {5, imageNew, "info"}, m[1]: {1, imageNew, "info"}})
		remove(ctx, fw)
	})
}, Label("handover"))

// objectUIDs are the UIDs of the workload's objects by member.
func objectUIDs(ctx context.Context, fw *v1alpha1.FleetWorkload, k kind) map[string]string {
	GinkgoHelper()
	uids := map[string]string{}
	for _, name := range world.members {
		obj, err := object(ctx, member(name), k, client.ObjectKeyFromObject(fw))
		Expect(err).NotTo(HaveOccurred())
		if obj != nil {
			uids[name] = string(obj.GetUID())
		}
	}
	return uids
}

var _ = Describe("Taking over what somebody has a backend run", Label("handover"), func() {
	It("says how to let go of it on Karmada, and goes on then", Label("karmada"), func(ctx SpecContext) {
		sharedOperator(ctx)
		m := world.members
		fw := adopting(newNamespace(ctx, "adopt"), "karmada", deployment)
		ensureNamespace(ctx, controlOf("karmada"), fw.Namespace)
		policy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"resourceSelectors": []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": fw.Name}},
			"placement": map[string]any{
				"clusterAffinity": map[string]any{"clusterNames": []any{m[0], m[1]}},
				"replicaScheduling": map[string]any{
					"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
					"weightPreference": map[string]any{"staticWeightList": []any{
						map[string]any{"targetCluster": map[string]any{"clusterNames": []any{m[0]}}, "weight": int64(5)},
						map[string]any{"targetCluster": map[string]any{"clusterNames": []any{m[1]}}, "weight": int64(1)},
					}},
				},
			},
		}}}
		policy.SetGroupVersionKind(policyGVK)
		policy.SetNamespace(fw.Namespace)
		policy.SetName("theirs")
		Expect(controlOf("karmada").Create(ctx, policy)).To(Succeed())
		theirs := somebodys(fw, 6)
		Expect(controlOf("karmada").Create(ctx, theirs)).To(Succeed())
		runsReady(ctx, fw, map[string]int{m[0]: 5, m[1]: 1})
		pods, objects := podUIDs(ctx, fw), objectUIDs(ctx, fw, deployment)
		watched := watchPods(fw.Namespace)

		create(ctx, fw)
		Expect(becomesStalled(ctx, fw, v1alpha1.ReasonNameConflict)).To(And(
			ContainSubstring("PropagationPolicy "+fw.Namespace+"/theirs"), ContainSubstring("spec.preserveResourcesOnDeletion: true")))
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"preserveResourcesOnDeletion":true}}`))
		Expect(controlOf("karmada").Patch(ctx, policy, patch)).To(Succeed())
		Eventually(func(g Gomega) {
			for _, name := range []string{m[0], m[1]} {
				works, err := list(ctx, controlOf("karmada"), workGVK, client.InNamespace("karmada-es-"+name))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(preserving(works, fw)).To(BeTrue(), "the Work of %s", name)
			}
		}).WithContext(ctx).Should(Succeed())
		Expect(controlOf("karmada").Delete(ctx, theirs)).To(Succeed())
		becomesReady(ctx, fw)
		Expect(podUIDs(ctx, fw)).To(Equal(pods))
		Expect(objectUIDs(ctx, fw, deployment)).To(Equal(objects))
		watched.undisturbed(0)
		Expect(controlOf("karmada").Delete(ctx, policy)).To(Succeed())
		remove(ctx, fw)
	})

	It("says how to let go of it on OCM, and goes on then", Label("ocm"), func(ctx SpecContext) {
		sharedOperator(ctx)
		m := world.members
		fw := adopting(newNamespace(ctx, "adopt"), "ocm", deployment)
		split := map[string]int{m[0]: 5, m[1]: 1}
		var works []*unstructured.Unstructured
		for name, n := range split {
			ensureNamespace(ctx, member(name), fw.Namespace)
			work := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"workload": map[string]any{"manifests": []any{somebodys(fw, int64(n)).Object}},
			}}}
			work.SetGroupVersionKind(manifestWork)
			work.SetNamespace(name)
			work.SetName(fw.Namespace + "-theirs")
			Expect(hub().Create(ctx, work)).To(Succeed())
			works = append(works, work)
		}
		runsReady(ctx, fw, split)
		pods, objects := podUIDs(ctx, fw), objectUIDs(ctx, fw, deployment)
		watched := watchPods(fw.Namespace)

		create(ctx, fw)
		Expect(becomesStalled(ctx, fw, v1alpha1.ReasonNameConflict)).To(And(
			ContainSubstring(fw.Namespace+"-theirs"), ContainSubstring("Orphan")))
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deleteOption":{"propagationPolicy":"Orphan"}}}`))
		for _, work := range works {
			Expect(hub().Patch(ctx, work, patch)).To(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(work), work)).To(Succeed())
				g.Expect(appliedAt(work)).To(Equal(work.GetGeneration()))
			}).WithContext(ctx).Should(Succeed())
			Expect(hub().Delete(ctx, work)).To(Succeed())
		}
		becomesReady(ctx, fw)
		Expect(podUIDs(ctx, fw)).To(Equal(pods))
		Expect(objectUIDs(ctx, fw, deployment)).To(Equal(objects))
		watched.undisturbed(0)
		remove(ctx, fw)
	})
	It("leaves what has no replicas, and companions, to somebody else's ManifestWork", Label("ocm"), func(ctx SpecContext) {
		sharedOperator(ctx)
		cluster, namespace := world.members[0], newNamespace(ctx, "adopt")
		const (
			agent = `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"agent","namespace":"%s"},"spec":{"selector":{"matchLabels":{"app":"agent"}},` +
				`"template":{"metadata":{"labels":{"app":"agent"}},"spec":{"containers":[{"name":"main","image":"` + imageOld + `"}]}}}}`
			settings = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"%s"},"data":{"value":"%s"}}`
		)
		theirs := func(name, manifest string) *unstructured.Unstructured {
			work := &unstructured.Unstructured{}
			Expect(json.Unmarshal([]byte(`{"spec":{"workload":{"manifests":[`+manifest+`]}}}`), &work.Object)).To(Succeed())
			work.SetGroupVersionKind(manifestWork)
			work.SetNamespace(cluster)
			work.SetName(namespace + "-" + name)
			Expect(hub().Create(ctx, work)).To(Succeed())
			return work
		}
		ensureNamespace(ctx, member(cluster), namespace)
		workOfAgent := theirs("agent", fmt.Sprintf(agent, namespace))
		workOfSettings := theirs("settings", fmt.Sprintf(settings, namespace, "theirs"))
		object := func(obj client.Object, name string) types.UID {
			GinkgoHelper()
			Eventually(func() error { return member(cluster).Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj) }).
				WithContext(ctx).Should(Succeed())
			return obj.GetUID()
		}
		agents, maps := object(&appsv1.DaemonSet{}, "agent"), object(&corev1.ConfigMap{}, "settings")

		fw := workload(namespace, "agent", "ocm", deployment, 1)
		fw.Spec.Template.Raw, fw.Spec.Replicas = []byte(fmt.Sprintf(agent, namespace)), nil
		fw.Spec.Placement.Clusters, fw.Spec.ConflictPolicy = on(cluster), v1alpha1.ConflictPolicyAdopt
		fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(fmt.Sprintf(settings, namespace, "ours"))}}
		create(ctx, fw)
		letGo := func(work *unstructured.Unstructured) {
			GinkgoHelper()
			Expect(becomesStalled(ctx, fw, v1alpha1.ReasonNameConflict)).To(And(ContainSubstring(work.GetName()), ContainSubstring("Orphan")))
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deleteOption":{"propagationPolicy":"Orphan"}}}`))
			Expect(hub().Patch(ctx, work, patch)).To(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(work), work)).To(Succeed())
				g.Expect(appliedAt(work)).To(Equal(work.GetGeneration()))
			}).WithContext(ctx).Should(Succeed())
			Expect(hub().Delete(ctx, work)).To(Succeed())
		}
		Expect(becomesStalled(ctx, fw, v1alpha1.ReasonNameConflict)).To(ContainSubstring(workOfSettings.GetName()))
		live := &corev1.ConfigMap{}
		object(live, "settings")
		Expect(live.Data).To(HaveKeyWithValue("value", "theirs"), "it was not written")
		letGo(workOfSettings)
		eventually(ctx, fw, readyTimeout, func(g Gomega) {
			g.Expect(condition(fw, v1alpha1.ConditionReady).Message).To(ContainSubstring(workOfAgent.GetName()))
		})
		letGo(workOfAgent)
		becomesReady(ctx, fw)
		Expect(object(&appsv1.DaemonSet{}, "agent")).To(Equal(agents))
		Expect(object(live, "settings")).To(Equal(maps))
		Expect(live.Data).To(HaveKeyWithValue("value", "ours"))
		remove(ctx, fw)
	})
})

// preserving tells whether a Work of the FleetWorkload's namespace keeps the member object when it goes.
func preserving(works []unstructured.Unstructured, fw *v1alpha1.FleetWorkload) bool {
	for i := range works {
		manifests, _, _ := unstructured.NestedSlice(works[i].Object, "spec", "workload", "manifests")
		text := fmt.Sprint(manifests)
		if !strings.Contains(text, "kind:Deployment") || !strings.Contains(text, "namespace:"+fw.Namespace) {
			continue
		}
		preserve, _, _ := unstructured.NestedBool(works[i].Object, "spec", "preserveResourcesOnDeletion")
		return preserve
	}
	return false
}

// appliedAt is the generation of a ManifestWork that its agent has acted on.
func appliedAt(work *unstructured.Unstructured) int64 {
	conditions, _, _ := unstructured.NestedSlice(work.Object, "status", "conditions")
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		if n, is := fields["observedGeneration"].(int64); is && fields["type"] == "Applied" && fields["status"] == "True" {
			return n
		}
	}
	return 0
}

var _ = Describe("Two FleetWorkloads with one object on two backends", Label("karmada", "ocm"), func() {
	It("leaves it to the first, until that one lets go of it", func(ctx SpecContext) {
		sharedOperator(ctx)
		m := world.members
		first := workload(newNamespace(ctx, "rival"), "web", "karmada", deployment, 2)
		first.Spec.Placement.Clusters = on(m[0], m[1])
		first.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
		create(ctx, first)
		becomesReady(ctx, first)
		pods, objects := podUIDs(ctx, first), objectUIDs(ctx, first, deployment)
		watched := watchPods(first.Namespace)

		second := workload(first.Namespace, "web-too", "ocm", deployment, 2)
		second.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
		second.Spec.Placement.Clusters = on(m[0], m[1])
		same := somebodys(first, 2)
		same.SetNamespace("")
		raw, err := same.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		second.Spec.Template.Raw = raw
		create(ctx, second)
		Expect(becomesStalled(ctx, second, v1alpha1.ReasonNameConflict)).To(And(
			ContainSubstring("FleetWorkload %s/%s has Deployment web on %s, %s already", first.Namespace, first.Name, m[0], m[1]),
			ContainSubstring("karmada")))
		becomesReady(ctx, first)

		remove(ctx, first)
		becomesReady(ctx, second)
		Expect(podUIDs(ctx, first)).To(Equal(pods))
		Expect(objectUIDs(ctx, first, deployment)).To(Equal(objects))
		watched.undisturbed(0)
		remove(ctx, second)
	})

	It("leaves a companion to the first", func(ctx SpecContext) {
		sharedOperator(ctx)
		m, namespace := world.members, newNamespace(ctx, "rival")
		with := func(name, backend, value string) *v1alpha1.FleetWorkload {
			fw := workload(namespace, name, backend, deployment, 1)
			fw.Spec.Placement.Clusters = on(m[0])
			fw.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
			fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"value":"` + value + `"}}`)}}
			return create(ctx, fw)
		}
		first := with("one", "ocm", "first")
		becomesReady(ctx, first)
		second := with("two", "karmada", "second")
		Expect(becomesStalled(ctx, second, v1alpha1.ReasonNameConflict)).To(ContainSubstring(
			"FleetWorkload %s/%s has ConfigMap settings on %s already", namespace, first.Name, m[0]))
		Consistently(func(g Gomega) {
			var live corev1.ConfigMap
			g.Expect(member(m[0]).Get(ctx, client.ObjectKey{Namespace: namespace, Name: "settings"}, &live)).To(Succeed())
			g.Expect(live.Data).To(HaveKeyWithValue("value", "first"))
		}).WithContext(ctx).WithTimeout(hold).Should(Succeed())
		// The first still hears of what becomes of its own.
		edit(ctx, first, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
		becomesReady(ctx, first)
		edit(ctx, first, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Companions = nil })
		becomesReady(ctx, second)
		remove(ctx, first)
		remove(ctx, second)
	})
})
