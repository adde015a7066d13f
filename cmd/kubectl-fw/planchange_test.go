package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// unapproved is a FleetWorkload with a change that waits.
func unapproved(t *testing.T, edits ...func(*v1alpha1.FleetWorkload)) *v1alpha1.FleetWorkload {
	t.Helper()
	fw := moving(t, resting)
	fw.Generation, fw.Status.ObservedGeneration = 3, ptr.To[int64](3)
	fw.Spec.Approval, fw.Spec.Backend = v1alpha1.ApprovalPolicyManual, "karmada"
	until := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	fw.Status.Change = &v1alpha1.ChangeStatus{
		ApprovedHash: "a", Approval: "5b2f8a7c90e1d346", ExpiresAt: &until, Message: "Remove on member3, Update on member1",
		Clusters: []v1alpha1.PlannedCluster{
			{Name: "member1", Action: v1alpha1.PlannedUpdate, Replicas: ptr.To[int32](3), ReplicasBefore: ptr.To[int32](2)},
			{Name: "member3", Action: v1alpha1.PlannedRemove, ReplicasBefore: ptr.To[int32](2), Reason: v1alpha1.RemovalSpecChanged},
		},
	}
	for _, edit := range edits {
		edit(fw)
	}
	return fw
}

// companionsChange changes companions alone.
func companionsChange(fw *v1alpha1.FleetWorkload) {
	companion := func(kind, name string, edit func(*v1alpha1.PlannedCompanion)) v1alpha1.PlannedCompanion {
		c := v1alpha1.PlannedCompanion{WorkloadReference: v1alpha1.WorkloadReference{APIVersion: "v1", Kind: kind, Name: name}}
		edit(&c)
		return c
	}
	fw.Status.Change.Message = "the workload stays as it is on each cluster; companions: Update ConfigMap settings"
	fw.Status.Change.Clusters = nil
	fw.Status.Change.Companions = []v1alpha1.PlannedCompanion{
		companion("ConfigMap", "settings", func(c *v1alpha1.PlannedCompanion) {
			c.Action, c.Clusters, c.Truncated = v1alpha1.CompanionUpdate, []string{"member1", "member2", "member3", "member4", "member5"}, ptr.To[int32](7)
			c.Changes, c.ChangesTruncated = []string{"data.level info -> debug"}, ptr.To[int32](3)
		}),
		companion("PersistentVolumeClaim", "data", func(c *v1alpha1.PlannedCompanion) {
			c.Action, c.Reason, c.Clusters = v1alpha1.CompanionGiveUp, v1alpha1.CompanionKeepsData, []string{"member3"}
		}),
		companion("Service", "web", func(c *v1alpha1.PlannedCompanion) {
			c.Action, c.Reason, c.Clusters = v1alpha1.CompanionDelete, v1alpha1.CompanionNotListed, []string{"member1"}
		}),
	}
	fw.Status.Change.CompanionsTruncated = ptr.To[int32](1)
}

func TestPlanOfAChange(t *testing.T) {
	const table = `shop/web on backend karmada
Remove on member3, Update on member1

CLUSTER   ACTION   REPLICAS   WHY
member1   update   2 -> 3     -
member3   remove   2          SpecChanged

this is the first step; what follows:
  each cluster replaces pods as the workload's own update strategy has it

`
	const command = "approve it until 2026-03-01T12:00:00Z with: kubectl-fw approve web -n shop\n"
	for name, test := range map[string]struct {
		edit      func(*v1alpha1.FleetWorkload)
		approve   bool
		out, fail string
		waits     bool
	}{
		"it waits": {edit: func(*v1alpha1.FleetWorkload) {}, out: table + command, waits: true},
		"it waits on many": {edit: func(fw *v1alpha1.FleetWorkload) { fw.Status.Change.Truncated = ptr.To[int32](7) },
			out: strings.Replace(table, "\n\nthis is", "\nand 7 clusters more\n\nthis is", 1) + command, waits: true},
		"it waits on no cluster": {edit: func(fw *v1alpha1.FleetWorkload) {
			fw.Status.Change.Message, fw.Status.Change.Clusters = "nothing changes on any cluster", nil
		}, out: "shop/web on backend karmada\nnothing changes on any cluster\n\n" + command, waits: true},
		"it waits with companions": {edit: companionsChange, out: `shop/web on backend karmada
the workload stays as it is on each cluster; companions: Update ConfigMap settings

COMPANION                    ACTION    CLUSTERS                                                 WHY
ConfigMap/settings           update    member1, member2, member3, member4, member5 and 7 more   -
PersistentVolumeClaim/data   give up   member3                                                  a claim is never deleted
Service/web                  delete    member1                                                  it is no longer listed, nor referred to
and 1 companion more

what changes of companions:
  ConfigMap/settings: data.level info -> debug
  ConfigMap/settings: and 3 fields more

this is the first step; what follows:
  companions that are no longer needed go once the newest revision is healthy on every cluster

` + command, waits: true},
		"it is approved": {edit: func(*v1alpha1.FleetWorkload) {}, approve: true,
			out: table + "approved, the change of shop/web is carried out: 5b2f8a7c90e1d346\n"},
		"nothing waits": {edit: func(fw *v1alpha1.FleetWorkload) { fw.Status.Change = &v1alpha1.ChangeStatus{ApprovedHash: "a"} },
			out: "shop/web: no change waits for approval\n"},
		"nobody can tell": {edit: func(fw *v1alpha1.FleetWorkload) {
			fw.Status.Change = &v1alpha1.ChangeStatus{Message: "the backend has not chosen clusters yet"}
		}, approve: true, fail: "the change cannot be approved yet: the backend has not chosen clusters yet"},
		"the operator is late": {edit: func(fw *v1alpha1.FleetWorkload) { fw.Generation = 4 }, approve: true, fail: "has not looked at the newest spec"},
		"changes do not wait":  {edit: func(fw *v1alpha1.FleetWorkload) { fw.Spec.Approval = "" }, approve: true, fail: "spec.approval is not Manual"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeClient(t, unapproved(t, test.edit))
			var out bytes.Buffer
			err := planOf(t.Context(), c, web, test.approve, "kubectl-fw", &out)
			if out.String() != test.out {
				t.Errorf("printed\n%s, want\n%s", out.String(), test.out)
			}
			if waits := errors.Is(err, somethingChanges); waits != test.waits || !waits && (err == nil) != (test.fail == "") {
				t.Errorf("error is %v", err)
			}
			if test.fail != "" && !strings.Contains(err.Error(), test.fail) {
				t.Errorf("error is %v", err)
			}
			fw, err := read(t.Context(), c, web)
			if err != nil {
				t.Fatal(err)
			}
			if got := fw.Annotations[v1alpha1.AnnotationApproveChange]; (got != "") != (test.approve && test.fail == "") {
				t.Errorf("the annotation is %q", got)
			}
		})
	}
}

// TestApproveAChange: a migration that waits comes first.
func TestApproveAChange(t *testing.T) {
	c := fakeClient(t, unapproved(t))
	var out bytes.Buffer
	if err := approve(t.Context(), c, web, &out); err != nil || out.String() != "approved, the change of shop/web is carried out: 5b2f8a7c90e1d346\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	both := moving(t, asks)
	both.Status.Change = unapproved(t).Status.Change
	out.Reset()
	if err := approve(t.Context(), fakeClient(t, both), web, &out); err != nil || !strings.HasPrefix(out.String(), "approved, the migration goes on") {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestPlanFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"give the NAME of a FleetWorkload, or a file": {},
		"--approve needs the NAME":                    {"--approve", "-f", "web.yaml", "--config", "operator.yaml"},
		"and the operator's configuration":            {"-f", "web.yaml"},
		"-f and --config are for a file":              {"web", "-f", "web.yaml"},
		"accepts at most 1 arg(s)":                    {"web", "api"},
	} {
		if _, _, err := run(t, "", append([]string{"plan"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error is %v, want %s", args, err, want)
		}
	}
}
