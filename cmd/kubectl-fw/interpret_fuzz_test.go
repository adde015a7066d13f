package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// FuzzInterpret: whatever is handed over, there is no panic, what was read is written, and nothing without a status is
// called healthy.
func FuzzInterpret(f *testing.F) {
	files, err := filepath.Glob("testdata/interpret/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	kinds, err := interpreter.New()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		objects, _ := readObjects("-", bytes.NewReader(raw))
		result, _ := interpretAll(kinds, objects)
		if len(result.Items) != len(objects) || result.Aggregate.Objects != len(objects) {
			t.Fatalf("%d objects became %d items", len(objects), len(result.Items))
		}
		for i, o := range objects {
			status := o.object.Object["status"]
			// A cron job that is not suspended is healthy before it has ever run, and what has no status, once it is there.
			stateless := slices.Contains([]string{"ConfigMap", "Secret", "Service"}, o.object.GetKind()) && o.object.GroupVersionKind().Group == ""
			if result.Items[i].Health == "Healthy" && status == nil && !stateless && result.Items[i].Reason != interpreter.ReasonScheduled {
				t.Errorf("healthy without a status: %v", o.object.Object)
			}
		}
		if err := inFormat("json", false).write(io.Discard, result); err != nil {
			t.Error(err)
		}
		if err := result.writeText(io.Discard); err != nil {
			t.Error(err)
		}
	})
}
