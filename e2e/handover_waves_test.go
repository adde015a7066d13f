//go:build e2e

package e2e

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// diary is every status of a migration that was written, for each workload of a namespace.
type diary struct {
	mu      sync.Mutex
	entries map[string][]v1alpha1.MigrationStatus
}

func keepDiary(namespace string) *diary {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	d := &diary{entries: map[string][]v1alpha1.MigrationStatus{}}
	watcher := watchAll(ctx, hub(), &v1alpha1.FleetWorkloadList{}, client.InNamespace(namespace))
	go func() {
		for e := range watcher.ResultChan() {
			fw, is := e.Object.(*v1alpha1.FleetWorkload)
			if !is || fw.Status.Migration == nil || fw.Status.Migration.Phase == "" {
				continue
			}
			d.mu.Lock()
			d.entries[fw.Name] = append(d.entries[fw.Name], *fw.Status.Migration)
			d.mu.Unlock()
		}
	}()
	return d
}

// inWaves wants clusters to have left the source in their wave only, in this order, with the same object and pods before and after.
func (d *diary) inWaves(name string, waves [][]string, soaks ...time.Duration) {
	GinkgoHelper()
	d.mu.Lock()
	defer d.mu.Unlock()
	Expect(d.entries[name]).NotTo(BeEmpty())
	var passing time.Time
	reached := -1
	for _, m := range d.entries[name] {
		current := -1
		if m.Wave != nil {
			current = int(*m.Wave) - 1
		}
		if current > reached && reached >= 0 && reached < len(soaks) {
			Expect(m.WaveStartedAt.Sub(passing)).To(BeNumerically(">=", soaks[reached]), "soak of wave %d of %s", reached+1, name)
		}
		reached = max(reached, current)
		if m.PassingSince != nil {
			passing = m.PassingSince.Time
		}
		for _, c := range m.Clusters {
			wave := slices.IndexFunc(waves, func(names []string) bool { return slices.Contains(names, c.Name) })
			Expect(wave).To(BeNumerically(">=", 0))
			if wave > current {
				Expect(c.Phase).To(Equal(v1alpha1.MigrationPhaseShadowing), "%s of %s in wave %d", c.Name, name, current+1)
			}
			if c.After == nil {
				continue
			}
			Expect(wave).To(BeNumerically("<=", current))
			Expect(c.Before.UID).NotTo(BeEmpty())
			Expect(c.After).To(Equal(c.Before), "evidence of %s of %s", c.Name, name)
		}
	}
	Expect(reached).To(Equal(len(waves) - 1))
}

// mayWrite tells which backends may write the object of a cluster, by their lowest objects: one is right.
func mayWrite(ctx context.Context, fw *v1alpha1.FleetWorkload, cluster string) (names []string) {
	GinkgoHelper()
	works, err := list(ctx, controlOf("karmada"), workGVK, client.InNamespace("karmada-es-"+cluster))
	Expect(err).NotTo(HaveOccurred())
	for _, work := range works {
		suspended, _, _ := unstructured.NestedBool(work.Object, "spec", "suspendDispatching")
		if delivers(work, identity(fw)) && !suspended {
			names = append(names, "karmada")
		}
	}
	ours := client.MatchingLabels{v1alpha1.LabelUID: identity(fw)}
	works, err = list(ctx, controlOf("ocm"), manifestWork, client.InNamespace(cluster), ours)
	Expect(err).NotTo(HaveOccurred())
	for _, work := range works {
		configs, _, _ := unstructured.NestedSlice(work.Object, "spec", "manifestConfigs")
		strategy, _, _ := unstructured.NestedString(configs[0].(map[string]any), "updateStrategy", "type")
		if strategy != "ReadOnly" {
			names = append(names, "ocm")
		}
	}
	return names
}

// writtenBy wants exactly these backends to write on the members, in their order. While Karmada's gate is closed, nobody does.
func writtenBy(ctx context.Context, fw *v1alpha1.FleetWorkload, owners ...string) {
	GinkgoHelper()
	for i, owner := range owners {
		Eventually(func() []string {
			names := mayWrite(ctx, fw, world.members[i])
			Expect(len(names)).To(BeNumerically("<=", 1), "%s on %s is written by %v", fw.Name, world.members[i], names)
			return names
		}).WithContext(ctx).Should(Equal([]string{owner}), "%s on %s", fw.Name, world.members[i])
	}
}

func soak(d time.Duration) *v1alpha1.Duration { return &v1alpha1.Duration{Duration: d} }

// inThree makes a workload on all members that is moved in these waves.
func inThree(name string, waves ...v1alpha1.MigrationWave) func(namespace, backend string) *livedOn {
	return func(namespace, backend string) *livedOn {
		fw := workload(namespace, name, backend, deployment, 2)
		fw.Spec.Migration = &v1alpha1.MigrationStrategy{Waves: waves}
		return carried(fw, deployment)
	}
}

var _ = Describe("The waves of a hand-over", Label("handover", "karmada", "ocm"), func() {
	BeforeEach(func(ctx SpecContext) { sharedOperator(ctx) })

	It("move their clusters and no others, soak, and wait for a person", func(ctx SpecContext) {
		m, manual := world.members, v1alpha1.ApprovalPolicyManual
		convoys := newConvoys(ctx, "waves",
			inThree("names", v1alpha1.MigrationWave{Name: "first", Clusters: on(m[1]), Soak: soak(3 * time.Second), Approval: manual},
				v1alpha1.MigrationWave{Name: "second", Clusters: on(m[2]), Soak: soak(2 * time.Second)}),
			inThree("sizes", v1alpha1.MigrationWave{Name: "one", Size: ptr(intstr.FromInt32(1)), Soak: soak(time.Second)}, v1alpha1.MigrationWave{Name: "half", Size: ptr(intstr.FromString("50%")), Approval: manual}),
		)
		diaries := map[string]*diary{}
		for _, c := range convoys {
			diaries[c.backend] = keepDiary(c.namespace)
		}
		all := named(convoys)
		turn(ctx, all...)
		asks(ctx, 1, named(convoys, "names")...)
		asks(ctx, 2, named(convoys, "sizes")...)
		for _, c := range convoys {
			from, to := c.backend, otherBackend(c.backend)
			writtenBy(ctx, c.all[0].fw, from, to, from)
			writtenBy(ctx, c.all[1].fw, to, to, to)
			for _, r := range c.all {
				Expect(condition(r.fw, v1alpha1.ConditionStalled).Reason).To(Equal(v1alpha1.ReasonMigrationNeedsApproval))
			}
		}
		Consistently(func(g Gomega) {
			for _, r := range all {
				g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(r.fw), r.fw)).To(Succeed())
				g.Expect(r.fw.Status.Migration.Phase).To(Equal(v1alpha1.MigrationPhaseVerifying))
				g.Expect(r.fw.Status.Migration.Approval).NotTo(BeEmpty())
			}
		}).WithContext(ctx).WithTimeout(hold).Should(Succeed(), "nobody has approved")
		approve(ctx, 1, named(convoys, "names")...)
		approve(ctx, 2, named(convoys, "sizes")...)
		arrive(ctx, all...)
		for _, c := range convoys {
			diaries[c.backend].inWaves("names", [][]string{{m[1]}, {m[2]}, {m[0]}}, 3*time.Second, 2*time.Second)
			diaries[c.backend].inWaves("sizes", [][]string{{m[0]}, {m[1], m[2]}}, time.Second)
			c.unharmed(ctx)
		}
	}, SpecTimeout(12*time.Minute))
})

// replicasSeen are the numbers of replicas that the member objects were given, in order.
type replicasSeen struct {
	mu   sync.Mutex
	seen map[string][]int64
}

func watchReplicas(namespace string, k kind) *replicasSeen {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	s := &replicasSeen{seen: map[string][]int64{}}
	for _, name := range world.members {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
		watcher := watchAll(ctx, member(name), objects, client.InNamespace(namespace))
		for i := range objects.Items {
			s.add(name, &objects.Items[i])
		}
		go func() {
			for e := range watcher.ResultChan() {
				if obj, is := e.Object.(*unstructured.Unstructured); is {
					s.add(name, obj)
				}
			}
		}()
	}
	return s
}

func (s *replicasSeen) add(cluster string, obj *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := obj.GetName() + " on " + cluster
	n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	if seen := s.seen[key]; len(seen) == 0 || seen[len(seen)-1] != n {
		s.seen[key] = append(seen, n)
	}
}

func (s *replicasSeen) of(name, cluster string) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen[name+" on "+cluster])
}

var _ = Describe("Edits during a hand-over", Label("handover", "karmada", "ocm"), func() {
	BeforeEach(func(ctx SpecContext) { sharedOperator(ctx) })

	It("wait until it is over, but for the replicas", func(ctx SpecContext) {
		m := world.members
		convoys := newConvoys(ctx, "edits", onTwo("goes"), onTwo("returns"))
		all := named(convoys)
		replicas := map[string]*replicasSeen{}
		for _, c := range convoys {
			replicas[c.backend] = watchReplicas(c.namespace, cloneSet)
		}
		turn(ctx, all...)
		asks(ctx, 1, all...)

		By("editing")
		for _, r := range all {
			edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) {
				setImage(fw, imageNew)
				fw.Spec.Overrides = []v1alpha1.Override{envOverride("debug", m[1])}
				fw.Spec.Placement.Clusters = on(m...)
				fw.Spec.Placement.Division = divided(weight(1, m...))
			})
			eventually(ctx, r.fw, readyTimeout, func(g Gomega) {
				g.Expect(isObserved(r.fw)).To(BeTrue())
				g.Expect(condition(r.fw, v1alpha1.ConditionMigrating).Message).To(ContainSubstring("changes of the spec other than replicas wait"))
			})
		}
		Consistently(func() any { return imprints(ctx, convoys[0].all) }).WithContext(ctx).WithTimeout(hold).Should(Equal(convoys[0].before))
		for _, c := range convoys {
			c.unharmed(ctx)
		}

		By("scaling")
		pods := map[string]map[string]string{}
		for _, r := range all {
			pods[r.fw.Namespace+r.name] = podUIDs(ctx, r.fw)
			kubectl(ctx, "scale", "fw/"+r.name, "-n", r.fw.Namespace, "--replicas=9")
		}
		for _, c := range convoys {
			for _, r := range c.all {
				for name, wanted := range map[string][]int64{m[0]: {4, 6}, m[1]: {2, 3}} {
					Eventually(func() []int64 { return replicas[c.backend].of(r.name, name) }).WithContext(ctx).Should(Equal(wanted))
				}
				runs(ctx, r.fw, cloneSet, map[string]want{m[0]: {6, imageOld, "info"}, m[1]: {3, imageOld, "info"}})
				writtenBy(ctx, r.fw, otherBackend(c.backend), c.backend)
				now := podUIDs(ctx, r.fw)
				for pod, uid := range pods[r.fw.Namespace+r.name] {
					Expect(now).To(HaveKeyWithValue(pod, uid))
				}
			}
		}

		By("going on, and back")
		approve(ctx, 1, named(convoys, "goes")...)
		turn(ctx, named(convoys, "returns")...)
		approve(ctx, 2, named(convoys, "goes")...)
		arrive(ctx, all...)
		ended(v1alpha1.MigrationPhaseCompleted, named(convoys, "goes")...)
		ended(v1alpha1.MigrationPhaseRolledBack, named(convoys, "returns")...)
		for _, r := range all {
			becomesReady(ctx, r.fw)
			runs(ctx, r.fw, cloneSet, map[string]want{m[0]: {3, imageNew, "info"}, m[1]: {3, imageNew, "debug"}, m[2]: {3, imageNew, "info"}})
		}
	}, SpecTimeout(12*time.Minute))

	It("let a scale reach the clusters that had no replicas, once, and hand those over too", func(ctx SpecContext) {
		m := world.members
		few := func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Replicas = ptr(int32(1))
			fw.Spec.Placement.Clusters, fw.Spec.Placement.Division = on(m...), divided(weight(1, m...))
			fw.Spec.Migration.Waves = fw.Spec.Migration.Waves[:1]
		}
		convoys := newConvoys(ctx, "joins", onTwo("goes", few), onTwo("returns", few))
		all := named(convoys)
		replicas := map[string]*replicasSeen{}
		for _, c := range convoys {
			replicas[c.backend] = watchReplicas(c.namespace, cloneSet)
		}
		given := [][]int64{{1, 2}, {2}, {2}}
		two := map[string]want{m[0]: {2, imageOld, "info"}, m[1]: {2, imageOld, "info"}, m[2]: {2, imageOld, "info"}}
		turn(ctx, all...)
		asks(ctx, 1, all...)

		By("scaling")
		for _, c := range convoys {
			for _, r := range c.all {
				kubectl(ctx, "scale", "fw/"+r.name, "-n", c.namespace, "--replicas=6")
			}
		}
		for _, c := range convoys {
			for _, r := range c.all {
				for i, name := range m {
					Eventually(func() []int64 { return replicas[c.backend].of(r.name, name) }).WithContext(ctx).Should(Equal(given[i]), "%s on %s", r.name, name)
				}
				runs(ctx, r.fw, cloneSet, two)
				writtenBy(ctx, r.fw, otherBackend(c.backend), c.backend, c.backend)
			}
		}

		By("going on, and back")
		approve(ctx, 1, named(convoys, "goes")...)
		turn(ctx, named(convoys, "returns")...)
		arrive(ctx, all...)
		ended(v1alpha1.MigrationPhaseCompleted, named(convoys, "goes")...)
		ended(v1alpha1.MigrationPhaseRolledBack, named(convoys, "returns")...)
		for _, c := range convoys {
			for _, r := range c.all {
				runs(ctx, r.fw, cloneSet, two)
				for i, name := range m {
					Expect(replicas[c.backend].of(r.name, name)).To(Equal(given[i]), "%s on %s", r.name, name)
				}
			}
			c.pods.undisturbed(10) // five came for each
		}
	}, SpecTimeout(12*time.Minute))
})
