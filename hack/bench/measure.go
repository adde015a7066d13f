package main

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// work is one of the two things that are compared; it is done n times.
type work func(n int) error

// comparison is ours beside a peer's.
type comparison struct {
	name       string
	ours, peer work
	// bar is how many times faster than the peer we are at least. With slower it is how many times longer ours takes at
	// most: the peer does less.
	bar    float64
	slower bool
}

// result is what came out: the time of one piece of work.
type result struct {
	comparison
	oursTime, peerTime time.Duration
}

func (r result) ratio() float64 {
	if r.slower {
		return float64(r.oursTime) / float64(r.peerTime)
	}
	return float64(r.peerTime) / float64(r.oursTime)
}

func (r result) ok() bool {
	if r.slower {
		return r.ratio() <= r.bar
	}
	return r.ratio() >= r.bar
}

// String is the line that is printed.
func (r result) String() string {
	verdict := "ok"
	if !r.ok() {
		verdict = "short"
	}
	return fmt.Sprintf("%s ours=%s peer=%s ratio=%.1f bar=%g %s",
		r.name, microseconds(r.oursTime), microseconds(r.peerTime), r.ratio(), r.bar, verdict)
}

func microseconds(d time.Duration) string {
	return fmt.Sprintf("%.1fus", float64(d)/float64(time.Microsecond))
}

// meter measures a comparison in rounds, ours and the peer's in turn, so that both see the same machine. Medians keep a
// round out in which it was not itself.
type meter struct {
	rounds int
	// slice is how long a turn takes at least, in processor time.
	slice time.Duration
}

func (m meter) measure(c comparison) (result, error) {
	// The first turns also fill caches and pools.
	oursN, err := m.calibrate(c.ours)
	if err != nil {
		return result{}, err
	}
	peerN, err := m.calibrate(c.peer)
	if err != nil {
		return result{}, err
	}
	var ours, peer []time.Duration
	for range m.rounds {
		o, err := turn(c.ours, oursN)
		if err != nil {
			return result{}, err
		}
		p, err := turn(c.peer, peerN)
		if err != nil {
			return result{}, err
		}
		ours, peer = append(ours, o), append(peer, p)
	}
	return result{comparison: c, oursTime: median(ours), peerTime: median(peer)}, nil
}

// calibrate finds how often the work is to be done to fill a slice.
func (m meter) calibrate(w work) (int, error) {
	for n := 1; ; n *= 2 {
		each, err := turn(w, n)
		if err != nil {
			return 0, err
		}
		if time.Duration(n)*each >= m.slice {
			return n, nil
		}
	}
}

// turn does the work n times and returns the processor time of one. It is the whole process's, with the garbage
// collector's; garbage of whoever was before is taken away first.
func turn(w work, n int) (time.Duration, error) {
	runtime.GC()
	start, err := processorTime()
	if err != nil {
		return 0, err
	}
	if err := w(n); err != nil {
		return 0, err
	}
	end, err := processorTime()
	if err != nil {
		return 0, err
	}
	// Never zero, so that there is a ratio.
	return max((end-start)/time.Duration(n), 1), nil
}

// processorTime is what this process has used. On a busy machine it tells more than the wall clock.
func processorTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

func median(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
