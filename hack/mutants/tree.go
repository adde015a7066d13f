package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// tree is a copy of the files that git knows or would know. The build cache is that of the original, as long as -trimpath is set.
type tree struct {
	dir string
	// passes are the tests that pass without a fault.
	passes map[string]bool
}

// inside joins a path of the tree to its folder.
func (t tree) inside(path string) string { return filepath.Join(t.dir, filepath.FromSlash(path)) }

// copied makes one in a folder of its own.
func copied(ctx context.Context) (tree, error) {
	list, err := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return tree{}, fmt.Errorf("list files: %w", err)
	}
	t := tree{passes: map[string]bool{}}
	if t.dir, err = os.MkdirTemp("", "mutants-"); err != nil {
		return tree{}, err
	}
	for _, path := range strings.Split(strings.Trim(string(list), "\x00"), "\x00") {
		if err := t.add(path); err != nil {
			t.remove()
			return tree{}, err
		}
	}
	return t, nil
}

func (t tree) add(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil // deleted and not yet committed, or a link
	}
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.inside(path)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(t.inside(path), raw, info.Mode().Perm())
}

func (t tree) remove() { _ = os.RemoveAll(t.dir) }

// fresh sees that each fault still has its place.
func (t tree) fresh(faults []Fault) error {
	var stale []error
	for _, f := range faults {
		raw, err := os.ReadFile(t.inside(f.File))
		if err != nil {
			stale = append(stale, fmt.Errorf("%s: %w", f.Name, err))
			continue
		}
		if n := bytes.Count(raw, []byte(f.Old)); n != 1 {
			stale = append(stale, fmt.Errorf("%s: the list is stale: %s has %d times: %s", f.Name, f.File, n, f.Old))
		}
	}
	return errors.Join(stale...)
}

// replace plants a fault. What it returns takes it out.
func (t tree) replace(f Fault) (undo func() error, err error) {
	path := t.inside(f.File)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, bytes.Replace(raw, []byte(f.Old), []byte(f.New), 1), 0o600); err != nil {
		return nil, err
	}
	return func() error { return os.WriteFile(path, raw, 0o600) }, nil
}

// sound sees that a test passes without a fault. Otherwise it tells nothing.
func (t tree) sound(ctx context.Context, test Test, count int) error {
	key := fmt.Sprint(test)
	if t.passes[key] {
		return nil
	}
	failed, err := t.test(ctx, test, count)
	if err != nil {
		return fmt.Errorf("without a fault: %w", err)
	}
	if failed != "" {
		return fmt.Errorf("without a fault a test fails already: %s", failed)
	}
	t.passes[key] = true
	return nil
}

// buildError is what the compiler says.
type buildError struct{ text string }

func (e *buildError) Error() string { return "does not build: " + e.text }

// test builds a package's tests, runs some, and says which failed, at once when it does; nothing when all pass.
func (t tree) test(ctx context.Context, test Test, count int) (failed string, err error) {
	binary := t.inside(filepath.Base(test.Package) + ".mutants.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary, test.Package)
	build.Dir = t.dir
	if out, err := build.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", &buildError{strings.Join(strings.Fields(string(out)), " ")}
	}
	running, kill := context.WithCancel(ctx)
	defer kill()
	run := exec.CommandContext(running, binary, "-test.v", "-test.timeout=30m", "-test.run="+test.Run)
	run.Dir = t.inside(test.Package)
	run.Env = append(os.Environ(), fmt.Sprint("HISTORIES=", count))
	for name, value := range test.Env {
		run.Env = append(run.Env, name+"="+value)
	}
	out, err := run.StdoutPipe()
	if err != nil {
		return "", err
	}
	run.Stderr = run.Stdout // a panic counts too
	begun := time.Now()
	if err := run.Start(); err != nil {
		return "", err
	}
	failed, ran := watch(out, begun)
	if failed != "" {
		kill() // one is enough
	}
	err = run.Wait()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case failed != "":
		return failed, nil
	case err != nil:
		return fmt.Sprintf("%s: %v", test, err), nil
	case !ran:
		return "", fmt.Errorf("%s: no test has this name", test)
	}
	return "", nil
}

var (
	failure = regexp.MustCompile(`--- FAIL: (.+) \(`)
	history = regexp.MustCompile(`HISTORY=(\d+): ([^:]*):`)
	crash   = regexp.MustCompile(`^(?:panic|fatal error): (.*)`)
)

// watch reads what a test says until it fails or ends.
func watch(out io.Reader, begun time.Time) (failed string, ran bool) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		took := time.Since(begun).Round(time.Second / 10)
		ran = ran || strings.HasPrefix(line, "=== RUN")
		if found := history.FindStringSubmatch(line); found != nil {
			return fmt.Sprintf("histories: history %s, %s, says %q", ordinal(found[1]), took, found[2]), true
		}
		if found := failure.FindStringSubmatch(line); found != nil {
			return deepest(lines, found[1]), true
		}
		if found := crash.FindStringSubmatch(line); found != nil {
			return "a panic: " + found[1], true
		}
	}
	return "", ran
}

// deepest is the subtest that failed: its line comes after that of the test it belongs to, among those that passed.
func deepest(lines *bufio.Scanner, name string) string {
	for lines.Scan() {
		if found := failure.FindStringSubmatch(lines.Text()); found != nil && strings.HasPrefix(found[1], name+"/") {
			name = found[1]
		}
	}
	return name
}

// ordinal counts from the first history that the seed leads to, as the test does.
func ordinal(seed string) string {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return seed
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(os.Getenv("TEST_SEED")))
	return strconv.FormatUint(n-hash.Sum64()>>16+1, 10)
}
