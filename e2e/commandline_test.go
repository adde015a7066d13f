//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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
