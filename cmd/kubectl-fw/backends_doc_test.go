package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/karmada"
	"github.com/fleetworkload/fleetworkload/backends/ocm"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

const (
	backendsDoc   = "../../docs/backends.md"
	backendsBegin = "<!-- The table is written by: go test ./cmd/kubectl-fw -run TestBackendsDocument -update -->\n"
)

// TestBackendsDocument: docs/backends.md says what the drivers declare.
func TestBackendsDocument(t *testing.T) {
	page, err := os.ReadFile(backendsDoc)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(page), backendsBegin)
	if !found {
		t.Fatalf("%s has no line %q", backendsDoc, backendsBegin)
	}
	want := head + backendsBegin + "\n" + matrix((&karmada.Driver{}).Features(), (&ocm.Driver{}).Features())
	if *update {
		if err := os.WriteFile(backendsDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("%s differs; if that is right, go test -update: %s", backendsDoc, diff)
	}
}

func matrix(onKarmada, onOCM backends.Features) string {
	var b strings.Builder
	b.WriteString("| field | Karmada | Open Cluster Management |\n|---|---|---|\n")
	for _, f := range plan.Fields {
		cell := func(features backends.Features, how string) string {
			if f.Needs != "" && !features[f.Needs] {
				return "no"
			}
			return how
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Path, cell(onKarmada, f.Karmada), cell(onOCM, f.OCM))
	}
	return b.String()
}

// TestEveryFieldIsListed: a new field of the API needs a row.
func TestEveryFieldIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, f := range plan.Fields {
		path, _, _ := strings.Cut(f.Path, " (") // some values have a row of their own
		listed[path] = true
	}
	check := func(prefix string, fields ...string) {
		for _, name := range fields {
			if !listed[prefix+name] {
				t.Errorf("internal/plan/fields.go has no row for %s%s", prefix, name)
			}
		}
	}
	for _, name := range jsonFields(v1alpha1.FleetWorkloadSpec{}) {
		switch name {
		case "placement":
			check("placement.", jsonFields(v1alpha1.Placement{})...)
		case "overrides":
			check("overrides.", jsonFields(v1alpha1.Override{})...)
		case "backendOptions":
			check("backendOptions.", jsonFields(v1alpha1.BackendOptions{})...)
		default:
			check("", name)
		}
	}
}

func jsonFields(of any) []string {
	var names []string
	for i := range reflect.TypeOf(of).NumField() {
		name, _, _ := strings.Cut(reflect.TypeOf(of).Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
