//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// buildKubectlFW builds the command line and returns the binary's path.
func buildKubectlFW(ctx context.Context) string {
	GinkgoHelper()
	path := filepath.Join(world.dir, "kubectl-fw")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/kubectl-fw")
	build.Dir = ".."
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "go build ./cmd/kubectl-fw: %s", out)
	return path
}

// commandLine runs the command line as an administrator of the management cluster.
func commandLine(ctx context.Context, program string, fw *v1alpha1.FleetWorkload, args ...string) (out, errOut string, err error) {
	args = append([]string{"--kubeconfig", world.fleet.Kubeconfig(lab.Hub), "-n", fw.Namespace}, args...)
	cmd := exec.CommandContext(ctx, program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	AddReportEntry(filepath.Base(program), ReportEntryVisibilityFailureOrVerbose, stdout.String()+stderr.String())
	return stdout.String(), stderr.String(), err
}

var _ = Describe("The command line", Label("handover", "commandline"), func() {
	It("says what a hand-over would do, follows it, and says when a person is needed", func(ctx SpecContext) {
		o := sharedOperator(ctx)
		program := buildKubectlFW(ctx)
		m := world.members
		fw := workload(newNamespace(ctx, "commandline"), "web", "karmada", cloneSet, 6)
		fw.Spec.Placement.Clusters = on(m[0], m[1])
		fw.Spec.Placement.Division = divided(weight(2, m[0]), weight(1, m[1]))
		fw.Spec.Migration = &v1alpha1.MigrationStrategy{Waves: []v1alpha1.MigrationWave{
			{Name: "first", Clusters: on(m[0]), Approval: v1alpha1.ApprovalPolicyManual},
		}}
		create(ctx, fw)
		becomesReady(ctx, fw)
		pods, before := podUIDs(ctx, fw), fw.ResourceVersion
		run := func(args ...string) (out, errOut string, err error) { return commandLine(ctx, program, fw, args...) }

		out, errOut, err := run("migrate", "web", "--to", "ocm", "--dry-run", "--config", o.path("config.yaml"))
		Expect(err).NotTo(HaveOccurred(), errOut)
		Expect(out).To(MatchRegexp(`(?m)^` + m[0] + ` +1 +4 +4 +observe, hand over, approval, release$`))
		Expect(out).To(MatchRegexp(`(?m)^` + m[1] + ` +2 +2 +2 +observe, hand over, release$`))
		out, errOut, err = run("migrate", "web", "--to", "nowhere", "--dry-run", "--config", o.path("config.yaml"))
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring(`problem: backend "nowhere"`))
		Expect(errOut).To(ContainSubstring("error: the migration would not begin, 1 problem stands against it"))
		refresh(ctx, fw)
		Expect(fw.ResourceVersion).To(Equal(before), "a dry run changes nothing")
		Expect(labelled(ctx, controlOf("ocm"), ofWorkload(fw))).To(BeEmpty())

		out, errOut, err = run("migrate", "web", "--to", "ocm", "--wait")
		Expect(err).To(HaveOccurred())
		Expect(errOut).To(ContainSubstring("error: wave 1 has passed and waits for a person"))
		Expect(out).To(MatchRegexp(`(?m)^` + m[0] + ` +1 +Verifying +4 +4 +yes +yes +- +-$`))
		_, errOut, err = run("approve", "web")
		Expect(err).NotTo(HaveOccurred(), errOut)
		out, errOut, err = run("migrate", "web", "--to", "ocm", "--wait")
		Expect(err).NotTo(HaveOccurred(), errOut)
		Expect(out).To(HaveSuffix("/web is on backend ocm\n"))
		Expect(out).To(MatchRegexp(`(?m)^` + m[1] + ` +2 +Releasing +2 +2 +yes +yes +- +-$`))

		becomesReady(ctx, fw)
		Expect(podUIDs(ctx, fw)).To(Equal(pods))
		remove(ctx, fw)
	}, NodeTimeout(12*time.Minute))
})

// sound is the operator's configuration with the backends that work.
func sound(o *operator) string {
	GinkgoHelper()
	raw, err := os.ReadFile(o.path("config.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var configuration map[string]any
	Expect(yaml.Unmarshal(raw, &configuration)).To(Succeed())
	configuration["backends"] = configuration["backends"].([]any)[:len(backends)]
	raw, err = yaml.Marshal(configuration)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(o.path("sound.yaml"), raw, 0o600)).To(Succeed())
	return o.path("sound.yaml")
}

var _ = Describe("The command line for a workload", Label("commandline", "karmada", "ocm"), func() {
	for _, backend := range backends {
		It("asks the operator what an edit comes to on "+backend+", with an author's rights", Label(backend, "tenancy"), func(ctx SpecContext) {
			sharedOperator(ctx)
			program, m := buildKubectlFW(ctx), world.members
			fw := workload(makeNamespace(ctx, "propose"), "web", backend, deployment, 4)
			fw.Spec.Placement.Clusters, fw.Spec.Placement.Division = on(m[0], m[1]), divided()
			create(ctx, fw)
			becomesReady(ctx, fw)
			mayEdit(ctx, fw.Namespace)
			file, next := filepath.Join(world.dir, fw.Namespace+".yaml"), fw.DeepCopy()
			plan := func(edit func(*v1alpha1.FleetWorkload)) (out string, code int) {
				GinkgoHelper()
				next = &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: fw.Namespace, Name: fw.Name}, Spec: *fw.Spec.DeepCopy()}
				next.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FleetWorkload"))
				edit(next)
				raw, err := yaml.Marshal(next)
				Expect(err).NotTo(HaveOccurred())
				Expect(os.WriteFile(file, raw, 0o600)).To(Succeed())
				out, errOut, err := commandLine(ctx, program, fw, person("planner", "plan", "-f", file)...)
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					return out + errOut, exit.ExitCode()
				}
				Expect(err).NotTo(HaveOccurred())
				return out + errOut, 0
			}
			pods, before, generation := podUIDs(ctx, fw), specs(ctx, fw, deployment), fw.Generation

			narrower := func(fw *v1alpha1.FleetWorkload) {
				setImage(fw, imageNew)
				fw.Spec.Placement.Clusters = on(m[1], m[2])
			}
			Eventually(func() string { out, _ := plan(narrower); return out }).WithContext(ctx).ShouldNot(ContainSubstring("Forbidden"), "until RBAC knows the author")
			out, code := plan(narrower)
			Expect(code).To(Equal(2), out)
			Expect(out).To(And(ContainSubstring(imageOld+" -> "+imageNew), ContainSubstring("\nCreate on "+m[2]+", Remove on "+m[0]+", Update on "+m[1]+"\n"),
				MatchRegexp(`(?m)^`+m[0]+` +remove +2 +SpecChanged$`), MatchRegexp(`(?m)^`+m[1]+` +update +2 +-$`), MatchRegexp(`(?m)^`+m[2]+` +create +2 +-$`)))
			out, code = plan(func(*v1alpha1.FleetWorkload) {})
			Expect(code).To(Equal(0), out)
			out, code = plan(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters = on("membr1") })
			Expect(code).To(Equal(1), out)
			Expect(out).To(ContainSubstring(`spec.placement.clusters.names[0] "membr1"`))
			out, code = plan(func(fw *v1alpha1.FleetWorkload) {
				fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"}}`)}}
			})
			Expect(code).To(Equal(1), out)
			Expect(out).To(ContainSubstring("may not create services"))

			By("nothing has come of it")
			refresh(ctx, fw)
			Expect(fw.Generation).To(Equal(generation))
			Expect(fw.Annotations).NotTo(HaveKey(v1alpha1.AnnotationPropose))
			eventually(ctx, fw, readyTimeout, func(g Gomega) { g.Expect(fw.Status.Proposal).To(BeNil()) })
			nothingRemoved(ctx, fw, deployment, pods, before)

			By("the file is applied")
			_, code = plan(narrower)
			Expect(code).To(Equal(2))
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec = next.Spec })
			becomesReady(ctx, fw)
			runs(ctx, fw, deployment, map[string]want{m[1]: {2, imageNew, "info"}, m[2]: {2, imageNew, "info"}})
			remove(ctx, fw)
		}, NodeTimeout(5*time.Minute))
	}

	for _, backend := range backends {
		It("says what an edit would change on "+backend+", and what is so", Label(backend), func(ctx SpecContext) {
			o := sharedOperator(ctx)
			program := buildKubectlFW(ctx)
			m := world.members
			fw := workload(newNamespace(ctx, "plan"), "web", backend, deployment, 4)
			fw.Spec.Placement.Clusters, fw.Spec.Placement.Division = on(m[0], m[1]), divided()
			file := filepath.Join(world.dir, fw.Namespace+".yaml")
			run := func(args ...string) (out string, code int) {
				out, errOut, err := commandLine(ctx, program, fw, args...)
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					return out + errOut, exit.ExitCode()
				}
				Expect(err).NotTo(HaveOccurred())
				return out + errOut, 0
			}
			plan := func(edit func(*v1alpha1.FleetWorkload)) (out string, code int) {
				next := &v1alpha1.FleetWorkload{TypeMeta: fw.TypeMeta, ObjectMeta: metav1.ObjectMeta{Namespace: fw.Namespace, Name: fw.Name}, Spec: *fw.Spec.DeepCopy()}
				next.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FleetWorkload"))
				edit(next)
				raw, err := yaml.Marshal(next)
				Expect(err).NotTo(HaveOccurred())
				Expect(os.WriteFile(file, raw, 0o600)).To(Succeed())
				return run("plan", "-f", file, "--config", o.path("config.yaml"))
			}
			same := func(*v1alpha1.FleetWorkload) {}

			out, code := plan(same)
			Expect(code).To(Equal(2), out)
			Expect(out).To(And(ContainSubstring("it is new"), MatchRegexp(`(?m)^`+m[0]+` +create +2 +-$`)))
			create(ctx, fw)
			becomesReady(ctx, fw)
			before := fw.ResourceVersion
			out, code = plan(same)
			Expect(code).To(Equal(0), out)
			Expect(out).To(MatchRegexp(`(?m)^` + m[1] + ` +none +2 +-$`))
			out, code = plan(func(fw *v1alpha1.FleetWorkload) {
				setImage(fw, imageNew)
				fw.Spec.Placement.Clusters = on(m[1], m[2])
			})
			Expect(code).To(Equal(2), out)
			Expect(out).To(And(ContainSubstring(imageOld+" -> "+imageNew), MatchRegexp(`(?m)^`+m[0]+` +remove +2 +SpecChanged$`),
				MatchRegexp(`(?m)^`+m[1]+` +update +2 +-$`), MatchRegexp(`(?m)^`+m[2]+` +create +2 +-$`)))
			out, code = plan(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters = on("membr1") })
			Expect(code).To(Equal(1), out)
			Expect(out).To(ContainSubstring(`spec.placement.clusters.names[0] "membr1"`))
			out, code = plan(func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = otherBackend(backend) })
			Expect(code).To(Equal(2), out)
			Expect(out).To(ContainSubstring("it would be handed over from backend " + backend))
			refresh(ctx, fw)
			Expect(fw.ResourceVersion).To(Equal(before), "a plan changes nothing")

			By("suspending it")
			out, code = run("suspend", "web")
			Expect(code).To(Equal(0), out)
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
			out, code = plan(same)
			Expect(code).To(Equal(0), out)
			Expect(out).To(MatchRegexp(`(?m)^` + m[0] + ` +hold +2 +-$`))
			out, code = run("resume", "web")
			Expect(code).To(Equal(0), out)
			becomesReady(ctx, fw)
			runs(ctx, fw, deployment, map[string]want{m[0]: {2, imageNew, "info"}, m[1]: {2, imageNew, "info"}})
			out, code = run("get")
			Expect(code).To(Equal(0), out)
			Expect(out).To(And(MatchRegexp(`(?m)^web +Deployment +`+backend+` +4/4 +2/2 +Ready `), HaveSuffix("\n1 FleetWorkload: 1 Ready\n")))
			out, code = run("get", "web")
			Expect(code).To(Equal(0), out)
			Expect(out).To(And(MatchRegexp(`(?m)^│  [├└]─ `+m[0]+` +2/2 +Healthy `), HaveSuffix("└─ on each cluster\n   └─ Deployment web\n")))
			out, code = run("events", "web")
			Expect(code).To(Equal(0), out)
			Expect(out).To(And(HavePrefix("LAST SEEN "), MatchRegexp(` Normal +Ready +4/4 replicas ready on 2 clusters\n`)))
			out, code = run("__complete", "status", "")
			Expect(code).To(Equal(0), out)
			Expect(out).To(HavePrefix("web\n"))

			By("looking for what is wrong")
			out, _ = run("doctor", "--config", sound(o), "--operator-namespace", operatorNamespace)
			Expect(out).To(And(ContainSubstring("it can be reached, and its clock is right"), ContainSubstring("the CRD has all fields"),
				ContainSubstring("the webhook is configured"), ContainSubstring("backend karmada (Karmada)\n  ok       connected; 3 of 3 clusters ready\n"),
				ContainSubstring("backend ocm (OCM)\n  ok       connected; 3 of 3 clusters ready\n")))
		}, NodeTimeout(5*time.Minute))
	}
})
