//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// crowd follows how many of some workloads are being handed over, and do not wait for a person.
type crowd struct {
	mu     sync.Mutex
	moving map[string]bool
	most   int
	waited bool
}

func watchCrowd(all []*livedOn) *crowd {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	c := &crowd{moving: map[string]bool{}}
	ours := map[string]bool{}
	for _, r := range all {
		ours[string(r.fw.UID)] = true
	}
	watcher := watchAll(ctx, hub(), &v1alpha1.FleetWorkloadList{})
	go func() {
		for e := range watcher.ResultChan() {
			if fw, is := e.Object.(*v1alpha1.FleetWorkload); is && ours[string(fw.UID)] {
				c.see(fw)
			}
		}
	}()
	return c
}

func (c *crowd) see(fw *v1alpha1.FleetWorkload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.moving, string(fw.UID))
	m := fw.Status.Migration
	switch {
	case m == nil || m.Phase == "":
	case m.Phase == v1alpha1.MigrationPhaseValidating:
		c.waited = c.waited || strings.Contains(describe(fw), "migrations.atOnce")
	case m.Approval == "":
		c.moving[string(fw.UID)] = true
	}
	c.most = max(c.most, len(c.moving))
}

// seen tells how many have been moving, at most, and whether any of them has said that it waits for its turn.
func (c *crowd) seen() (most int, waited bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most, c.waited
}

var _ = Describe("Hand-overs of many", Label("handover", "karmada", "ocm"), func() {
	It("take turns, across a restart", func(ctx SpecContext) {
		o, _ := ownOperator(ctx, "turns", operatorOptions{everywhere: true, migrationsAtOnce: 2})
		o.start(ctx)
		convoys := newConvoys(ctx, "turns", onTwo("asks"), inThree("first"), inThree("second"))
		all := named(convoys)
		together := watchCrowd(all)
		// Two take all the turns there are, and give them back while they wait for a person.
		turn(ctx, named(convoys, "asks")...)
		asks(ctx, 1, named(convoys, "asks")...)
		turn(ctx, named(convoys, "first", "second")...)
		Eventually(func() bool {
			_, waited := together.seen()
			return waited
		}).WithContext(ctx).WithTimeout(readyTimeout).Should(BeTrue(), "nobody waits for a turn")
		o.stop(ctx)
		o.start(ctx)
		arrive(ctx, named(convoys, "first", "second")...)
		asks(ctx, 1, named(convoys, "asks")...)
		approve(ctx, 1, named(convoys, "asks")...)
		approve(ctx, 2, named(convoys, "asks")...)
		arrive(ctx, all...)
		most, waited := together.seen()
		Expect(most).To(Equal(2))
		Expect(waited).To(BeTrue())
		for _, c := range convoys {
			c.unharmed(ctx)
		}
	}, SpecTimeout(12*time.Minute))
})

var _ = Describe("A hand-over that cannot begin", Label("handover", "karmada", "ocm"), func() {
	BeforeEach(func(ctx SpecContext) { sharedOperator(ctx) })

	It("says all that is against it, changes nothing, and begins when that is mended", func(ctx SpecContext) {
		m := world.members
		label := func(from string) string { return "example.com/from-" + from }
		convoys := newConvoys(ctx, "refused", func(namespace, backend string) *livedOn {
			fw := workload(namespace, "web", backend, cloneSet, 3)
			fw.Spec.Overrides = []v1alpha1.Override{envOverride("debug")}
			fw.Spec.Overrides[0].Clusters = &v1alpha1.ClusterSelector{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label(backend): "loud"}},
			}
			return carried(fw, cloneSet)
		})
		var mend []func()
		for _, c := range convoys {
			target := otherBackend(c.backend)
			ensureNamespace(ctx, controlOf(target), c.namespace) // where there is none nothing can be tried
			labelCluster(ctx, target, m[1], label(c.backend), "loud")
			unlabel := func(ctx context.Context) { labelCluster(ctx, target, m[1], label(c.backend), "") }
			DeferCleanup(func(ctx SpecContext) { unlabel(ctx) })
			mend = append(mend, forbid(ctx, target, c.all[0].fw), func() { unlabel(ctx) })
		}
		all := named(convoys)
		turn(ctx, all...)
		for _, r := range all {
			message := becomesStalled(ctx, r.fw, v1alpha1.ReasonMigrationNotPossible)
			Expect(message).To(And(ContainSubstring("spec.overrides make another manifest of cluster "+m[1]),
				ContainSubstring("nothing moves on Sundays"), ContainSubstring("set spec.backend back")), r.backend)
			Expect(r.fw.Status.Migration.Phase).To(Equal(v1alpha1.MigrationPhaseValidating))
			Expect(len(r.fw.Status.Migration.Problems)).To(BeNumerically(">=", 2))
		}
		Consistently(func(g Gomega) {
			for _, c := range convoys {
				g.Expect(imprints(ctx, c.all)).To(Equal(c.before))
				g.Expect(leftOn(ctx, otherBackend(c.backend), []string{identity(c.all[0].fw)})).To(BeEmpty())
			}
		}).WithContext(ctx).WithTimeout(hold).Should(Succeed())
		for _, each := range mend {
			each()
		}
		arrive(ctx, all...)
		for _, c := range convoys {
			c.unharmed(ctx)
		}
	}, SpecTimeout(12*time.Minute))

	It("stays where it is while it is suspended", func(ctx SpecContext) {
		convoys := newConvoys(ctx, "frozen", onTwo("web"))
		all := named(convoys)
		suspend := func(yes bool) {
			GinkgoHelper()
			for _, r := range all {
				edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = &yes })
			}
		}
		turn(ctx, all...)
		asks(ctx, 1, all...)
		suspend(true)
		for _, r := range all {
			eventually(ctx, r.fw, readyTimeout, func(g Gomega) { g.Expect(r.fw.Status.Migration.FrozenSince).NotTo(BeNil()) })
			edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) {
				fw.Annotations = map[string]string{v1alpha1.AnnotationApproveMigration: fw.Status.Migration.Approval}
			})
		}
		Consistently(func(g Gomega) {
			for _, c := range convoys {
				g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(c.all[0].fw), c.all[0].fw)).To(Succeed())
				g.Expect(c.all[0].fw.Status.Migration.Wave).To(HaveValue(BeEquivalentTo(1)))
				g.Expect(mayWrite(ctx, c.all[0].fw, world.members[1])).NotTo(ContainElement(otherBackend(c.backend)))
			}
		}).WithContext(ctx).WithTimeout(hold).Should(Succeed())
		suspend(false)
		approve(ctx, 2, all...)
		arrive(ctx, all...)
		ended(v1alpha1.MigrationPhaseCompleted, all...)
		for _, c := range convoys {
			c.unharmed(ctx)
		}
	}, SpecTimeout(12*time.Minute))
})

// forbid has a backend's API server refuse what the driver would write there for a FleetWorkload, until that is mended.
func forbid(ctx context.Context, backend string, fw *v1alpha1.FleetWorkload) (mend func()) {
	GinkgoHelper()
	name, c := fw.Namespace+"-sundays", controlOf(backend)
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule: admissionv1.Rule{
					APIGroups:   []string{cloneSet.gvk.Group, manifestWork.Group},
					APIVersions: []string{"*"}, Resources: []string{"clonesets", "manifestworks"},
				},
			},
		}}},
		MatchConditions: []admissionv1.MatchCondition{{Name: "theirs", Expression: fmt.Sprintf(
			"has(object.metadata.labels) && %[1]q in object.metadata.labels && object.metadata.labels[%[1]q] == %[2]q", v1alpha1.LabelUID, identity(fw))}},
		Validations: []admissionv1.Validation{{Expression: "false", Message: "nothing moves on Sundays"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	allow := func(ctx context.Context) {
		GinkgoHelper()
		Expect(client.IgnoreNotFound(c.Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(c.Delete(ctx, policy))).To(Succeed())
	}
	DeferCleanup(func(ctx SpecContext) { allow(ctx) })
	Expect(c.Create(ctx, policy)).To(Succeed())
	Expect(c.Create(ctx, binding)).To(Succeed())
	probe := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selector": map[string]any{}, "template": map[string]any{}}}}
	probe.SetGroupVersionKind(cloneSet.gvk)
	if backend == "ocm" {
		probe.Object = map[string]any{"spec": map[string]any{}}
		probe.SetGroupVersionKind(manifestWork)
	}
	probe.SetNamespace("default")
	probe.SetName("probe")
	probe.SetLabels(map[string]string{v1alpha1.LabelUID: identity(fw)})
	Eventually(func() error { return c.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).WithContext(ctx).
		Should(MatchError(ContainSubstring("nothing moves on Sundays")))
	return func() { allow(ctx) }
}
