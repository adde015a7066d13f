// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// archive is the program for one platform, with the licence.
type archive struct {
	OS, Arch string
	// Name of the file, and of the program in it.
	Name, Program string
	// Sum is the SHA-256 of the file, once it is made.
	Sum string
}

// newArchive is for a platform such as linux/amd64.
func newArchive(platform string) (archive, error) {
	system, processor, both := strings.Cut(platform, "/")
	if !both || system == "" || processor == "" {
		return archive{}, fmt.Errorf("platform %q: want one such as linux/amd64", platform)
	}
	a := archive{OS: system, Arch: processor, Name: "kubectl-fw_" + system + "_" + processor + ".tar.gz", Program: "kubectl-fw"}
	if system == "windows" {
		a.Program += ".exe"
	}
	return a, nil
}

// make builds the program and writes the archive into a folder.
func (a *archive) make(ctx context.Context, root, folder string) error {
	built, err := os.MkdirTemp("", "kubectl-fw-")
	if err != nil {
		return fmt.Errorf("make a folder for %s: %w", a.Name, err)
	}
	defer func() { _ = os.RemoveAll(built) }()
	program := filepath.Join(built, a.Program)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./cmd/kubectl-fw")
	build.Dir, build.Env = root, append(os.Environ(), "GOOS="+a.OS, "GOARCH="+a.Arch, "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build kubectl-fw for %s/%s: %w\n%s", a.OS, a.Arch, err, said)
	}
	path := filepath.Join(folder, a.Name)
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	sum := sha256.New()
	err = pack(io.MultiWriter(file, sum), program, filepath.Join(root, "LICENSE"))
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("write archive %s: %w", path, err)
	}
	a.Sum = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// pack writes files without their times, so that the same program makes the same archive.
func pack(out io.Writer, program, licence string) error {
	zipped := gzip.NewWriter(out)
	packed := tar.NewWriter(zipped)
	for _, path := range []string{program, licence} {
		mode := int64(0o644)
		if path == program {
			mode = 0o755
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: filepath.Base(path), Mode: mode, Size: int64(len(content)), Format: tar.FormatUSTAR}
		if err := packed.WriteHeader(header); err != nil {
			return err
		}
		if _, err := packed.Write(content); err != nil {
			return err
		}
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return zipped.Close()
}
