// SPDX-License-Identifier: Apache-2.0

package base

import (
	"archive/tar"
	"crypto/x509"
	"errors"
	"io"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

func index(t *testing.T, platforms ...v1.Platform) (v1.ImageIndex, *v1.IndexManifest) {
	t.Helper()
	index, err := Index(platforms)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return index, manifest
}

// files are the headers and contents in an image.
func files(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	contents := map[string]string{}
	r := tar.NewReader(mutate.Extract(image))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return contents
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.IsZero() && header.ModTime.Unix() != 0 {
			t.Errorf("%s has the time %s, so that it differs at each build", header.Name, header.ModTime)
		}
		contents[strings.TrimSuffix(header.Name, "/")] = string(content)
	}
}

func TestWhatAProgramNeeds(t *testing.T) {
	index, manifest := index(t, v1.Platform{OS: "linux", Architecture: "arm64"})
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.OS != "linux" || config.Config.User != User {
		t.Errorf("made for %s/%s, user %q", config.OS, config.Architecture, config.Config.User)
	}
	got := files(t, image)
	for name, part := range map[string]string{
		"etc/passwd": "nonroot:x:65532:65532:", "etc/group": "nonroot:x:65532:", "etc/nsswitch.conf": "hosts:", "tmp": "", "home/nonroot": "",
	} {
		if content, found := got[name]; !found || !strings.Contains(content, part) {
			t.Errorf("%s: found %t, want %q in %q", name, found, part, content)
		}
	}
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(got[authorities])) || strings.Count(got[authorities], "BEGIN CERTIFICATE") < 100 {
		t.Errorf("%s has %d certificates", authorities, strings.Count(got[authorities], "BEGIN CERTIFICATE"))
	}
}

func TestAlwaysTheSame(t *testing.T) {
	platforms := []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
	one, manifest := index(t, platforms...)
	two, _ := index(t, platforms...)
	first, err := one.Digest()
	if err != nil {
		t.Fatal(err)
	}
	second, err := two.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Errorf("digests %s and %s", first, second)
	}
	if len(manifest.Manifests) != len(platforms) {
		t.Errorf("it is for %d platforms", len(manifest.Manifests))
	}
}
