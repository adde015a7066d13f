//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

// look has the operator look at workloads now.
func look(ctx context.Context, all []*livedOn) {
	GinkgoHelper()
	for _, r := range all {
		edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) {
			if fw.Annotations == nil {
				fw.Annotations = map[string]string{}
			}
			fw.Annotations["example.com/look"] = fmt.Sprint(time.Now().UnixNano())
		})
	}
}

// impatient waves have little time.
func impatient(timeout time.Duration, action v1alpha1.FailureAction) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Migration.Timeout, fw.Spec.Migration.OnFailure = soak(timeout), action
	}
}

// fails waits until a wave has failed, and is in one of the phases.
func fails(ctx context.Context, wave int32, phases []v1alpha1.MigrationPhase, all ...*livedOn) {
	GinkgoHelper()
	for _, r := range all {
		eventually(ctx, r.fw, readyTimeout, func(g Gomega) {
			g.Expect(r.fw.Status.Migration).NotTo(BeNil())
			g.Expect(phases).To(ContainElement(r.fw.Status.Migration.Phase))
			g.Expect(r.fw.Status.Migration.Wave).To(HaveValue(Equal(wave)))
			g.Expect(r.fw.Status.Migration.Failure).To(ContainSubstring("cluster " + world.members[wave-1]))
		})
	}
}

var _ = Describe("A wave that fails", Label("handover", "karmada", "ocm"), func() {
	BeforeEach(func(ctx SpecContext) { twoReplicas(ctx, "fails") })

	It("goes back or stays, as asked, and is tried again when a person says so", func(ctx SpecContext) {
		const little = 5 * time.Second
		convoys := newConvoys(ctx, "fails", onTwo("back", impatient(time.Minute, v1alpha1.FailureActionRollback)),
			onTwo("stay", impatient(time.Minute, v1alpha1.FailureActionPause)))
		all := named(convoys)
		turn(ctx, all...)
		asks(ctx, 1, all...)
		for _, r := range all {
			edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Migration.Timeout = soak(little) })
		}
		release := brakes()
		approve(ctx, 1, all...)
		back, stays := []v1alpha1.MigrationPhase{v1alpha1.MigrationPhaseRolledBack}, []v1alpha1.MigrationPhase{v1alpha1.MigrationPhaseHandingOver}
		// A source that has not begun to stop has nothing to take back.
		fails(ctx, 2, append(back, v1alpha1.MigrationPhaseRollingBack), named(convoys, "back")...)
		fails(ctx, 2, stays, named(convoys, "stay")...)
		for _, r := range named(convoys, "stay") {
			Expect(becomesStalled(ctx, r.fw, v1alpha1.ReasonMigrationFailed)).To(And(ContainSubstring("Try it again with: kubectl annotate"),
				ContainSubstring("cluster "+world.members[1]), ContainSubstring("set spec.backend back")))
		}
		release()
		fails(ctx, 2, back, named(convoys, "back")...)
		for _, c := range convoys {
			writtenBy(ctx, c.all[0].fw, otherBackend(c.backend), c.backend)
		}
		for _, r := range all {
			edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Migration.Timeout = nil })
		}
		By("trying again")
		approve(ctx, 2, all...) // the retry
		for _, r := range all {
			eventually(ctx, r.fw, readyTimeout, func(g Gomega) { g.Expect(r.fw.Status.Migration.Failure).To(BeEmpty()) })
		}
		approve(ctx, 2, all...)
		arrive(ctx, all...)
		ended(v1alpha1.MigrationPhaseCompleted, all...)
		for _, c := range convoys {
			c.unharmed(ctx)
		}
	}, SpecTimeout(12*time.Minute))
})

// loss takes an API server away from operators, and gives it back.
type loss struct {
	what          string
	lose, restore func(context.Context)
}

// killed loses an API server that dies, and is started again.
func killed(name string) loss {
	return loss{"killing the API server of " + name, func(ctx context.Context) {
		GinkgoHelper()
		DeferCleanup(func(ctx SpecContext) { Expect(world.fleet.ReviveAPIServer(ctx, name)).To(Succeed()) }, NodeTimeout(2*time.Minute))
		Expect(world.fleet.KillAPIServer(ctx, name)).To(Succeed())
	}, func(ctx context.Context) {
		GinkgoHelper()
		Expect(world.fleet.ReviveAPIServer(ctx, name)).To(Succeed())
	}}
}

// phasesOf are the phases of what moves.
func phasesOf(ctx context.Context, all []*livedOn) map[string]v1alpha1.MigrationPhase {
	GinkgoHelper()
	phases := map[string]v1alpha1.MigrationPhase{}
	for _, r := range all {
		refresh(ctx, r.fw)
		if m := r.fw.Status.Migration; m != nil {
			phases[r.fw.Namespace+"/"+r.fw.Name] = m.Phase
		}
	}
	return phases
}

// frozenWhile loses a backend and wants everything that moves to stand still meanwhile; others turn while it is lost.
func (p pair) frozenWhile(ctx context.Context, l loss, all, others []*livedOn) {
	GinkgoHelper()
	By(l.what)
	phases := phasesOf(ctx, all)
	lost := true
	DeferCleanup(func(ctx SpecContext) {
		if lost { // nothing could be deleted
			l.restore(ctx)
		}
	})
	l.lose(ctx)
	turn(ctx, others...)
	look(ctx, all)
	for _, r := range all {
		if slices.Contains(others, r) {
			waitsFor(ctx, r)
			continue
		}
		unavailable(ctx, r.fw)
		// A pass that had read both backends before, and could not write, says so first.
		eventually(ctx, r.fw, readyTimeout, func(g Gomega) { g.Expect(r.fw.Status.Migration.FrozenSince).NotTo(BeNil()) })
		Expect(r.fw.Status.Migration.Phase).To(Equal(phases[r.fw.Namespace+"/"+r.fw.Name]))
	}
	lost = false
	l.restore(ctx)
	p.goesOn(ctx, all)
	inPhase(ctx, v1alpha1.MigrationPhaseShadowing, others...)
}

// waitsFor wants a migration to wait for a backend that is lost, its source or its target, and to say so. It may have begun
// before the operator noticed.
func waitsFor(ctx context.Context, r *livedOn) {
	GinkgoHelper()
	eventually(ctx, r.fw, readyTimeout, func(g Gomega) {
		g.Expect(isObserved(r.fw)).To(BeTrue())
		g.Expect(condition(r.fw, v1alpha1.ConditionReady).Message + condition(r.fw, v1alpha1.ConditionStalled).Message).To(
			ContainSubstring("cannot be used"))
		if m := r.fw.Status.Migration; m != nil {
			g.Expect(m.Phase).To(BeElementOf(v1alpha1.MigrationPhase(""), v1alpha1.MigrationPhaseValidating, v1alpha1.MigrationPhaseShadowing))
		}
	})
}

// goesOn waits until nothing is frozen.
func (p pair) goesOn(ctx context.Context, all []*livedOn) {
	GinkgoHelper()
	p.reaches(ctx, true, backends...)
	look(ctx, all)
	for _, r := range all {
		eventually(ctx, r.fw, readyTimeout, func(g Gomega) {
			g.Expect(r.fw.Status.Migration).NotTo(BeNil())
			g.Expect(r.fw.Status.Migration.FrozenSince).To(BeNil())
		})
	}
}

var _ = Describe("A backend that is lost during a hand-over", Label("handover", "laws", "law8", "karmada", "ocm"), long, func() {
	It("freezes it, in each phase, and costs no pod", func(ctx SpecContext) {
		replicas := twoReplicas(ctx, "frozen")
		convoys := newConvoys(ctx, "frozen", onTwo("validating"), onTwo("shadowing"), onTwo("handing"),
			onTwo("verifying"), onTwo("releasing"), onTwo("back"))
		all := named(convoys)

		By("bringing one into each phase but the first")
		turn(ctx, named(convoys, "handing", "verifying", "releasing", "back")...)
		approve(ctx, 1, named(convoys, "releasing")...)
		asks(ctx, 2, named(convoys, "releasing")...)
		asks(ctx, 1, named(convoys, "handing", "verifying", "back")...)
		release := brakes()
		turn(ctx, named(convoys, "shadowing", "back")...)
		approve(ctx, 1, named(convoys, "handing")...)
		approve(ctx, 2, named(convoys, "releasing")...)
		for name, phase := range map[string]v1alpha1.MigrationPhase{
			"shadowing": v1alpha1.MigrationPhaseShadowing, "handing": v1alpha1.MigrationPhaseHandingOver,
			"verifying": v1alpha1.MigrationPhaseVerifying, "releasing": v1alpha1.MigrationPhaseReleasing,
			"back": v1alpha1.MigrationPhaseRollingBack,
		} {
			inPhase(ctx, phase, named(convoys, name)...)
		}
		replicas.frozenWhile(ctx, killed(lab.Karmada), all, named(convoys, "validating"))
		hubs := func(mode proxy.Mode) func(context.Context) {
			return func(context.Context) {
				for _, o := range replicas {
					o.ocm.Set(mode)
				}
			}
		}
		replicas.frozenWhile(ctx, loss{"cutting off the hub", hubs(proxy.Refuse), hubs(proxy.Forward)}, all, nil)
		phases := phasesOf(ctx, all)
		hub := killed(lab.Hub)
		By(hub.what + ", which is the management cluster, too: the leader loses its lease")
		leader, _ := replicas.roles(ctx)
		statuses.across(func() {
			hub.lose(ctx)
			leader.givesUp(ctx)
			hub.restore(ctx)
		})
		leader.start(ctx)
		replicas.goesOn(ctx, all)
		Expect(phasesOf(ctx, all)).To(Equal(phases))
		release()
		By("going on")
		forth := named(convoys, "validating", "shadowing", "handing", "verifying")
		approve(ctx, 1, named(convoys, "validating", "shadowing", "verifying")...)
		approve(ctx, 2, forth...)
		arrive(ctx, all...)
		ended(v1alpha1.MigrationPhaseRolledBack, named(convoys, "back")...)
		ended(v1alpha1.MigrationPhaseCompleted, append(forth, named(convoys, "releasing")...)...)
		for _, c := range convoys {
			c.unharmed(ctx)
		}
	}, SpecTimeout(12*time.Minute))
})

var _ = Describe("A member that is lost during its wave", Label("handover", "karmada", "ocm"), long, func() {
	BeforeEach(func(ctx SpecContext) { twoReplicas(ctx, "paused") })

	It("is waited for, or its wave goes back, and its pods stay", func(ctx SpecContext) {
		lost := world.members[1]
		convoys := newConvoys(ctx, "paused", onTwo("waits"), onTwo("fails", impatient(10*time.Minute, v1alpha1.FailureActionRollback)))
		waits, late, all := named(convoys, "waits"), named(convoys, "fails"), named(convoys)
		turn(ctx, all...)
		asks(ctx, 1, all...)
		for _, r := range late {
			edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Migration.Timeout = soak(5 * time.Second) })
		}
		resume := func(ctx SpecContext) { Expect(world.fleet.ResumeMember(ctx, lost)).To(Succeed()) }
		DeferCleanup(resume, NodeTimeout(2*time.Minute))
		Expect(world.fleet.PauseMember(ctx, lost)).To(Succeed())
		approve(ctx, 1, all...)
		inPhase(ctx, v1alpha1.MigrationPhaseHandingOver, waits...)
		fails(ctx, 2, []v1alpha1.MigrationPhase{v1alpha1.MigrationPhaseRollingBack}, late...)
		for _, r := range waits {
			Expect(condition(r.fw, v1alpha1.ConditionReady).Status).NotTo(Equal(metav1.ConditionTrue))
			Expect(r.fw.Status.Migration.Failure).To(BeEmpty())
		}
		resume(ctx)
		fails(ctx, 2, []v1alpha1.MigrationPhase{v1alpha1.MigrationPhaseRolledBack}, late...)
		turn(ctx, late...)
		approve(ctx, 2, waits...)
		arrive(ctx, all...)
		ended(v1alpha1.MigrationPhaseCompleted, waits...)
		ended(v1alpha1.MigrationPhaseRolledBack, late...)
		for _, c := range convoys {
			c.unharmed(ctx)
		}
	}, SpecTimeout(12*time.Minute))
})
