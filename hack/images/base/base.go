// SPDX-License-Identifier: Apache-2.0

// Package base makes the image that the operator's is put on: an account without rights, the certificates of public authorities, and a folder for
// temporary files. Nothing is fetched from a registry, so that an image can be built anywhere, is the same wherever it is built, and has no packages
// of a distribution that would have to be patched.
package base

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// User is the account that the image runs as, by number: a kubelet cannot tell of a name whether it is root's.
const User = "65532:65532"

// account is User's number.
const account = 65532

// authorities is where Go looks for certificates first, and where people mount their own.
const authorities = "etc/ssl/certs/ca-certificates.crt"

// Index is the image, once for each platform.
func Index(platforms []v1.Platform) (v1.ImageIndex, error) {
	content, err := archive()
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("make the base's layer: %w", err)
	}
	index := v1.ImageIndex(empty.Index)
	for _, platform := range platforms {
		image, err := imageFor(platform, layer)
		if err != nil {
			return nil, fmt.Errorf("make the base for %s: %w", platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	return index, nil
}

func imageFor(platform v1.Platform, layer v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Config = v1.Config{User: User, WorkingDir: "/", Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE=/" + authorities}}
	return mutate.ConfigFile(image, config)
}

// archive is all files as a tar, without times, so that it is always the same.
func archive() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range []struct {
		tar.Header
		content []byte
	}{
		{tar.Header{Name: "etc/", Mode: 0o755}, nil},
		{tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")},
		{tar.Header{Name: "etc/group", Mode: 0o644}, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{tar.Header{Name: "etc/nsswitch.conf", Mode: 0o644}, []byte("hosts: files dns\n")},
		{tar.Header{Name: "etc/ssl/", Mode: 0o755}, nil},
		{tar.Header{Name: "etc/ssl/certs/", Mode: 0o755}, nil},
		{tar.Header{Name: authorities, Mode: 0o644}, certificates()},
		{tar.Header{Name: "home/", Mode: 0o755}, nil},
		{tar.Header{Name: "home/nonroot/", Mode: 0o700, Uid: account, Gid: account}, nil},
		{tar.Header{Name: "tmp/", Mode: 0o1777}, nil},
	} {
		e.Typeflag, e.Size = tar.TypeReg, int64(len(e.content))
		if e.content == nil {
			e.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(&e.Header); err != nil {
			return nil, fmt.Errorf("put %s into the base: %w", e.Name, err)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, fmt.Errorf("put %s into the base: %w", e.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end the base's archive: %w", err)
	}
	return out.Bytes(), nil
}

// certificates are Mozilla's, as the Go project publishes them. Those that are trusted up to a date only are left out: a file cannot say so.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}
