// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a component's running process. Started tells it from a later process that got the same id.
type process struct {
	PID     int      `json:"pid"`
	Started string   `json:"started"`
	Log     string   `json:"log"`
	Command []string `json:"command"`
}

// command is what a component runs.
type command struct {
	path string
	args []string
	env  []string
}

// startProcess runs cmd detached in a session of its own: it must outlive us and must not get our terminal's signals.
func startProcess(cmd command, dir, log string) (*process, error) {
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return nil, err
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	c := exec.Command(cmd.path, cmd.args...)
	c.Dir, c.Stdout, c.Stderr = dir, out, out
	// Some thirty Go programs that are mostly idle: collecting garbage earlier saves a fifth of their memory. What the
	// caller sets wins.
	c.Env = append([]string{"GOGC=50"}, append(os.Environ(), cmd.env...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return nil, err
	}
	p := &process{PID: c.Process.Pid, Log: log, Command: append([]string{cmd.path}, cmd.args...)}
	stat, _ := statOf(p.PID)
	p.Started = stat.started
	// Reaps the process should it die while we live; its death is noticed through alive.
	go func() { _ = c.Wait() }()
	return p, nil
}

// alive tells whether the process runs. A zombie does not.
func (p *process) alive() bool {
	if p == nil {
		return false
	}
	stat, err := statOf(p.PID)
	return err == nil && stat.started == p.Started && stat.state != "Z" && stat.state != "X"
}

// kill ends the process at once. Nothing of the fleet is worth a graceful end: an API server would take up to a minute.
func (p *process) kill() error {
	if !p.alive() {
		return nil
	}
	// The whole session, in case a component has started something itself.
	if err := syscall.Kill(-p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	return nil
}

// memory returns the resident and the proportional memory in bytes, or 0.
func (p *process) memory() (rss, pss int64) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "Rss:":
			rss = kib << 10
		case "Pss:":
			pss = kib << 10
		}
	}
	return rss, pss
}

// processStat is what /proc/PID/stat tells (proc_pid_stat(5)).
type processStat struct {
	// started is when, in ticks since boot; state is a letter.
	started, state string
	cpu            time.Duration
}

// tick is a hundredth of a second on all of Linux' architectures (USER_HZ).
const tick = 10 * time.Millisecond

func statOf(pid int) (processStat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processStat{}, err
	}
	// The command's name stands in parentheses and may hold anything: read behind the last one.
	i := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[i+1:]))
	const stateField, userField, systemField, startField = 0, 11, 12, 19
	if len(fields) <= startField {
		return processStat{}, fmt.Errorf("process %d: short stat", pid)
	}
	stat := processStat{started: fields[startField], state: fields[stateField]}
	for _, field := range []int{userField, systemField} {
		ticks, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return processStat{}, fmt.Errorf("process %d: processor time: %w", pid, err)
		}
		stat.cpu += time.Duration(ticks) * tick
	}
	return stat, nil
}

// logTail returns the last lines of a log file.
func logTail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
