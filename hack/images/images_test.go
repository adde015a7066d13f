// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/fleetworkload/fleetworkload/hack/images/base"
)

const root = "../.."

// tiny is a program that costs nothing to build.
func tiny(t *testing.T, platforms string) options {
	t.Helper()
	return options{root: "testdata/tiny", program: ".", platforms: platforms, tag: "v1.2.3", out: t.TempDir()}
}

// built runs the command, and returns what it has saved.
func built(t *testing.T, o options) v1.Descriptor {
	t.Helper()
	if err := run(t.Context(), o, t.Output()); err != nil {
		t.Fatal(err)
	}
	index, err := saved(t, o).IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 1 {
		t.Fatalf("the layout has %d images", len(index.Manifests))
	}
	if tag := index.Manifests[0].Annotations[specs.AnnotationRefName]; tag != o.tag {
		t.Errorf("the layout calls the image %q, not %q", tag, o.tag)
	}
	return index.Manifests[0]
}

func saved(t *testing.T, o options) v1.ImageIndex {
	t.Helper()
	index, err := layout.ImageIndexFromPath(filepath.Join(o.out, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// images are those of an index by their platform, or the one that there is.
func images(t *testing.T, o options) map[string]v1.Image {
	t.Helper()
	top, index := built(t, o), saved(t, o)
	found := map[string]v1.Image{}
	if top.MediaType.IsImage() {
		image, err := index.Image(top.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		found[config.Platform().String()] = image
		return found
	}
	all, err := index.ImageIndex(top.Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		if found[m.Platform.String()], err = all.Image(m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// file is one of an image.
func file(t *testing.T, image v1.Image, name string) []byte {
	t.Helper()
	r := tar.NewReader(mutate.Extract(image))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("the image has no %s", name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimPrefix(header.Name, "/") == name {
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return content
		}
	}
}

// check judges what is the same in all images: who runs what, and where it is from.
func check(t *testing.T, platform string, image v1.Image, program string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != base.User {
		t.Errorf("%s runs as %q", platform, config.Config.User)
	}
	if want := []string{"/ko-app/" + program}; !slices.Equal(config.Config.Entrypoint, want) {
		t.Errorf("%s starts %v, not %v", platform, config.Config.Entrypoint, want)
	}
	commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, marks := range []map[string]string{config.Config.Labels, manifest.Annotations} {
		if got := marks[specs.AnnotationRevision]; got != strings.TrimSpace(string(commit)) {
			t.Errorf("%s says that it was built of %q, not of %s", platform, got, commit)
		}
		if marks[specs.AnnotationVersion] == "" || marks[specs.AnnotationSource] == "" || marks[specs.AnnotationLicenses] == "" {
			t.Errorf("%s is not labelled: %v", platform, marks)
		}
	}
	binary, err := elf.NewFile(bytes.NewReader(file(t, image, "ko-app/"+program)))
	if err != nil {
		t.Fatalf("%s: the program: %v", platform, err)
	}
	machine := map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}[platform]
	if binary.Machine != machine {
		t.Errorf("%s has a program for %s", platform, binary.Machine)
	}
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Errorf("%s has a program that needs a dynamic linker, which the image lacks", platform)
		}
	}
}

// listed are the versions of the modules in an SBOM.
func listed(t *testing.T, o options, file string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(o.out, "sbom", file))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		SPDXVersion string `json:"spdxVersion"`
		Packages    []struct {
			Name    string `json:"name"`
			Version string `json:"versionInfo"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if !strings.HasPrefix(document.SPDXVersion, "SPDX-2") {
		t.Errorf("%s is of version %q", file, document.SPDXVersion)
	}
	versions := map[string]string{}
	for _, p := range document.Packages {
		versions[p.Name] = p.Version
	}
	return versions
}

func TestEveryPlatform(t *testing.T) {
	o := tiny(t, "linux/amd64,linux/arm64")
	found := images(t, o)
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		image, ok := found[platform]
		if !ok {
			t.Fatalf("there is no image for %s: %v", platform, found)
		}
		check(t, platform, image, "tiny")
		if certificates := file(t, image, "etc/ssl/certs/ca-certificates.crt"); !bytes.Contains(certificates, []byte("BEGIN CERTIFICATE")) {
			t.Errorf("%s trusts nobody", platform)
		}
		if _, ok := listed(t, o, "tiny-"+strings.ReplaceAll(platform, "/", "-")+".spdx.json")["example.com/tiny"]; !ok {
			t.Errorf("the SBOM for %s does not list the program", platform)
		}
	}
	if len(found) != 2 {
		t.Errorf("there are images for %d platforms", len(found))
	}
}

func TestSameSourceSameDigest(t *testing.T) {
	one, two := tiny(t, "linux/amd64,linux/arm64"), tiny(t, "linux/amd64,linux/arm64")
	if first, second := built(t, one).Digest, built(t, two).Digest; first != second {
		t.Errorf("digests %s and %s", first, second)
	}
	for _, name := range []string{"tiny-linux-amd64.spdx.json", "tiny-linux-arm64.spdx.json", "tiny-index.spdx.json"} {
		var contents [2][]byte
		for i, o := range []options{one, two} {
			raw, err := os.ReadFile(filepath.Join(o.out, "sbom", name))
			if err != nil {
				t.Fatal(err)
			}
			contents[i] = raw
		}
		if !bytes.Equal(contents[0], contents[1]) {
			t.Errorf("%s differs", name)
		}
	}
}

// server is a registry in memory.
func server(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestPush(t *testing.T) {
	o := tiny(t, "linux/amd64,linux/arm64")
	o.repository = server(t) + "/me/fleetworkload"
	digest := built(t, o).Digest
	for _, name := range []string{":v1.2.3", "@" + digest.String()} {
		if got := pulled(t, o.repository+name); got.Digest != digest {
			t.Errorf("%s is %s, not %s", name, got.Digest, digest)
		}
	}
	pulled(t, o.repository+":"+strings.Replace(digest.String(), ":", "-", 1)+".sbom")
}

func pulled(t *testing.T, image string) *remote.Descriptor {
	t.Helper()
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Get(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestAnotherBase: whatever it runs as, the operator does not run as root.
func TestAnotherBase(t *testing.T) {
	o := tiny(t, "linux/amd64")
	o.base = server(t) + "/their/base:v1"
	theirs, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := theirs.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.User = "linux", "amd64", "root"
	if theirs, err = mutate.ConfigFile(theirs, config); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(o.base)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, theirs, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	image := images(t, o)["linux/amd64"]
	check(t, "linux/amd64", image, "tiny")
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if got := manifest.Annotations[specs.AnnotationBaseImageName]; got != o.base {
		t.Errorf("it says that it stands on %q", got)
	}
}

func TestNoPlatform(t *testing.T) {
	if err := run(t.Context(), tiny(t, " , "), t.Output()); err == nil || !strings.Contains(err.Error(), "linux/amd64") {
		t.Errorf("got %v", err)
	}
}

// TestTheOperator builds the operator for the machine that the test runs on; PLATFORMS=linux/amd64,linux/arm64 for others too, which takes minutes.
func TestTheOperator(t *testing.T) {
	own := "linux/" + runtime.GOARCH
	o := options{root: root, program: "./cmd/manager", platforms: os.Getenv("PLATFORMS"), tag: "v1.2.3", out: t.TempDir()}
	if o.platforms == "" {
		o.platforms = own
	}
	wanted := required(t, "sigs.k8s.io/controller-runtime")
	found := images(t, o)
	if want := len(strings.Split(o.platforms, ",")); len(found) != want {
		t.Errorf("there are images for %d platforms of %s", len(found), o.platforms)
	}
	for platform, image := range found {
		check(t, platform, image, "manager")
		sbom := "manager-" + strings.ReplaceAll(platform, "/", "-") + ".spdx.json"
		if got := listed(t, o, sbom)["sigs.k8s.io/controller-runtime"]; got != wanted {
			t.Errorf("%s lists controller-runtime %q, go.mod has %s", sbom, got, wanted)
		}
		if platform != own {
			continue
		}
		program := filepath.Join(t.TempDir(), "manager")
		if err := os.WriteFile(program, file(t, image, "ko-app/manager"), 0o700); err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(said), "manager version ") {
			t.Errorf("the program in the image says %q: %v", said, err)
		}
	}
}

// required is the version of a module in the operator's go.mod.
func required(t *testing.T, module string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(module) + ` (\S+)`).FindSubmatch(raw)
	if found == nil {
		t.Fatalf("go.mod has no %s", module)
	}
	return string(found[1])
}
