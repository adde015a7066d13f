// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// tool runs one of krew's own programs.
func tool(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// write makes the manifest of a release, without its archives.
func write(t *testing.T, version, platforms string, sum string) string {
	t.Helper()
	var archives []archive
	for _, platform := range strings.Split(platforms, ",") {
		a, err := newArchive(platform)
		if err != nil {
			t.Fatal(err)
		}
		a.Sum = sum
		archives = append(archives, a)
	}
	path := filepath.Join(t.TempDir(), "fw.yaml")
	if err := writeManifest(path, version, archives); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKrewTakesTheManifest asks the program with which krew's index checks what is sent in.
func TestKrewTakesTheManifest(t *testing.T) {
	sum := strings.Repeat("0123456789abcdef", 4)
	path := write(t, "v0.1.0", allPlatforms, sum)
	if said, err := tool(t, nil, "validate-krew-manifest", "-manifest", path, "-skip-install"); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	for name, wrong := range map[string]string{
		"no version":              write(t, "newest", allPlatforms, sum),
		"no checksum":             write(t, "v0.1.0", allPlatforms, "none"),
		"a platform is twice":     write(t, "v0.1.0", "linux/amd64,linux/amd64", sum),
		"a platform is not there": write(t, "v0.1.0", "plan9/amd64", sum),
	} {
		if said, err := tool(t, nil, "validate-krew-manifest", "-manifest", wrong, "-skip-install"); err == nil {
			t.Errorf("%s, and krew takes it:\n%s", name, said)
		}
	}
}

func TestVersions(t *testing.T) {
	for version, right := range map[string]bool{
		"v0.1.0": true, "v0.1.0-rc.1": true, "v0.1.0-3-g0123456789ab-dirty": true, "0.1.0": false, "v1": false, "newest": false,
	} {
		if _, err := versionOf(t.Context(), options{version: version}); (err == nil) != right {
			t.Errorf("%s: %v", version, err)
		}
	}
	if version, err := versionOf(t.Context(), options{root: "../.."}); err != nil {
		t.Errorf("of the present commit: %s, %v", version, err)
	}
	for _, platform := range []string{"linux", "/amd64", ""} {
		if _, err := newArchive(platform); err == nil {
			t.Errorf("%q is taken for a platform", platform)
		}
	}
}

// TestKrewInstalls builds for this machine, and has krew install the archive. The program calls itself kubectl fw then.
func TestKrewInstalls(t *testing.T) {
	host, out := runtime.GOOS+"/"+runtime.GOARCH, filepath.Join(t.TempDir(), "plugin")
	if err := run(t.Context(), options{root: "../..", out: out, platforms: host, version: "v0.1.0"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	a, err := newArchive(host)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	install := func(manifest string) (string, error) {
		return tool(t, []string{"KREW_ROOT=" + home}, "krew", "install", "--manifest", manifest, "--archive", filepath.Join(out, a.Name))
	}
	if said, err := install(write(t, "v0.1.0", host, strings.Repeat("0", 64))); err == nil || !strings.Contains(said, "checksum") {
		t.Errorf("another archive than the manifest's is installed: %v\n%s", err, said)
	}
	if said, err := install(filepath.Join(out, "fw.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	said, err := exec.CommandContext(t.Context(), filepath.Join(home, "bin", "kubectl-fw"), "--help").CombinedOutput()
	if err != nil || !bytes.Contains(said, []byte("kubectl fw status")) && !bytes.Contains(said, []byte("kubectl fw [")) {
		t.Errorf("%v\n%s", err, said)
	}
	completer, err := os.Stat(filepath.Join(home, "store", "fw", "v0.1.0", "kubectl_complete-fw"))
	if err != nil || completer.Mode().Perm()&0o111 == 0 {
		t.Errorf("what kubectl completes the plugin by is %v, %v", completer, err)
	}
	if licence, err := filepath.Glob(filepath.Join(home, "store", "fw", "v0.1.0", "LICENSE")); err != nil || len(licence) != 1 {
		t.Errorf("the licence is %v, %v", licence, err)
	}
}
