package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// glanced is a FleetWorkload that the operator has said something of.
func glanced(namespace, name string, change func(*v1alpha1.FleetWorkload)) client.Object {
	generation := int64(3)
	fw := &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 3, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)), Labels: map[string]string{"team": name}},
		Spec:       v1alpha1.FleetWorkloadSpec{Backend: "ocm"},
		Status: v1alpha1.FleetWorkloadStatus{
			ObservedGeneration: &generation, Backend: "ocm", Ready: "4/4", ClustersReady: "2/2", Revision: "4e2800fca747",
			Workload:   &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady}},
		},
	}
	change(fw)
	return fw
}

func fleetAtAGlance(t *testing.T) client.Reader {
	t.Helper()
	unready := func(reason, message string, stalled metav1.ConditionStatus) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) {
			fw.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message},
				{Type: v1alpha1.ConditionStalled, Status: stalled, Reason: reason, Message: message},
			}
		}
	}
	now := metav1.NewTime(noon)
	return fakeClient(t,
		glanced("shop", "cart", func(*v1alpha1.FleetWorkload) {}),
		glanced("shop", "web", unready(v1alpha1.ReasonClusterNotFound,
			`backend "ocm": spec.placement.clusters.names[1] "membr2": the backend knows no such cluster; it knows: member1, member2`, metav1.ConditionTrue)),
		glanced("shop", "search", unready(v1alpha1.ReasonProgressing, "member1: 2 of 4 updated", metav1.ConditionFalse)),
		glanced("shop", "moves", func(fw *v1alpha1.FleetWorkload) {
			unready(v1alpha1.ReasonMigrating, "wave 1 of 2", metav1.ConditionFalse)(fw)
			fw.Status.Backend, fw.Status.Migration = "karmada", &v1alpha1.MigrationStatus{Phase: v1alpha1.MigrationPhaseHandingOver}
		}),
		glanced("shop", "edited", func(fw *v1alpha1.FleetWorkload) { fw.Generation = 4 }),
		glanced("shop", "goes", func(fw *v1alpha1.FleetWorkload) { fw.DeletionTimestamp, fw.Finalizers = &now, []string{"a/b"} }),
		glanced("shop", "new", func(fw *v1alpha1.FleetWorkload) { fw.Status = v1alpha1.FleetWorkloadStatus{} }),
		glanced("data", "lake", func(*v1alpha1.FleetWorkload) {}),
	)
}

func getting(t *testing.T, format string, o getOptions) getOptions {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o.print = genericclioptions.NewPrintFlags("").WithTypeSetter(scheme)
	*o.print.OutputFormat = format
	return o
}

func TestGetTable(t *testing.T) {
	c := fleetAtAGlance(t)
	for name, o := range map[string]getOptions{
		"get.golden":       getting(t, "", getOptions{namespace: "shop"}),
		"get-all.golden":   getting(t, "wide", getOptions{everywhere: true}),
		"get-some.golden":  getting(t, "", getOptions{namespace: "shop", names: []string{"web", "cart"}, selector: "team=web"}),
		"get-one.golden":   getting(t, "", getOptions{namespace: "shop", names: []string{"web"}}),
		"get-none.golden":  getting(t, "", getOptions{namespace: "empty"}),
		"get-never.golden": getting(t, "", getOptions{everywhere: true, selector: "team=none"}),
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := o.get(t.Context(), c, &out, noon); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name, out.String())
		})
	}
}

func TestGetObjects(t *testing.T) {
	c := fleetAtAGlance(t)
	for name, test := range map[string]struct {
		options getOptions
		want    string
	}{
		"names":    {getting(t, "name", getOptions{namespace: "data"}), "fleetworkload.apps.fleetworkload.io/lake\n"},
		"jsonpath": {getting(t, "jsonpath={.items[*].metadata.name}", getOptions{namespace: "shop", selector: "team in (web,cart)"}), "web cart"},
		"one":      {getting(t, "jsonpath={.kind} {.status.ready}", getOptions{namespace: "data", names: []string{"lake"}}), "FleetWorkload 4/4"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := test.options.get(t.Context(), c, &out, noon); err != nil || out.String() != test.want {
				t.Errorf("got %q, %v, want %q", out.String(), err, test.want)
			}
		})
	}
	var out bytes.Buffer
	all := getting(t, "yaml", getOptions{namespace: "shop"})
	if err := all.get(t.Context(), c, &out, noon); err != nil {
		t.Fatal(err)
	}
	var list v1alpha1.FleetWorkloadList
	if err := yaml.UnmarshalStrict(out.Bytes(), &list); err != nil || len(list.Items) != 7 || list.Items[0].Kind != "FleetWorkload" {
		t.Errorf("error %v, printed\n%s", err, out.String())
	}
}

func TestGetIsRefused(t *testing.T) {
	for want, o := range map[string]getOptions{
		`FleetWorkload "gone" not found in namespace "shop"`: getting(t, "", getOptions{namespace: "shop", names: []string{"web", "gone"}}),
		`--selector "a b"`: getting(t, "", getOptions{namespace: "shop", selector: "a b"}),
		"--output":         getting(t, "picture", getOptions{namespace: "shop"}),
	} {
		if err := o.get(t.Context(), fleetAtAGlance(t), &bytes.Buffer{}, noon); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestSuspendAndResume(t *testing.T) {
	web := client.ObjectKey{Namespace: "shop", Name: "web"}
	argo := glanced("shop", "web", func(fw *v1alpha1.FleetWorkload) {
		fw.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "shop"}
	})
	c := fakeClient(t, argo)
	const note = "note: Argo CD manages it and may set this field to its source again: change the source, too\n"
	for _, step := range []struct {
		suspend bool
		want    string
	}{
		{false, "spec.suspend of shop/web is false already\n"},
		{true, "spec.suspend of shop/web is true\n" + note},
		{true, "spec.suspend of shop/web is true already\n"},
		{false, "spec.suspend of shop/web is false\n" + note},
	} {
		var out bytes.Buffer
		if err := setSuspend(t.Context(), c, web, step.suspend, &out); err != nil || out.String() != step.want {
			t.Fatalf("printed %q, %v, want %q", out.String(), err, step.want)
		}
		fw, err := read(t.Context(), c, web)
		if err != nil {
			t.Fatal(err)
		}
		if is := fw.Spec.Suspend != nil && *fw.Spec.Suspend; is != step.suspend {
			t.Errorf("spec.suspend is %t, want %t", is, step.suspend)
		}
	}
	if err := setSuspend(t.Context(), c, client.ObjectKey{Namespace: "shop", Name: "gone"}, true, &bytes.Buffer{}); err == nil {
		t.Error("one that is not there was suspended")
	}
}
