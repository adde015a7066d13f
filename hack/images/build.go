// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/ko/pkg/build"

	"github.com/fleetworkload/fleetworkload/hack/images/base"
)

// ownBase is what an image says that it is based on, when that is ours. It can be found nowhere, which its name says.
const ownBase = "fleetworkload.invalid/base"

// order is what to build.
type order struct {
	// root is the folder of the module that has the program.
	root string
	// program is the import path of a command, as `go build` takes it.
	program   string
	platforms []string
	// base is an image of a registry to put the program on; ours when empty.
	base string
	// sboms is the folder for the lists of what is in the images.
	sboms  string
	labels map[string]string
	source source
}

// build is an image, or an index of one for each platform when there are several.
func (o order) build(ctx context.Context) (build.Result, error) {
	options := []build.Option{
		build.WithBaseImages(o.baseOf),
		build.WithPlatforms(o.platforms...),
		build.WithTrimpath(true),
		build.WithDefaultLdflags([]string{"-s", "-w"}),
		build.WithUser(base.User), // whatever base it is
		build.WithCreationTime(v1.Time{Time: o.source.time}),
		build.WithSPDX(koVersion()),
		build.WithSBOMDir(o.sboms),
		build.WithJobs(1), // go build fills the processors
	}
	for key, value := range o.labels {
		options = append(options, build.WithLabel(key, value), build.WithAnnotation(key, value))
	}
	builder, err := build.NewGo(ctx, o.root, options...)
	if err != nil {
		return nil, fmt.Errorf("set up ko: %w", err)
	}
	path, err := builder.QualifyImport(o.program)
	if err != nil {
		return nil, fmt.Errorf("find the program %s: %w", o.program, err)
	}
	if err := builder.IsSupportedReference(path); err != nil {
		return nil, fmt.Errorf("build an image of %s: %w", o.program, err)
	}
	result, err := builder.Build(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("build an image of %s: %w", o.program, err)
	}
	return result, nil
}

// baseOf is what ko puts a program on.
func (o order) baseOf(ctx context.Context, _ string) (name.Reference, build.Result, error) {
	if o.base != "" {
		return fetched(ctx, o.base)
	}
	platforms := make([]v1.Platform, 0, len(o.platforms))
	for _, text := range o.platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return nil, nil, fmt.Errorf("platform %q: %w", text, err)
		}
		platforms = append(platforms, *platform)
	}
	index, err := base.Index(platforms)
	if err != nil {
		return nil, nil, err
	}
	ref, err := name.NewTag(ownBase)
	return ref, index, err
}

// fetched is an image of a registry.
func fetched(ctx context.Context, image string) (name.Reference, build.Result, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return nil, nil, fmt.Errorf("base image %q: %w", image, err)
	}
	found, err := remote.Get(ref, remote.WithAuthFromKeychain(keychain()), remote.WithContext(ctx))
	if err != nil {
		return nil, nil, fmt.Errorf("fetch base image %s: %w", ref, err)
	}
	if found.MediaType.IsIndex() {
		index, err := found.ImageIndex()
		return ref, index, err
	}
	one, err := found.Image()
	return ref, one, err
}

// koVersion stands in SBOMs as the tool's that made them.
func koVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/google/ko" {
				return module.Version
			}
		}
	}
	return "(unknown)"
}

// platformsOf reads a list with commas.
func platformsOf(text string) ([]string, error) {
	platforms := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	if len(platforms) == 0 {
		return nil, errors.New("no platform to build for: name some, such as linux/amd64,linux/arm64")
	}
	return platforms, nil
}
