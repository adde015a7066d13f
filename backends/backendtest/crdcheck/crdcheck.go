// Package crdcheck reads CustomResourceDefinitions for tests, which hold objects against them with the code of Kubernetes' own API server.
package crdcheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetworkload/fleetworkload/internal/crdschema"
)

// Schemas are those of some CustomResourceDefinitions.
type Schemas = crdschema.Schemas

// Load reads the CustomResourceDefinitions of a Go module in the module cache. patterns are those of filepath.Glob,
// below the module's directory.
func Load(tb testing.TB, module string, patterns ...string) Schemas {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		tb.Fatalf("find module %s: %v", module, err)
	}
	return load(tb, strings.TrimSpace(string(out)), patterns)
}

// LoadDownloaded is Load for a version of a module that is none of ours: it is downloaded, and has to have that checksum.
func LoadDownloaded(tb testing.TB, version, sum string, patterns ...string) Schemas {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "mod", "download", "-json", version).Output()
	var found struct{ Dir, Sum, Error string }
	if decoding := utiljson.Unmarshal(out, &found); decoding != nil || found.Error != "" {
		tb.Fatalf("download %s: %v: %v: %s", version, err, decoding, found.Error)
	}
	if found.Sum != sum {
		tb.Fatalf("the checksum of %s is %s, want %s", version, found.Sum, sum)
	}
	return load(tb, found.Dir, patterns)
}

func load(tb testing.TB, dir string, patterns []string) Schemas {
	tb.Helper()
	schemas := Schemas{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			tb.Fatalf("nothing in %s matches %s: %v", dir, pattern, err)
		}
		for _, file := range files {
			if err := read(schemas, file); err != nil {
				tb.Fatalf("%s: %v", file, err)
			}
		}
	}
	return schemas
}

// LoadFile reads a CustomResourceDefinition.
func LoadFile(tb testing.TB, file string) Schemas {
	tb.Helper()
	schemas := Schemas{}
	if err := read(schemas, file); err != nil {
		tb.Fatalf("%s: %v", file, err)
	}
	return schemas
}

func read(schemas Schemas, file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return schemas.Read(raw)
}
