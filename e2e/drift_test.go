//go:build e2e

package e2e

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// byHand changes the object on a member as kubectl edit does.
func byHand(ctx context.Context, cluster string, fw *v1alpha1.FleetWorkload, k kind, change func(obj *unstructured.Unstructured)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		obj, err := object(ctx, member(cluster), k, client.ObjectKeyFromObject(fw))
		if err != nil {
			return err
		}
		Expect(obj).NotTo(BeNil(), "%s on %s", k.gvk.Kind, cluster)
		change(obj)
		return member(cluster).Update(ctx, obj, client.FieldOwner("kubectl-edit"))
	})).To(Succeed())
}

func scaledTo(replicas int64) func(obj *unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		GinkgoHelper()
		Expect(unstructured.SetNestedField(obj.Object, replicas, "spec", "replicas")).To(Succeed())
	}
}

// tells waits for an event of a FleetWorkload with a reason and such words.
func tells(ctx context.Context, fw *v1alpha1.FleetWorkload, reason, words string) {
	GinkgoHelper()
	Eventually(func() string { return kubectl(ctx, "events", "-n", fw.Namespace, "--for", "fleetworkload/"+fw.Name) }).
		WithContext(ctx).WithTimeout(readyTimeout).Should(MatchRegexp(`%s\s.*%s`, reason, regexp.QuoteMeta(words)))
}

var _ = Describe("Somebody who changes a companion on a member", Label("laws", "drift", "companions", "ocm"), func() {
	It("is told of on ocm, with the companion", func(ctx SpecContext) {
		sharedOperator(ctx)
		namespace, m := newNamespace(ctx, "drift"), world.members
		fw := workload(namespace, "web", "ocm", deployment, 1)
		fw.Spec.Placement.Clusters = on(m[0])
		fw.Spec.Companions = []runtime.RawExtension{settings("web", map[string]string{"value": "ours"})}
		create(ctx, fw)
		becomesReady(ctx, fw)
		ours := configMap(namespace, "web-settings", "ours")
		has(ctx, ours, true, m[0])
		works, err := list(ctx, hub(), manifestWork, client.InNamespace(m[0]))
		Expect(err).NotTo(HaveOccurred())
		works = slices.DeleteFunc(works, func(work unstructured.Unstructured) bool {
			return !strings.HasPrefix(work.GetName(), "fwc-"+namespace+"-configmap-web-settings")
		})
		Expect(works).To(HaveLen(1))
		force, _, err := unstructured.NestedSlice(works[0].Object, "spec", "manifestConfigs")
		Expect(err).NotTo(HaveOccurred())
		Expect(force).To(ContainElement(HaveKeyWithValue("updateStrategy", HaveKeyWithValue("serverSideApply", HaveKeyWithValue("force", false)))))

		changed := &corev1.ConfigMap{}
		Expect(member(m[0]).Get(ctx, client.ObjectKeyFromObject(ours), changed)).To(Succeed())
		changed.Data["value"] = "theirs"
		Expect(member(m[0]).Update(ctx, changed, client.FieldOwner("kubectl-edit"))).To(Succeed())
		agentLooks(ctx, &works[0])
		tells(ctx, fw, v1alpha1.ReasonChangedOnCluster,
			"cluster "+m[0]+`: somebody else has changed the companion ConfigMap web-settings there, and it is put back: conflict with "kubectl-edit" using v1: .data.value`)
		has(ctx, ours, true, m[0])
		tells(ctx, fw, v1alpha1.ReasonPutBackOnCluster, "cluster "+m[0]+": the companion ConfigMap web-settings there is what is delivered again, ")
		becomesReady(ctx, fw)
	})
})

var _ = Describe("Somebody who changes the object on a member", Label("laws", "drift"), func() {
	for _, backend := range backends {
		It("is told of on "+backend+", and nobody is when the FleetWorkload changes", Label(backend), long, func(ctx SpecContext) {
			o := sharedOperator(ctx)
			namespace, m := newNamespace(ctx, "drift"), world.members
			all := map[*v1alpha1.FleetWorkload]kind{}
			for name, k := range map[string]kind{"web": deployment, "clones": cloneSet} {
				all[create(ctx, workload(namespace, name, backend, k, 2))] = k
			}
			ready := func() {
				GinkgoHelper()
				for fw := range all {
					becomesReady(ctx, fw)
				}
			}
			told := func() string { return kubectl(ctx, "events", "-n", namespace) }
			counted := func() float64 {
				GinkgoHelper()
				families, err := o.measures()
				Expect(err).NotTo(HaveOccurred())
				return measure(families, "fleetworkload_drift_total")
			}
			before := counted()
			// Half a minute, in which a report may be behind what the backend has written.
			nothing := func(more float64) {
				GinkgoHelper()
				Consistently(counted).WithContext(ctx).WithTimeout(35*time.Second).WithPolling(time.Second).Should(Equal(before+more), told)
			}
			ready()
			for fw := range all {
				edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
			}
			ready()
			for fw := range all {
				edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { *fw.Spec.Replicas = 3 })
			}
			ready()
			nothing(0)
			Expect(told()).NotTo(ContainSubstring("ChangedOnCluster"))

			for fw, k := range all {
				byHand(ctx, m[0], fw, k, scaledTo(5))
				if backend == "ocm" {
					agentLooks(ctx, only(ctx, fw, manifestWork, client.InNamespace(m[0])))
				}
			}
			Eventually(counted).WithContext(ctx).WithTimeout(readyTimeout).Should(Equal(before+2), told)
			for fw, k := range all {
				words := "cluster " + m[0] + ": somebody else has changed the object there: generation "
				if backend == "ocm" {
					words = "cluster " + m[0] + `: somebody else has changed the object there, and it is put back: conflict with "kubectl-edit" using ` +
						k.gvk.GroupVersion().String() + ": .spec.replicas"
				}
				tells(ctx, fw, v1alpha1.ReasonChangedOnCluster, words)
			}
			ready()
			for fw, k := range all {
				obj, err := object(ctx, member(m[0]), k, client.ObjectKeyFromObject(fw))
				Expect(err).NotTo(HaveOccurred())
				Expect(obj.Object["spec"]).To(HaveKeyWithValue("replicas", int64(3)))
				words := "cluster " + m[0] + ": the object there is what is delivered again, "
				if backend == "karmada" {
					words += "and was so when the change was seen"
				}
				tells(ctx, fw, v1alpha1.ReasonPutBackOnCluster, words)
			}
			nothing(2)

			var moving []*livedOn
			for fw, k := range all {
				moving = append(moving, carried(fw, k))
			}
			turn(ctx, moving...)
			arrive(ctx, moving...)
			for fw := range all {
				edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageOld) })
			}
			ready()
			nothing(2)
		})
	}
})

var _ = Describe("With spec.drift Report", Label("laws", "drift"), func() {
	It("a change on a member is told and stays until the FleetWorkload has something new on ocm", Label("ocm"), long, func(ctx SpecContext) {
		sharedOperator(ctx)
		namespace, m := newNamespace(ctx, "drift"), world.members
		all := map[*v1alpha1.FleetWorkload]kind{}
		for name, k := range map[string]kind{"web": deployment, "clones": cloneSet} {
			fw := workload(namespace, name, "ocm", k, 2)
			fw.Spec.Drift = v1alpha1.DriftPolicyReport
			all[create(ctx, fw)] = k
		}
		each := func(do func(fw *v1alpha1.FleetWorkload, k kind)) {
			GinkgoHelper()
			for fw, k := range all {
				do(fw, k)
			}
		}
		ready := func() {
			GinkgoHelper()
			each(func(fw *v1alpha1.FleetWorkload, _ kind) { becomesReady(ctx, fw) })
		}
		look := func(fw *v1alpha1.FleetWorkload, _ kind) {
			GinkgoHelper()
			agentLooks(ctx, only(ctx, fw, manifestWork, client.InNamespace(m[0])))
		}
		on := func(fw *v1alpha1.FleetWorkload, k kind) *unstructured.Unstructured {
			GinkgoHelper()
			obj, err := object(ctx, member(m[0]), k, client.ObjectKeyFromObject(fw))
			Expect(err).NotTo(HaveOccurred())
			Expect(obj).NotTo(BeNil())
			return obj
		}
		replicas := func(obj *unstructured.Unstructured) int64 {
			GinkgoHelper()
			n, _, err := unstructured.NestedInt64(obj.Object, "spec", "replicas")
			Expect(err).NotTo(HaveOccurred())
			return n
		}
		drifts := func(fw *v1alpha1.FleetWorkload, k kind) {
			GinkgoHelper()
			byHand(ctx, m[0], fw, k, scaledTo(5))
			look(fw, k)
			eventually(ctx, fw, readyTimeout, func(g Gomega) {
				drifted := condition(fw, v1alpha1.ConditionDrifted)
				g.Expect(drifted.Status).To(Equal(metav1.ConditionTrue))
				g.Expect(drifted.Message).To(ContainSubstring(m[0] + `: conflict with "kubectl-edit" using ` + k.gvk.GroupVersion().String() + ": .spec.replicas"))
			})
		}
		ready()
		// An edit is applied by force for a moment; what comes after that is somebody's change.
		each(func(fw *v1alpha1.FleetWorkload, _ kind) {
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
		})
		ready()
		each(func(fw *v1alpha1.FleetWorkload, _ kind) {
			Expect(condition(fw, v1alpha1.ConditionDrifted)).To(BeZero())
		})

		each(drifts)
		each(func(fw *v1alpha1.FleetWorkload, _ kind) {
			tells(ctx, fw, v1alpha1.ReasonChangedOnCluster,
				"cluster "+m[0]+`: somebody else has changed the object there, and it is left as it is (spec.drift Report): conflict with "kubectl-edit"`)
			eventually(ctx, fw, readyTimeout, func(g Gomega) {
				g.Expect(isReady(fw)).To(BeTrue())
				g.Expect(fw.Status.Ready).To(Equal("9/6"))
			})
		})
		stays := map[*v1alpha1.FleetWorkload]int64{}
		each(func(fw *v1alpha1.FleetWorkload, k kind) { stays[fw] = on(fw, k).GetGeneration() })
		each(look)
		Consistently(func(g Gomega) {
			for fw, k := range all {
				g.Expect(on(fw, k).GetGeneration()).To(Equal(stays[fw]))
			}
		}).WithContext(ctx).WithTimeout(15 * time.Second).WithPolling(time.Second).Should(Succeed())

		By("moving to a backend that would put it back")
		each(func(fw *v1alpha1.FleetWorkload, _ kind) {
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "karmada" })
		})
		each(func(fw *v1alpha1.FleetWorkload, _ kind) {
			Expect(becomesStalled(ctx, fw, v1alpha1.ReasonMigrationNotPossible)).To(And(
				ContainSubstring(`spec.drift "Report": cluster `+m[0]+` keeps what somebody else has changed there`),
				ContainSubstring(`spec.drift "Report": Karmada puts back what others change`)))
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "ocm" })
		})
		ready()
		each(func(fw *v1alpha1.FleetWorkload, k kind) { Expect(on(fw, k).GetGeneration()).To(Equal(stays[fw])) })

		By("editing it")
		each(func(fw *v1alpha1.FleetWorkload, _ kind) {
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageOld) })
		})
		ready()
		each(func(fw *v1alpha1.FleetWorkload, k kind) {
			Expect(condition(fw, v1alpha1.ConditionDrifted)).To(BeZero())
			Expect(replicas(on(fw, k))).To(Equal(int64(2)))
			tells(ctx, fw, v1alpha1.ReasonPutBackOnCluster, "cluster "+m[0]+": the object there is what is delivered again, ")
		})

		By("having it put back after all")
		each(drifts)
		each(func(fw *v1alpha1.FleetWorkload, _ kind) {
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Drift = v1alpha1.DriftPolicyCorrect })
		})
		each(func(fw *v1alpha1.FleetWorkload, k kind) {
			eventually(ctx, fw, readyTimeout, func(g Gomega) {
				g.Expect(replicas(on(fw, k))).To(Equal(int64(2)))
				g.Expect(condition(fw, v1alpha1.ConditionDrifted)).To(BeZero())
			})
			becomesReady(ctx, fw)
		})
	})

	It("it is refused on karmada, and what runs stays", Label("karmada"), func(ctx SpecContext) {
		sharedOperator(ctx)
		namespace, m := newNamespace(ctx, "drift"), world.members
		fw := create(ctx, workload(namespace, "web", "karmada", deployment, 2))
		becomesReady(ctx, fw)
		before, err := object(ctx, member(m[0]), deployment, client.ObjectKeyFromObject(fw))
		Expect(err).NotTo(HaveOccurred())

		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Drift = v1alpha1.DriftPolicyReport })
		Expect(becomesStalled(ctx, fw, v1alpha1.ReasonNotSupported)).To(And(
			ContainSubstring("karmada"), ContainSubstring(`spec.drift "Report": Karmada puts back what others change`), ContainSubstring("set it to Correct")))
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Drift = v1alpha1.DriftPolicyCorrect })
		becomesReady(ctx, fw)
		after, err := object(ctx, member(m[0]), deployment, client.ObjectKeyFromObject(fw))
		Expect(err).NotTo(HaveOccurred())
		Expect(after.GetGeneration()).To(Equal(before.GetGeneration()))
	})
})
