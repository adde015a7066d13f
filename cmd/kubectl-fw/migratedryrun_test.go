package main

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// reporting is an inventory whose backends say what they carry.
type reporting struct {
	*inventory
	broken map[string]error
	report func(backends.Query) backends.Observation
	// dependency reads what pods refer to; nil as offline.
	dependency func(namespace string, need plan.Need) pass.Object
	others     func(namespace string) []v1alpha1.FleetWorkload
}

func (r reporting) backend(name string) (backend, error) {
	b, err := r.inventory.backend(name)
	if cause, broken := r.broken[name]; broken {
		return b, cause
	}
	b.observe = func(q backends.Query) (backends.Observation, error) { return r.report(q), nil }
	b.dependency, b.others = r.dependency, r.others
	return b, err
}

// carriesOut reports 6, 3 and 3 replicas of a revision.
func carriesOut(revision string, replicas ...int32) func(backends.Query) backends.Observation {
	return func(backends.Query) backends.Observation {
		names := []string{"member1", "member2", "member3"}
		o := backends.Observation{Found: true, Selection: backends.Selection{Settled: true, Clusters: names}}
		for i, name := range names {
			n := replicas[i]
			o.Clusters = append(o.Clusters, backends.ClusterObservation{
				Cluster: name, Asked: &n, Revision: revision, Applied: metav1.ConditionTrue, Current: true,
				Status: map[string]any{"replicas": int64(n), "readyReplicas": int64(n)},
			})
		}
		return o
	}
}

// revisionOf is what a FleetWorkload's manifests are marked with.
func revisionOf(t *testing.T, fw *v1alpha1.FleetWorkload, from source) string {
	t.Helper()
	kinds, err := from.kinds()
	if err != nil {
		t.Fatal(err)
	}
	b, err := from.backend("karmada")
	if err != nil {
		t.Fatal(err)
	}
	d, err := b.decide(fw, kinds)
	if err != nil {
		t.Fatal(err)
	}
	return d.Revision()
}

// rehearse runs a dry run against clusters of a file.
func rehearse(t *testing.T, fw *v1alpha1.FleetWorkload, to string, changes ...func(*reporting)) (string, error) {
	t.Helper()
	return rehearseAs(t, fw, to, "", changes...)
}

func rehearseAs(t *testing.T, fw *v1alpha1.FleetWorkload, to, format string, changes ...func(*reporting)) (string, error) {
	t.Helper()
	inv, err := loadInventory("testdata/migrate/inventory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	from := reporting{inventory: inv, report: carriesOut(revisionOf(t, moving(t), inv), 6, 3, 3)}
	for _, change := range changes {
		change(&from)
	}
	before := fw.DeepCopy()
	var out bytes.Buffer
	err = (&rehearsal{fw: fw, to: to, source: from, program: "kubectl fw"}).print(&out, noon, inFormat(format, false))
	if !equality.Semantic.DeepEqual(before, fw) {
		t.Error("the dry run has changed the FleetWorkload")
	}
	return out.String(), err
}

func TestMigrateDryRun(t *testing.T) {
	plain := func(fw *v1alpha1.FleetWorkload) { fw.Spec.Migration = nil; fw.Spec.Placement.Division = nil }
	for name, tc := range map[string]struct {
		fw      *v1alpha1.FleetWorkload
		to      string
		changes []func(*reporting)
		fail    string
	}{
		"good": {
			fw: moving(t, resting, plain), to: "ocm",
			changes: []func(*reporting){func(r *reporting) { r.report = carriesOut(revisionOf(t, moving(t, plain), r), 12, 12, 12) }},
		},
		"problems": {
			fw: moving(t, resting, func(fw *v1alpha1.FleetWorkload) { fw.Spec.BackendOptions = wrongOptions() }), to: "small",
			fail: "the migration would not begin, 4 problems stand against it; the workload would stay on backend karmada",
		},
		"waves": {fw: moving(t, resting), to: "ocm"},
		"paused": {
			fw: moving(t, resting, func(fw *v1alpha1.FleetWorkload) {
				fw.Spec.Migration.OnFailure = v1alpha1.FailureActionPause
				fw.Spec.Migration.Waves[0].Clusters.Names = []string{"nowhere"}
			}), to: "ocm",
		},
		"busy": {
			fw: moving(t, resting), to: "ocm",
			changes: []func(*reporting){func(r *reporting) { r.report = carriesOut("older", 6, 3, 3) }},
			fail:    "the migration would not begin, 1 problem stands against it",
		},
		"stalled": {
			fw: moving(t, resting, func(fw *v1alpha1.FleetWorkload) {
				setCondition(fw, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRemovalHeld, "the placement no longer chooses member1")
			}), to: "ocm", fail: "1 problem stands against it",
		},
		"unreachable": {
			fw: moving(t, resting), to: "ocm",
			changes: []func(*reporting){func(r *reporting) {
				r.broken = map[string]error{"ocm": &backends.Error{Code: backends.CodeUnavailable, Message: "the backend cannot be used", Remedy: "check its connection"}}
			}},
			fail: "1 problem stands against it",
		},
		"not-begun": {
			fw: moving(t, problems("cluster member2 is not known to backend ocm")), to: "ocm",
		},
		"instead": {
			fw: moving(t, problems("cluster member2 is not known to backend ocm"), func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "small" }), to: "ocm",
		},
		"under-way":     {fw: moving(t), to: "ocm"},
		"would-go-back": {fw: moving(t), to: "karmada"},
		"would-go-on":   {fw: moving(t, everywhere(v1alpha1.MigrationPhaseRollingBack), func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "karmada" }), to: "ocm"},
		"too-late":      {fw: moving(t, everywhere(v1alpha1.MigrationPhaseReleasing)), to: "karmada"},
		"third":         {fw: moving(t), to: "small"},
		"there":         {fw: moving(t, resting), to: "karmada"},
		"gives-up":      {fw: moving(t, problems("a")), to: "karmada"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := rehearse(t, tc.fw, tc.to, tc.changes...)
			if (err == nil) != (tc.fail == "") || err != nil && !strings.Contains(err.Error(), tc.fail) {
				t.Errorf("error is %v, want %q", err, tc.fail)
			}
			compareGolden(t, "migrate/dryrun-"+name+".golden", out)
		})
	}
}

// TestMigrateDryRunForScripts: the same as the text, in fields.
func TestMigrateDryRunForScripts(t *testing.T) {
	for name, tc := range map[string]struct {
		fw     *v1alpha1.FleetWorkload
		to, as string
		fail   string
	}{
		"waves-json": {moving(t, resting), "ocm", "json", ""},
		"problems-yaml": {
			moving(t, resting, func(fw *v1alpha1.FleetWorkload) { fw.Spec.BackendOptions = wrongOptions() }), "small", "yaml", "4 problems stand against it",
		},
		"under-way-json": {moving(t), "ocm", "json", ""},
		"there-jsonpath": {moving(t, resting), "karmada", "jsonpath={.state}: {.message}", ""},
		"waves-name":     {moving(t, resting), "ocm", "name", ""},
		"there-name":     {moving(t, resting), "karmada", "name", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := rehearseAs(t, tc.fw, tc.to, tc.as)
			if (err == nil) != (tc.fail == "") || err != nil && !strings.Contains(err.Error(), tc.fail) {
				t.Errorf("error is %v, want %q", err, tc.fail)
			}
			compareGolden(t, "migrate/dryrun-"+name+".golden", out)
		})
	}
	if _, _, err := run(t, "", "migrate", "web", "--to", "ocm", "-o", "json"); err == nil || !strings.Contains(err.Error(), "add --dry-run") {
		t.Errorf("without --dry-run: %v", err)
	}
}

// wrongOptions are options that the hub's driver cannot merge.
func wrongOptions() *v1alpha1.BackendOptions {
	return &v1alpha1.BackendOptions{OCM: &v1alpha1.OCMOptions{ManifestWork: &runtime.RawExtension{Raw: []byte(`{"works": 1}`)}}}
}

func TestMigrateDryRunRefuses(t *testing.T) {
	deleted := func(fw *v1alpha1.FleetWorkload) { fw.DeletionTimestamp = &metav1.Time{Time: noon} }
	for name, tc := range map[string]struct {
		fw   *v1alpha1.FleetWorkload
		to   string
		want string
	}{
		"an unknown backend": {moving(t, resting), "argo", `--to "argo": no such backend; configured are: karmada, ocm, small. Choose one of them`},
		"a backend that is gone": {
			moving(t, resting, func(fw *v1alpha1.FleetWorkload) { fw.Status.Backend = "old" }), "ocm", `status.backend "old": no such backend`,
		},
		"nothing runs":  {moving(t, resting, func(fw *v1alpha1.FleetWorkload) { fw.Status.Backend = "" }), "ocm", "no backend has FleetWorkload shop/web yet"},
		"it is deleted": {moving(t, resting, deleted), "ocm", "FleetWorkload shop/web is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := rehearse(t, tc.fw, tc.to)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is\n%v\nand should have\n%s", err, tc.want)
			}
			if out != "" {
				t.Errorf("it printed all the same:\n%s", out)
			}
		})
	}
}
