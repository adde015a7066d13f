// Package backendtest holds drivers to the contract of docs/driver-contract.md: Run is the conformance suite that every
// driver passes.
package backendtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// Environment is one backend with member clusters to run the suite on. The members run Deployments, CloneSets and their
// pods, or something that behaves so. Cases run in parallel, each with its own namespace and drivers: set -parallel.
type Environment struct {
	// NewDriver returns a new driver connected to the backend. The driver calls gate before every request it sends, and
	// fails the request with the error that gate returns; Transport does that for HTTP. If the driver is a
	// backends.Runner, the suite runs it until the test ends; if not, it must be ready when it is returned. Two drivers
	// are an operator before and after a restart, so they must share nothing but the backend.
	NewDriver func(t *testing.T, gate Gate) backends.Driver

	// Namespace returns a namespace that no other case uses. It exists on the backend and on every cluster, and goes
	// when the test ends.
	Namespace func(t *testing.T) string

	// Clusters are at least three that are ready, with the labels, attributes and identity that the driver must report
	// (it may report more). The first one has an attribute value and a label value that at least one other lacks.
	Clusters []backends.Cluster

	// Member gives access to the objects of a member cluster, behind the backend's back.
	Member func(cluster string) Store

	// Backend gives access to the backend's own objects, around the driver.
	Backend Store

	// Owned lists the objects on the backend that are there because of this workload: what the driver wrote, and what
	// the backend made of that, such as bindings and works. Objects shared by many workloads are left out.
	Owned func(ctx context.Context, query backends.Query) ([]*unstructured.Unstructured, error)

	// Foreign returns an object of the name that the driver would use for the workload, as someone else would have
	// created it. Without it the case is skipped.
	Foreign func(desired backends.Desired) *unstructured.Unstructured

	// Rival makes of a member object, before it is created, one that another control plane of the kind has put on the cluster.
	Rival func(t *testing.T, cluster string, obj *unstructured.Unstructured)

	// Version is the one in which a workload of the kind is to be written, which differs by the versions of what serves it. Empty, and where it
	// is nil, it is the one of the suite.
	Version func(t *testing.T, kind schema.GroupKind) string

	// OwnershipMarks are the keys of labels and annotations by which the backend marks a member object as its own.
	OwnershipMarks []string

	// InvalidOptions are backendOptions that the driver cannot merge. Without them the case is skipped.
	InvalidOptions *v1alpha1.BackendOptions

	// Seed decides on samples: a case for several kinds of workloads runs with one of them, and one that is cut off after each of its
	// writes is cut off after one or two of them. Empty: nothing is left out.
	Seed string

	// Timeout is how long a change may take to reach the members and come back. Poll is how often the suite looks.
	Timeout, Poll time.Duration

	// Quiet is how long the suite goes on looking before it believes that nothing happens any more. It should be
	// several times what a change usually takes.
	Quiet time.Duration
}

// Gate is told of a request, and may refuse it. What it is about is for people.
type Gate func(kind RequestKind, about string) error

// ErrNoAnswer is what a gate returns for a request that is never answered. It lasts until the client gives it up.
var ErrNoAnswer = errors.New("no answer from the backend")

// RequestKind says what a request does to the backend.
type RequestKind int

const (
	// ReadRequest gets or lists. Watches do not count: caches hold them.
	ReadRequest RequestKind = iota
	// WriteRequest creates, changes or deletes.
	WriteRequest
)

// Ref names an object of one cluster.
type Ref struct {
	GVK schema.GroupVersionKind
	types.NamespacedName
}

// Store reads and writes the objects of one API server as somebody else would. ClientStore makes one of a client.
type Store interface {
	// Get fails with a NotFound API error when there is no such object.
	Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error)
	Create(ctx context.Context, obj *unstructured.Unstructured) error
	// Update fails with a Conflict API error when the resource version is not the newest.
	Update(ctx context.Context, obj *unstructured.Unstructured) error
	// Watch reports the object as it is, if it is there, and every change from then on.
	Watch(ctx context.Context, ref Ref) (watch.Interface, error)
}

// Case is one thing that every driver must do.
type Case struct {
	// Name is a sentence; it begins with the rule it proves, or with the method whose comment it proves.
	Name string
	// Rules are the rules it proves, such as R1.
	Rules []string
	// Needs is a feature without which the case is skipped.
	Needs backends.Feature
	// Lacks is a feature with which the case is skipped.
	Lacks backends.Feature

	run func(s *session)
	// kinds that the case runs with, one subtest each; none means Deployment.
	kinds []kind
}

// Cases returns the suite.
func Cases() []Case {
	var all []Case
	for _, group := range [][]Case{
		fleetCases(), applyCases(), changeCases(), emptinessCases(), holdCases(), removalCases(), foreignCases(), deleteCases(),
		refusalCases(), callCases(), restartCases(), ownershipCases(), companionCases(), handoverCases(), driftCases(),
	} {
		all = append(all, group...)
	}
	return all
}

// Run holds the environment's driver to the contract. It returns when all cases have ended.
func Run(t *testing.T, env Environment) {
	t.Helper()
	if len(env.Clusters) < 3 {
		t.Fatalf("the suite needs three clusters, the environment has %d", len(env.Clusters))
	}
	features := env.NewDriver(t, func(RequestKind, string) error { return nil }).Features()
	t.Run("conformance", func(t *testing.T) {
		for _, c := range Cases() {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				c.play(t, env, features)
			})
		}
	})
}

func (c Case) play(t *testing.T, env Environment, features backends.Features) {
	t.Helper()
	switch {
	case c.Needs != "" && !features[c.Needs]:
		t.Skipf("the driver does not declare %s", c.Needs)
	case c.Lacks != "" && features[c.Lacks]:
		t.Skipf("the driver declares %s", c.Lacks)
	case len(c.kinds) == 0:
		c.run(newSession(t, env, deployment))
	default:
		for _, k := range c.sample(env.Seed) {
			t.Run(k.gvk.Kind, func(t *testing.T) {
				t.Parallel()
				c.run(newSession(t, env, k))
			})
		}
	}
}

// sample are the kinds to run with: all, or one that the seed decides.
func (c Case) sample(seed string) []kind {
	if seed == "" {
		return c.kinds
	}
	n := drawn(len(c.kinds), seed, c.Name)
	return c.kinds[n : n+1]
}

// sweep are those of the first n writes after which a case is cut off: all, or one or two that the seed decides.
func sweep(name, seed string, n int64) (after []int64) {
	first, step := int64(0), int64(1)
	if seed != "" {
		step = (n + 1) / 2
		first = int64(drawn(int(step), seed, name))
	}
	for k := first; k < n; k += step {
		after = append(after, k)
	}
	return after
}

// drawn is one of the first n numbers, the same for the same seed and name.
func drawn(n int, seed, name string) int {
	hash := fnv.New32a()
	fmt.Fprint(hash, seed, name)
	return int(hash.Sum32() % uint32(n))
}
