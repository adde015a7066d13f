package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// moving is the FleetWorkload of testdata/migrate/web.yaml, changed.
func moving(t *testing.T, changes ...func(*v1alpha1.FleetWorkload)) *v1alpha1.FleetWorkload {
	t.Helper()
	raw, err := os.ReadFile("testdata/migrate/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fw := &v1alpha1.FleetWorkload{}
	if err := yaml.UnmarshalStrict(raw, fw); err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(fw)
	}
	return fw
}

// resting has no migration under way.
func resting(fw *v1alpha1.FleetWorkload) {
	fw.Spec.Backend, fw.Status.Migration = "karmada", nil
	setCondition(fw, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "12/12 replicas ready")
}

// ended is a migration that is over.
func ended(on string, phase v1alpha1.MigrationPhase) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Backend, fw.Status.Backend = on, on
		fw.Status.Migration = &v1alpha1.MigrationStatus{History: []v1alpha1.MigrationRecord{{From: "karmada", To: "ocm", Phase: phase}}}
	}
}

func setCondition(fw *v1alpha1.FleetWorkload, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&fw.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

// inPhase brings all clusters of the wave, and the migration, into a phase.
func inPhase(phase v1alpha1.MigrationPhase, message string) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		m := fw.Status.Migration
		m.Phase, m.PassingSince = phase, nil
		for i := range m.Clusters {
			if c := &m.Clusters[i]; *c.Wave == *m.Wave {
				c.Phase, c.Message, c.After = phase, message, nil
			}
		}
	}
}

// everywhere brings all clusters, and the migration, into a phase.
func everywhere(phase v1alpha1.MigrationPhase) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		m := fw.Status.Migration
		m.Phase, m.PassingSince = phase, nil
		for i := range m.Clusters {
			m.Clusters[i].Phase = phase
		}
	}
}

// fails is a wave that did not pass.
func fails(fw *v1alpha1.FleetWorkload) {
	fw.Status.Migration.Failure = "cluster member2: not within 15m0s: the new backend has not taken it over"
}

// asks waits for a person.
func asks(fw *v1alpha1.FleetWorkload) { fw.Status.Migration.Approval = "pass-wave-2-1772366280" }

func frozen(fw *v1alpha1.FleetWorkload) {
	fw.Status.Migration.FrozenSince = &metav1.Time{Time: noon.Add(-30 * time.Second)}
	setCondition(fw, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonBackendUnavailable,
		`backend "ocm": the backend cannot be used: connection refused`)
}

// edited has been given another image and other replicas since the beginning.
func edited(fw *v1alpha1.FleetWorkload) {
	fw.Generation, fw.Status.ObservedGeneration = 5, new(int64)
	*fw.Status.ObservedGeneration = 5
	fw.Spec.Template.Raw = bytes.ReplaceAll(fw.Spec.Template.Raw, []byte("nginx:1.27"), []byte("nginx:1.28"))
	*fw.Spec.Replicas = 20
}

// scaled has been given other replicas since the beginning, and nothing else.
func scaled(fw *v1alpha1.FleetWorkload) {
	raw := fw.Spec.Template.Raw
	edited(fw)
	fw.Spec.Template.Raw = raw
}

func problems(texts ...string) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) {
		fw.Status.Migration = &v1alpha1.MigrationStatus{
			From: "karmada", To: "ocm", Phase: v1alpha1.MigrationPhaseValidating, Problems: texts, StartedAt: fw.Status.Migration.StartedAt,
		}
		setCondition(fw, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonMigrationNotPossible, strings.Join(texts, "; "))
	}
}

func approved(fw *v1alpha1.FleetWorkload) {
	fw.Annotations = map[string]string{v1alpha1.AnnotationApproveMigration: fw.Status.Migration.Approval}
}

var web = client.ObjectKey{Namespace: "shop", Name: "web"}

func TestSetBackend(t *testing.T) {
	c := fakeClient(t, moving(t, resting))
	var out bytes.Buffer
	if err := setBackend(t.Context(), c, web, "ocm", &out); err != nil {
		t.Fatal(err)
	}
	fw, err := read(t.Context(), c, web)
	if err != nil {
		t.Fatal(err)
	}
	if want := "spec.backend of shop/web is ocm, it was karmada\n"; fw.Spec.Backend != "ocm" || out.String() != want {
		t.Errorf("spec.backend is %s, printed %q", fw.Spec.Backend, out.String())
	}
	if err := setBackend(t.Context(), c, client.ObjectKey{Namespace: "shop", Name: "db"}, "ocm", &out); err == nil ||
		!strings.Contains(err.Error(), `FleetWorkload "db" not found in namespace "shop"; choose the namespace with -n`) {
		t.Errorf("error is %v", err)
	}
}

func TestApprove(t *testing.T) {
	for name, tc := range map[string]struct {
		fw        *v1alpha1.FleetWorkload
		out, fail string
	}{
		"a wave that has passed": {moving(t, asks), "approved, the migration goes on: pass-wave-2-1772366280\n", ""},
		"a wave that failed":     {moving(t, asks, fails), "approved, the migration tries it again: pass-wave-2-1772366280\n", ""},
		"twice":                  {moving(t, asks, approved), "approved already: pass-wave-2-1772366280\n", ""},
		"nothing under way":      {moving(t, resting), "", "FleetWorkload shop/web does not wait for an approval: no migration is under way"},
		"it goes on by itself":   {moving(t), "", "does not wait for an approval: its migration to backend ocm goes on by itself, in phase Verifying"},
		"it has not begun":       {moving(t, problems("a")), "", "does not wait for an approval: its migration has not begun"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeClient(t, tc.fw)
			var out bytes.Buffer
			err := approve(t.Context(), c, web, "", &out)
			if (err == nil) != (tc.fail == "") || err != nil && !strings.Contains(err.Error(), tc.fail) {
				t.Errorf("error is %v", err)
			}
			if out.String() != tc.out {
				t.Errorf("printed %q, want %q", out.String(), tc.out)
			}
			fw, err := read(t.Context(), c, web)
			if err != nil {
				t.Fatal(err)
			}
			if got := fw.Annotations[v1alpha1.AnnotationApproveMigration]; tc.fail == "" && got != fw.Status.Migration.Approval {
				t.Errorf("the annotation is %q", got)
			}
		})
	}
}

func TestMigrateFlags(t *testing.T) {
	config := filepath.Join(t.TempDir(), "operator.yaml")
	for want, args := range map[string][]string{
		`required flag(s) "to" not set`:                    {"web"},
		"--dry-run reads the backends: say with --config":  {"web", "--to", "ocm", "--dry-run"},
		"if any flags in the group [wait dry-run] are set": {"web", "--to", "ocm", "--dry-run", "--wait", "--config", config},
		"say which FleetWorkloads are to be moved":         {"--to", "ocm"},
		"leave out --all, -l and -A, or the NAMEs":         {"web", "--to", "ocm", "--all"},
		"--order \"age\": choose name or size":             {"--all", "--to", "ocm", "--order", "age"},
		"--at-once 0: nothing would ever begin":            {"--all", "--to", "ocm", "--at-once", "0"},
		"--max-failures -1: choose 0 or more":              {"--all", "--to", "ocm", "--max-failures", "-1"},
		"--selector \"a in\": ":                            {"-l", "a in", "--to", "ocm"},
		"choose a name that ends in .yaml or .json":        {"--all", "--to", "ocm", "--report", "move.txt"},
		"no such file or directory":                        {"--all", "--to", "ocm", "--report", filepath.Join(config, "move.yaml")},
		"flags in the group [report dry-run] are set":      {"--all", "--to", "ocm", "--report", "move.yaml", "--dry-run"},
	} {
		if _, _, err := run(t, "", append([]string{"migrate"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error is %v, want %s", args, err, want)
		}
	}
}
