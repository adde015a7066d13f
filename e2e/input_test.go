//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// brokenBackends are in the shared operator's configuration all the time: the others must not mind.
func brokenBackends() []any {
	GinkgoHelper()
	garbage := filepath.Join(world.dir, "garbage.kubeconfig")
	Expect(os.WriteFile(garbage, []byte("clusters: [}"), 0o600)).To(Succeed())
	nowhere := filepath.Join(world.dir, "nowhere.kubeconfig")
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "x",
		Clusters:       map[string]*clientcmdapi.Cluster{"x": {Server: "https://" + freeAddress()}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "x"}},
	}, nowhere)).To(Succeed())
	return []any{
		map[string]any{"name": "garbage", "type": "OCM", "connection": map[string]any{"kubeconfigFile": garbage}},
		map[string]any{"name": "nowhere", "type": "Karmada", "connection": map[string]any{"kubeconfigFile": nowhere}},
	}
}

var _ = Describe("Bad input", Label("input"), func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) {
		sharedOperator(ctx)
		namespace = newNamespace(ctx, "input")
	})

	// refused wants a FleetWorkload to be stalled with a message that has all parts, and nothing to be sent.
	refused := func(ctx context.Context, fw *v1alpha1.FleetWorkload, reason string, parts ...string) {
		GinkgoHelper()
		create(ctx, fw)
		message := becomesStalled(ctx, fw, reason)
		for _, part := range parts {
			Expect(message).To(ContainSubstring(part))
		}
		for _, name := range world.members {
			for _, k := range kinds {
				obj, err := object(ctx, member(name), k, client.ObjectKeyFromObject(fw))
				Expect(err).NotTo(HaveOccurred())
				Expect(obj).To(BeNil(), "it was sent to %s", name)
			}
		}
	}

	It("names an unknown backend and the configured ones", Label("laws"), func(ctx SpecContext) {
		refused(ctx, workload(namespace, "web", "kamrada", deployment, 1), v1alpha1.ReasonBackendNotFound,
			`spec.backend "kamrada"`, "configured are: garbage, karmada, nowhere, ocm", "Choose one of them")
	})

	for _, backend := range backends {
		Context("on "+backend, Label(backend), func() {
			It("names a cluster that does not exist", func(ctx SpecContext) {
				fw := workload(namespace, "web", backend, deployment, 1)
				fw.Spec.Placement.Clusters = on(world.members[0], "membr2")
				refused(ctx, fw, v1alpha1.ReasonClusterNotFound, fmt.Sprintf("backend %q", backend),
					`spec.placement.clusters.names[1] "membr2"`, "it knows: "+world.members[0], "correct the name")
			})

			It("names a cluster of an override that does not exist", func(ctx SpecContext) {
				fw := workload(namespace, "web", backend, deployment, 1)
				fw.Spec.Overrides = []v1alpha1.Override{envOverride("debug", "nowhere")}
				refused(ctx, fw, v1alpha1.ReasonClusterNotFound, `spec.overrides[0].clusters.names[0] "nowhere"`)
			})

			It("says that no cluster matches, and which there are", func(ctx SpecContext) {
				fw := workload(namespace, "web", backend, deployment, 1)
				fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "nirvana"}},
				}
				refused(ctx, fw, v1alpha1.ReasonNoClusterSelected, "spec.placement", fmt.Sprintf("backend %q", backend),
					"the backend knows: "+world.members[0])
			})

			It("names a patch on a missing path", func(ctx SpecContext) {
				fw := workload(namespace, "web", backend, deployment, 1)
				fw.Spec.Overrides = []v1alpha1.Override{envOverride("debug", world.members[0]), {
					Name: "strategy",
					Patches: []v1alpha1.PatchOperation{
						patchOverride(v1alpha1.PatchOpAdd, "/spec/minReadySeconds", "1"),
						patchOverride(v1alpha1.PatchOpReplace, "/spec/strategie/type", `"Recreate"`),
					},
				}}
				refused(ctx, fw, v1alpha1.ReasonInvalidOverride, fmt.Sprintf("backend %q", backend),
					`spec.overrides[1].patches[1].path "/spec/strategie/type"`)
			})

			It("refuses a kind that it cannot interpret", func(ctx SpecContext) {
				fw := workload(namespace, "web", backend, deployment, 1)
				fw.Spec.Template.Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"b"}}`)
				refused(ctx, fw, v1alpha1.ReasonNotSupported, fmt.Sprintf("backend %q", backend), `spec.template.kind "v1 ConfigMap"`,
					"let an administrator describe it under kinds")
				remove(ctx, fw)
			})

			It("refuses what the API server of a cluster refuses, and tells its words", func(ctx SpecContext) {
				fw := workload(namespace, "web", backend, deployment, 1)
				fw.Spec.Placement.Clusters = on(world.members[0])
				fw.Spec.Template.Raw = []byte(`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"a"}},` +
					`"template":{"metadata":{"labels":{"app":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
				create(ctx, fw)
				eventually(ctx, fw, 30*time.Second, func(g Gomega) {
					g.Expect(isObserved(fw)).To(BeTrue())
					g.Expect(condition(fw, v1alpha1.ConditionReady).Reason).To(
						BeElementOf(v1alpha1.ReasonBackendRejected, v1alpha1.ReasonApplyFailed))
					g.Expect(condition(fw, v1alpha1.ConditionReady).Message).To(ContainSubstring("`selector` does not match template `labels`"))
				})
			})

			It("refuses an amount that takes for ever to read, and reads nothing else as one", Label("laws"), func(ctx SpecContext) {
				fw := workload(namespace, "web", backend, deployment, 1)
				fw.Spec.Placement.Clusters = on(world.members[0])
				fw.Spec.Overrides = []v1alpha1.Override{envOverride("1e-999999999", world.members[0])}
				create(ctx, fw)
				becomesReady(ctx, fw)
				edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Overrides[0].Env[0].Set[0].Value = "1e999999999" })
				becomesReady(ctx, fw)
				runs(ctx, fw, deployment, map[string]want{world.members[0]: {1, imageOld, "1e999999999"}})

				endless := workload(namespace, "endless", backend, deployment, 1)
				endless.Spec.Template.Raw = []byte(`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"a"}},` +
					`"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i",` +
					`"resources":{"limits":{"cpu":"1e-999999999"}}}]}}}}`)
				refused(ctx, endless, v1alpha1.ReasonInvalidTemplate, `spec.template "1e-999999999"`,
					"spec.template.spec.containers[0].resources.limits.cpu", "such as 500m or 1Gi")
			})

			It("goes on when the mistake is mended", func(ctx SpecContext) {
				fw := workload(namespace, "web", backend, deployment, 1)
				fw.Spec.Placement.Clusters = on("membr1")
				create(ctx, fw)
				becomesStalled(ctx, fw, v1alpha1.ReasonClusterNotFound)
				edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters = on(world.members[0]) })
				becomesReady(ctx, fw)
				runs(ctx, fw, deployment, map[string]want{world.members[0]: {1, imageOld, "info"}})
			})

			It("leaves a foreign object on a member alone, and says so", Label("laws"), func(ctx SpecContext) {
				name := world.members[0]
				foreign := foreignDeployment(ctx, member(name), namespace)
				fw := workload(namespace, "web", backend, deployment, 2)
				fw.Spec.Placement.Clusters = on(name, world.members[1])
				create(ctx, fw)
				message := becomesStalled(ctx, fw, v1alpha1.ReasonMemberConflict)
				Expect(message).To(And(ContainSubstring(name), Not(ContainSubstring(world.members[1])),
					ContainSubstring("set spec.conflictPolicy to Adopt")))
				Expect(row(fw, name).Applied).To(Equal(metav1.ConditionFalse))
				remove(ctx, fw)
				eventuallyAbsent(ctx, member(world.members[1]), deployment, client.ObjectKeyFromObject(fw))
				expectUntouched(ctx, member(name), foreign)
			})
		})
	}

	It("leaves a foreign object on Karmada alone, and says so", Label("karmada", "laws"), func(ctx SpecContext) {
		foreign := foreignDeployment(ctx, controlOf("karmada"), namespace)
		fw := workload(namespace, "web", "karmada", deployment, 1)
		refused(ctx, fw, v1alpha1.ReasonNameConflict, `backend "karmada"`, "Deployment "+namespace+"/web", "choose another name")
		remove(ctx, fw)
		expectUntouched(ctx, controlOf("karmada"), foreign)
	})

	It("leaves a foreign policy on Karmada alone, and says so", Label("karmada", "laws"), func(ctx SpecContext) {
		ensureNamespace(ctx, controlOf("karmada"), namespace)
		policy := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{
				"namespace": namespace, "name": "fw-web",
				// As an operator in another place would mark it.
				"labels": map[string]any{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelUID: "another"},
			},
			"spec": map[string]any{
				"resourceSelectors": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "other"}},
				"placement":         map[string]any{"clusterAffinity": map[string]any{"clusterNames": []any{world.members[0]}}},
			},
		}}
		policy.SetGroupVersionKind(policyGVK)
		Expect(controlOf("karmada").Create(ctx, policy)).To(Succeed())
		fw := workload(namespace, "web", "karmada", deployment, 1)
		refused(ctx, fw, v1alpha1.ReasonNameConflict, "PropagationPolicy "+namespace+"/fw-web")
		remove(ctx, fw)
		expectUntouched(ctx, controlOf("karmada"), policy)
	})

	It("says that a kubeconfig is garbage, without telling what is in it", Label("laws"), func(ctx SpecContext) {
		fw := create(ctx, workload(namespace, "web", "garbage", deployment, 1))
		unavailable(ctx, fw, `backend "garbage"`, "garbage.kubeconfig does not hold a valid kubeconfig")
		Expect(condition(fw, v1alpha1.ConditionReady).Message).NotTo(ContainSubstring("[}"))
		remove(ctx, fw)
	})

	It("says that a backend cannot be reached", Label("laws"), func(ctx SpecContext) {
		fw := create(ctx, workload(namespace, "web", "nowhere", deployment, 1))
		unavailable(ctx, fw, `backend "nowhere"`, "connection refused", "check its connection")
		remove(ctx, fw)
	})

	It("refuses in the schema what needs no cluster to be wrong", func(ctx SpecContext) {
		fw := workload(namespace, "web", "karmada", deployment, 1)
		fw.Spec.Overrides = []v1alpha1.Override{{Name: "pinned", Images: []v1alpha1.ImageOverride{{Container: "web", Tag: "1", Digest: "sha256:0"}}}}
		err := hub().Create(ctx, fw)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring("tag and digest exclude each other"))

		fw = workload(namespace, "web", "karmada", deployment, 1)
		fw.Spec.Template = without(fw.Spec.Template, "kind")
		err = hub().Create(ctx, fw)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring("spec.template.kind: Required value"))
	})
})

// A Karmada without OpenKruise's CRDs, as far as the operator can see.
var _ = Describe("A backend that does not serve the kind", Label("input", "karmada"), func() {
	It("is named, with the kind; and it goes on when the kind is there", func(ctx SpecContext) {
		o, namespace := ownOperator(ctx, "kinds", operatorOptions{})
		o.karmada.HideGroups("apps.kruise.io")
		o.start(ctx)
		fw := create(ctx, workload(namespace, "clone", "karmada", cloneSet, 1))
		Expect(becomesStalled(ctx, fw, v1alpha1.ReasonKindNotServed)).To(And(
			ContainSubstring(`backend "karmada"`), ContainSubstring("spec.template.kind"), ContainSubstring("CloneSet")))
		other := create(ctx, workload(namespace, "web", "karmada", deployment, 1))
		becomesReady(ctx, other)
		o.karmada.HideGroups()
		becomesReady(ctx, fw)
		remove(ctx, fw)
		remove(ctx, other)
	})
})

func without(raw runtime.RawExtension, field string) runtime.RawExtension {
	GinkgoHelper()
	var fields map[string]any
	Expect(json.Unmarshal(raw.Raw, &fields)).To(Succeed())
	delete(fields, field)
	out, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	return runtime.RawExtension{Raw: out}
}

// unavailable waits until a FleetWorkload says that its backend cannot be used.
func unavailable(ctx context.Context, fw *v1alpha1.FleetWorkload, parts ...string) {
	GinkgoHelper()
	eventually(ctx, fw, 60*time.Second, func(g Gomega) {
		g.Expect(isObserved(fw)).To(BeTrue())
		ready := condition(fw, v1alpha1.ConditionReady)
		g.Expect(ready.Status).NotTo(Equal(metav1.ConditionTrue))
		g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonBackendUnavailable))
		g.Expect(condition(fw, v1alpha1.ConditionStalled).Status).To(Equal(metav1.ConditionFalse))
		for _, part := range parts {
			g.Expect(ready.Message).To(ContainSubstring(part))
		}
	})
}

func ensureNamespace(ctx context.Context, c *cluster, name string) {
	GinkgoHelper()
	err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
}

// foreignDeployment makes a Deployment web that somebody else owns.
func foreignDeployment(ctx context.Context, c *cluster, namespace string) *unstructured.Unstructured {
	GinkgoHelper()
	ensureNamespace(ctx, c, namespace)
	obj := &unstructured.Unstructured{}
	Expect(json.Unmarshal(template(deployment, "foreign", "registry.example.com/foreign:1").Raw, &obj.Object)).To(Succeed())
	obj.SetNamespace(namespace)
	obj.SetName("web")
	Expect(c.Create(ctx, obj)).To(Succeed())
	return obj
}

// expectUntouched compares identity, spec and marks with what they were.
func expectUntouched(ctx context.Context, c *cluster, before *unstructured.Unstructured) {
	GinkgoHelper()
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(before.GroupVersionKind())
	Expect(c.Get(ctx, client.ObjectKeyFromObject(before), now)).To(Succeed())
	Expect(now.GetUID()).To(Equal(before.GetUID()))
	Expect(now.GetDeletionTimestamp()).To(BeNil())
	Expect(now.GetGeneration()).To(Equal(before.GetGeneration()))
	Expect(now.GetLabels()).To(Equal(before.GetLabels()))
	for key := range now.GetAnnotations() {
		Expect(key).NotTo(ContainSubstring("fleetworkload.io"))
	}
}
