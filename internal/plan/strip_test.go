package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// copied is the metadata of an object as kubectl prints it from a cluster that Karmada and Open Cluster Management have both been at.
const copied = `"metadata":{"name":"web","namespace":"shop","uid":"abc","resourceVersion":"7","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z",` +
	`"managedFields":[{"manager":"karmada"}],"finalizers":["a/b"],"ownerReferences":[{"apiVersion":"work.open-cluster-management.io/v1",` +
	`"kind":"AppliedManifestWork","name":"x","uid":"y"}],"selfLink":"/x","labels":{"app":"web",` +
	`"karmada.io/managed":"true","propagationpolicy.karmada.io/permanent-id":"1","clusterpropagationpolicy.karmada.io/permanent-id":"2",` +
	`"resourcebinding.karmada.io/permanent-id":"3","work.karmada.io/permanent-id":"4","resourcetemplate.karmada.io/claimed-by":"x",` +
	`"fleetworkload.io/probe":"true"},"annotations":{"team":"shop",` +
	`"propagationpolicy.karmada.io/name":"old","propagationpolicy.karmada.io/namespace":"shop","clusterpropagationpolicy.karmada.io/name":"old",` +
	`"resourcebinding.karmada.io/name":"b","clusterresourcebinding.karmada.io/name":"b","work.karmada.io/name":"w","work.karmada.io/namespace":"n",` +
	`"work.karmada.io/conflict-resolution":"overwrite","resourcetemplate.karmada.io/uid":"u","resourcetemplate.karmada.io/managed-labels":"app",` +
	`"policy.karmada.io/applied-overrides":"[]","apps.open-cluster-management.io/hosting-subscription":"a/b",` +
	`"kubectl.kubernetes.io/last-applied-configuration":"{}","deployment.kubernetes.io/revision":"4","fleetworkload.io/owner":"a/b"}}`

const plain = `"metadata":{"labels":{"app":"web"},"annotations":{"team":"shop"}}`

// TestATemplateCopiedFromACluster: nothing that an orchestrator, an API server or kubectl wrote is sent on, nor decides the revision;
// everything else is, and a note tells of what a person may have meant.
func TestATemplateCopiedFromACluster(t *testing.T) {
	from := func(metadata, more string) *Plan {
		t.Helper()
		p, err := New(workload(strings.Replace(deployment, `"spec"`, metadata+more+`,"spec"`, 1), nil), kinds)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	got, want := from(copied, `,"status":{"replicas":3}`), from(plain, "")
	if diff := cmp.Diff(want.Template.Object, got.Template.Object); diff != "" {
		t.Error(diff)
	}
	if got.Revision != want.Revision {
		t.Error("the marks decide the revision")
	}
	if len(want.Notes) != 0 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "spec.template.metadata") || !strings.Contains(got.Notes[0], "more are not sent") {
		t.Errorf("notes %q, and of a plain one %q", got.Notes, want.Notes)
	}
}

// TestCompanionsCopiedFromACluster: likewise.
func TestCompanionsCopiedFromACluster(t *testing.T) {
	from := func(metadata string) *Plan {
		t.Helper()
		p, err := New(workload(deployment, func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap",` + metadata + `,"data":{"a":"b"}}`)}}
		}), kinds)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	got, want := from(copied), from(strings.Replace(plain, "{", `{"name":"web",`, 1))
	if diff := cmp.Diff(want.Companions[0].Object.Object, got.Companions[0].Object.Object); diff != "" {
		t.Error(diff)
	}
	if len(want.Notes) != 0 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "spec.companions[0].metadata") {
		t.Errorf("notes %q, and of a plain one %q", got.Notes, want.Notes)
	}
}

// TestAJobCopiedFromACluster: its selector is that of the object it was copied from, unless its author chose one.
func TestAJobCopiedFromACluster(t *testing.T) {
	const job = `{"apiVersion":"batch/v1","kind":"Job","spec":{MORE"template":{"metadata":{"labels":{"app":"web"LABELS}},` +
		`"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`
	const selector = `"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"u"}},`
	const labels = `,"controller-uid":"u","job-name":"j","batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"j"`
	from := func(more, labels string) *unstructured.Unstructured {
		t.Helper()
		p, err := New(workload(strings.NewReplacer("MORE", more, "LABELS", labels).Replace(job), nil), kinds)
		if err != nil {
			t.Fatal(err)
		}
		return p.Template
	}
	if diff := cmp.Diff(from(`"manualSelector":false,`, "").Object, from(selector+`"manualSelector":false,`, labels).Object); diff != "" {
		t.Error(diff)
	}
	kept := from(selector+`"manualSelector":true,`, labels)
	if found, _, _ := unstructured.NestedStringMap(kept.Object, "spec", "selector", "matchLabels"); len(found) != 1 {
		t.Errorf("the author's selector is %v", found)
	}
	if found, _, _ := unstructured.NestedStringMap(kept.Object, "spec", "template", "metadata", "labels"); len(found) != 5 {
		t.Errorf("the author's labels are %v", found)
	}
}

// TestOverridesBringNoMarksBack: by no means that an override has.
func TestOverridesBringNoMarksBack(t *testing.T) {
	raw := func(text string) *v1alpha1.Override {
		return &v1alpha1.Override{Patches: []v1alpha1.PatchOperation{patchOf("add", "/metadata/annotations", text)}}
	}
	for _, key := range []string{
		"karmada.io/managed", "propagationpolicy.karmada.io/name", "work.karmada.io/conflict-resolution", "resourcetemplate.karmada.io/claimed-by",
		"apps.open-cluster-management.io/hosting-subscription", "kubectl.kubernetes.io/last-applied-configuration",
		"deployment.kubernetes.io/revision", "fleetworkload.io/uid",
	} {
		set := &v1alpha1.MetadataOverride{Set: map[string]string{key: "x"}}
		for name, o := range map[string]*v1alpha1.Override{
			"labels": {Labels: set}, "annotations": {Annotations: set},
			"a patch of one": {Patches: []v1alpha1.PatchOperation{
				patchOf("add", "/metadata/labels/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), `"x"`)}},
			"a patch of all": raw(`{"` + key + `":"x","fleetworkload.io/owner":"shop/web"}`),
		} {
			_, err := New(workload(deployment, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Overrides = []v1alpha1.Override{*o} }), kinds)
			if backends.CodeOf(err) != backends.CodeInvalidOverride {
				t.Errorf("%s by %s: %v", key, name, err)
			}
		}
	}
}

// TestJobsRunOnce: what removes itself would be made anew, and run again. So no manifest for a cluster has a TTL, whatever the kind calls
// it and however an override sets it; a note says so, and the TTL decides nothing.
func TestJobsRunOnce(t *testing.T) {
	described, err := interpreter.New(interpreter.Description{
		Group: "example.io", Version: "v1", Kind: "Task", Resource: "tasks", SelfRemovalPath: "spec.ttl",
		Health: interpreter.Health{Healthy: "true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const pods = `"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}`
	for kind, test := range map[string]struct {
		with, without string
		path          string
		// whole replaces what the field is in.
		whole v1alpha1.PatchOperation
		note  string
	}{
		"batch/v1 Job": {
			`{"ttlSecondsAfterFinished":60,` + pods + `}`, `{` + pods + `}`, "/spec/ttlSecondsAfterFinished",
			patchOf("replace", "/spec", `{"ttlSecondsAfterFinished":60,`+pods+`}`), "spec.template.spec.ttlSecondsAfterFinished",
		},
		"apps.kruise.io/v1alpha1 BroadcastJob": {
			`{"completionPolicy":{"type":"Always","ttlSecondsAfterFinished":0},` + pods + `}`, `{"completionPolicy":{"type":"Always"},` + pods + `}`,
			"/spec/completionPolicy/ttlSecondsAfterFinished",
			patchOf("add", "/spec/completionPolicy", `{"type":"Always","ttlSecondsAfterFinished":60}`), "spec.template.spec.completionPolicy.ttlSecondsAfterFinished",
		},
		"apps.kruise.io/v1beta1 BroadcastJob": {
			`{"completionPolicy":{"type":"Always","ttlSecondsAfterFinished":60},` + pods + `}`, `{"completionPolicy":{"type":"Always"},` + pods + `}`,
			"/spec/completionPolicy/ttlSecondsAfterFinished",
			patchOf("replace", "/spec/completionPolicy", `{"ttlSecondsAfterFinished":60}`), "spec.template.spec.completionPolicy.ttlSecondsAfterFinished",
		},
		"argoproj.io/v1alpha1 Workflow": {
			`{"ttlStrategy":{"secondsAfterSuccess":5},"entrypoint":"a"}`, `{"entrypoint":"a"}`, "/spec/ttlStrategy",
			patchOf("replace", "/spec", `{"ttlStrategy":{},"entrypoint":"a"}`), "spec.template.spec.ttlStrategy",
		},
		"example.io/v1 Task": {
			`{"ttl":"1m","do":"it"}`, `{"do":"it"}`, "/spec/ttl", patchOf("replace", "/spec", `{"ttl":"1h"}`), "spec.template.spec.ttl",
		},
	} {
		apiVersion, name, _ := strings.Cut(kind, " ")
		plan := func(spec string, overrides ...v1alpha1.Override) (*Plan, error) {
			return New(workload(`{"apiVersion":"`+apiVersion+`","kind":"`+name+`","spec":`+spec+`}`, func(fw *v1alpha1.FleetWorkload) {
				fw.Spec.Overrides = overrides
			}), described)
		}
		got, err := plan(test.with)
		if err != nil {
			t.Fatal(kind, err)
		}
		want, err := plan(test.without)
		if err != nil {
			t.Fatal(kind, err)
		}
		if diff := cmp.Diff(want.Template.Object, got.Template.Object); diff != "" {
			t.Error(kind, diff)
		}
		if len(want.Notes) != 0 || len(got.Notes) != 1 || !strings.HasPrefix(got.Notes[0], "note: "+test.note+" is not sent") {
			t.Errorf("%s: notes %q, and without it %q", kind, got.Notes, want.Notes)
		}
		for _, patch := range []v1alpha1.PatchOperation{patchOf("add", test.path, `60`), test.whole} {
			if _, err := plan(test.without, v1alpha1.Override{Patches: []v1alpha1.PatchOperation{patch}}); backends.CodeOf(err) != backends.CodeInvalidOverride {
				t.Errorf("%s: a patch of %s: %v", kind, patch.Path, err)
			}
		}
	}
}

// TestAScheduleKeepsItsJobsTTL: they are not the backend's to make anew.
func TestAScheduleKeepsItsJobsTTL(t *testing.T) {
	p, err := New(workload(`{"apiVersion":"batch/v1","kind":"CronJob","spec":{"schedule":"* * * * *","jobTemplate":{"spec":`+
		`{"ttlSecondsAfterFinished":60,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}}`, nil), kinds)
	if err != nil {
		t.Fatal(err)
	}
	if ttl, _, _ := unstructured.NestedInt64(p.Template.Object, "spec", "jobTemplate", "spec", "ttlSecondsAfterFinished"); ttl != 60 || len(p.Notes) > 0 {
		t.Errorf("TTL %d, notes %q", ttl, p.Notes)
	}
}

// TestACompanionThatRunsRunsOnce: likewise.
func TestACompanionThatRunsRunsOnce(t *testing.T) {
	p, err := New(workload(deployment, func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate"},"spec":` +
			`{"ttlSecondsAfterFinished":60,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`)}}
	}), kinds.Allowing(schema.GroupKind{Group: "batch", Kind: "Job"}))
	if err != nil {
		t.Fatal(err)
	}
	_, has, _ := unstructured.NestedFieldNoCopy(p.Companions[0].Object.Object, "spec", "ttlSecondsAfterFinished")
	if has || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "spec.companions[0].spec.ttlSecondsAfterFinished") {
		t.Errorf("sent: %v, notes %q", has, p.Notes)
	}
}

func patchOf(op v1alpha1.PatchOp, path, value string) v1alpha1.PatchOperation {
	return v1alpha1.PatchOperation{Op: op, Path: path, Value: &apiextensionsv1.JSON{Raw: []byte(value)}}
}

// TestANoteNamesFiveKeys: more would be a long message, and no more are counted than are left.
func TestANoteNamesFiveKeys(t *testing.T) {
	for n, want := range map[int]string{1: "a", 5: "a, b, c, d, e", 6: "a, b, c, d, e and 1 more", 8: "a, b, c, d, e and 3 more"} {
		note := noteStripped("spec.template", strings.Split("abcdefgh"[:n], ""))
		if !strings.HasPrefix(note, "note: of spec.template.metadata the keys "+want+" are not sent: ") {
			t.Errorf("%d keys: %s", n, note)
		}
	}
	if note := noteStripped("spec.template", nil); note != "" {
		t.Errorf("no keys: %s", note)
	}
}
