//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// moveReport is what scripts read of the report of a moved fleet.
type moveReport struct {
	Outcome  string         `json:"outcome"`
	Summary  map[string]int `json:"summary"`
	Evidence struct {
		Clusters    int `json:"clusters"`
		SameObject  int `json:"sameObject"`
		OtherObject int `json:"otherObject"`
		OtherPods   int `json:"otherPodRevision"`
		FewerReady  int `json:"fewerReady"`
	} `json:"evidence"`
	Workloads []struct {
		Namespace string                            `json:"namespace"`
		Name      string                            `json:"name"`
		From      string                            `json:"from"`
		Result    string                            `json:"result"`
		Message   string                            `json:"message"`
		Phases    []map[string]any                  `json:"phases"`
		Clusters  []v1alpha1.MigrationClusterStatus `json:"clusters"`
	} `json:"workloads"`
}

func readMoveReport(path string) (report moveReport, results map[string]string) {
	GinkgoHelper()
	raw, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(raw, &report)).To(Succeed())
	results = map[string]string{}
	for _, w := range report.Workloads {
		results[w.Name] = w.Result
	}
	return report, results
}

// sixOfAFleet run on Karmada in two namespaces: "asks" waits for a person after its first wave, and "differs" cannot begin while the
// cluster has that label on OCM.
func sixOfAFleet(ctx context.Context, label string) []*v1alpha1.FleetWorkload {
	GinkgoHelper()
	m := world.members
	var all []*v1alpha1.FleetWorkload
	for i, namespace := range []string{newNamespace(ctx, "fleet-a"), newNamespace(ctx, "fleet-b")} {
		for _, name := range [][]string{{"asks", "differs", "one"}, {"two", "three", "four"}}[i] {
			fw := workload(namespace, name, "karmada", cloneSet, 2)
			fw.Labels = map[string]string{"fleet": label}
			fw.Spec.Placement.Clusters = on(m[0], m[1])
			switch name {
			case "asks":
				fw.Spec.Migration = &v1alpha1.MigrationStrategy{Waves: []v1alpha1.MigrationWave{
					{Name: "first", Clusters: on(m[0]), Approval: v1alpha1.ApprovalPolicyManual},
				}}
			case "differs":
				fw.Spec.Overrides = []v1alpha1.Override{envOverride("debug")}
				fw.Spec.Overrides[0].Clusters = &v1alpha1.ClusterSelector{
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/" + label: "loud"}},
				}
			}
			all = append(all, create(ctx, fw))
		}
	}
	becomesReady(ctx, all...)
	return all
}

var _ = Describe("A fleet", Label("handover", "commandline", "karmada", "ocm"), func() {
	It("is moved so many at once, past those that wait and fail, and the same command goes on with the rest", func(ctx SpecContext) {
		sharedOperator(ctx)
		m, program, label := world.members, buildKubectlFW(ctx), "moved-together"
		unlabel := func(ctx context.Context) { labelCluster(ctx, "ocm", m[1], "example.com/"+label, "") }
		DeferCleanup(func(ctx SpecContext) { unlabel(ctx) })
		labelCluster(ctx, "ocm", m[1], "example.com/"+label, "loud")
		all := sixOfAFleet(ctx, label)
		var lived []*livedOn
		pods := map[string]*podWatch{}
		for _, fw := range all {
			lived = append(lived, carried(fw, cloneSet))
			if pods[fw.Namespace] == nil {
				pods[fw.Namespace] = watchPods(fw.Namespace)
			}
		}
		together, before := watchCrowd(lived), imprints(ctx, lived)
		report := filepath.Join(GinkgoT().TempDir(), "move.json")
		move := func(more ...string) (out, errOut string, err error) {
			args := []string{"migrate", "--all", "-A", "-l", "fleet=" + label, "--from", "karmada", "--to", "ocm", "--at-once", "2"}
			return commandLine(ctx, program, all[0], append(args, more...)...)
		}

		out, errOut, err := move("--dry-run")
		Expect(err).NotTo(HaveOccurred(), errOut)
		Expect(out).To(MatchRegexp(`(?m)^1 +%s/asks +karmada +2 +`, all[0].Namespace))
		Expect(out).To(HavePrefix("6 FleetWorkloads to backend ocm: 0 there, 6 to go. A dry run: nothing was changed\n"))

		out, errOut, err = move("--max-failures", "1", "--patience", "5s", "--report", report)
		Expect(err).To(HaveOccurred())
		Expect(errOut).To(ContainSubstring("error: not all are on backend ocm: 4 there, 1 waiting, 1 failed"))
		Expect(out).To(MatchRegexp("let it go on with: kubectl.fw approve asks -n " + all[0].Namespace))
		first, results := readMoveReport(report)
		Expect(first.Outcome).To(Equal("Incomplete"))
		Expect(results).To(Equal(map[string]string{
			"asks": "WaitsForPerson", "differs": "Failed", "one": "Moved", "two": "Moved", "three": "Moved", "four": "Moved",
		}))
		Expect(first.Workloads[1].Message).To(ContainSubstring("spec.overrides make another manifest of cluster " + m[1]))
		Expect(first.Workloads[2].Phases).NotTo(BeEmpty(), first.Workloads[2].Name)
		most, _ := together.seen()
		Expect(most).To(BeNumerically("<=", 2))

		unlabel(ctx)
		approve(ctx, 1, lived[0])
		eventually(ctx, all[1], readyTimeout, func(g Gomega) { // by itself
			g.Expect(all[1].Status.Migration.Phase).NotTo(Equal(v1alpha1.MigrationPhaseValidating))
		})
		out, errOut, err = move("--report", report)
		Expect(err).NotTo(HaveOccurred(), out+errOut)
		last, results := readMoveReport(report)
		Expect(results).To(Equal(map[string]string{
			"asks": "Moved", "differs": "Moved", "one": "AlreadyThere", "two": "AlreadyThere", "three": "AlreadyThere", "four": "AlreadyThere",
		}))
		Expect(last.Outcome).To(Equal("Complete"))
		Expect(last.Evidence.Clusters).To(Equal(12))
		Expect(last.Evidence.SameObject).To(Equal(12))
		Expect(last.Evidence.OtherObject + last.Evidence.OtherPods + last.Evidence.FewerReady).To(BeZero())
		for _, w := range last.Workloads {
			Expect(w.From).To(Equal("karmada"), w.Name)
			Expect(w.Clusters).To(HaveLen(2), w.Name)
			for _, c := range w.Clusters {
				Expect(c.Before.UID).To(And(Not(BeEmpty()), Equal(c.After.UID)), w.Name)
				Expect(c.Before.Ready).To(HaveValue(BeEquivalentTo(2)), w.Name)
			}
		}
		arrive(ctx, lived...)
		Expect(imprints(ctx, lived)).To(Equal(before))
		for _, w := range pods {
			w.undisturbed(0)
		}
		for _, fw := range all {
			remove(ctx, fw)
		}
	}, NodeTimeout(12*time.Minute))
})
