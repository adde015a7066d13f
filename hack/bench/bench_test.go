package main

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Every comparison runs, and its line can be read by a machine. The figures of so short a run mean nothing.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	if _, err := run(&out, meter{rounds: 1, slice: time.Microsecond}); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^[a-z0-9/-]+ ours=[0-9.]+us peer=[0-9.]+us ratio=[0-9.]+ bar=[0-9.]+ (ok|short)$`)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 {
		t.Errorf("%d lines, want 5:\n%s", len(lines), out.String())
	}
	for _, l := range lines {
		if !line.MatchString(l) {
			t.Errorf("the line is not as promised: %s", l)
		}
	}
}

func TestResult(t *testing.T) {
	for name, tc := range map[string]struct {
		result result
		want   string
	}{
		"faster": {
			result{comparison{name: "a", bar: 5}, 10 * time.Microsecond, 50 * time.Microsecond},
			"a ours=10.0us peer=50.0us ratio=5.0 bar=5 ok",
		},
		"not faster enough": {
			result{comparison{name: "a", bar: 5}, 10 * time.Microsecond, 49 * time.Microsecond},
			"a ours=10.0us peer=49.0us ratio=4.9 bar=5 short",
		},
		"grows": {
			result{comparison{name: "g", bar: 15, slower: true}, 150 * time.Microsecond, 10 * time.Microsecond},
			"g ours=150.0us peer=10.0us ratio=15.0 bar=15 ok",
		},
		"grows too much": {
			result{comparison{name: "g", bar: 15, slower: true}, 151 * time.Microsecond, 10 * time.Microsecond},
			"g ours=151.0us peer=10.0us ratio=15.1 bar=15 short",
		},
	} {
		if got := tc.result.String(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// A comparison of different outcomes is refused.
func TestAgree(t *testing.T) {
	f, err := newFleet(3)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.agree(); err != nil {
		t.Fatal(err)
	}
	f.items[1].Status.Raw = status(99, 1)
	if err := f.agree(); err == nil || !strings.Contains(err.Error(), "Karmada's") {
		t.Errorf("error is %v", err)
	}
}

// Work that fails ends the measurement.
func TestMeasureFails(t *testing.T) {
	broken := errors.New("broken")
	good, bad := func(int) error { return nil }, func(int) error { return broken }
	m := meter{rounds: 1}
	for _, c := range []comparison{{ours: good, peer: bad}, {ours: bad, peer: good}} {
		if _, err := m.measure(c); !errors.Is(err, broken) {
			t.Errorf("error is %v", err)
		}
	}
}

func TestMedian(t *testing.T) {
	if got := median([]time.Duration{9, 1, 100, 2, 3}); got != 3 {
		t.Errorf("got %d", got)
	}
}
