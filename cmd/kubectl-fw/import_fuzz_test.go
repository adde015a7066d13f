package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/internal/importer"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// FuzzImport: whatever is handed over, there is no panic, and what cannot be carried out is told.
func FuzzImport(f *testing.F) {
	for _, pattern := range []string{importerFixtures + "*.yaml", importFixtures + "*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds in %s: %v", pattern, err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(raw)
		}
	}
	inv, err := loadInventory("testdata/inventory.yaml")
	if err != nil {
		f.Fatal(err)
	}
	b, err := inv.backend("karmada")
	if err != nil {
		f.Fatal(err)
	}
	kinds, err := interpreter.New()
	if err != nil {
		f.Fatal(err)
	}
	request := importer.Request{Home: "home", Backend: b.name, Kinds: kinds, Fleet: b.fleet}
	f.Fuzz(func(t *testing.T, raw []byte) {
		found, _ := readObjects("-", bytes.NewReader(raw))
		var objects []*unstructured.Unstructured
		for _, one := range found {
			objects = append(objects, one.object)
		}
		for _, source := range []func() (importer.Result, error){
			func() (importer.Result, error) { return importer.Karmada(request, objects) },
			func() (importer.Result, error) { return importer.OCM(request, objects) },
			func() (importer.Result, error) {
				return importer.Plain(request, map[string][]*unstructured.Unstructured{"member1": objects, "member2": objects})
			},
		} {
			result, err := source()
			if err != nil {
				continue
			}
			report := newImportReport(result, b, kinds)
			if report.targets == 0 && report.problems() == "" {
				t.Error("nothing would be carried out, and nobody said so")
			}
			if err := report.writeText(io.Discard); err != nil {
				t.Error(err)
			}
			if err := report.writeJSON(io.Discard); err != nil {
				t.Error(err)
			}
			if err := report.writeFleetWorkload(io.Discard); err != nil {
				t.Error(err)
			}
		}
	})
}
