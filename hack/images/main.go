// SPDX-License-Identifier: Apache-2.0

// Command images builds the operator's container images with ko: as an OCI layout on disk, and into a registry when one is named. It is a module of
// its own, so that ko's dependencies move nothing else.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// options are flags.
type options struct {
	root       string
	program    string
	platforms  string
	base       string
	repository string
	tag        string
	out        string
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "folder of the operator's module")
	flag.StringVar(&o.program, "program", "./cmd/manager", "command to make an image of")
	flag.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64", "platforms to build for")
	flag.StringVar(&o.base, "base", "", "image of a registry to put the command on; one that is made here when empty")
	flag.StringVar(&o.repository, "repository", "", "repository to push to, such as ghcr.io/me/fleetworkload; nothing is pushed when empty")
	flag.StringVar(&o.tag, "tag", "", "tag of the image; what git describe says when empty")
	flag.StringVar(&o.out, "out", "bin/images", "folder for the OCI layout (oci) and the SBOMs (sbom), which is emptied first")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// run builds, saves and pushes.
func run(ctx context.Context, o options, out io.Writer) error {
	platforms, err := platformsOf(o.platforms)
	if err != nil {
		return err
	}
	from, err := sourceOf(ctx, o.root)
	if err != nil {
		return err
	}
	tag := o.tag
	if tag == "" {
		tag = from.version
	}
	folder, sboms := filepath.Join(o.out, "oci"), filepath.Join(o.out, "sbom")
	for _, old := range []string{folder, sboms} {
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("empty %s: %w", old, err)
		}
	}
	result, err := order{
		root: o.root, program: o.program, platforms: platforms, base: o.base, sboms: sboms, labels: labels(from), source: from,
	}.build(ctx)
	if err != nil {
		return err
	}
	if err := save(result, folder, tag); err != nil {
		return err
	}
	digest, err := result.Digest()
	if err != nil {
		return fmt.Errorf("digest of the image: %w", err)
	}
	fmt.Fprintf(out, "%s:%s@%s, SBOMs in %s\n", folder, tag, digest, sboms)
	if o.repository == "" {
		return nil
	}
	ref, err := push(ctx, result, o.repository, tag)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, ref)
	return nil
}

// labels say where an image comes from.
func labels(from source) map[string]string {
	return map[string]string{
		specs.AnnotationTitle:    "fleetworkload",
		specs.AnnotationSource:   "https://github.com/fleetworkload/fleetworkload",
		specs.AnnotationLicenses: "Apache-2.0",
		specs.AnnotationVersion:  from.version,
		specs.AnnotationRevision: from.revision,
	}
}
