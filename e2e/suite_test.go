//go:build e2e

// Package e2e runs scenarios on real control planes: the operator as a process with exactly the rights of config/rbac,
// Karmada, Open Cluster Management, and member clusters in which pods run.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// Environment variables for development.
const (
	// envLabDir names the folder of a fleet that runs already; it is left running.
	envLabDir = "LAB_DIR"
	// envManager names a manager's binary to use instead of building one.
	envManager = "E2E_MANAGER"
	// envKeep keeps logs and configuration in this folder.
	envKeep = "E2E_KEEP"
)

const members = 3

var (
	// world is what all specs share; nothing in it changes after BeforeSuite but the operator that runs.
	world *environment
	// statuses checks every status the operator writes.
	statuses *statusWatch
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(readyTimeout)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(200 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	klog.SetOutput(GinkgoWriter)
	klog.LogToStderr(false)
	ctrl.SetLogger(GinkgoLogr)
	suite, reporter := GinkgoConfiguration()
	reporter.Verbose = reporter.Verbose || testing.Verbose()
	if deadline, set := t.Deadline(); set {
		// go test ends the process without a word: the fleet must be taken down before.
		suite.Timeout = min(suite.Timeout, time.Until(deadline)-3*time.Minute)
	}
	RunSpecs(t, "FleetWorkload", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	repository, err := filepath.Abs("..")
	Expect(err).NotTo(HaveOccurred())
	dir := os.Getenv(envKeep)
	if dir == "" {
		dir, err = os.MkdirTemp("", "fleetworkload-e2e-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
	}
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	fleet := testFleet(ctx, filepath.Join(dir, "fleet"))
	world, err = newEnvironment(fleet, dir, filepath.Join(repository, "config"))
	Expect(err).NotTo(HaveOccurred())
	world.manager = os.Getenv(envManager)
	if world.manager == "" {
		world.manager = filepath.Join(dir, "manager")
		build := exec.CommandContext(ctx, "go", "build", "-o", world.manager, "./cmd/manager")
		build.Dir = repository
		out, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "go build ./cmd/manager: %s", out)
	}
	Expect(world.install(ctx)).To(Succeed())
	statuses = watchStatuses(world)
	DeferCleanup(statuses.stop)
	DeferCleanup(func(ctx SpecContext) { stopShared(ctx) }, NodeTimeout(time.Minute))
}, NodeTimeout(45*time.Minute))

// testFleet is the fleet of the environment variable, or a new one that ends with the suite.
func testFleet(ctx context.Context, dir string) *lab.Fleet {
	GinkgoHelper()
	if running := os.Getenv(envLabDir); running != "" {
		fleet, err := lab.Open(running)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(fleet.Members())).To(BeNumerically(">=", members))
		return fleet
	}
	DeferCleanup(func(ctx SpecContext) {
		fleet, err := lab.Open(dir)
		if err != nil {
			return // it never came so far
		}
		Expect(fleet.Down(ctx)).To(Succeed())
	}, NodeTimeout(2*time.Minute))
	fleet, err := lab.Up(ctx, lab.Options{Dir: dir, Members: members, Out: os.Stdout})
	Expect(err).NotTo(HaveOccurred())
	return fleet
}

var _ = AfterEach(func(ctx SpecContext) {
	Expect(statuses.violations()).To(BeEmpty(), "statuses that no operator may write")
	if CurrentSpecReport().Failed() {
		for _, o := range operators() {
			AddReportEntry("log of operator "+o.name, ReportEntryVisibilityFailureOrVerbose, o.logTail(60))
		}
		Expect(world.fleet.Check(ctx)).To(Succeed())
	}
	for _, o := range operators() {
		Expect(o.unexpectedExit()).To(Succeed())
	}
}, NodeTimeout(time.Minute))

// failures are why specs have failed, in few words.
var failures []string

var _ = ReportAfterSuite("why specs have failed", func(report Report) {
	for _, spec := range report.SpecReports {
		if spec.Failed() {
			at := spec.FailureLocation()
			failures = append(failures, fmt.Sprintf("%s:%d %.40s: %s", filepath.Base(at.FileName), at.LineNumber, spec.LeafNodeText, inShort(spec.FailureMessage())))
		}
	}
})

// TestMain says last why specs have failed: where only the end of a log is at hand, Ginkgo's summary names them and no more.
func TestMain(m *testing.M) {
	code := m.Run()
	const all, each = 900, 180 // characters
	for _, failure := range failures[:min(len(failures), all/each)] {
		fmt.Println(failure[:min(len(failure), max(each, all/len(failures)))])
	}
	os.Exit(code)
}

// gomega's words around what a spec has to say.
var aroundMessages = regexp.MustCompile(`(?s)^Timed out after [^\n]*\n|The function passed to \w+ (failed|returned)[^\n]*\n|\s+`)

func inShort(message string) string {
	return strings.TrimSpace(aroundMessages.ReplaceAllString(message, " "))
}
