// SPDX-License-Identifier: Apache-2.0

// Command krew makes a release of kubectl-fw for krew, the manager of kubectl's plugins: an archive a platform, and the plugin's manifest with
// their checksums. It is a module of its own, so that krew, which tests it, moves no version of anything else.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	_ "embed"
)

//go:embed fw.yaml.tmpl
var manifest string

// options are flags.
type options struct {
	root      string
	out       string
	platforms string
	version   string
}

const allPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "folder of the operator's module")
	flag.StringVar(&o.out, "out", "bin/plugin", "folder for archives and manifest, which is emptied first")
	flag.StringVar(&o.platforms, "platforms", allPlatforms, "platforms to build for")
	flag.StringVar(&o.version, "version", "", "version of the release, such as v0.1.0; what git describe says when empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	version, err := versionOf(ctx, o)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(o.out); err != nil {
		return fmt.Errorf("empty %s: %w", o.out, err)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", o.out, err)
	}
	var archives []archive
	for _, platform := range strings.Split(o.platforms, ",") {
		a, err := newArchive(platform)
		if err != nil {
			return err
		}
		if err := a.make(ctx, o.root, o.out); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s  %s\n", a.Sum, filepath.Join(o.out, a.Name))
		archives = append(archives, a)
	}
	path := filepath.Join(o.out, "fw.yaml")
	if err := writeManifest(path, version, archives); err != nil {
		return err
	}
	fmt.Fprintln(out, path)
	return nil
}

func writeManifest(path, version string, archives []archive) error {
	text, err := template.New("fw.yaml").Parse(manifest)
	if err != nil {
		return fmt.Errorf("read the manifest's template: %w", err)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	err = text.Execute(file, struct {
		Version  string
		Archives []archive
	}{version, archives})
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("write manifest %s: %w", path, err)
	}
	return nil
}

// versionOf is what krew compares: v, three numbers, and what follows a tag.
func versionOf(ctx context.Context, o options) (string, error) {
	version := o.version
	if version == "" {
		said, err := exec.CommandContext(ctx, "git", "-C", o.root, "describe", "--tags", "--always", "--dirty", "--abbrev=12").Output()
		if err != nil {
			return "", fmt.Errorf("git describe in %s: %w", o.root, err)
		}
		if version = strings.TrimSpace(string(said)); !strings.HasPrefix(version, "v") {
			version = "v0.0.0-g" + version // there is no tag: it is the commit
		}
	}
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(version) {
		return "", fmt.Errorf("version %q: krew wants one such as v0.1.0", version)
	}
	return version, nil
}
