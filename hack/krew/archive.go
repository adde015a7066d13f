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

// completer is by what kubectl completes the plugin; it is a script for a POSIX shell.
const completer = "cmd/kubectl-fw/kubectl_complete-fw"

// archive is the program for one platform, with the licence, and with the completer where there is a shell for it.
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
	err = pack(io.MultiWriter(file, sum), a.files(root, program)...)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("write archive %s: %w", path, err)
	}
	a.Sum = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// entry is a file of an archive, and its mode there.
type entry struct {
	path string
	mode int64
}

// files are what the archive has.
func (a *archive) files(root, program string) []entry {
	files := []entry{{program, 0o755}, {filepath.Join(root, "LICENSE"), 0o644}}
	if a.OS == "windows" {
		return files
	}
	return append(files, entry{filepath.Join(root, completer), 0o755})
}

// pack writes files without their times, so that the same program makes the same archive.
func pack(out io.Writer, files ...entry) error {
	zipped := gzip.NewWriter(out)
	packed := tar.NewWriter(zipped)
	for _, file := range files {
		content, err := os.ReadFile(file.path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: filepath.Base(file.path), Mode: file.mode, Size: int64(len(content)), Format: tar.FormatUSTAR}
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
