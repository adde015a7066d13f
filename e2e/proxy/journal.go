package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// errEnded means that a write came when the operator had been ended, or ended with it.
var errEnded = errors.New("the operator has been ended")

// Entry is one mutating request.
type Entry struct {
	Server, Method, Path string
	// Status is the API server's answer.
	Status int
}

func (e Entry) String() string {
	return fmt.Sprintf("%s %s %s -> %d", e.Server, e.Method, e.Path, e.Status)
}

// Concerns tells whether the request writes something of a namespace: an object that lies there, or one in a member's namespace on a backend that
// stands for one. There OCM's ManifestWorks have the namespace in their names, and Karmada's Works the name of what they deliver alone: names are
// those. A create has no name in its path, so that one of a ManifestWork or a Work concerns every namespace.
func (e Entry) Concerns(namespace string, names ...string) bool {
	if strings.Contains(e.Path, namespace) {
		return true
	}
	segments := strings.Split(e.Path, "/")
	if created := segments[len(segments)-1]; e.Method == http.MethodPost && (created == "manifestworks" || created == "works") {
		return true
	}
	at := slices.Index(segments, "works") + 1
	if at == 0 || at == len(segments) {
		return false
	}
	hash := strings.LastIndex(segments[at], "-") // see names.GenerateWorkName of Karmada
	return hash > 0 && slices.Contains(names, segments[at][:hash])
}

// Describe lists entries, one a line.
func Describe(entries []Entry) string {
	lines := make([]string, 0, len(entries))
	for i, e := range entries {
		lines = append(lines, fmt.Sprintf("%3d %s", i+1, e))
	}
	return strings.Join(lines, "\n")
}

// Journal is the log of the mutating requests of one operator, over all API servers that it talks to.
type Journal struct {
	mu      sync.Mutex
	entries []Entry
	fuse    *fuse
}

// fuse ends the operator at a chosen write.
type fuse struct {
	// writing lets one write through at a time, so that "after the k-th" means something.
	writing sync.Mutex
	left    int
	before  bool
	kill    func()
	blown   bool
}

// KillAfter calls kill after the k-th write from now on: it has been done, and its answer is kept back. No further
// write gets through until Disarm.
func (j *Journal) KillAfter(k int, kill func()) { j.arm(&fuse{left: k, kill: kill}) }

// KillBefore calls kill when the k-th write from now on arrives; it is not done, nor is any further one until Disarm.
func (j *Journal) KillBefore(k int, kill func()) { j.arm(&fuse{left: k, kill: kill, before: true}) }

func (j *Journal) arm(f *fuse) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fuse = f
}

// Disarm lets writes through again, and tells whether kill was called.
func (j *Journal) Disarm() (killed bool) {
	killed = j.Killed()
	j.arm(nil)
	return killed
}

// Killed tells whether kill was called since it was armed.
func (j *Journal) Killed() bool {
	j.mu.Lock()
	f := j.fuse
	j.mu.Unlock()
	if f == nil {
		return false
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.blown
}

// Reset forgets all entries.
func (j *Journal) Reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = nil
}

// Entries returns a copy of what was written.
func (j *Journal) Entries() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// write carries out one mutating request, unless the operator has been ended. After an error the client must get no
// answer.
func (j *Journal) write(e Entry, do func() int) error {
	j.mu.Lock()
	f := j.fuse
	j.mu.Unlock()
	if f == nil {
		j.record(e, do)
		return nil
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	if f.blown {
		return errEnded
	}
	f.left--
	if f.left == 0 && f.before {
		f.blown = true
		f.kill()
		return errEnded
	}
	j.record(e, do)
	if f.left == 0 {
		f.blown = true
		f.kill()
		return errEnded
	}
	return nil
}

func (j *Journal) record(e Entry, do func() int) {
	e.Status = do()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
}
