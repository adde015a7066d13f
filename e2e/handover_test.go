//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// otherBackend is where a workload of this one moves to.
func otherBackend(name string) string {
	for _, b := range backends {
		if b != name {
			return b
		}
	}
	return ""
}

// convoy are the workloads of one namespace, which begin on one backend, with all pods there under watch.
type convoy struct {
	backend, namespace string
	all                []*livedOn
	pods               *podWatch
	before             map[string]map[string]any
}

// carried is a workload of the plain kinds.
func carried(fw *v1alpha1.FleetWorkload, k kind) *livedOn {
	return &livedOn{life: life{name: fw.Name, apiVersion: k.gvk.GroupVersion().String(), kind: k.gvk.Kind}, backend: fw.Spec.Backend, fw: fw}
}

// newConvoys makes one convoy a backend of workloads that run, each made by one of the functions.
func newConvoys(ctx context.Context, prefix string, makers ...func(namespace, backend string) *livedOn) []*convoy {
	GinkgoHelper()
	var convoys []*convoy
	for _, b := range backends {
		c := &convoy{backend: b, namespace: newNamespace(ctx, prefix)}
		for _, maker := range makers {
			c.all = append(c.all, maker(c.namespace, b))
		}
		convoys = append(convoys, c)
	}
	for _, c := range convoys {
		for _, r := range c.all {
			create(ctx, r.fw)
		}
	}
	for _, c := range convoys {
		for _, r := range c.all {
			becomesReady(ctx, r.fw)
		}
		c.setOut(ctx)
	}
	return convoys
}

// onTwo makes a workload of CloneSets that is moved in two waves, each of which waits for a person.
func onTwo(name string, more ...func(*v1alpha1.FleetWorkload)) func(namespace, backend string) *livedOn {
	return func(namespace, backend string) *livedOn {
		m := world.members
		fw := workload(namespace, name, backend, cloneSet, 6)
		fw.Spec.Placement.Clusters = on(m[0], m[1])
		fw.Spec.Placement.Division = divided(weight(2, m[0]), weight(1, m[1]))
		manual := v1alpha1.ApprovalPolicyManual
		fw.Spec.Migration = &v1alpha1.MigrationStrategy{Waves: []v1alpha1.MigrationWave{
			{Name: "first", Clusters: on(m[0]), Approval: manual}, {Name: "second", Clusters: on(m[1]), Approval: manual},
		}}
		for _, change := range more {
			change(fw)
		}
		return carried(fw, cloneSet)
	}
}

// named are the workloads of all convoys with one of the names; all of them when no name is given.
func named(convoys []*convoy, names ...string) (all []*livedOn) {
	for _, c := range convoys {
		for _, r := range c.all {
			if len(names) == 0 || slices.Contains(names, r.name) {
				all = append(all, r)
			}
		}
	}
	return all
}

// setOut remembers what must stay as it is.
func (c *convoy) setOut(ctx context.Context) {
	GinkgoHelper()
	c.before = imprints(ctx, c.all)
	c.pods = watchPods(c.namespace)
}

// imprints are what a hand-over must not change, by workload and member: the object's identity and all but its metadata and status.
func imprints(ctx context.Context, all []*livedOn) map[string]map[string]any {
	GinkgoHelper()
	out := map[string]map[string]any{}
	for _, r := range all {
		out[r.name] = map[string]any{}
		for name, obj := range r.objects(ctx) {
			content := map[string]any{"uid": obj.GetUID(), "deleting": obj.GetDeletionTimestamp() != nil}
			for key, value := range obj.Object {
				if key != "metadata" && key != "status" {
					content[key] = bare(value)
				}
			}
			out[r.name][name] = content
		}
	}
	return out
}

// bare is a value without what is empty in it. It means the same: Karmada writes objects whole, without the {} and "" that
// a webhook or a controller has filled in when OCM's agent created them.
func bare(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, field := range v {
			if below := bare(field); below != nil {
				out[key] = below
			}
		}
		if len(out) > 0 {
			return out
		}
	case []any:
		var out []any
		for _, item := range v {
			out = append(out, bare(item))
		}
		if len(out) > 0 {
			return out
		}
	case string:
		if v != "" {
			return v
		}
	default:
		return value
	}
	return nil
}

// objects are those on members.
func (r *livedOn) objects(ctx context.Context) map[string]*unstructured.Unstructured {
	GinkgoHelper()
	all := map[string]*unstructured.Unstructured{}
	for _, name := range world.members {
		obj, err := object(ctx, member(name), kind{gvk: r.gvk()}, r.memberKey())
		Expect(err).NotTo(HaveOccurred())
		if obj != nil {
			all[name] = obj
		}
	}
	return all
}

// unharmed wants all objects and pods to be the ones from the beginning, and ends the watch.
func (c *convoy) unharmed(ctx context.Context) {
	GinkgoHelper()
	Expect(gocmp.Diff(c.before, imprints(ctx, c.all))).To(BeEmpty(), "what began on %s: - before, + after", c.backend)
	c.pods.undisturbed(0)
}

// turn sets spec.backend to the other one, or back.
func turn(ctx context.Context, all ...*livedOn) {
	GinkgoHelper()
	for _, r := range all {
		edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = otherBackend(fw.Spec.Backend) })
	}
}

// arrive waits until workloads are on the backend that their spec names, and nothing is left of the migration to do or
// on the other one.
func arrive(ctx context.Context, all ...*livedOn) {
	GinkgoHelper()
	for _, r := range all {
		eventually(ctx, r.fw, readyTimeout, func(g Gomega) {
			g.Expect(r.fw.Status.Backend).To(Equal(r.fw.Spec.Backend))
			g.Expect(r.fw.Status.Migration).NotTo(BeNil())
			g.Expect(r.fw.Status.Migration.Phase).To(BeEmpty())
			g.Expect(isReady(r.fw)).To(BeTrue())
		})
	}
	traceless(ctx, all)
}

// traceless wants nothing of workloads to be on the backend that they are not on, and no mark of it on members.
func traceless(ctx context.Context, all []*livedOn) {
	GinkgoHelper()
	for _, b := range backends {
		var there, left []string
		for _, r := range all {
			if r.fw.Status.Backend != b {
				there = append(there, identity(r.fw))
				left = append(left, marksOf(ctx, r, b)...)
			}
		}
		if len(there) == 0 {
			continue
		}
		Expect(left).To(BeEmpty(), "left of %s on members", b)
		Expect(leftOn(ctx, b, there)).To(BeEmpty(), "left on %s", b)
	}
}

// leftOn lists what a backend has of workloads, by their UIDs.
func leftOn(ctx context.Context, backend string, uids []string) []string {
	GinkgoHelper()
	left, err := labelled(ctx, controlOf(backend), v1alpha1.LabelUID+" in ("+strings.Join(uids, ",")+")")
	Expect(err).NotTo(HaveOccurred())
	if backend != "karmada" {
		return left
	}
	works, err := list(ctx, controlOf(backend), workGVK)
	Expect(err).NotTo(HaveOccurred())
	for _, work := range works {
		if delivers(work, uids...) {
			left = append(left, "work "+work.GetNamespace()+"/"+work.GetName())
		}
	}
	return left
}

// marksOf tells what a backend has left on member objects.
func marksOf(ctx context.Context, r *livedOn, backend string) (left []string) {
	GinkgoHelper()
	for name, obj := range r.objects(ctx) {
		for _, o := range obj.GetOwnerReferences() {
			if backend == "ocm" && o.Kind == "AppliedManifestWork" {
				left = append(left, fmt.Sprintf("%s on %s: owner %s", r.name, name, o.Name))
			}
		}
		for _, marks := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
			for key := range marks {
				if backend == "karmada" && strings.Contains(key, "karmada.io/") {
					left = append(left, fmt.Sprintf("%s on %s: %s", r.name, name, key))
				}
			}
		}
	}
	return left
}

// inPhase waits until migrations have come to a phase.
func inPhase(ctx context.Context, phase v1alpha1.MigrationPhase, all ...*livedOn) {
	GinkgoHelper()
	for _, r := range all {
		eventually(ctx, r.fw, readyTimeout, func(g Gomega) {
			g.Expect(r.fw.Status.Migration).NotTo(BeNil())
			g.Expect(r.fw.Status.Migration.Phase).To(Equal(phase))
			g.Expect(isObserved(r.fw)).To(BeTrue())
		})
	}
}

// asks waits until migrations need a person's approval, and say so.
func asks(ctx context.Context, wave int32, all ...*livedOn) {
	GinkgoHelper()
	for _, r := range all {
		eventually(ctx, r.fw, readyTimeout, func(g Gomega) {
			g.Expect(r.fw.Status.Migration).NotTo(BeNil())
			g.Expect(r.fw.Status.Migration.Wave).To(HaveValue(Equal(wave)))
			g.Expect(r.fw.Status.Migration.Approval).NotTo(BeEmpty())
			g.Expect(condition(r.fw, v1alpha1.ConditionStalled).Status).To(Equal(metav1.ConditionTrue))
		})
	}
}

// approve lets the step of a wave go on, once it asks for that.
func approve(ctx context.Context, wave int32, all ...*livedOn) {
	GinkgoHelper()
	asks(ctx, wave, all...)
	for _, r := range all {
		edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) {
			fw.Annotations = map[string]string{v1alpha1.AnnotationApproveMigration: fw.Status.Migration.Approval}
		})
	}
}

// ended wants the last migration to have ended so.
func ended(phase v1alpha1.MigrationPhase, all ...*livedOn) {
	GinkgoHelper()
	for _, r := range all {
		Expect(r.fw.Status.Migration.History).NotTo(BeEmpty())
		Expect(r.fw.Status.Migration.History[0].Phase).To(Equal(phase), describe(r.fw))
		independent := condition(r.fw, v1alpha1.ConditionIndependent)
		Expect(independent.Status).To(Or(Equal(metav1.ConditionTrue), Equal(metav1.ConditionUnknown)), describe(r.fw)) // an edit that waited adds clusters
		Expect(independent.Message).To(ContainSubstring("backend %q", otherBackend(r.fw.Status.Backend)))
	}
}

// brake stops what carries a backend's orders out on members, until it is released: Karmada's controllers and agents, or OCM's agents.
func brake(backend string) (release func()) {
	GinkgoHelper()
	names, err := world.fleet.ComponentsOf(backend)
	Expect(err).NotTo(HaveOccurred())
	names = slices.DeleteFunc(names, func(name string) bool {
		return name != "karmada-controller-manager" && !strings.HasSuffix(name, "-agent")
	})
	signal := func(s syscall.Signal) {
		for _, name := range names {
			Expect(processOf(name).Signal(s)).To(Succeed())
		}
	}
	release = sync.OnceFunc(func() { signal(syscall.SIGCONT) })
	DeferCleanup(release)
	signal(syscall.SIGSTOP)
	return release
}

// brakes stops both.
func brakes() (release func()) {
	GinkgoHelper()
	karmada, ocm := brake("karmada"), brake("ocm")
	return func() { karmada(); ocm() }
}

var _ = Describe("A hand-over", Label("handover", "karmada", "ocm"), func() {
	BeforeEach(func(ctx SpecContext) { sharedOperator(ctx) })

	It("moves running workloads there and back, and no pod notices", func(ctx SpecContext) {
		m := world.members
		var makers []func(namespace, backend string) *livedOn
		for _, k := range kinds {
			makers = append(makers, func(namespace, backend string) *livedOn {
				fw := workload(namespace, k.label, backend, k, 6)
				fw.Spec.Placement.Clusters = on(m[0], m[1])
				fw.Spec.Placement.Division = divided(weight(2, m[0]), weight(1, m[1]))
				fw.Spec.Overrides = []v1alpha1.Override{envOverride("debug", m[1])}
				return carried(fw, k)
			})
		}
		convoys := newConvoys(ctx, "move", makers...)
		all := named(convoys)
		for _, way := range []string{"there", "back"} {
			began := time.Now()
			turn(ctx, all...)
			arrive(ctx, all...)
			AddReportEntry(way, time.Since(began).Round(time.Millisecond).String())
			ended(v1alpha1.MigrationPhaseCompleted, all...)
		}
		for _, c := range convoys {
			c.unharmed(ctx)
		}
		for _, r := range all {
			Expect(statuses.lapses(r.fw)).To(BeEmpty(), "Ready comes once, and stays, while nothing is asked for")
			edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
		}
		for _, r := range all {
			becomesReady(ctx, r.fw)
			runs(ctx, r.fw, kind{gvk: r.gvk()}, map[string]want{m[0]: {4, imageNew, "info"}, m[1]: {2, imageNew, "debug"}})
		}
	})

	It("can be turned back in each phase", func(ctx SpecContext) {
		convoys := newConvoys(ctx, "turn", onTwo("shadowing"), onTwo("handing"), onTwo("wavering"), onTwo("verifying"), onTwo("releasing"))
		By("Shadowing")
		release := brakes()
		turn(ctx, named(convoys, "shadowing")...)
		inPhase(ctx, v1alpha1.MigrationPhaseShadowing, named(convoys, "shadowing")...)
		turn(ctx, named(convoys, "shadowing")...)
		release()
		turn(ctx, named(convoys, "handing", "wavering", "verifying", "releasing")...)

		By("Verifying")
		approve(ctx, 1, named(convoys, "releasing")...)
		asks(ctx, 1, named(convoys, "handing", "wavering", "verifying")...)
		turn(ctx, named(convoys, "verifying")...)
		asks(ctx, 2, named(convoys, "releasing")...)
		arrive(ctx, named(convoys, "shadowing", "verifying")...)
		ended(v1alpha1.MigrationPhaseRolledBack, named(convoys, "shadowing", "verifying")...)

		By("HandingOver, of the second wave, and Releasing")
		release = brakes()
		approve(ctx, 1, named(convoys, "handing", "wavering")...)
		approve(ctx, 2, named(convoys, "releasing")...)
		inPhase(ctx, v1alpha1.MigrationPhaseHandingOver, named(convoys, "handing", "wavering")...)
		inPhase(ctx, v1alpha1.MigrationPhaseReleasing, named(convoys, "releasing")...)
		turn(ctx, named(convoys, "handing", "wavering", "releasing")...)
		inPhase(ctx, v1alpha1.MigrationPhaseRollingBack, named(convoys, "handing", "wavering")...)
		inPhase(ctx, v1alpha1.MigrationPhaseReleasing, named(convoys, "releasing")...)
		turn(ctx, named(convoys, "wavering")...)
		inPhase(ctx, v1alpha1.MigrationPhaseShadowing, named(convoys, "wavering")...)
		release()
		approve(ctx, 1, named(convoys, "wavering", "releasing")...)
		approve(ctx, 2, named(convoys, "wavering", "releasing")...)
		arrive(ctx, named(convoys)...)
		ended(v1alpha1.MigrationPhaseRolledBack, named(convoys, "handing")...)
		ended(v1alpha1.MigrationPhaseCompleted, named(convoys, "wavering", "releasing")...)
		for _, c := range convoys {
			c.unharmed(ctx)
		}
	}, SpecTimeout(12*time.Minute))
})
