// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const stateFile = "state.json"

// state is what a later process must know to find, check and stop the fleet. It is written at every change, so that an
// interrupted Up can be continued or taken down.
type state struct {
	mu   sync.Mutex
	path string

	DifferentNames   bool `json:"differentNames,omitempty"`
	WithoutWorkflows bool `json:"withoutWorkflows,omitempty"`
	WorkWebhook      bool `json:"workWebhook,omitempty"`
	// Versions were chosen by the environment, by module; that of all others is the one of components/.
	Versions  map[string]string   `json:"versions,omitempty"`
	Ports     map[string]int      `json:"ports"`
	Processes map[string]*process `json:"processes"`
	Members   []Member            `json:"members"`
	// Tokens of the members' users: member -> service account -> token.
	Tokens map[string]map[string]string `json:"tokens"`
}

// loadState reads the state kept in dir. A folder without one gives an empty state.
func loadState(dir string) (*state, error) {
	s := &state{path: filepath.Join(dir, stateFile)}
	return s, s.reload()
}

// reload reads the state again: another process may have changed it.
func (s *state) reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.DifferentNames, s.WithoutWorkflows, s.WorkWebhook, s.Versions, s.Members = false, false, false, nil, nil
	s.Ports, s.Processes, s.Tokens = map[string]int{}, map[string]*process{}, map[string]map[string]string{}
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the fleet's state: %w", err)
	}
	if err := json.Unmarshal(data, s); err != nil {
		return fmt.Errorf("read the fleet's state %s: %w", s.path, err)
	}
	return nil
}

// update changes the state and writes it. The file is replaced by rename: a reader never sees half of it.
func (s *state) update(change func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the fleet's state: %w", err)
	}
	if err := os.WriteFile(s.path+".new", data, 0o600); err != nil {
		return fmt.Errorf("write the fleet's state: %w", err)
	}
	if err := os.Rename(s.path+".new", s.path); err != nil {
		return fmt.Errorf("write the fleet's state: %w", err)
	}
	return nil
}

// member returns a copy of the named member.
func (s *state) member(name string) (Member, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.Members {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// owner returns the member to which a component belongs, or nil: that with the longest name that the component's name
// begins with, since members may be called blue and blue-green.
func (s *state) owner(component string) *Member {
	var owner *Member
	for i, m := range s.Members {
		if strings.HasPrefix(component, m.Name+"-") && (owner == nil || len(m.Name) > len(owner.Name)) {
			owner = &s.Members[i]
		}
	}
	return owner
}

func (s *state) process(name string) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Processes[name]
}

// port returns the port kept under key, choosing a free one the first time.
func (s *state) port(key string) (int, error) {
	s.mu.Lock()
	port, ok := s.Ports[key]
	taken := make(map[int]bool, len(s.Ports))
	for _, p := range s.Ports {
		taken[p] = true
	}
	s.mu.Unlock()
	if ok {
		return port, nil
	}
	port, err := freePort(taken)
	if err != nil {
		return 0, fmt.Errorf("choose a port for %s: %w", key, err)
	}
	err = s.update(func() {
		if other, ok := s.Ports[key]; ok {
			port = other
		}
		s.Ports[key] = port
	})
	return port, err
}

// The ports lie below the range from which the kernel takes the local ports of outgoing connections: an API server that
// was paused must get its port back, and with a port from that range some connection may hold it by then.
const (
	firstPort = 12000
	lastPort  = 32000
)

// freePort returns a free loopback port outside taken.
func freePort(taken map[int]bool) (int, error) {
	var last error
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if taken[port] {
			continue
		}
		l, err := net.Listen("tcp", loopback+":"+strconv.Itoa(port))
		if err != nil {
			last = err
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port found: %w", last)
}

// lockDir makes the caller the only one to change the fleet in dir (or to build into the cache folder dir). The lock is
// on the folder itself, so that it leaves no file behind, and the kernel drops it with the process.
func lockDir(ctx context.Context, dir string) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		f, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		// The folder may have been deleted by whom we waited for: then the lock is on nothing.
		if err == nil && isCurrent(f, dir) {
			return func() { _ = f.Close() }, nil
		}
		_ = f.Close()
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock on %s: %w", dir, context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// isCurrent tells whether the open folder is still the one at path.
func isCurrent(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(opened, now)
}
