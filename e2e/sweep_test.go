//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"os"

	. "github.com/onsi/ginkgo/v2"
)

// Sweeps do the same for every write of the operator. They take long, so that most runs take a sample.
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
	seed, first, step := cmp.Or(os.Getenv(envSeed), fmt.Sprint(GinkgoRandomSeed())), 0, 1
	if os.Getenv(envSweeps) != "whole" {
		hash := fnv.New32a()
		fmt.Fprint(hash, seed, name)
		step = min(sampled, max(1, n/atLeast))
		first = int(hash.Sum32() % uint32(step))
		if first >= certain {
			sample = append(sample, 1+first%certain)
		}
	}
	for k := first; k < n; k += step {
		sample = append(sample, k+1)
	}
	AddReportEntry("sample", fmt.Sprintf("%s: %d of %d writes, %v; again with %s=%s %s=%s", name, len(sample), n, sample,
		envSeed, seed, envSweeps, os.Getenv(envSweeps)))
	return sample
}
