package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of times in /proc (USER_HZ, the same on all Linux machines that Go runs on).
const tick = 10 * time.Millisecond

// processorTimeOf is what the processes have used together.
func processorTimeOf(ids []int) (time.Duration, error) {
	var sum time.Duration
	for _, id := range ids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		if err != nil {
			return 0, fmt.Errorf("read processor time of process %d: %w", id, err)
		}
		used, err := readStat(stat)
		if err != nil {
			return 0, fmt.Errorf("read processor time of process %d: %w", id, err)
		}
		sum += used
	}
	return sum, nil
}

// readStat reads the processor time from a process's stat, in user space and in the kernel.
func readStat(stat []byte) (time.Duration, error) {
	// The name stands in parentheses and may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, fmt.Errorf("its stat is %q", stat)
	}
	var sum time.Duration
	for _, field := range fields[user : system+1] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}
