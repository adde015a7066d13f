//go:build e2e

// Package e2e runs scenarios on real control planes: the operator as a process with exactly the rights of config/rbac,
// Karmada, Open Cluster Management, and member clusters in which pods run.
package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// Environment variables for development.
const (
	// envLabDir names the folder of a fleet that runs already, or, for several processes, a folder with one for each, named by
	// its number. They are left running.
	envLabDir = "LAB_DIR"
	// envManager names a manager's binary to use instead of building one.
	envManager = "E2E_MANAGER"
	// envKeep keeps logs and configuration in this folder.
	envKeep = "E2E_KEEP"
	// envReport names the file that takes what failed and what took long.
	envReport = "E2E_REPORT"
)

const (
	members = 3
	// long is for scenarios of about a minute or more: begun first, they leave no process working alone at the end.
	long = SpecPriority(1)
)

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
	if deadline, set := t.Deadline(); set && suite.ParallelTotal == 1 {
		// go test ends the process without a word: the fleet must be taken down before.
		suite.Timeout = min(suite.Timeout, time.Until(deadline)-3*time.Minute)
	}
	RunSpecs(t, "FleetWorkload", suite, reporter)
}

// built is what one process makes for all.
type built struct {
	// Dir is a folder of the suite's own.
	Dir string
	// Manager is the operator's binary.
	Manager string
}

// Each process has a fleet and an operator of its own; one of them builds the operator for all.
var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	b := built{Dir: os.Getenv(envKeep), Manager: os.Getenv(envManager)}
	Expect(b.Dir == "" || filepath.IsAbs(b.Dir)).To(BeTrue(), envKeep+" is to be an absolute path: kubeconfigs are kept there, and a checkout is no place for them")
	if b.Dir == "" {
		var err error
		b.Dir, err = os.MkdirTemp("", "fleetworkload-e2e-")
		Expect(err).NotTo(HaveOccurred())
	}
	if b.Manager == "" {
		b.Manager = filepath.Join(b.Dir, "manager")
		build := exec.CommandContext(ctx, "go", "build", "-o", b.Manager, "./cmd/manager")
		build.Dir = ".."
		out, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "go build ./cmd/manager: %s", out)
	}
	raw, err := json.Marshal(b)
	Expect(err).NotTo(HaveOccurred())
	return raw
}, func(ctx SpecContext, raw []byte) {
	var b built
	Expect(json.Unmarshal(raw, &b)).To(Succeed())
	dir := filepath.Join(b.Dir, fmt.Sprint("process", GinkgoParallelProcess()))
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	repository, err := filepath.Abs("..")
	Expect(err).NotTo(HaveOccurred())
	world, err = newEnvironment(testFleet(ctx, filepath.Join(dir, "fleet")), dir, filepath.Join(repository, "config"))
	Expect(err).NotTo(HaveOccurred())
	world.manager = b.Manager
	Expect(world.install(ctx)).To(Succeed())
	answerWebhook(ctx)
	statuses = watchStatuses(world)
	DeferCleanup(statuses.stop)
	DeferCleanup(func(ctx SpecContext) { stopShared(ctx) }, NodeTimeout(time.Minute))
}, NodeTimeout(45*time.Minute))

var _ = SynchronizedAfterSuite(func() {
	if world != nil {
		used.save(filepath.Dir(world.dir))
	}
}, func() {
	if world == nil {
		return
	}
	if suite, _ := GinkgoConfiguration(); suite.LabelFilter == "" && len(suite.FocusStrings)+len(suite.SkipStrings)+len(suite.FocusFiles)+len(suite.SkipFiles) == 0 {
		allAreUsed(filepath.Dir(world.dir))
	}
	if os.Getenv(envKeep) == "" {
		Expect(os.RemoveAll(filepath.Dir(world.dir))).To(Succeed())
	}
})

// testFleet is the process's fleet of those that run already, or a new one that ends with the suite.
func testFleet(ctx context.Context, dir string) *lab.Fleet {
	GinkgoHelper()
	if running := os.Getenv(envLabDir); running != "" {
		if suite, _ := GinkgoConfiguration(); suite.ParallelTotal > 1 {
			running = filepath.Join(running, fmt.Sprint(GinkgoParallelProcess()))
		}
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
		AddReportEntry("log of the webhook", ReportEntryVisibilityFailureOrVerbose, answering.logTail(20))
		AddReportEntry(entryFacts, ReportEntryVisibilityFailureOrVerbose, facts(ctx))
		Expect(world.fleet.Check(ctx)).To(Succeed())
		world.give(ctx)
	}
	for _, o := range operators() {
		Expect(o.unexpectedExit()).To(Succeed())
		Expect(o.lacksRights(ctx)).To(Succeed())
	}
}, NodeTimeout(time.Minute))

// What CI keeps of a log is its end: what failed and why, and what took long, are said there, by who runs the suite.
var _ = ReportAfterSuite("what failed and what took long", func(report Report) {
	path := os.Getenv(envReport)
	if path == "" {
		return
	}
	const failures, slowest = 4800, 12 // characters; scenarios
	text := failuresOf(report.SpecReports, failures) + slowestOf(report.SpecReports, slowest)
	Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
})

// slowestOf lists the specs that took longest, and how many ran.
func slowestOf(specs types.SpecReports, most int) string {
	ran := specs.WithState(types.SpecStatePassed | types.SpecStateFailureStates)
	ran = slices.Clone(ran.WithLeafNodeType(types.NodeTypeIt))
	slices.SortStableFunc(ran, func(a, b types.SpecReport) int { return cmp.Compare(b.RunTime, a.RunTime) })
	var text strings.Builder
	fmt.Fprintf(&text, "%d scenarios; the slowest:\n", len(ran))
	for _, spec := range ran[:min(len(ran), most)] {
		fmt.Fprintf(&text, "%6.1fs  process %d  %s\n", spec.RunTime.Seconds(), spec.ParallelProcess, spec.FullText())
	}
	return text.String()
}

// failuresOf says why specs have failed, in few words; each gets its share of the characters.
func failuresOf(specs types.SpecReports, characters int) string {
	failed := specs.WithState(types.SpecStateFailureStates)
	var text strings.Builder
	for _, spec := range failed {
		at := spec.FailureLocation()
		line := fmt.Sprintf("FAILED %s:%d %.40s: %s", filepath.Base(at.FileName), at.LineNumber, spec.LeafNodeText, inShort(spec.FailureMessage()))
		for _, entry := range spec.ReportEntries {
			if entry.Name == entryFacts {
				line += "; " + entryFacts + ": " + inOneLine(entry.Value.String())
			}
		}
		fmt.Fprintln(&text, line[:min(len(line), max(180, characters/len(failed)))])
	}
	return text.String()
}

// gomega's words around what a spec has to say.
var aroundMessages = regexp.MustCompile(`(?s)The function passed to \w+ (failed|returned)[^\n]*\n|\s+`)

func inOneLine(message string) string {
	return strings.TrimSpace(aroundMessages.ReplaceAllString(message, " "))
}

// inShort is the beginning of a message and its end, which says what was wanted last.
func inShort(message string) string {
	const first, last = 800, 300 // characters
	short := inOneLine(message)
	if len(short) <= first+last {
		return short
	}
	return short[:first] + " ... " + short[len(short)-last:]
}
