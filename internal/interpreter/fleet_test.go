package interpreter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// show is a state on one line: desired/replicas/ready/updated/available, whether it is up to date, health and reason.
func show(s State) string {
	var numbers []string
	upToDate := "-"
	if s.UpToDate != nil {
		upToDate = fmt.Sprint(*s.UpToDate)
	}
	for _, n := range []*int32{s.Desired, s.Replicas, s.Ready, s.Updated, s.Available} {
		if n == nil {
			numbers = append(numbers, "-")
			continue
		}
		numbers = append(numbers, fmt.Sprint(*n))
	}
	return fmt.Sprintf("%s %s %s %s", strings.Join(numbers, "/"), upToDate, s.Health, s.Reason)
}

// TestFleet interprets what members of the test fleet really said after each step of a kind's life. The objects are
// recorded by the end-to-end specs (E2E_FIXTURES in e2e/fixtures_test.go); what they mean stands here.
func TestFleet(t *testing.T) {
	files, err := filepath.Glob("testdata/fleet/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no fixtures", err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file)) + "/" + strings.TrimSuffix(filepath.Base(file), ".yaml")
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			raw, err = yaml.YAMLToJSON(raw)
			if err != nil {
				t.Fatal(err)
			}
			obj := &unstructured.Unstructured{}
			if err := obj.UnmarshalJSON(raw); err != nil {
				t.Fatal(err)
			}
			kind := kindOf(t, obj.GetAPIVersion(), obj.GetKind())
			s, err := kind.State(ReportOf(obj))
			if err != nil {
				t.Fatal(err)
			}
			if got := show(s); got != fleet[name] {
				t.Errorf("got %s, want %s", got, fleet[name])
			}
		})
	}
	for name := range fleet {
		if !seen[name] {
			t.Errorf("no fixture for %s", name)
		}
	}
}

// fleet is what each step means, as desired/replicas/ready/updated/available, up to date, health and reason. Members have
// three nodes; a workload with replicas has two. An update that gets stuck has taken one pod.
var fleet = map[string]string{
	"ads/create":    "3/3/3/3/3 true Healthy Complete",
	"ads/update":    "3/3/3/3/3 true Healthy Complete",
	"ads/partition": "3/3/3/2/3 false Healthy PartitionReached",
	"ads/release":   "3/3/3/3/3 true Healthy Complete",
	"ads/pause":     "3/3/3/0/3 false Suspended Paused",
	"ads/resume":    "3/3/3/3/3 true Healthy Complete",
	"ads/stuck":     "3/3/2/1/2 false Progressing Updating",

	"advancedcronjob/create": "-/-/-/-/- - Healthy Scheduled",
	"advancedcronjob/pause":  "-/-/-/-/- - Suspended Paused",
	"advancedcronjob/resume": "-/-/-/-/- - Healthy Scheduled",

	"asts/create":    "2/2/2/2/2 true Healthy Complete",
	"asts/update":    "2/2/2/2/2 true Healthy Complete",
	"asts/partition": "2/2/2/1/2 false Healthy PartitionReached",
	"asts/release":   "2/2/2/2/2 true Healthy Complete",
	"asts/zero":      "0/0/0/0/0 true Healthy Complete",
	"asts/back":      "2/2/2/2/2 true Healthy Complete",
	"asts/pause":     "2/2/2/0/2 false Suspended Paused",
	"asts/resume":    "2/2/2/2/2 true Healthy Complete",
	"asts/stuck":     "2/2/1/1/1 false Progressing Updating",

	"broadcastjob/create": "-/-/-/-/- - Healthy Succeeded",

	"broadcastjob-nowhere/create": "-/-/-/-/- - Healthy NothingToRun",

	"broadcastjob-paused/create": "-/-/-/-/- - Suspended Paused",

	"cloneset/create":    "2/2/2/2/2 true Healthy Complete",
	"cloneset/update":    "2/2/2/2/2 true Healthy Complete",
	"cloneset/partition": "2/2/2/1/2 false Healthy PartitionReached",
	"cloneset/release":   "2/2/2/2/2 true Healthy Complete",
	"cloneset/zero":      "0/0/0/0/0 true Healthy Complete",
	"cloneset/back":      "2/2/2/2/2 true Healthy Complete",
	"cloneset/pause":     "2/2/2/0/2 false Suspended Paused",
	"cloneset/resume":    "2/2/2/2/2 true Healthy Complete",
	"cloneset/stuck":     "2/2/1/1/1 false Progressing Updating",

	"cronjob/create": "-/-/-/-/- - Healthy Scheduled",
	"cronjob/update": "-/-/-/-/- - Healthy Scheduled",
	"cronjob/pause":  "-/-/-/-/- - Suspended Paused",
	"cronjob/resume": "-/-/-/-/- - Healthy Scheduled",

	"daemonset/create": "3/3/3/3/3 true Healthy Complete",
	"daemonset/update": "3/3/3/3/3 true Healthy Complete",
	"daemonset/stuck":  "3/3/2/1/2 false Progressing Updating",

	"deployment/create": "2/2/2/2/2 true Healthy Complete",
	"deployment/update": "2/2/2/2/2 true Healthy Complete",
	"deployment/zero":   "0/0/0/0/0 true Healthy Complete",
	"deployment/back":   "2/2/2/2/2 true Healthy Complete",
	"deployment/pause":  "2/2/2/0/2 false Suspended Paused",
	"deployment/resume": "2/2/2/2/2 true Healthy Complete",
	"deployment/stuck":  "2/3/2/1/2 false Progressing Updating",

	"injected/update": "2/2/2/2/2 true Healthy Complete",

	"job/create": "-/-/-/-/- - Healthy Succeeded",

	"job-stuck/create": "-/-/-/-/- - Progressing Running",

	"job-suspended/create": "-/-/-/-/- - Suspended Paused",

	"sidecarset/create":    "0/0/0/0/- true Healthy NothingToRun",
	"sidecarset/partition": "2/2/2/1/- false Healthy PartitionReached",
	"sidecarset/release":   "2/2/2/2/- true Healthy Complete",
	"sidecarset/pause":     "2/2/2/0/- false Suspended Paused",
	"sidecarset/resume":    "2/2/2/2/- true Healthy Complete",

	"statefulset/create":    "2/2/2/2/2 true Healthy Complete",
	"statefulset/update":    "2/2/2/2/2 true Healthy Complete",
	"statefulset/partition": "2/2/2/1/2 false Healthy PartitionReached",
	"statefulset/release":   "2/2/2/2/2 true Healthy Complete",
	"statefulset/zero":      "0/0/0/0/0 true Healthy Complete",
	"statefulset/back":      "2/2/2/2/2 true Healthy Complete",
	"statefulset/stuck":     "2/2/1/1/1 false Progressing Updating",

	"uniteddeployment/create":    "2/2/2/2/2 true Healthy Complete",
	"uniteddeployment/update":    "2/2/2/2/2 true Healthy Complete",
	"uniteddeployment/partition": "2/2/2/1/2 false Healthy PartitionReached",
	"uniteddeployment/release":   "2/2/2/2/2 true Healthy Complete",
	"uniteddeployment/zero":      "0/0/0/0/0 true Healthy Complete",
	"uniteddeployment/back":      "2/2/2/2/2 true Healthy Complete",
	"uniteddeployment/stuck":     "2/2/1/1/1 false Progressing Updating",

	"workflow/create": "-/-/-/-/- - Healthy Succeeded",

	"workflow-stuck/create": "-/-/-/-/- - Progressing Running",

	"workflow-suspended/create": "-/-/-/-/- - Suspended Paused",
	"workflow-suspended/resume": "-/-/-/-/- - Healthy Succeeded",

	// Ends that are not good, and beginnings that are held back.
	"broadcastjob-failed/create":  "-/-/-/-/- - Degraded Failed",
	"broadcastjob-never/create":   "-/-/-/-/- - Healthy Running", // on every node; it completes nothing by its policy
	"broadcastjob-resumed/create": "-/-/-/-/- - Suspended Paused",
	"broadcastjob-resumed/resume": "-/-/-/-/- - Healthy Succeeded",
	"broadcastjob-waiting/create": "-/-/-/-/- - Progressing Running",
	"daemonset-nowhere/create":    "0/0/0/0/0 true Healthy NothingToRun",
	"daemonset-ondelete/create":   "3/3/3/3/3 true Healthy Complete",
	"daemonset-ondelete/update":   "3/3/3/0/3 false Healthy OnDelete",
	"deployment-deadline/create":  "2/2/0/2/0 true Degraded DeadlineExceeded",
	"deployment-deadline/update":  "2/2/2/2/2 true Healthy Complete",
	"deployment-paused/create":    "2/0/0/0/0 false Suspended Paused", // it was paused before it had any pod
	"deployment-paused/resume":    "2/2/2/2/2 true Healthy Complete",
	"job-failed/create":           "-/-/-/-/- - Degraded Failed",
	"job-resumed/create":          "-/-/-/-/- - Suspended Paused",
	"job-resumed/resume":          "-/-/-/-/- - Healthy Succeeded",
	"statefulset-ondelete/create": "2/2/2/2/2 true Healthy Complete",
	"statefulset-ondelete/update": "2/2/2/0/2 false Healthy OnDelete",
	"statefulset-stuck/create":    "2/1/0/1/0 false Progressing Updating", // the second pod waits for the first

	// Moments between two steps. After an edit the status is the former one at first, which says nothing about the new spec:
	// neither that all is well, nor that it is not.
	"ads/update-notobserved":                  "3/3/3/3/3 false Progressing NotObserved",
	"asts/update-notobserved":                 "2/2/2/2/2 false Progressing NotObserved",
	"cloneset/update-notobserved":             "2/2/2/2/2 false Progressing NotObserved",
	"daemonset-ondelete/update-notobserved":   "3/3/3/3/3 false Progressing NotObserved",
	"daemonset/update-notobserved":            "3/3/3/3/3 false Progressing NotObserved",
	"deployment-deadline/update-notobserved":  "2/2/0/2/0 false Progressing NotObserved",
	"deployment/update-notobserved":           "2/2/2/2/2 false Progressing NotObserved",
	"statefulset-ondelete/update-notobserved": "2/2/2/2/2 false Progressing NotObserved",
	"statefulset/update-notobserved":          "2/2/2/2/2 false Progressing NotObserved",
	"uniteddeployment/update-notobserved":     "2/2/2/2/2 false Progressing NotObserved",

	// No pod has been updated yet.
	"ads/update-updating":                 "3/3/3/0/3 false Progressing Updating",
	"asts/update-updating":                "2/2/2/0/2 false Progressing Updating",
	"cloneset/update-updating":            "2/2/2/0/2 false Progressing Updating",
	"daemonset/update-updating":           "3/3/3/0/3 false Progressing Updating",
	"deployment-deadline/update-updating": "2/2/0/0/0 false Progressing Updating",
	"deployment/update-updating":          "2/2/2/0/2 false Progressing Updating",
	"injected/update-updating":            "2/0/0/0/0 false Progressing Updating", // its first step: no pod is there
	"statefulset/update-updating":         "2/2/2/0/2 false Progressing Updating",
	"uniteddeployment/update-updating":    "2/2/2/0/2 false Progressing Updating",

	// All pods are updated, and not all of them can be used.
	"ads/update-unavailable":              "3/3/2/3/2 true Progressing Unavailable",
	"asts/update-unavailable":             "2/2/1/2/1 true Progressing Unavailable",
	"cloneset/update-unavailable":         "2/2/1/2/1 true Progressing Unavailable",
	"daemonset/update-unavailable":        "3/3/2/3/2 true Progressing Unavailable",
	"injected/update-unavailable":         "2/2/1/2/0 true Progressing Unavailable", // ready comes before available
	"statefulset/update-unavailable":      "2/2/1/2/1 true Progressing Unavailable",
	"uniteddeployment/update-unavailable": "2/2/1/2/1 true Progressing Unavailable",

	// Zero are wanted, two are left. All pods that are wanted, none, are of the newest revision.
	"asts/zero-scalingdown":             "0/2/2/2/2 true Progressing ScalingDown",
	"cloneset/zero-scalingdown":         "0/2/2/2/2 true Progressing ScalingDown",
	"deployment/zero-scalingdown":       "0/2/2/2/2 true Progressing ScalingDown",
	"statefulset/zero-scalingdown":      "0/2/2/2/2 true Progressing ScalingDown",
	"uniteddeployment/zero-scalingdown": "0/2/2/1/2 true Progressing ScalingDown",

	// A UnitedDeployment counts updated pods before it counts them at all.
	"statefulset-ondelete/create-creating": "2/0/0/0/0 false Progressing Creating",
	"uniteddeployment/back-creating":       "2/0/0/2/0 true Progressing Creating",
	"uniteddeployment/create-creating":     "2/0/0/2/0 true Progressing Creating",

	"broadcastjob-failed/create-running": "-/-/-/-/- - Progressing Running", // its deadline is to come
	"broadcastjob-never/create-running":  "-/-/-/-/- - Healthy Running",
	"broadcastjob/create-running":        "-/-/-/-/- - Progressing Running",
	"job-failed/create-finishing":        "-/-/-/-/- - Progressing Finishing",
	"job-failed/create-running":          "-/-/-/-/- - Progressing Running",
	"job/create-finishing":               "-/-/-/-/- - Progressing Finishing",
	"job/create-running":                 "-/-/-/-/- - Progressing Running",
	"workflow/create-running":            "-/-/-/-/- - Progressing Running",
}
