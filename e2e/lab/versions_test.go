// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFleetKeepsTheVersionsItWasMadeWith(t *testing.T) {
	f := testFleet(t)
	t.Setenv("KARMADA", "v1.16.0")
	t.Setenv("KUBERNETES", "v1.34.1")
	if err := f.claim(Options{Members: 1}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KARMADA", "")
	t.Setenv("KUBERNETES", "")
	again, err := Open(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.claim(Options{Members: 2}); err != nil {
		t.Errorf("without versions the fleet was refused: %v", err)
	}
	if got := again.state.Versions[karmadaModule]; got != "v1.16.0" {
		t.Errorf("Karmada is %q, want the version that the fleet was made with", got)
	}
	if got := again.state.kubernetes(); got != "v1.34.1" {
		t.Errorf("Kubernetes is %q, want the version that the fleet was made with", got)
	}
	t.Setenv("KARMADA", "v1.18.1")
	err = again.claim(Options{Members: 2})
	const want = "made with KARMADA=v1.16.0 KUBERNETES=v1.34.1, not with KARMADA=v1.18.1"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("asked for another version the fleet says %v, want %q", err, want)
	}
}

func TestVersionsMustBeExact(t *testing.T) {
	for _, version := range []string{"1.2.1", "v1.2", "latest", "v1.2.1 => /tmp"} {
		t.Setenv("OCM", version)
		if got, err := chosenVersions(); err == nil {
			t.Errorf("OCM=%s was taken as %v", version, got)
		}
	}
}

func TestAChosenVersionIsBuiltApart(t *testing.T) {
	b := &builder{source: "source", cache: "cache", versions: map[string]string{kubernetesModule: "v1.34.1"}}
	for _, bin := range binaries {
		got := b.chosen(bin)
		if inModule(bin.pkg, kubernetesModule) {
			if dir := b.familyDir(got.family); dir != "cache/modules/kubernetes@v1.34.1" {
				t.Errorf("%s is built in %s", bin.name, dir)
			}
			if !strings.Contains(got.ldflags, "gitVersion=v1.34.1 ") || !strings.Contains(got.ldflags, "gitMinor=34 ") {
				t.Errorf("%s is built with the flags %s", bin.name, got.ldflags)
			}
			continue
		}
		if got != bin || b.familyDir(got.family) != "source/components/"+bin.family {
			t.Errorf("%s is built in %s with %q", bin.name, b.familyDir(got.family), got.ldflags)
		}
	}
}

// A chosen version must not let what is left in the family be built again.
func TestCacheFolderBesideAChosenVersion(t *testing.T) {
	var dirs []string
	for _, versions := range []map[string]string{nil, {karmadaModule: "v1.16.0"}} {
		b, err := newBuilder(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.versions = versions
		dir, err := b.cacheDir(t.Context(), "shared")
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	if dirs[0] != dirs[1] {
		t.Errorf("with another Karmada, Kubernetes is built in %s instead of %s", dirs[1], dirs[0])
	}
}

func TestModuleOfAChosenVersion(t *testing.T) {
	source := t.TempDir()
	text := `module k8s.io/kubernetes

go 1.24.0

require k8s.io/api v0.0.0

replace (
	golang.org/x/sys => golang.org/x/sys v0.19.0
	k8s.io/api => ./staging/src/k8s.io/api
)
`
	if err := os.WriteFile(filepath.Join(source, "go.mod"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := moduleFile(t.Context(), source, kubernetesModule, "v1.34.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"go 1.24.0", "require k8s.io/kubernetes v1.34.1", "replace golang.org/x/sys => golang.org/x/sys v0.19.0",
		"replace k8s.io/api => k8s.io/api v0.34.1", "tool k8s.io/kubernetes/cmd/kube-apiserver",
	} {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
	if strings.Contains(got, "karmada") {
		t.Errorf("another module's programs are in\n%s", got)
	}
}
