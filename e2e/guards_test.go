//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

var setBindingGVK = schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1beta2", Kind: "ManagedClusterSetBinding"}

// only wants exactly one object of a type that belongs to a FleetWorkload.
func only(ctx context.Context, fw *v1alpha1.FleetWorkload, gvk schema.GroupVersionKind, opts ...client.ListOption) *unstructured.Unstructured {
	GinkgoHelper()
	items, err := list(ctx, controlOf(fw.Spec.Backend), gvk, append(opts, client.MatchingLabels{v1alpha1.LabelUID: identity(fw)})...)
	Expect(err).NotTo(HaveOccurred())
	Expect(items).To(HaveLen(1), "%s of %s", gvk.Kind, fw.Name)
	return &items[0]
}

// unprotect lets a person change or delete one of the operator's objects.
func unprotect(ctx context.Context, backend string, obj client.Object) {
	GinkgoHelper()
	patch := []byte(`{"metadata":{"annotations":{"fleetworkload.io/unprotected":"true"}}}`)
	Expect(controlOf(backend).Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// comesBack waits until an object that was deleted is there again, a new one.
func comesBack(ctx context.Context, backend string, obj *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(obj.GroupVersionKind())
		g.Expect(controlOf(backend).Get(ctx, client.ObjectKeyFromObject(obj), live)).To(Succeed())
		g.Expect(live.GetUID()).NotTo(Equal(obj.GetUID()))
		g.Expect(live.GetDeletionTimestamp()).To(BeNil())
	}).WithContext(ctx).WithTimeout(readyTimeout).Should(Succeed())
}

// Laws 2 and 8: whatever happens to the operator's objects on a backend, pods stay.
var _ = Describe("A hand on the backend's objects", Label("laws", "guards"), func() {
	for _, backend := range backends {
		Describe("on "+backend, Label(backend), Ordered, func() {
			var (
				fw     *v1alpha1.FleetWorkload
				pods   map[string]string
				before map[string]any
			)
			BeforeAll(func(ctx SpecContext) {
				sharedOperator(ctx)
				fw = workload(newNamespace(ctx, "hand"), "web", backend, cloneSet, 2)
				fw.Spec.Overrides = []v1alpha1.Override{envOverride("debug", world.members[1])}
				create(ctx, fw)
				becomesReady(ctx, fw)
				pods, before = podUIDs(ctx, fw), specs(ctx, fw, cloneSet)
				Expect(pods).To(HaveLen(6))
			})
			unharmed := func(ctx SpecContext) {
				GinkgoHelper()
				nothingRemoved(ctx, fw, cloneSet, pods, before)
				becomesReady(ctx, fw)
				Expect(podUIDs(ctx, fw)).To(Equal(pods))
			}
			deleted := func(ctx SpecContext, gvk schema.GroupVersionKind, opts ...client.ListOption) {
				GinkgoHelper()
				obj := only(ctx, fw, gvk, opts...)
				unprotect(ctx, backend, obj)
				Expect(controlOf(backend).Delete(ctx, obj)).To(Succeed())
				comesBack(ctx, backend, obj)
				unharmed(ctx)
			}
			refused := func(err error) {
				GinkgoHelper()
				Expect(err).To(MatchError(And(ContainSubstring("FleetWorkload"), ContainSubstring("fleetworkload.io/unprotected=true"))))
			}
			edited := func(ctx SpecContext, obj *unstructured.Unstructured, patch string) error {
				return controlOf(backend).Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
			}
			if backend == "karmada" {
				It("is kept off", func(ctx SpecContext) {
					for _, gvk := range []schema.GroupVersionKind{cloneSet.gvk, policyGVK, overrideGVK} {
						refused(controlOf(backend).Delete(ctx, only(ctx, fw, gvk)))
					}
					refused(edited(ctx, only(ctx, fw, cloneSet.gvk), `{"spec":{"replicas":0}}`))
					refused(edited(ctx, only(ctx, fw, policyGVK), `{"spec":{"placement":{"clusterAffinity":{"clusterNames":["none"]}}}}`))
					unharmed(ctx)
				})
				It("deletes a policy", func(ctx SpecContext) { deleted(ctx, policyGVK) })
				return
			}
			It("is kept off", func(ctx SpecContext) {
				work := only(ctx, fw, manifestWork, client.InNamespace(world.members[0]))
				refused(edited(ctx, work, `{"spec":{"workload":{"manifests":[]}}}`))
				refused(edited(ctx, only(ctx, fw, placementGVK), `{"spec":{"numberOfClusters":0}}`))
				unharmed(ctx)
			})
			It("deletes a ManifestWork", func(ctx SpecContext) { deleted(ctx, manifestWork, client.InNamespace(world.members[0])) })
			It("deletes a Placement", func(ctx SpecContext) { deleted(ctx, placementGVK) })
			It("empties a Placement", func(ctx SpecContext) {
				placement := only(ctx, fw, placementGVK)
				unprotect(ctx, backend, placement)
				nobody := `{"spec":{"predicates":[{"requiredClusterSelector":{"labelSelector":{"matchLabels":{"none":"none"}}}}]}}`
				Expect(edited(ctx, placement, nobody)).To(Succeed())
				comesBack(ctx, backend, placement)
				unharmed(ctx)
			})
			It("misconfigures a Placement", func(ctx SpecContext) {
				placement := only(ctx, fw, placementGVK)
				unprotect(ctx, backend, placement)
				Expect(edited(ctx, placement, `{"spec":{"prioritizerPolicy":{"mode":"Exact","configurations":[{"scoreCoordinate":{"type":"BuiltIn","builtIn":"NoSuchThing"},"weight":1}]}}}`)).To(Succeed())
				comesBack(ctx, backend, placement)
				unharmed(ctx)
			})
			It("deletes a ManagedClusterSetBinding", func(ctx SpecContext) {
				items, err := list(ctx, hub(), setBindingGVK, client.InNamespace(fw.Namespace))
				Expect(err).NotTo(HaveOccurred())
				Expect(items).To(HaveLen(1))
				Expect(hub().Delete(ctx, &items[0])).To(Succeed())
				comesBack(ctx, backend, &items[0])
				unharmed(ctx)
			})
		})
	}
})

// Without cluster sets in its configuration the operator binds nothing: an administrator does.
var _ = Describe("A ManagedClusterSetBinding that an administrator takes away", Label("laws", "guards", "ocm"), func() {
	It("costs no pod, and is asked for", func(ctx SpecContext) {
		const backend = "unbound"
		o, namespace := ownOperator(ctx, backend, operatorOptions{more: []any{anotherHub(backend, nil)}})
		binding := func() *unstructured.Unstructured {
			obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterSet": "global"}}}
			obj.SetGroupVersionKind(setBindingGVK)
			obj.SetNamespace(namespace)
			obj.SetName("global")
			return obj
		}
		o.start(ctx)
		fw := create(ctx, workload(namespace, "web", backend, cloneSet, 1))
		asked := func() {
			GinkgoHelper()
			eventually(ctx, fw, 60*time.Second, func(g Gomega) {
				g.Expect(condition(fw, v1alpha1.ConditionScheduled).Message).To(ContainSubstring("create a ManagedClusterSetBinding in namespace " + namespace))
			})
		}
		asked()
		Expect(hub().Create(ctx, binding())).To(Succeed())
		becomesReady(ctx, fw)
		pods, before := podUIDs(ctx, fw), specs(ctx, fw, cloneSet)
		Expect(hub().Delete(ctx, binding())).To(Succeed())
		asked()
		nothingRemoved(ctx, fw, cloneSet, pods, before)
		Expect(hub().Create(ctx, binding())).To(Succeed())
		becomesReady(ctx, fw)
		Expect(podUIDs(ctx, fw)).To(Equal(pods))
		remove(ctx, fw)
	})
})

// What the operator binds, others may come to use.
var _ = Describe("A ManagedClusterSetBinding that the operator has made", Label("laws", "guards", "ocm"), func() {
	It("stays while somebody else has a Placement, and goes with the last FleetWorkload otherwise", func(ctx SpecContext) {
		sharedOperator(ctx)
		bindings := func(namespace string) int {
			GinkgoHelper()
			items, err := list(ctx, hub(), setBindingGVK, client.InNamespace(namespace))
			Expect(err).NotTo(HaveOccurred())
			return len(items)
		}
		for _, shared := range []bool{true, false} {
			namespace := newNamespace(ctx, "binding")
			fw := create(ctx, workload(namespace, "web", "ocm", deployment, 1))
			becomesReady(ctx, fw)
			Expect(bindings(namespace)).To(Equal(1))
			if shared {
				placement := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
				placement.SetGroupVersionKind(placementGVK)
				placement.SetNamespace(namespace)
				placement.SetName("theirs")
				Expect(hub().Create(ctx, placement)).To(Succeed())
			}
			remove(ctx, fw)
			if shared {
				Expect(bindings(namespace)).To(Equal(1))
			} else {
				Eventually(func() int { return bindings(namespace) }).WithContext(ctx).Should(BeZero())
			}
		}
	})
})

// anotherHub is the hub once more, as a backend with options of its own.
func anotherHub(name string, options map[string]any) map[string]any {
	GinkgoHelper()
	way, err := proxy.New(name, hub().rest, &proxy.Journal{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(way.Close)
	kubeconfig := filepath.Join(world.dir, name+".kubeconfig")
	Expect(clientcmd.WriteToFile(way.Kubeconfig(world.tokens[lab.Hub]), kubeconfig)).To(Succeed())
	backend := map[string]any{"name": name, "type": "OCM", "connection": map[string]any{"kubeconfigFile": kubeconfig}}
	if options != nil {
		backend["ocm"] = options
	}
	return backend
}

// Karmada's webhooks fail closed: without them nothing can be written.
var _ = Describe("Karmada without its webhook", Label("laws", "law8", "guards", "karmada"), func() {
	It("keeps what runs, says so, and goes on when it is back", func(ctx SpecContext) {
		sharedOperator(ctx)
		fw := create(ctx, workload(newNamespace(ctx, "webhook"), "web", "karmada", cloneSet, 1))
		becomesReady(ctx, fw)
		pods, before := podUIDs(ctx, fw), specs(ctx, fw, cloneSet)
		webhook := processOf("karmada-webhook")
		DeferCleanup(func() { Expect(webhook.Signal(syscall.SIGCONT)).To(Succeed()) })
		Expect(webhook.Signal(syscall.SIGSTOP)).To(Succeed())
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
		eventually(ctx, fw, 60*time.Second, func(g Gomega) {
			ready := condition(fw, v1alpha1.ConditionReady)
			g.Expect(ready.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(ready.Message).To(MatchRegexp("which fails: .*webhook"))
		})
		nothingRemoved(ctx, fw, cloneSet, pods, before)
		Expect(webhook.Signal(syscall.SIGCONT)).To(Succeed())
		becomesReady(ctx, fw)
		w := want{1, imageNew, "info"}
		m := world.members
		runs(ctx, fw, cloneSet, map[string]want{m[0]: w, m[1]: w, m[2]: w})
		remove(ctx, fw)
	})
})

// processOf is a process of the fleet.
func processOf(name string) *os.Process {
	GinkgoHelper()
	components, err := world.fleet.Status()
	Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(components, func(c lab.Component) bool { return c.Name == name })
	Expect(i).To(BeNumerically(">=", 0), name)
	process, err := os.FindProcess(components[i].PID)
	Expect(err).NotTo(HaveOccurred())
	return process
}
