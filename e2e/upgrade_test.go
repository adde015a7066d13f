//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

// Of make upgrade BEFORE=<commit>.
const (
	// envBefore is the tree of the release before, with the manager built at bin/manager.
	envBefore = "E2E_BEFORE"
	// envHelm is Helm's program.
	envHelm = "E2E_HELM"
)

var _ = func() bool {
	before := os.Getenv(envBefore)
	return before != "" && Describe("An upgrade from the release before, and back", Label("upgrade", "karmada", "ocm"), upgrades(before))
}()

func upgrades(before string) func() {
	return func() {
		It("touches no pod, wherever a hand-over stands", func(ctx SpecContext) {
			release := func(o *operator, manager string, args ...string) {
				GinkgoHelper()
				statuses.across(func() {
					helm(ctx, args...)
					changedOver(ctx)
				})
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
			// The scenario's webhook stays as the suite has installed it, since no Service leads out of the test fleet; and the account, whose tokens
			// the suite has given to the operators.
			install := []string{"install", "fleetworkload", "--set=webhook.enabled=false,serviceAccount.create=false", "--take-ownership"}
			DeferCleanup(func(ctx SpecContext) {
				helm(ctx, "uninstall", "fleetworkload", "--ignore-not-found")
				Expect(world.install(ctx)).To(Succeed())
			})
			olderChart, newerChart := filepath.Join(before, "charts", "fleetworkload"), filepath.Join("..", "charts", "fleetworkload")
			olderManager := filepath.Join(before, "bin", "manager")
			older := func(o *operator) { release(o, olderManager, "rollback", "fleetworkload") }
			newer := func(o *operator) {
				release(o, world.manager, "upgrade", "fleetworkload", newerChart, "--reset-then-reuse-values")
			}

			o, _ := ownOperator(ctx, "upgrade", operatorOptions{everywhere: true})
			release(o, olderManager, append(install, olderChart)...)
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

			By("uninstalling: FleetWorkloads and all that carries them out stay")
			o.stop(ctx)
			helm(ctx, "uninstall", "fleetworkload")
			role := client.ObjectKey{Name: "fleetworkload-management"}
			Expect(apierrors.IsNotFound(hub().Get(ctx, role, &rbacv1.ClusterRole{}))).To(BeTrue())
			for _, r := range named(convoys) {
				Expect(hub().Get(ctx, client.ObjectKeyFromObject(r.fw), r.fw)).To(Succeed())
				Expect(r.fw.DeletionTimestamp).To(BeNil())
			}
			By("installing it again: nothing is written to backends")
			release(o, world.manager, append(install, newerChart)...)
			o.settles(ctx)
			Expect(slices.DeleteFunc(o.journal.Entries(), func(e proxy.Entry) bool { return e.Server == "management" })).To(BeEmpty())
			for _, c := range convoys {
				c.unharmed(ctx)
			}
		}, SpecTimeout(12*time.Minute))
	}
}

// helm runs Helm on the operator's namespace of the management cluster.
func helm(ctx context.Context, args ...string) {
	GinkgoHelper()
	args = append(args, "--namespace="+operatorNamespace, "--kubeconfig="+world.fleet.Kubeconfig(lab.Hub))
	out, err := exec.CommandContext(ctx, os.Getenv(envHelm), args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), func() string { return fmt.Sprintf("helm %s: %s", strings.Join(args, " "), out) })
}

// changedOver waits until the API server has changed over to another CRD: watches from before end then.
func changedOver(ctx context.Context) {
	GinkgoHelper()
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
