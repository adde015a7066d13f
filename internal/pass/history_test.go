package pass

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	pointer "k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

// shipping decides on a FleetWorkload that runs on backend one, until there is something to order or nothing goes on.
func shipping(t *testing.T, change func(*v1alpha1.FleetWorkload)) *Decision {
	t.Helper()
	fw := moving(t).in.FleetWorkload
	fw.Spec.Backend, fw.Status = "one", v1alpha1.FleetWorkloadStatus{}
	change(fw)
	for range mostRehearsed {
		d := decideWith(moving(t), func(asked *v1alpha1.FleetWorkload) { fw.DeepCopyInto(asked) }, nil)
		if len(d.Orders) > 0 || d.err != nil || !d.Reads.Empty() {
			return d
		}
		fw.Status = d.Conclude(nil).Status
	}
	t.Fatal("it records and never orders anything")
	return nil
}

func recorded(t *testing.T, fw *v1alpha1.FleetWorkload, older int32) {
	t.Helper()
	version, err := revisions.VersionOf(fw, revisions.Of(&fw.Spec))
	if err != nil {
		t.Fatal(err)
	}
	number := int64(older) + 1
	fw.Status.SpecRevision = &v1alpha1.SpecRevision{Name: version.Name, Number: &number, Older: &older, ObservedGeneration: pointer.To(fw.Generation)}
}

func anotherImage(fw *v1alpha1.FleetWorkload) {
	fw.Spec.Template.Raw = []byte(strings.Replace(string(fw.Spec.Template.Raw), "nginx:1", "nginx:2", 1))
}

// TestWhatIsShippedIsKept: when it is new, or too many older ones are kept, and only what was accepted.
func TestWhatIsShippedIsKept(t *testing.T) {
	two := int32(2)
	for name, test := range map[string]struct {
		change func(*v1alpha1.FleetWorkload)
		limit  int32 // of the order; -1 is none
	}{
		"the first":        {func(*v1alpha1.FleetWorkload) {}, 10},
		"nothing new":      {func(fw *v1alpha1.FleetWorkload) { recorded(t, fw, 3) }, -1},
		"another template": {func(fw *v1alpha1.FleetWorkload) { recorded(t, fw, 3); anotherImage(fw) }, 10},
		"suspended": {func(fw *v1alpha1.FleetWorkload) {
			recorded(t, fw, 3)
			anotherImage(fw)
			fw.Spec.Suspend = pointer.To(true)
		}, 10},
		"nothing new, since the spec that was looked at last": {func(fw *v1alpha1.FleetWorkload) {
			recorded(t, fw, 3)
			fw.Generation++
		}, -1},
		"back to what it was, past a spec that nobody may have noted": {func(fw *v1alpha1.FleetWorkload) {
			recorded(t, fw, 3)
			fw.Generation += 2
		}, 10},
		"other replicas": {func(fw *v1alpha1.FleetWorkload) { recorded(t, fw, 3); fw.Spec.Replicas = &two }, -1},
		"other clusters": {func(fw *v1alpha1.FleetWorkload) {
			recorded(t, fw, 3)
			fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Exclude: []string{"m3"}}
		}, -1},
		"too many older ones":     {func(fw *v1alpha1.FleetWorkload) { recorded(t, fw, 3); fw.Spec.RevisionHistoryLimit = &two }, 2},
		"as many older ones":      {func(fw *v1alpha1.FleetWorkload) { recorded(t, fw, 2); fw.Spec.RevisionHistoryLimit = &two }, -1},
		"a template that is none": {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Template.Raw = []byte(`{"apiVersion":"apps/v1"}`) }, -1},
		"an override that fails": {func(fw *v1alpha1.FleetWorkload) {
			recorded(t, fw, 3)
			fw.Spec.Overrides = []v1alpha1.Override{{Name: "eu", Patches: []v1alpha1.PatchOperation{{Op: v1alpha1.PatchOpRemove, Path: "/spec/nothing"}}}}
		}, -1},
		"being deleted": {func(fw *v1alpha1.FleetWorkload) {
			fw.Status.Backend = "one"
			fw.DeletionTimestamp = &metav1.Time{Time: moving(t).now.Time}
		}, -1},
	} {
		d := shipping(t, test.change)
		limit := int32(-1)
		if d.History != nil {
			limit = d.History.Limit
			if want, err := revisions.VersionOf(d.in.FleetWorkload, revisions.Of(&d.in.FleetWorkload.Spec)); err != nil || d.History.Name != want.Name {
				t.Errorf("%s: %s is kept, want %s", name, d.History.Name, want.Name)
			}
		}
		if limit != test.limit {
			t.Errorf("%s: a version is kept with %d older ones, want %d", name, limit, test.limit)
		}
	}
}

// TestHistoryHoldsNothingUp: what cannot be kept is no failure of the pass; it is not on record, and is tried again.
func TestHistoryHoldsNothingUp(t *testing.T) {
	d := shipping(t, func(*v1alpha1.FleetWorkload) {})
	d.Remembered(nil, errors.New("exceeded quota"))
	result := d.Conclude(map[string]Outcome{"one": {}})
	if result.Err != nil || result.RequeueAfter == 0 || result.RequeueAfter > lookAnyway || result.Status.SpecRevision != nil {
		t.Errorf("it ends with %v, again after %s, and %+v on record", result.Err, result.RequeueAfter, result.Status.SpecRevision)
	}
	for _, c := range result.Status.Conditions {
		if strings.Contains(c.Message, "quota") {
			t.Errorf("%s: %s", c.Type, c.Message)
		}
	}
	d = shipping(t, func(*v1alpha1.FleetWorkload) {})
	record := &v1alpha1.SpecRevision{Name: d.History.Name, Number: pointer.To(int64(1)), Older: pointer.To(int32(0))}
	d.Remembered(record, nil)
	if result := d.Conclude(map[string]Outcome{"one": {}}); result.RequeueAfter != 0 || result.Status.SpecRevision != record {
		t.Errorf("once it is kept: again after %s, and %+v on record", result.RequeueAfter, result.Status.SpecRevision)
	}
}
