package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
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
	const command = "approve it until 2026-03-01T12:00:00Z with: kubectl-fw approve web -n shop --change 5b2f8a7c90e1d346\n"
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
		}, approve: true, out: "shop/web on backend karmada\n", fail: "the change cannot be approved yet: the backend has not chosen clusters yet"},
		"it cannot be approved yet": {edit: func(fw *v1alpha1.FleetWorkload) { fw.Status.Change.Approval = "" }, approve: true,
			out:  strings.TrimSuffix(strings.Replace(table, "Remove on member3, Update on member1\n", "", 1), "\n"),
			fail: "the change cannot be approved yet: Remove on member3, Update on member1"},
		"the operator is late": {edit: func(fw *v1alpha1.FleetWorkload) { fw.Generation = 4 }, approve: true, fail: "has not looked at the newest spec"},
		"changes do not wait":  {edit: func(fw *v1alpha1.FleetWorkload) { fw.Spec.Approval = "" }, approve: true, fail: "spec.approval is not Manual"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeClient(t, unapproved(t, test.edit))
			var out bytes.Buffer
			err := planOptions{approve: test.approve, output: inFormat("", true)}.planOf(t.Context(), c, web, "kubectl-fw", streamsTo(&out, &bytes.Buffer{}))
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
	if err := approve(t.Context(), c, web, "", &out); err != nil || out.String() != "approved, the change of shop/web is carried out: 5b2f8a7c90e1d346\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	both := moving(t, asks)
	both.Status.Change = unapproved(t).Status.Change
	out.Reset()
	if err := approve(t.Context(), fakeClient(t, both), web, "", &out); err != nil || !strings.HasPrefix(out.String(), "approved, the migration goes on") {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestPlanFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"give the NAME of a FleetWorkload, or a file": {},
		"--approve needs the NAME":                    {"--approve", "-f", "web.yaml", "--config", "operator.yaml"},
		"open nothing.yaml":                           {"-f", "nothing.yaml"},
		"-f and --config are for a file":              {"web", "-f", "web.yaml"},
		"accepts at most 1 arg(s)":                    {"web", "api"},
	} {
		if _, _, err := run(t, "", append([]string{"plan"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error is %v, want %s", args, err, want)
		}
	}
}

// TestPlanShowsWhatIsEdited: beside clusters, an approver sees what becomes of the template. Without a right that takes, a note says so.
func TestPlanShowsWhatIsEdited(t *testing.T) {
	fw := unapproved(t)
	v, err := revisions.VersionOf(fw, revisions.Of(&fw.Spec))
	if err != nil {
		t.Fatal(err)
	}
	kept := v.Object(fw, 1)
	fw.Status.SpecRevision = &v1alpha1.SpecRevision{Name: v.Name, Number: ptr.To[int64](1), Older: ptr.To[int32](0)}
	fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(keys("hunter2"))}}
	foreign := kept.DeepCopy()
	foreign.OwnerReferences = nil
	forbid := func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
		) error {
			if _, is := obj.(*appsv1.ControllerRevision); is {
				return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, key.Name, nil)
			}
			return c.Get(ctx, key, obj, opts...)
		}})
	}
	for name, test := range map[string]struct {
		client client.WithWatch
		want   string
	}{
		"it is kept":            {fakeClient(t, fw, kept), "what changes of it:\n  companion Secret/keys: added\n"},
		"it is not kept":        {fakeClient(t, fw), "note: what changes of it is not shown: what is shipped was not kept\n"},
		"it is somebody else's": {fakeClient(t, fw, foreign), "note: what changes of it is not shown: what is shipped was not kept\n"},
		"it may not be read":    {forbid(fakeClient(t, fw, kept)), "note: what changes of it is not shown: that takes the right to get ControllerRevisions in namespace shop\n"},
	} {
		var out bytes.Buffer
		if err := (planOptions{output: inFormat("", true)}).planOf(t.Context(), test.client, web, "kubectl-fw", streamsTo(&out, &bytes.Buffer{})); !errors.Is(err, somethingChanges) {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(out.String(), "Update on member1\n"+test.want+"\nCLUSTER") || strings.Contains(out.String(), "hunter2") {
			t.Errorf("%s: it prints\n%s", name, out.String())
		}
	}
}

// TestApproveWhatWasSeen: with the value that plan has printed, nothing else is approved, whatever waits by now.
func TestApproveWhatWasSeen(t *testing.T) {
	both := moving(t, asks)
	both.Status.Change = unapproved(t).Status.Change
	done := unapproved(t, func(fw *v1alpha1.FleetWorkload) {
		fw.Status.Change = &v1alpha1.ChangeStatus{ApprovedHash: "a"}
		fw.Annotations = map[string]string{v1alpha1.AnnotationApproveChange: "5b2f8a7c90e1d346"}
	})
	for name, test := range map[string]struct {
		fw         *v1alpha1.FleetWorkload
		only, fail string
	}{
		"it is what waits":          {unapproved(t), "5b2f8a7c90e1d346", ""},
		"a migration waits, too":    {both, "5b2f8a7c90e1d346", ""},
		"something else waits":      {unapproved(t), "0123456789abcdef", "the change that waits is 5b2f8a7c90e1d346 (Remove on member3, Update on member1), not 0123456789abcdef"},
		"a migration alone waits":   {moving(t, asks), "5b2f8a7c90e1d346", "5b2f8a7c90e1d346 does not wait for approval"},
		"it was approved before":    {done, "5b2f8a7c90e1d346", "5b2f8a7c90e1d346 is approved already, and no change waits"},
		"nothing waits, nor did it": {done, "0123456789abcdef", "0123456789abcdef does not wait for approval"},
	} {
		c := fakeClient(t, test.fw)
		var out bytes.Buffer
		err := approve(t.Context(), c, web, test.only, &out)
		if (err == nil) != (test.fail == "") || err != nil && !strings.Contains(err.Error(), test.fail) {
			t.Errorf("%s: %v", name, err)
		}
		fw, err := read(t.Context(), c, web)
		if err != nil {
			t.Fatal(err)
		}
		if got := fw.Annotations[v1alpha1.AnnotationApproveChange]; got != test.fw.Annotations[v1alpha1.AnnotationApproveChange] && got != test.only ||
			fw.Annotations[v1alpha1.AnnotationApproveMigration] != "" {
			t.Errorf("%s: the annotations are %v", name, fw.Annotations)
		}
	}
}

// TestPlanForScripts: the change as fields. What --approve does is no part of them.
func TestPlanForScripts(t *testing.T) {
	const approved = "approved, the change of shop/web is carried out: 5b2f8a7c90e1d346\n"
	none := func(fw *v1alpha1.FleetWorkload) { fw.Status.Change = &v1alpha1.ChangeStatus{ApprovedHash: "a"} }
	held := func(fw *v1alpha1.FleetWorkload) {
		fw.Status.Change = &v1alpha1.ChangeStatus{Message: "the backend has not chosen clusters yet"}
	}
	for name, test := range map[string]struct {
		edit                func(*v1alpha1.FleetWorkload)
		as                  string
		approve             bool
		out, errOut, golden string
		fail                string // "-" when nothing waits, or it is approved
	}{
		"waits":           {edit: companionsChange, as: "json", golden: "plan/change-waits.json"},
		"waits, as YAML":  {edit: func(*v1alpha1.FleetWorkload) {}, as: "yaml", golden: "plan/change-waits.yaml"},
		"is held":         {edit: held, as: "json", golden: "plan/change-held.json", fail: "cannot be approved yet: the backend has not chosen"},
		"nothing waits":   {edit: none, as: "json", golden: "plan/change-none.json", fail: "-"},
		"its name":        {edit: func(*v1alpha1.FleetWorkload) {}, as: "name", out: "fleetworkload.apps.fleetworkload.io/web\n"},
		"no name":         {edit: none, as: "name", fail: "-"},
		"no name is held": {edit: held, as: "name", fail: "cannot be approved yet"},
		"a template":      {edit: func(*v1alpha1.FleetWorkload) {}, as: "jsonpath={.approval} {.clusters[*].action}", out: "5b2f8a7c90e1d346 Update Remove"},
		"is approved":     {edit: func(*v1alpha1.FleetWorkload) {}, as: "jsonpath={.changes}", approve: true, out: "true", errOut: approved, fail: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			o := planOptions{approve: test.approve, output: inFormat(test.as, true)}
			err := o.planOf(t.Context(), fakeClient(t, unapproved(t, test.edit)), web, "kubectl-fw", streamsTo(&out, &errOut))
			switch {
			case test.fail == "" && !errors.Is(err, somethingChanges), test.fail == "-" && err != nil,
				len(test.fail) > 1 && (err == nil || !strings.Contains(err.Error(), test.fail)):
				t.Errorf("the error is %v", err)
			}
			if errOut.String() != test.errOut {
				t.Errorf("standard error has %q", errOut.String())
			}
			if test.golden != "" {
				compareGolden(t, test.golden, out.String())
			} else if out.String() != test.out {
				t.Errorf("printed %q, want %q", out.String(), test.out)
			}
		})
	}
}

// TestPlanOfAFileForScripts: each FleetWorkload of a file has its result, also one of which nothing can be said.
func TestPlanOfAFileForScripts(t *testing.T) {
	web, _ := shipping(t, replaced("nginx:1.26", "nginx:1.27"))
	const ours, theirs = "/apis/apps.fleetworkload.io/v1alpha1/namespaces/shop/fleetworkloads/", "cart"
	kubeconfig := managementWith(t, []string{ours + theirs}, ofKind(v1alpha1.GroupVersion.String(), "FleetWorkload", web))
	file := "apiVersion: apps.fleetworkload.io/v1alpha1\nkind: FleetWorkload\nmetadata: {name: web}\nspec: {backend: karmada}\n---\n" +
		"apiVersion: apps.fleetworkload.io/v1alpha1\nkind: FleetWorkload\nmetadata: {name: cart}\nspec: {backend: ocm}\n"
	args := []string{"--kubeconfig", kubeconfig, "plan", "-f", "-", "-o"}
	out, _, err := run(t, file, append(args, "json")...)
	if err == nil || !strings.Contains(err.Error(), "FleetWorkload shop/cart: read it: ") || strings.Contains(err.Error(), "shop/web") {
		t.Errorf("the error is %v", err)
	}
	compareGolden(t, "plan/file.json", out)
	if out, _, _ = run(t, file, append(args, "jsonpath={.fleetWorkloads[*].changes}")...); out != "false false" {
		t.Errorf("a template prints %q", out)
	}
	if _, _, err := run(t, file, append(args, "picture")...); err == nil || !strings.Contains(err.Error(), `--output "picture": choose wide, json`) {
		t.Errorf("the error is %v", err)
	}
}
