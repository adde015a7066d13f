// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestUsualVersions: the page on versions names those of which the test fleet is built. Where another page names a version that was tried, it
// stays as it is.
func TestUsualVersions(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/versions.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, usual, _ := strings.Cut(string(page), "## The usual ones\n")
	usual, _, _ = strings.Cut(usual, "\n## ")
	for name, of := range map[string]struct{ component, module string }{
		"Karmada":    {"shared", "github.com/karmada-io/karmada"},
		"OCM":        {"ocm", "open-cluster-management.io/ocm"},
		"OpenKruise": {"kruise", "github.com/openkruise/kruise"},
		"Kubernetes": {"shared", "k8s.io/kubernetes"},
	} {
		path := filepath.Join(root, "e2e/lab/components", of.component, "go.mod")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := modfile.Parse(path, raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, required := range file.Require {
			if required.Mod.Path != of.module {
				continue
			}
			found = true
			if want := name + " " + strings.TrimPrefix(required.Mod.Version, "v"); !strings.Contains(usual, want) {
				t.Errorf("the test fleet has %s, and docs/versions.md says\n%s", want, usual)
			}
		}
		if !found {
			t.Errorf("%s does not require %s", path, of.module)
		}
	}
}
