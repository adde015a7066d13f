package revisions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

func workload(change func(*v1alpha1.FleetWorkload)) *v1alpha1.FleetWorkload {
	fw := &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"},
		Spec:       v1alpha1.FleetWorkloadSpec{Backend: "one", Template: runtime.RawExtension{Raw: []byte(`{"kind":"Deployment","note":"a < b"}`)}},
	}
	if change != nil {
		change(fw)
	}
	return fw
}

func versionOf(t *testing.T, fw *v1alpha1.FleetWorkload) Version {
	t.Helper()
	v, err := VersionOf(fw, Of(&fw.Spec))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestWhatAVersionIsOf: what is shipped, and nothing else.
func TestWhatAVersionIsOf(t *testing.T) {
	was := versionOf(t, workload(nil))
	for name, test := range map[string]struct {
		change func(*v1alpha1.FleetWorkload)
		other  bool
	}{
		"template": {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Template.Raw = []byte(`{"kind":"CloneSet"}`) }, true},
		"companions": {func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(`{"kind":"Service"}`)}}
		}, true},
		"dependencies":         {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate }, true},
		"overrides":            {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Overrides = []v1alpha1.Override{{Name: "eu"}} }, true},
		"another's UID":        {func(fw *v1alpha1.FleetWorkload) { fw.UID = "u2" }, true},
		"backend":              {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "two" }, false},
		"replicas":             {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = new(int32) }, false},
		"placement":            {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{} }, false},
		"suspend":              {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = new(bool) }, false},
		"revisionHistoryLimit": {func(fw *v1alpha1.FleetWorkload) { fw.Spec.RevisionHistoryLimit = new(int32) }, false},
		"migration":            {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Migration = &v1alpha1.MigrationStrategy{} }, false},
	} {
		if other := versionOf(t, workload(test.change)).Name != was.Name; other != test.other {
			t.Errorf("%s: another version: %v, want %v", name, other, test.other)
		}
	}
}

// TestOnlyWhatIsItsOwnIsRead: the owner's UID, and what the name says of the content.
func TestOnlyWhatIsItsOwnIsRead(t *testing.T) {
	fw := workload(nil)
	for name, test := range map[string]struct {
		change func(*appsv1.ControllerRevision)
		ok     bool
	}{
		"as it was written":   {func(*appsv1.ControllerRevision) {}, true},
		"with another number": {func(r *appsv1.ControllerRevision) { r.Revision = 7 }, true},
		"without escapes": {func(r *appsv1.ControllerRevision) {
			r.Data.Raw = []byte(`{"template":{"kind":"Deployment","note":"a < b"}}`)
		}, true},
		"of nobody":              {func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil }, false},
		"of its name's last one": {func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = types.UID("u0") }, false},
		"written over":           {func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`{"template":{"kind":"CloneSet"}}`) }, false},
		"with another name":      {func(r *appsv1.ControllerRevision) { r.Name = "web-revision-0123456789abcdef" }, false},
		"no JSON":                {func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`x`) }, false},
	} {
		object := versionOf(t, fw).Object(fw, 1)
		test.change(object)
		shipped, ok := Read(fw, object)
		if ok != test.ok {
			t.Errorf("%s: read: %v, want %v", name, ok, test.ok)
		}
		if again, err := VersionOf(fw, shipped); ok && (err != nil || again.Name != object.Name) {
			t.Errorf("%s: what was read is another version: %s, %v", name, again.Name, err)
		}
	}
}

func TestDecide(t *testing.T) {
	three := []Kept{{"b", 2}, {"a", 1}, {"c", 3}}
	for name, test := range map[string]struct {
		kept  []Kept
		name  string
		limit int32
		want  Next
	}{
		"the first":            {nil, "a", 10, Next{Number: 1, Write: true}},
		"a new one":            {three, "d", 10, Next{Number: 4, Write: true, Older: 3}},
		"the newest again":     {three, "c", 10, Next{Number: 3, Older: 2}},
		"back to an older one": {three, "a", 10, Next{Number: 4, Write: true, Older: 2}},
		"too many":             {three, "d", 2, Next{Number: 4, Write: true, Delete: []string{"a"}, Older: 2}},
		"far too many":         {three, "c", 0, Next{Number: 3, Delete: []string{"a", "b"}}},
		"one is returned to before it is too old": {three, "a", 1, Next{Number: 4, Write: true, Delete: []string{"b"}, Older: 1}},
		"two of one number":                       {[]Kept{{"b", 1}, {"a", 1}}, "a", 1, Next{Number: 2, Write: true, Older: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Decide(test.kept, test.name, test.limit)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
