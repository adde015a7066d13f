package main

import (
	"bytes"
	"cmp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/migration"
)

func TestMigrationTable(t *testing.T) {
	type fws = []func(*v1alpha1.FleetWorkload)
	for name, changes := range map[string]fws{
		"validating": {problems("cluster member2 is not known to backend ocm", "cluster member3 is not ready on backend ocm")},
		"shadowing": {everywhere(v1alpha1.MigrationPhaseShadowing), func(fw *v1alpha1.FleetWorkload) {
			m := fw.Status.Migration
			m.Wave, m.Clusters[2].Message = nil, "the new backend has no object with this manifest yet"
			for i := range m.Clusters {
				m.Clusters[i].Before, m.Clusters[i].After = nil, nil
			}
		}},
		"handing-over": {inPhase(v1alpha1.MigrationPhaseHandingOver, "the present backend has not confirmed that it has stopped")},
		"verifying":    nil,
		"approval":     {asks, func(fw *v1alpha1.FleetWorkload) { fw.Status.Migration.PassingSince.Time = noon.Add(-time.Hour) }},
		"failed":       {inPhase(v1alpha1.MigrationPhaseRolledBack, ""), fails, asks},
		"rolling-back": {inPhase(v1alpha1.MigrationPhaseRollingBack, ""), fails},
		"turned-round": {everywhere(v1alpha1.MigrationPhaseRollingBack)},
		"releasing":    {everywhere(v1alpha1.MigrationPhaseReleasing)},
		"frozen":       {frozen},
		"edited":       {edited},
		"replaced": {func(fw *v1alpha1.FleetWorkload) {
			fw.Status.Migration.Clusters[1].After = &v1alpha1.MigrationEvidence{UID: "ffff", PodRevision: "web-1"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			began := moving(t).Spec
			v := view{now: noon, program: "kubectl fw", began: &began}
			if err := writeMigration(&out, moving(t, changes...), v); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, "migrate/"+name+".golden", out.String())
		})
	}
}

func TestMigrationTableIsBounded(t *testing.T) {
	fw := moving(t)
	m := fw.Status.Migration
	m.Clusters[2].Message = "the new backend does not report on it"
	var out bytes.Buffer
	if err := writeMigration(&out, fw, view{now: noon, most: 2}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if strings.Contains(text, "member1") || !strings.Contains(text, "member2") || !strings.Contains(text, "member3") ||
		!strings.Contains(text, "and 1 cluster more") {
		t.Errorf("of two rows, one is for what is said and one for the present wave:\n%s", text)
	}
}

func TestWaitingEdits(t *testing.T) {
	began := moving(t).Spec
	kept := func(identity string) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) {
			known := moving(t)
			known.UID = types.UID(cmp.Or(identity, string(known.UID)))
			name, err := migration.KeptName(known, migration.Kept(began), 3)
			if err != nil {
				t.Fatal(err)
			}
			scaled(fw)
			fw.Status.Identity, fw.Status.Migration.SpecRevision = identity, name
		}
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.FleetWorkload)
		began  *v1alpha1.FleetWorkloadSpec
		want   string
	}{
		"nothing":                 {func(*v1alpha1.FleetWorkload) {}, &began, ""},
		"a template":              {edited, &began, "changed meanwhile, and waits until it is over: spec.template"},
		"replicas do not wait":    {scaled, &began, ""},
		"replicas, and not known": {kept(""), nil, ""},
		"replicas, and not known, in an installation": {kept("production/web"), nil, ""},
		"not known": {edited, nil, "the spec was changed meanwhile: what is not replicas, suspend or migration waits until it is over"},
		"a field that is new": {
			func(fw *v1alpha1.FleetWorkload) { scaled(fw); fw.Spec.Overrides = []v1alpha1.Override{{}} }, &began,
			"changed meanwhile, and waits until it is over: spec.overrides",
		},
	} {
		if got := waiting(moving(t, tc.change), tc.began); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Once approved it no longer asks, also while the operator has not seen it.
func TestMigrationTableApproved(t *testing.T) {
	for _, note := range migrationNotes(moving(t, asks, approved), view{now: noon}) {
		if strings.Contains(note, "waits for a person") {
			t.Error(note)
		}
	}
}
