//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

// The release before: its tree, with the manager built at bin/manager (make upgrade BEFORE=<commit>).
const envBefore = "E2E_BEFORE"

var _ = func() bool {
	before := os.Getenv(envBefore)
	return before != "" && Describe("An upgrade from the release before, and back", Label("upgrade", "karmada", "ocm"), upgrades(before))
}()

func upgrades(before string) func() {
	return func() {
		It("touches no pod, wherever a hand-over stands", func(ctx SpecContext) {
			release := func(o *operator, tree, manager string) {
				GinkgoHelper()
				statuses.across(func() { define(ctx, tree) })
				o.opts.manager, answering.opts.manager = manager, manager
				o.journal.Reset()
				o.start(ctx)
				By("the webhook of this release answers, and is trusted as the one before")
				answering.stop(ctx)
				answering.start(ctx)
				Eventually(func() string {
					_, err := world.kubectlWith(ctx, written("try", "{}"), lab.Hub, "create", "-n", "default", "-f", "-", "--dry-run=server", "--as=nobody",
						"--as-group=nobodies")
					return fmt.Sprint(err)
				}).WithContext(ctx).Should(ContainSubstring(`user "nobody" may not create deployments.apps`))
			}
			DeferCleanup(func(ctx SpecContext) {
				answering.stop(ctx)
				answering.opts.manager = ""
				answering.start(ctx)
			})
			may := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "upgrade-"},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "fleetworkload-editor"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "nobodies"}}}
			Expect(hub().Create(ctx, may)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(hub().Delete(ctx, may)).To(Succeed()) })
			older := func(o *operator) { release(o, before, filepath.Join(before, "bin", "manager")) }
			newer := func(o *operator) { release(o, "..", world.manager) }

			o, _ := ownOperator(ctx, "upgrade", operatorOptions{everywhere: true})
			older(o)
			settings := func(fw *v1alpha1.FleetWorkload) {
				fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(
					`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings-` + fw.Name + `"},"data":{"a":"1"}}`)}}
			}
			convoys := newConvoys(ctx, "upgrade", onTwo("stays", settings), onTwo("begins", settings), onTwo("halfway", settings), onTwo("returns", settings))
			turn(ctx, named(convoys, "halfway", "returns")...)
			approve(ctx, 1, named(convoys, "halfway", "returns")...)
			asks(ctx, 2, named(convoys, "halfway", "returns")...)

			for _, step := range []struct {
				text    string
				install func(*operator)
				during  func()
			}{
				{"upgrade, and a hand-over begins", newer, func() {
					turn(ctx, named(convoys, "begins")...)
					asks(ctx, 1, named(convoys, "begins")...)
				}},
				{"rollback, and a hand-over goes on", older, func() { approve(ctx, 1, named(convoys, "begins")...) }},
				{"upgrade again, and a hand-over goes back", newer, func() { turn(ctx, named(convoys, "returns")...) }},
				{"rollback again", older, func() { arrive(ctx, named(convoys, "returns")...) }},
				{"upgrade for good, and hand-overs end", newer, func() {
					approve(ctx, 2, named(convoys, "begins", "halfway")...)
					arrive(ctx, named(convoys, "begins", "halfway")...)
				}},
			} {
				By(step.text)
				o.stop(ctx)
				step.install(o)
				o.settles(ctx)
				AddReportEntry(step.text, proxy.Describe(o.journal.Entries()))
				step.during()
			}
			for _, r := range named(convoys) {
				becomesReady(ctx, r.fw)
			}
			for _, c := range convoys {
				c.unharmed(ctx)
			}
		}, SpecTimeout(10*time.Minute))
	}
}

// define applies the CRD of a tree, and waits until the API server has changed over: watches from before end then.
func define(ctx context.Context, tree string) {
	GinkgoHelper()
	_, err := world.kubectl(ctx, lab.Hub, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(tree, "config", "crd"))
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(g Gomega) {
		var list v1alpha1.FleetWorkloadList
		g.Expect(hub().List(ctx, &list)).To(Succeed())
		seconds, start := int64(1), time.Now()
		watcher, err := hub().Watch(ctx, &v1alpha1.FleetWorkloadList{}, &client.ListOptions{Raw: &metav1.ListOptions{
			ResourceVersion: list.ResourceVersion, TimeoutSeconds: &seconds,
		}})
		g.Expect(err).NotTo(HaveOccurred())
		defer watcher.Stop()
		for event := range watcher.ResultChan() {
			g.Expect(event.Type).NotTo(Equal(watch.Error))
		}
		g.Expect(time.Since(start)).To(BeNumerically(">", 900*time.Millisecond), "a watch that ends before its time")
	}).WithContext(ctx).WithTimeout(30 * time.Second).Should(Succeed())
}

// settles waits until an operator has looked at everything and has nothing left to do.
func (o *operator) settles(ctx context.Context) {
	GinkgoHelper()
	o.reaches(ctx, true, backends...)
	var last float64
	Eventually(func(g Gomega) {
		passes, idle, err := o.reconciles()
		g.Expect(err).NotTo(HaveOccurred())
		same := passes == last && passes > 0
		last = passes
		g.Expect(idle && same).To(BeTrue())
	}).WithContext(ctx).WithTimeout(time.Minute).WithPolling(3 * time.Second).Should(Succeed())
}
