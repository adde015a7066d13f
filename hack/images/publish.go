// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/authn/github"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/ko/pkg/build"
	"github.com/google/ko/pkg/publish"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// keychain has who is logged in with docker or podman, and GITHUB_TOKEN for ghcr.io.
func keychain() authn.Keychain { return authn.NewMultiKeychain(authn.DefaultKeychain, github.Keychain) }

// save writes an OCI layout, where tools find the image by its tag.
func save(result build.Result, folder, tag string) error {
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("make the OCI layout %s: %w", folder, err)
	}
	named := layout.WithAnnotations(map[string]string{specs.AnnotationRefName: tag})
	switch result := result.(type) {
	case v1.ImageIndex:
		err = path.AppendIndex(result, named)
	case v1.Image:
		err = path.AppendImage(result, named)
	default:
		err = fmt.Errorf("it is a %T", result)
	}
	if err != nil {
		return fmt.Errorf("write the image to the OCI layout %s: %w", folder, err)
	}
	return nil
}

// push sends an image and its SBOMs to a repository, and returns what it is called there.
func push(ctx context.Context, result build.Result, repository, tag string) (name.Reference, error) {
	publisher, err := publish.NewDefault(repository, publish.WithAuthFromKeychain(keychain()), publish.WithTags([]string{tag}),
		publish.WithNamer(func(repository, _ string) string { return repository }))
	if err != nil {
		return nil, fmt.Errorf("push to %s: %w", repository, err)
	}
	ref, err := publisher.Publish(ctx, result, build.StrictScheme+repository)
	if err != nil {
		return nil, fmt.Errorf("push to %s:%s: %w", repository, tag, err)
	}
	return ref, publisher.Close()
}
