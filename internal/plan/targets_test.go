package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

const sidecars = `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"SidecarSet","spec":{"selector":{"matchLabels":{"app":"web"}},"containers":[{"name":"log","image":"log:1"}]}}`

// said is cluster, mode, replicas, and those in the manifest, of each target.
func said(targets []backends.Target) string {
	var all []string
	for _, t := range targets {
		text := t.Cluster + " " + string(t.Mode)
		if t.Replicas != nil {
			text += fmt.Sprint(" ", *t.Replicas, " ", t.Manifest.Object["spec"].(map[string]any)["replicas"])
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// TestTargetsOfEachSort: targets whose replicas are decided, asked for, or held, and all of them while the workload is suspended.
func TestTargetsOfEachSort(t *testing.T) {
	adopting := func(fw *v1alpha1.FleetWorkload) {
		divided(6)(fw)
		fw.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	}
	p, err := New(workload(deployment, adopting), kinds)
	if err != nil {
		t.Fatal(err)
	}
	if shares, err := p.Shares(fleet, []string{"m1", "m2"}, nil); err != nil || shares["m1"] != 3 || shares["m2"] != 3 || len(shares) != 2 {
		t.Errorf("shares: %v, %v", shares, err)
	}
	if targets, err := p.Pinned(fleet, []string{"m2", "m1"}, map[string]int32{"m2": 5}); err != nil || said(targets) != "m1 Own 0 0, m2 Own 5 5" {
		t.Errorf("pinned: %s, %v", said(targets), err)
	}
	if targets, err := p.Probes(fleet, []string{"m1"}); err != nil || said(targets) != "m1 Probe 6 6" {
		t.Errorf("probes: %s, %v", said(targets), err)
	}
	if target, err := p.Held(fleet.Clusters[2], ptr(int32(2))); err != nil || said([]backends.Target{target}) != "m3 Hold 2 2" {
		t.Errorf("held: %s, %v", said([]backends.Target{target}), err)
	}
	if !p.Adopts() {
		t.Error("it does not adopt")
	}
	for name, err := range map[string]error{
		"shares": second(p.Shares(fleet, []string{"m9"}, nil)), "pinned": second(p.Pinned(fleet, []string{"m9"}, nil)),
		"probes": second(p.Probes(fleet, []string{"m9"})), "unused": second(p.Unused(fleet, []string{"m9"})), "targets": second(p.Targets(fleet, []string{"m9"}, nil)),
	} {
		if err == nil || !strings.Contains(err.Error(), `cluster "m9" was chosen but is not in the backend's list`) {
			t.Errorf("%s of a cluster that is not there: %v", name, err)
		}
	}

	failing, err := New(workload(deployment, func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Companions = carried()
		fw.Spec.Overrides = []v1alpha1.Override{
			bit(0, patched(1, v1alpha1.PatchOpAdd, "/spec/missing", `{}`)), bit(1, patched(1, v1alpha1.PatchOpAdd, "/spec/missing/x", `1`)),
		}
	}), kinds)
	if err != nil {
		t.Fatal(err)
	}
	many, names := fleetOf(1000)
	for name, err := range map[string]error{
		"targets": second(failing.Targets(many, names[2:3], nil)), "pinned": second(failing.Pinned(many, names[2:3], nil)),
		"probes": second(failing.Probes(many, names[2:3])), "held": second(failing.Held(many.Clusters[2], nil)),
	} {
		if backends.CodeOf(err) != backends.CodeInvalidOverride {
			t.Errorf("%s that cannot be made: %v", name, err)
		}
	}
	if targets, err := failing.Pinned(many, names, nil); backends.CodeOf(err) != backends.CodeInvalidTemplate {
		t.Errorf("%d pinned with large companions: %v", len(targets), err)
	}

	sets, err := New(workload(sidecars, func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.ConflictPolicy, fw.Spec.Suspend = v1alpha1.ConflictPolicyAdopt, ptr(true)
	}), kinds)
	if err != nil {
		t.Fatal(err)
	}
	if targets, err := sets.Pinned(fleet, []string{"m1"}, map[string]int32{"m1": 3}); err != nil || said(targets) != "m1 Hold" || sets.Adopts() {
		t.Errorf("without replicas, suspended: %s, %v", said(targets), err)
	}
	if targets, err := sets.Targets(fleet, []string{"m1"}, nil); err != nil || said(targets) != "m1 Hold" {
		t.Errorf("without replicas, suspended: %s, %v", said(targets), err)
	}
	plain, err := New(workload(deployment, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Suspend = ptr(false) }), kinds)
	if err != nil || plain.Adopts() {
		t.Errorf("it adopts what it is not asked to: %v", err)
	}
	if targets, err := plain.Targets(fleet, []string{"m1"}, nil); err != nil || said(targets) != "m1 Own 1 1" {
		t.Errorf("not suspended: %s, %v", said(targets), err)
	}
}

func second[T any](_ T, err error) error { return err }

// carried are companions that are too large for many clusters.
func carried() []k8sruntime.RawExtension {
	return []k8sruntime.RawExtension{{Raw: fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":%q}}`, strings.Repeat("x", 100<<10))}}
}

// TestWithOtherNames: a plan with the names of another backend chooses and overrides there what it does here.
func TestWithOtherNames(t *testing.T) {
	fw := workload(deployment, func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Placement.Clusters.Names = []string{"m1", "m2"}
		fw.Spec.Overrides = []v1alpha1.Override{{
			Clusters: &v1alpha1.ClusterSelector{Names: []string{"m2"}}, Labels: &v1alpha1.MetadataOverride{Set: map[string]string{"a": "b"}},
		}}
	})
	p, err := New(fw, kinds)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := p.With(fw); err != nil || same != p {
		t.Errorf("the same names make another plan: %v", err)
	}
	there, err := p.With(Aliases{{"a": "m2", "b": "zwei"}}.Written(fw, "b"))
	if err != nil {
		t.Fatal(err)
	}
	fleet := backends.Fleet{Clusters: []backends.Cluster{{Name: "m1"}, {Name: "m2"}, {Name: "zwei"}}}
	chosen, err := fleet.Select(there.Query.Selectors...)
	if err != nil || !slices.Equal(chosen, []string{"m1", "zwei"}) {
		t.Fatalf("chosen are %v, %v", chosen, err)
	}
	targets, err := there.Targets(fleet, chosen, nil)
	if err != nil || len(targets) != 2 || targets[0].Manifest.GetLabels()["a"] != "" || targets[1].Manifest.GetLabels()["a"] != "b" || there.Revision != p.Revision {
		t.Errorf("%v, %v", targets, err)
	}
	if unused, err := there.Unused(fleet, []string{"m2"}); err != nil || !slices.Equal(unused, []string{"spec.overrides[0]"}) {
		t.Errorf("unused are %v, %v", unused, err)
	}
}

func TestAmountsAreRoundedUp(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 KiB", 1: "1 KiB", 1 << 10: "1 KiB", 1<<10 + 1: "2 KiB", maxTemplate + 1: "1025 KiB"} {
		if got := amount(bytes); got != want {
			t.Errorf("%d bytes are %s, want %s", bytes, got, want)
		}
	}
}

func TestAnAmountThatTakesForEverToReadIsRefused(t *testing.T) {
	endless, err := New(workload(deployment, func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Overrides = []v1alpha1.Override{{Patches: []v1alpha1.PatchOperation{
			{Op: v1alpha1.PatchOpAdd, Path: "/spec/template/spec/overhead", Value: &apiextensionsv1.JSON{Raw: []byte(`{"cpu":"1E+1000"}`)}},
		}}}
	}), kinds)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := endless.Targets(fleet, []string{"m1"}, nil); err == nil ||
		!strings.Contains(err.Error(), `spec.overrides "1E+1000": spec.template.spec.overhead.cpu has more digits`) {
		t.Errorf("got %v", err)
	}
}
