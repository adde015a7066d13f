//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

var (
	// Karmada's controllers try again after pauses that double with each failure; the machine may be a slow one.
	readyTimeout  = patience(3 * time.Minute)
	deleteTimeout = patience(2 * time.Minute)
)

// envPatience is a shorter time for what most scenarios wait for, where it is to fail.
const envPatience = "E2E_PATIENCE"

func patience(usual time.Duration) time.Duration {
	if asked, err := time.ParseDuration(os.Getenv(envPatience)); err == nil {
		return min(asked, usual)
	}
	return usual
}

const (
	// hold is how long something that must not happen is looked out for, after its cause has been seen.
	hold = 4 * time.Second

	imageOld = "registry.example.com/shop/web:1.0"
	imageNew = "registry.example.com/shop/web:2.0"
)

func ptr[T any](v T) *T { return &v }

// kind is a kind of workload.
type kind struct {
	label string
	gvk   schema.GroupVersionKind
	// strategy is the template's updateStrategy, if it has one.
	strategy map[string]any
}

var (
	deployment = kind{label: "deployment", gvk: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}}
	cloneSet   = kind{
		label: "cloneset", gvk: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"},
		strategy: map[string]any{"type": "InPlaceIfPossible", "maxUnavailable": "50%"},
	}
	kinds    = []kind{deployment, cloneSet}
	backends = []string{"karmada", "ocm"}
)

// forEach makes a container for every backend and kind. It is a sweep: a sample has one kind on one backend, and the other kind on the other.
func forEach(text string, body func(backend string, k kind), args ...any) bool {
	for i, b := range backends {
		for j, k := range kinds {
			if sampling() && (i+j)%2 != draw(text, 2) {
				continue
			}
			all := append([]any{Label(b, k.label, "sweep")}, args...)
			Describe(fmt.Sprintf("%s: %s on %s", text, k.gvk.Kind, b), append(all, func() { body(b, k) })...)
		}
	}
	return true
}

// template is a manifest with one container.
func template(k kind, app, image string) runtime.RawExtension {
	GinkgoHelper()
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": app}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": app}},
			"spec": map[string]any{"containers": []any{map[string]any{
				"name": "web", "image": image,
				"env":       []any{map[string]any{"name": "LOG", "value": "info"}},
				"resources": map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "16Mi"}},
			}}},
		},
	}
	if k.strategy != nil {
		spec["updateStrategy"] = k.strategy
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": k.gvk.GroupVersion().String(), "kind": k.gvk.Kind,
		"metadata": map[string]any{
			"labels": map[string]any{"team": "shop"}, "annotations": map[string]any{"example.com/owner": "shop"},
		},
		"spec": spec,
	})
	Expect(err).NotTo(HaveOccurred())
	return runtime.RawExtension{Raw: raw}
}

// workload is a FleetWorkload that runs its template on every cluster.
func workload(namespace, name, backend string, k kind, replicas int32) *v1alpha1.FleetWorkload {
	GinkgoHelper()
	return &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.FleetWorkloadSpec{
			Backend: backend, Replicas: &replicas, Template: template(k, name, imageOld),
			Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{}},
		},
	}
}

func on(names ...string) *v1alpha1.ClusterSelector { return &v1alpha1.ClusterSelector{Names: names} }

// divided gives clusters static weights, in the order of names.
func divided(weights ...v1alpha1.ClusterWeight) *v1alpha1.Division {
	return &v1alpha1.Division{Type: v1alpha1.DivisionTypeDivided, Weights: weights}
}

func weight(n int32, names ...string) v1alpha1.ClusterWeight {
	return v1alpha1.ClusterWeight{Clusters: on(names...), Weight: &n}
}

func envOverride(value string, names ...string) v1alpha1.Override {
	return v1alpha1.Override{Name: "log-" + value, Clusters: on(names...), Env: []v1alpha1.EnvOverride{{
		Container: "web", Set: []v1alpha1.EnvVar{{Name: "LOG", Value: value}},
	}}}
}

func patchOverride(op v1alpha1.PatchOp, path, value string) v1alpha1.PatchOperation {
	p := v1alpha1.PatchOperation{Op: op, Path: path}
	if value != "" {
		p.Value = &apiextensionsv1.JSON{Raw: []byte(value)}
	}
	return p
}

// create creates a FleetWorkload on the management cluster.
func create(ctx context.Context, fw *v1alpha1.FleetWorkload) *v1alpha1.FleetWorkload {
	GinkgoHelper()
	Expect(hub().Create(ctx, fw)).To(Succeed())
	return fw
}

// edit changes a FleetWorkload in one write.
func edit(ctx context.Context, fw *v1alpha1.FleetWorkload, change func(*v1alpha1.FleetWorkload)) {
	GinkgoHelper()
	refresh(ctx, fw)
	before := fw.DeepCopy()
	change(fw)
	Expect(hub().Patch(ctx, fw, client.MergeFrom(before))).To(Succeed())
}

func refresh(ctx context.Context, fw *v1alpha1.FleetWorkload) {
	GinkgoHelper()
	Expect(hub().Get(ctx, client.ObjectKeyFromObject(fw), fw)).To(Succeed())
}

// setImage changes the image in the template.
func setImage(fw *v1alpha1.FleetWorkload, image string) {
	GinkgoHelper()
	var manifest map[string]any
	Expect(json.Unmarshal(fw.Spec.Template.Raw, &manifest)).To(Succeed())
	containers, found, err := unstructured.NestedSlice(manifest, "spec", "template", "spec", "containers")
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	containers[0].(map[string]any)["image"] = image
	Expect(unstructured.SetNestedSlice(manifest, containers, "spec", "template", "spec", "containers")).To(Succeed())
	raw, err := json.Marshal(manifest)
	Expect(err).NotTo(HaveOccurred())
	fw.Spec.Template.Raw = raw
}

// condition of a FleetWorkload, empty when it is not there.
func condition(fw *v1alpha1.FleetWorkload, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(fw.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// describe is a FleetWorkload's status for a person.
func describe(fw *v1alpha1.FleetWorkload) string {
	var b strings.Builder
	observed := int64(0)
	if fw.Status.ObservedGeneration != nil {
		observed = *fw.Status.ObservedGeneration
	}
	fmt.Fprintf(&b, "%s/%s generation %d, observed %d, revision %s, ready %s, clusters %s, deleting %v\n",
		fw.Namespace, fw.Name, fw.Generation, observed, fw.Status.Revision, fw.Status.Ready, fw.Status.ClustersReady, fw.DeletionTimestamp != nil)
	for _, c := range fw.Status.Conditions {
		fmt.Fprintf(&b, "  %-11s %-7s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, r := range fw.Status.Clusters {
		fmt.Fprintf(&b, "  - %s desired %s replicas %s ready %s updated %s revision %s applied %s health %s stale %s: %s\n", r.Name,
			show(r.Desired), show(r.Replicas), show(r.Ready), show(r.Updated), r.Revision, r.Applied, r.Health, r.Stale, r.Message)
	}
	return b.String()
}

func show(n *int32) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// eventually waits until a FleetWorkload is as asked.
func eventually(ctx context.Context, fw *v1alpha1.FleetWorkload, timeout time.Duration, check func(g Gomega)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(fw), fw)).To(Succeed())
		check(g)
	}).WithContext(ctx).WithTimeout(timeout).Should(Succeed(), func() string { return describe(fw) })
}

// becomesReady waits until the newest generation is Ready.
func becomesReady(ctx context.Context, workloads ...*v1alpha1.FleetWorkload) {
	GinkgoHelper()
	for _, fw := range workloads {
		eventually(ctx, fw, readyTimeout, func(g Gomega) { g.Expect(isReady(fw)).To(BeTrue()) })
	}
}

func isReady(fw *v1alpha1.FleetWorkload) bool {
	return condition(fw, v1alpha1.ConditionReady).Status == metav1.ConditionTrue && isObserved(fw)
}

func isObserved(fw *v1alpha1.FleetWorkload) bool {
	return fw.Status.ObservedGeneration != nil && *fw.Status.ObservedGeneration == fw.Generation
}

// becomesStalled waits until a person must act, and returns the message.
func becomesStalled(ctx context.Context, fw *v1alpha1.FleetWorkload, reason string) string {
	GinkgoHelper()
	eventually(ctx, fw, readyTimeout, func(g Gomega) {
		g.Expect(isObserved(fw)).To(BeTrue())
		g.Expect(condition(fw, v1alpha1.ConditionStalled).Status).To(Equal(metav1.ConditionTrue))
		g.Expect(condition(fw, v1alpha1.ConditionStalled).Reason).To(Equal(reason))
		g.Expect(condition(fw, v1alpha1.ConditionReady).Reason).To(Equal(reason))
	})
	return condition(fw, v1alpha1.ConditionStalled).Message
}

// row of one cluster, empty when there is none.
func row(fw *v1alpha1.FleetWorkload, name string) v1alpha1.ClusterStatus {
	for _, r := range fw.Status.Clusters {
		if r.Name == name {
			return r
		}
	}
	return v1alpha1.ClusterStatus{}
}

// object reads the workload from an API server, nil when it is not there.
func object(ctx context.Context, c *cluster, k kind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(k.gvk)
	if err := c.Get(ctx, key, obj); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return obj, nil
}

// want is what a member must run.
type want struct {
	replicas int
	image    string
	log      string
}

// runs waits until the members run exactly what is asked: their manifests, and ready pods. A member that is not in
// wants must have nothing.
func runs(ctx context.Context, fw *v1alpha1.FleetWorkload, k kind, wants map[string]want) {
	GinkgoHelper()
	for _, name := range world.members {
		w, wanted := wants[name]
		if !wanted {
			eventuallyAbsent(ctx, member(name), k, client.ObjectKeyFromObject(fw))
			continue
		}
		obj, err := object(ctx, member(name), k, client.ObjectKeyFromObject(fw))
		Expect(err).NotTo(HaveOccurred())
		Expect(obj).NotTo(BeNil(), "%s on %s", fw.Name, name)
		expectManifest(obj, name, w)
		Eventually(func(g Gomega) {
			pods, err := podsOf(ctx, fw, name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(w.replicas), "pods on %s", name)
			for i := range pods {
				g.Expect(podReady(&pods[i])).To(BeTrue(), "pod %s on %s", pods[i].Name, name)
				g.Expect(pods[i].Spec.Containers[0].Image).To(Equal(w.image))
			}
		}).WithContext(ctx).WithTimeout(readyTimeout).Should(Succeed())
	}
}

// expectManifest compares what decides a rollout.
func expectManifest(obj *unstructured.Unstructured, name string, w want) {
	GinkgoHelper()
	Expect(specOf(obj)).To(Equal(w), "manifest on %s", name)
}

func specOf(obj *unstructured.Unstructured) want {
	var w want
	if n, found, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); found {
		w.replicas = int(n)
	}
	containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		fields, _ := c.(map[string]any)
		w.image, _ = fields["image"].(string)
		env, _ := fields["env"].([]any)
		for _, e := range env {
			if v, _ := e.(map[string]any); v["name"] == "LOG" {
				w.log, _ = v["value"].(string)
			}
		}
	}
	return w
}

func podsOf(ctx context.Context, fw *v1alpha1.FleetWorkload, name string) ([]corev1.Pod, error) {
	return podsNamed(ctx, fw.Namespace, fw.Name, name)
}

func podsNamed(ctx context.Context, namespace, app, name string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := member(name).List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), nil
}

func podReady(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// podUIDs of all members, by member and name.
func podUIDs(ctx context.Context, fw *v1alpha1.FleetWorkload) map[string]string {
	GinkgoHelper()
	uids := map[string]string{}
	for _, name := range world.members {
		pods, err := podsOf(ctx, fw, name)
		Expect(err).NotTo(HaveOccurred())
		for _, p := range pods {
			uids[name+"/"+p.Name] = string(p.UID)
		}
	}
	return uids
}

// of keeps the pods of one member.
func of(name string, uids map[string]string) map[string]string {
	kept := map[string]string{}
	for pod, uid := range uids {
		if strings.HasPrefix(pod, name+"/") {
			kept[pod] = uid
		}
	}
	return kept
}

func eventuallyAbsent(ctx context.Context, c *cluster, k kind, key client.ObjectKey) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		obj, err := object(ctx, c, k, key)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(obj).To(BeNil(), "%s %s on %s", k.gvk.Kind, key, c.name)
	}).WithContext(ctx).WithTimeout(deleteTimeout).Should(Succeed())
}

// specs are the specs of the members' objects; members without one are left out. What decides over pods is in there.
// Generations are no measure: those of Deployments also count changes of annotations.
func specs(ctx context.Context, fw *v1alpha1.FleetWorkload, k kind) map[string]any {
	GinkgoHelper()
	out := map[string]any{}
	for _, name := range world.members {
		obj, err := object(ctx, member(name), k, client.ObjectKeyFromObject(fw))
		Expect(err).NotTo(HaveOccurred())
		if obj != nil {
			out[name] = obj.Object["spec"]
		}
	}
	return out
}

// remove deletes a FleetWorkload and waits until it is gone.
func remove(ctx context.Context, fw *v1alpha1.FleetWorkload) {
	GinkgoHelper()
	Expect(hub().Delete(ctx, fw)).To(Succeed())
	eventuallyGone(ctx, fw)
}

// eventuallyGone waits until a FleetWorkload that was deleted is gone.
func eventuallyGone(ctx context.Context, fw *v1alpha1.FleetWorkload) {
	GinkgoHelper()
	goneWithin(ctx, fw, deleteTimeout)
}

func goneWithin(ctx context.Context, fw *v1alpha1.FleetWorkload, timeout time.Duration) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		left := &v1alpha1.FleetWorkload{}
		err := hub().Get(ctx, client.ObjectKeyFromObject(fw), left)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		g.Expect(err).To(HaveOccurred(), func() string { return describe(left) })
	}).WithContext(ctx).WithTimeout(timeout).Should(Succeed())
}
