package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/difference"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

// shipped changes what a FleetWorkload ships.
type shipped = func(*v1alpha1.FleetWorkloadSpec)

func replaced(old, next string) shipped {
	return func(s *v1alpha1.FleetWorkloadSpec) {
		s.Template.Raw = []byte(strings.Replace(string(s.Template.Raw), old, next, 1))
	}
}

func withCompanions(manifests ...string) shipped {
	return func(s *v1alpha1.FleetWorkloadSpec) {
		s.Companions = nil
		for _, m := range manifests {
			s.Companions = append(s.Companions, runtime.RawExtension{Raw: []byte(m)})
		}
	}
}

func withOverrides(tags ...string) shipped {
	return func(s *v1alpha1.FleetWorkloadSpec) {
		s.Overrides = nil
		for i, tag := range tags {
			s.Overrides = append(s.Overrides, v1alpha1.Override{
				Name: fmt.Sprint("o", i), Images: []v1alpha1.ImageOverride{{Container: "web", Tag: tag}},
			})
		}
	}
}

func keys(password string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","data":{"password":%q},"kind":"Secret","metadata":{"annotations":{%q:%q},"name":"keys"}}`,
		password, difference.LastApplied, password)
}

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"web"}},` +
	`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"nginx:1.26","name":"web"}]}}}}`

// shipping is a FleetWorkload with the versions that it has shipped, one edit after the other; the last is the present one.
func shipping(t *testing.T, edits ...shipped) (fw *v1alpha1.FleetWorkload, objects []client.Object) {
	t.Helper()
	fw = &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Generation: 9},
		Spec: v1alpha1.FleetWorkloadSpec{
			Backend: "karmada", Replicas: new(int32), Template: runtime.RawExtension{Raw: []byte(deployment)},
			Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m1"}}},
		},
		Status: v1alpha1.FleetWorkloadStatus{Workload: &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
	}
	for i, edit := range append([]shipped{func(*v1alpha1.FleetWorkloadSpec) {}}, edits...) {
		edit(&fw.Spec)
		v, err := revisions.VersionOf(fw, revisions.Of(&fw.Spec))
		if err != nil {
			t.Fatal(err)
		}
		object := v.Object(fw, int64(i+1))
		object.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(i-10) * time.Hour))
		objects = append(objects, object)
	}
	return fw, objects
}

// pastOf reads what was shipped as the command does.
func pastOf(t *testing.T, fw *v1alpha1.FleetWorkload, objects []client.Object) (*past, client.WithWatch) {
	t.Helper()
	c := fakeClient(t, append(slices.Clone(objects), fw)...)
	p, err := readPast(t.Context(), c, web)
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

func TestHistory(t *testing.T) {
	fw, objects := shipping(t,
		replaced("nginx:1.26", "nginx:1.27"),
		withCompanions(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"}}`, keys("c2VzYW1l")),
		withCompanions(keys("b3Blbg=="), `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"ports":[{"port":80}]}}`),
		withOverrides("1.28", "1.29"),
		func(s *v1alpha1.FleetWorkloadSpec) {
			withOverrides("1.28-alpine")(s)
			s.Dependencies = v1alpha1.DependencyPolicyPropagate
			replaced(`"spec":{"containers"`, `"spec":{"terminationGracePeriodSeconds":5,"containers"`)(s)
			replaced(`"selector"`, `"minReadySeconds":3,"selector"`)(s)
		},
	)
	foreign, ok := objects[0].DeepCopyObject().(*appsv1.ControllerRevision)
	if !ok {
		t.Fatal("a version is no ControllerRevision")
	}
	foreign.Name, foreign.Revision = "web-revision-0123456789abcdef", 77
	p, _ := pastOf(t, fw, append(objects, foreign))
	for name, o := range map[string]historyOptions{
		"table": {output: inFormat("", true)}, "table-wide": {output: inFormat("wide", true)}, "list-json": {output: inFormat("json", true)},
		"list-yaml": {output: inFormat("yaml", true)}, "list-name": {output: inFormat("name", true)},
		"list-jsonpath": {output: inFormat(`jsonpath={range .versions[*]}{.revision}{"\t"}{.changes[0]}{"\n"}{end}`, true)},
		"revision-4":    {revision: 4, output: inFormat("", true)}, "present": {revision: 6, output: inFormat("", true)},
		"revision-4-yaml": {revision: 4, output: inFormat("yaml", true)}, "revision-1-json": {revision: 1, output: inFormat("json", true)},
		"revision-4-name": {revision: 4, output: inFormat("name", true)},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := errors.Join(o.check(), o.write(&out, p, noon)); err != nil {
				t.Fatal(err)
			}
			for _, content := range []string{"c2VzYW1l", "b3Blbg=="} {
				if strings.Contains(out.String(), content) {
					t.Errorf("it shows what a Secret holds:\n%s", out.String())
				}
			}
			compareGolden(t, "history/"+name+".golden", out.String())
		})
	}
	t.Run("a spec that was not shipped", func(t *testing.T) {
		refused := fw.DeepCopy()
		replaced("nginx:1.27", "nginx::")(&refused.Spec)
		setCondition(refused, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidTemplate, "no such image")
		p, _ := pastOf(t, refused, objects)
		var out bytes.Buffer
		if err := (historyOptions{output: inFormat("", true)}).write(&out, p, noon); err != nil {
			t.Fatal(err)
		}
		want := "note: the present spec is not among them: it has not been shipped yet: InvalidTemplate: no such image\n"
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "*") {
			t.Errorf("want %q, and no version marked:\n%s", want, out.String())
		}
	})
}

func TestHistoryOptions(t *testing.T) {
	fw, objects := shipping(t)
	p, _ := pastOf(t, fw, objects)
	for want, o := range map[string]historyOptions{
		`--output "picture": choose wide, json, yaml`:      {output: inFormat("picture", true)},
		"--revision -1: versions are numbered from 1":      {revision: -1, output: inFormat("", true)},
		"revision 5 of shop/web is not kept; there are: 1": {revision: 5, output: inFormat("", true)},
	} {
		if err := errors.Join(o.check(), o.write(&bytes.Buffer{}, p, noon)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}

// TestChanges: each in a line that says where, from what and to what.
func TestChanges(t *testing.T) {
	annotated := func(entries string) shipped {
		return replaced(`"labels":{"app":"web"}`, `"labels":{"app":"web"},"annotations":{`+entries+`}`)
	}
	nothing := func(*v1alpha1.FleetWorkloadSpec) {}
	for name, test := range map[string]struct {
		from, to shipped
		want     []string
	}{
		"nothing":              {nothing, nothing, nil},
		"an image":             {nothing, replaced("1.26", "1.27"), []string{"template: spec.template.spec.containers[0].image nginx:1.26 -> nginx:1.27"}},
		"a key with dots":      {annotated(`"a.b/c":"1"`), annotated(`"a.b/c":"2"`), []string{"template: spec.template.metadata.annotations[a.b/c] 1 -> 2"}},
		"a value that goes":    {annotated(`"a":"1","b":"2"`), annotated(`"b":"2"`), []string{"template: spec.template.metadata.annotations.a removed: 1"}},
		"a value that comes":   {annotated(`"b":"2"`), annotated(`"a":"","b":"2"`), []string{`template: spec.template.metadata.annotations.a added: ""`}},
		"an object that comes": {nothing, annotated(`"a":"1"`), []string{"template: spec.template.metadata.annotations added"}},
		"several lines":        {annotated(`"a":"1"`), annotated(`"a":"1\n2"`), []string{`template: spec.template.metadata.annotations.a 1 -> "1\n2"`}},
		"a long one": {annotated(`"a":"1"`), annotated(`"a":"` + strings.Repeat("ö", 90) + `"`), []string{
			"template: spec.template.metadata.annotations.a 1 -> " + strings.Repeat("ö", 80) + "..."}},
		"a longer list": {nothing, replaced(`"name":"web"}`, `"name":"web"},{"name":"log"}`), []string{"template: spec.template.spec.containers 1 entry -> 2"}},
		"a Secret's content": {withCompanions(keys("YQ==")), withCompanions(keys("Yg==")), []string{
			"companion Secret/keys: data.password changed", "companion Secret/keys: metadata.annotations[" + difference.LastApplied + "] changed"}},
		"a companion":  {nothing, withCompanions(keys("YQ==")), []string{"companion Secret/keys: added"}},
		"an override":  {withOverrides("1", "2"), withOverrides("3"), []string{"override o0: images[0].tag 1 -> 3", "override o1: removed"}},
		"dependencies": {nothing, func(s *v1alpha1.FleetWorkloadSpec) { s.Dependencies = v1alpha1.DependencyPolicyPropagate }, []string{"dependencies: Ignore -> Propagate"}},
		"an order": {withOverrides("1", "2"), func(s *v1alpha1.FleetWorkloadSpec) {
			withOverrides("1", "2")(s)
			slices.Reverse(s.Overrides)
		}, []string{"the order of companions or overrides"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := shipping(t)
			after := before.DeepCopy()
			test.from(&before.Spec)
			test.to(&after.Spec)
			got, err := changes(revisions.Of(&before.Spec), revisions.Of(&after.Spec))
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
