// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// source is the commit that is built.
type source struct {
	version  string
	revision string
	time     time.Time
}

// sourceOf asks git. The version is the newest tag, with how far the commit is from it; the commit where there is no tag.
func sourceOf(ctx context.Context, root string) (source, error) {
	var s source
	var err error
	if s.version, err = git(ctx, root, "describe", "--tags", "--always", "--dirty", "--abbrev=12"); err != nil {
		return source{}, err
	}
	if s.revision, err = git(ctx, root, "rev-parse", "HEAD"); err != nil {
		return source{}, err
	}
	text, err := git(ctx, root, "log", "-1", "--format=%ct")
	if err != nil {
		return source{}, err
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("time of commit %s: %w", s.revision, err)
	}
	s.time = time.Unix(seconds, 0).UTC()
	return s, nil
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s in %s: %w: %s", strings.Join(args, " "), root, err, bytes.TrimSpace(said.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
