//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"os"

	. "github.com/onsi/ginkgo/v2"
)

// Sweeps do the same for every write of the operator, for every kind, for every spec. They take long, so that most runs take a
// sample.
const (
	// envSweeps is "whole" when sweeps leave nothing out.
	envSweeps = "E2E_SWEEPS"
	// envSeed decides what is in a sample: CI takes the commit's hash.
	envSeed = "TEST_SEED"
	// A sample takes every eighth write; of few writes more, so that at least two are struck.
	sampled, atLeast = 8, 2
)

// sweep is which of the first n writes a scenario strikes, at least one of those that certainly come among them. It says how to
// repeat that.
func sweep(name string, n, certain int) (sample []int) {
	GinkgoHelper()
	first, step := 0, 1
	if !whole() {
		step = min(sampled, max(1, n/atLeast))
		first = draw(name, step)
		if first >= certain {
			sample = append(sample, 1+first%certain)
		}
	}
	for k := first; k < n; k += step {
		sample = append(sample, k+1)
	}
	AddReportEntry("sample", fmt.Sprintf("%s: %d of %d writes, %v; again with %s=%s %s=%s", name, len(sample), n, sample,
		envSeed, seed(), envSweeps, os.Getenv(envSweeps)))
	return sample
}

func whole() bool { return os.Getenv(envSweeps) == "whole" }

// oneOf makes scenarios of which a sample has one of n.
func oneOf(name string, n int) func(i int, text string, args ...any) {
	return func(i int, text string, args ...any) {
		if !sampling() || draw(name, n) == i {
			It(text, append(args, Offset(1))...)
		}
	}
}

// sampling tells, before Ginkgo has a seed, whether a sample is taken.
func sampling() bool { return !whole() && os.Getenv(envSeed) != "" }

func seed() string { return cmp.Or(os.Getenv(envSeed), fmt.Sprint(GinkgoRandomSeed())) }

// draw is a number below n that the seed decides.
func draw(name string, n int) int {
	hash := fnv.New32a()
	fmt.Fprint(hash, seed(), name)
	return int(hash.Sum32() % uint32(n))
}

// halves deals out what a scenario does for many: each one is in one half. Unless sweeps are whole: then both have all of them.
func halves[T any](name string, all []T) (halves [2][]T) {
	if whole() {
		return [2][]T{all, all}
	}
	for i, one := range all {
		half := (i + draw(name, 2)) % 2
		halves[half] = append(halves[half], one)
	}
	return halves
}
