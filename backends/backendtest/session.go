package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

// callLimit is how long one call may take (R2): of its requests one, or two at different times, may get no answer.
const callLimit = 2 * backends.RequestTimeout

var errCutOff = errors.New("the connection to the backend was cut off")

// session is one case's use of a driver. It checks on every call what must hold always: arguments unchanged (R6),
// results well formed, and the time (R2).
type session struct {
	t         *testing.T
	env       Environment
	kind      kind
	namespace string
	driver    backends.Driver
	changed   chan types.NamespacedName
	// applied are the keys that the suite deletes when the case ends.
	applied sync.Map

	writes, reads atomic.Int64
	// lastWrite says what the last write was, for messages.
	lastWrite atomic.Value
	// left is how many writes go through before the connection is cut off; less than zero means any number.
	left atomic.Int64
	cut  atomic.Bool
	// silent is true when the next write gets no answer.
	silent atomic.Bool
	// end ends the driver, and waits until it has; once.
	end   func()
	ended bool
}

func newSession(t *testing.T, env Environment, k kind) *session {
	t.Helper()
	if env.Version != nil {
		if version := env.Version(t, k.gvk.GroupKind()); version != "" {
			k.gvk.Version = version
		}
	}
	s := &session{t: t, env: env, kind: k, namespace: env.Namespace(t)}
	s.connect()
	return s
}

// restarted returns a session with a new driver that knows nothing of the first, as after a restart of the operator.
func (s *session) restarted() *session {
	s.t.Helper()
	next := &session{t: s.t, env: s.env, kind: s.kind, namespace: s.namespace}
	next.connect()
	return next
}

func (s *session) connect() {
	s.t.Helper()
	s.left.Store(-1)
	s.changed = make(chan types.NamespacedName, 10_000)
	s.driver = s.env.NewDriver(s.t, s.gate)
	s.run()
	s.until("the driver to be synchronised", func() string {
		_, err := s.driver.Clusters(s.t.Context())
		if backends.CodeOf(err) == backends.CodeNotReady {
			return err.Error()
		}
		s.noError("Clusters", err)
		return ""
	})
}

// run runs a driver that holds watches until it is ended, or the test ends.
func (s *session) run() {
	s.end = func() { s.ended = true }
	runner, ok := s.driver.(backends.Runner)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	done := make(chan error, 1)
	go func() { done <- runner.Run(ctx, s.notify) }()
	s.end = sync.OnceFunc(func() {
		s.ended = true
		cancel()
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, context.Canceled) {
				s.t.Errorf("Run returned %v", err)
			}
		case <-time.After(callLimit):
			s.t.Error("Run does not return when its context ends")
		}
	})
	s.t.Cleanup(s.end)
}

func (s *session) notify(name types.NamespacedName) {
	select {
	case s.changed <- name:
	default: // the case does not look
	}
}

func (s *session) gate(kind RequestKind, about string) error {
	if kind == ReadRequest {
		s.reads.Add(1)
		return nil
	}
	if s.silent.CompareAndSwap(true, false) {
		return ErrNoAnswer
	}
	for {
		left := s.left.Load()
		if left == 0 {
			s.cut.Store(true)
			return errCutOff
		}
		if left < 0 || s.left.CompareAndSwap(left, left-1) {
			s.lastWrite.Store(about)
			s.writes.Add(1)
			return nil
		}
	}
}

// cluster returns the name of the n-th cluster.
func (s *session) cluster(n int) string { return s.env.Clusters[n].Name }

func (s *session) noError(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// until calls step until it returns an empty string. What it returns says what is missing.
func (s *session) until(what string, step func() string) {
	s.t.Helper()
	deadline := time.Now().Add(s.env.Timeout)
	for {
		missing := step()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("waited %s for %s: %s", s.env.Timeout, what, missing)
		}
		s.pause()
	}
}

// quiet calls step for a while, and some times however slow the machine is.
func (s *session) quiet(step func()) {
	s.t.Helper()
	end := time.Now().Add(s.env.Quiet)
	for i := 0; i < 5 || time.Now().Before(end); i++ {
		step()
		s.pause()
	}
}

func (s *session) pause() {
	select {
	case <-time.After(s.env.Poll):
	case <-s.t.Context().Done():
	}
}

func (s *session) observe(query backends.Query) (backends.Observation, error) {
	s.t.Helper()
	given := copyQuery(query)
	var observation backends.Observation
	err := s.call("Observe", func(ctx context.Context) (err error) {
		observation, err = s.driver.Observe(ctx, query)
		return err
	})
	s.unchanged("Observe", given, query)
	if err == nil {
		s.wellFormed(observation)
	}
	return observation, err
}

func (s *session) apply(desired backends.Desired) (backends.Progress, error) {
	s.t.Helper()
	given := copyDesired(desired)
	if _, again := s.applied.LoadOrStore(desired.Key, true); !again {
		s.t.Cleanup(func() {
			if !s.ended {
				s.cleanUp(given.Query)
			}
		})
	}
	var progress backends.Progress
	err := s.call("Apply", func(ctx context.Context) (err error) {
		progress, err = s.driver.Apply(ctx, desired)
		return err
	})
	s.unchanged("Apply", given, desired)
	if err == nil && progress.Done != (progress.Waiting == "") {
		s.t.Errorf("Apply: Waiting must be empty exactly when Done: %+v", progress)
	}
	return progress, err
}

func (s *session) delete(query backends.Query, policy v1alpha1.DeletionPolicy) (backends.Progress, error) {
	s.t.Helper()
	given := copyQuery(query)
	var progress backends.Progress
	err := s.call("Delete", func(ctx context.Context) (err error) {
		progress, err = s.driver.Delete(ctx, query, policy)
		return err
	})
	s.unchanged("Delete", given, query)
	if err == nil && progress.Done != (progress.Waiting == "") {
		s.t.Errorf("Delete: Waiting must be empty exactly when Done: %+v", progress)
	}
	return progress, err
}

func (s *session) call(what string, f func(context.Context) error) error {
	s.t.Helper()
	start := time.Now()
	err := f(s.t.Context())
	if took := time.Since(start); took > callLimit {
		s.t.Errorf("%s took %s: it must not wait for the backend", what, took)
	}
	var expected *backends.Error
	if errors.As(err, &expected) && (expected.Message == "" || expected.Remedy == "") {
		s.t.Errorf("%s: an *Error must have a message and a remedy: %#v", what, expected)
	}
	return err
}

func (s *session) unchanged(what string, given, now any) {
	s.t.Helper()
	if diff := cmp.Diff(given, now); diff != "" {
		s.t.Errorf("%s changed its arguments (-before +after):\n%s", what, diff)
	}
}

// wellFormed checks what holds for every observation.
func (s *session) wellFormed(o backends.Observation) {
	s.t.Helper()
	if !slices.IsSorted(o.Selection.Clusters) {
		s.t.Errorf("Selection.Clusters are not sorted: %v", o.Selection.Clusters)
	}
	if !o.Selection.Settled && o.Selection.Message == "" {
		s.t.Error("Selection is not settled and has no message")
	}
	if !o.Found && len(o.Clusters) > 0 {
		s.t.Errorf("not found, but there are reports: %+v", o.Clusters)
	}
	for i, c := range o.Clusters {
		if i > 0 && o.Clusters[i-1].Cluster >= c.Cluster {
			s.t.Errorf("Clusters are not sorted: %q comes before %q", o.Clusters[i-1].Cluster, c.Cluster)
		}
		switch c.Applied {
		case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
		default:
			s.t.Errorf("%s: Applied is %q", c.Cluster, c.Applied)
		}
		if c.Current && (c.Status == nil || c.Revision == "") {
			s.t.Errorf("%s: Current without a status or a revision: %+v", c.Cluster, c)
		}
		if c.Conflict && c.Applied == metav1.ConditionTrue {
			s.t.Errorf("%s: Conflict and Applied", c.Cluster)
		}
	}
}

// tolerable tells an error that passes by itself from one that ends the case.
func tolerable(err error) bool {
	switch backends.CodeOf(err) {
	case "", backends.CodeUnavailable, backends.CodeNotReady:
		return true
	default:
		return false
	}
}

// pass does what the controller does in one reconcile. It returns what is missing for p to be carried out, and the
// error of the call that failed.
func (s *session) pass(p plan) (string, error) {
	s.t.Helper()
	observation, err := s.observe(p.query())
	if err != nil {
		return err.Error(), err
	}
	selected, missing := chosen(p, observation.Selection)
	before := s.writes.Load()
	progress, err := s.apply(p.removing(p.desired(selected), observation))
	switch {
	case err != nil:
		return err.Error(), err
	case !selected:
		return missing, nil
	case !progress.Done:
		return progress.Waiting, nil
	case s.writes.Load() != before:
		return fmt.Sprintf("the driver is writing: %v", s.lastWrite.Load()), nil
	default:
		return carriedOut(p, observation), nil
	}
}

// removing says of what is observed and no target that it goes, as the operator does for what the spec leaves.
func (p plan) removing(d backends.Desired, o backends.Observation) backends.Desired {
	if len(d.Targets) == 0 {
		return d
	}
	for _, c := range o.Clusters {
		listed := slices.ContainsFunc(d.Targets, func(t backends.Target) bool { return t.Cluster == c.Cluster })
		if !listed && !slices.Contains(p.unlisted, c.Cluster) {
			d.Targets = append(d.Targets, backends.Target{Cluster: c.Cluster, Mode: backends.ModeRemove, Reason: v1alpha1.RemovalSpecChanged})
		}
	}
	slices.SortFunc(d.Targets, func(a, b backends.Target) int { return strings.Compare(a.Cluster, b.Cluster) })
	return d
}

// chosen tells whether the selection is known and has every cluster of the plan.
func chosen(p plan, selection backends.Selection) (bool, string) {
	if !selection.Settled {
		return false, "selection: " + selection.Message
	}
	for _, cluster := range p.clusters() {
		if !slices.Contains(selection.Clusters, cluster) {
			return false, fmt.Sprintf("the selection is %v, want %v", selection.Clusters, p.clusters())
		}
	}
	return true, ""
}

// converge passes until the plan is carried out, then checks the members.
func (s *session) converge(p plan) backends.Observation {
	s.t.Helper()
	s.until(p.key.Name+" to converge", func() string {
		missing, err := s.pass(p)
		if err != nil && !tolerable(err) {
			s.t.Fatalf("pass of %s: %v", p.key.Name, err)
		}
		return missing
	})
	s.checkMembers(p)
	s.checkCompanions(p)
	observation, err := s.observe(p.query())
	s.noError("Observe", err)
	return observation
}

// carriedOut compares an observation with a plan and tells the first difference.
func carriedOut(p plan, o backends.Observation) string {
	if !o.Found {
		return "not found"
	}
	for _, c := range o.Clusters {
		if !slices.Contains(p.clusters(), c.Cluster) && !slices.Contains(p.unlisted, c.Cluster) {
			return fmt.Sprintf("%s is still reported", c.Cluster)
		}
	}
	for _, target := range p.targets {
		c, ok := report(o, target.cluster)
		if !ok {
			return fmt.Sprintf("%s is not reported", target.cluster)
		}
		if missing := differs(p, target, c); missing != "" {
			return fmt.Sprintf("%s %s", target.cluster, missing)
		}
	}
	return ""
}

// differs compares one cluster's report with its target and tells the first difference.
func differs(p plan, target planned, c backends.ClusterObservation) string {
	switch {
	case target.held() && !c.Held:
		return "is not Held"
	case target.held():
		return ""
	case target.mode == backends.ModeProbe && (c.Probe == nil || !c.Probe.Answered):
		return "has not answered: " + c.Message
	case target.mode == backends.ModeProbe:
		return ""
	case c.Released() == target.writes():
		return fmt.Sprintf("is Released: %t", c.Released())
	case target.writes():
		return runs(p, target, c)
	case c.Revision != p.revision():
		return fmt.Sprintf("holds Revision %q, want %q", c.Revision, p.revision())
	}
	return ""
}

// runs tells what is missing for a cluster to run its target, by its report.
func runs(p plan, target planned, c backends.ClusterObservation) string {
	switch {
	case c.Conflict:
		return "Conflict"
	case c.Removing():
		return "Removing"
	case c.Held:
		return "Held"
	case c.Revision != p.revision():
		return fmt.Sprintf("Revision is %q, want %q", c.Revision, p.revision())
	case c.Applied != metav1.ConditionTrue:
		return fmt.Sprintf("Applied is %s: %s", condition(c.Applied), c.Message)
	case !c.Current:
		return fmt.Sprintf("not Current: %v", c.Status)
	case !p.kind.replicas:
		return ""
	case c.Asked != nil && *c.Asked != target.replicas:
		return fmt.Sprintf("Asked is %d, want %d", *c.Asked, target.replicas)
	}
	for _, field := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
		if got, ok := number(c.Status[field]); !ok || got != int64(target.replicas) {
			return fmt.Sprintf("%s is %v, want %d", field, c.Status[field], target.replicas)
		}
	}
	return ""
}

// number reads a status value; backends bring numbers back in several types, and leave zeros out.
func number(v any) (int64, bool) {
	switch n := v.(type) {
	case nil:
		return 0, true
	case int64:
		return n, true
	case float64:
		return int64(n), n == math.Trunc(n)
	default:
		return 0, false
	}
}

func report(o backends.Observation, cluster string) (backends.ClusterObservation, bool) {
	for _, c := range o.Clusters {
		if c.Cluster == cluster {
			return c, true
		}
	}
	return backends.ClusterObservation{}, false
}

// checkMembers compares the member objects with the plan, on all clusters.
func (s *session) checkMembers(p plan) {
	s.t.Helper()
	for _, cluster := range s.env.Clusters {
		i := slices.Index(p.clusters(), cluster.Name)
		if i < 0 {
			if slices.Contains(p.leftOn, cluster.Name) || slices.Contains(p.unlisted, cluster.Name) {
				continue
			}
			if live := s.member(cluster.Name, p); live != nil && live.GetDeletionTimestamp() == nil {
				s.t.Errorf("%s: %s is there and should not be", cluster.Name, p.key.Name)
			}
			continue
		}
		target := p.targets[i]
		if !target.writes() {
			continue
		}
		live := s.member(cluster.Name, p)
		want := p.manifest(target.replicas, target.greeting)
		if live == nil {
			s.t.Errorf("%s: %s is missing", cluster.Name, p.key.Name)
		} else if !ssa.Contains(live.Object, want.Object) {
			s.t.Errorf("%s: not the target manifest (-want +live):\n%s", cluster.Name, cmp.Diff(want.Object, live.Object))
		}
	}
}

// member returns the plan's object on a member cluster, nil when there is none.
func (s *session) member(cluster string, p plan) *unstructured.Unstructured {
	s.t.Helper()
	obj, err := s.env.Member(cluster).Get(s.t.Context(), p.ref())
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.noError("get from "+cluster, err)
	return obj
}

// mustMember returns the plan's object on a member cluster.
func (s *session) mustMember(cluster string, p plan) *unstructured.Unstructured {
	s.t.Helper()
	obj := s.member(cluster, p)
	if obj == nil {
		s.t.Fatalf("%s: %s is missing", cluster, p.key.Name)
	}
	return obj
}

// untouched checks that a member object is the one it was: same UID, same generation, not on its way out.
func (s *session) untouched(cluster string, p plan, was *unstructured.Unstructured) {
	s.t.Helper()
	live := s.mustMember(cluster, p)
	if live.GetUID() != was.GetUID() || live.GetGeneration() != was.GetGeneration() || live.GetDeletionTimestamp() != nil {
		s.t.Fatalf("%s: %s was touched: UID %s generation %d became UID %s generation %d, deletion %v", cluster, p.key.Name,
			was.GetUID(), was.GetGeneration(), live.GetUID(), live.GetGeneration(), live.GetDeletionTimestamp())
	}
}

// edit changes an object as somebody else would, until nobody interferes.
func (s *session) edit(store Store, ref Ref, change func(*unstructured.Unstructured)) {
	s.t.Helper()
	s.until("an edit of "+ref.Name, func() string {
		obj, err := store.Get(s.t.Context(), ref)
		s.noError("get "+ref.Name, err)
		change(obj)
		err = store.Update(s.t.Context(), obj)
		if apierrors.IsConflict(err) {
			return err.Error()
		}
		s.noError("update "+ref.Name, err)
		return ""
	})
}

// remove deletes until Done.
func (s *session) remove(p plan, policy v1alpha1.DeletionPolicy) {
	s.t.Helper()
	s.until(p.key.Name+" to be deleted", func() string {
		progress, err := s.delete(p.query(), policy)
		if err != nil {
			if !tolerable(err) {
				s.t.Fatalf("delete %s: %v", p.key.Name, err)
			}
			return err.Error()
		}
		return progress.Waiting
	})
}

// nothingLeft checks that the backend has nothing of the plan.
func (s *session) nothingLeft(p plan) {
	s.t.Helper()
	owned, err := s.env.Owned(s.t.Context(), p.query())
	s.noError("list what is owned", err)
	for _, obj := range owned {
		s.t.Errorf("the backend still has %s %s/%s", obj.GetKind(), obj.GetNamespace(), obj.GetName())
	}
	observation, err := s.observe(p.query())
	s.noError("Observe", err)
	if observation.Found {
		s.t.Errorf("Observe still finds it: %+v", observation.Clusters)
	}
}

// noWrites runs f and checks that the driver wrote nothing.
func (s *session) noWrites(what string, f func()) {
	s.t.Helper()
	before := s.writes.Load()
	f()
	if n := s.writes.Load() - before; n != 0 {
		s.t.Errorf("%s: %d writes, want none; the last was %v", what, n, s.lastWrite.Load())
	}
}

// cleanUp takes a workload off the backend after its case. What cannot be removed is no failure of the case.
func (s *session) cleanUp(query backends.Query) {
	s.left.Store(-1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), s.env.Timeout)
	defer cancel()
	for ctx.Err() == nil {
		progress, err := s.driver.Delete(ctx, query, v1alpha1.DeletionPolicyDelete)
		if err == nil && progress.Done {
			return
		}
		if err != nil && !tolerable(err) {
			s.t.Logf("clean up %s: %v", query.Key, err)
			return
		}
		time.Sleep(s.env.Poll)
	}
	s.t.Logf("clean up %s: not done in %s", query.Key, s.env.Timeout)
}

func copyQuery(q backends.Query) backends.Query {
	q.Selectors = slices.Clone(q.Selectors)
	for i := range q.Selectors {
		q.Selectors[i] = *q.Selectors[i].DeepCopy()
	}
	q.Options = q.Options.DeepCopy()
	q.Workload.ReplicasPath = slices.Clone(q.Workload.ReplicasPath)
	q.Workload.Feedback = slices.Clone(q.Workload.Feedback)
	return q
}

func copyDesired(d backends.Desired) backends.Desired {
	d.Query = copyQuery(d.Query)
	d.Template = d.Template.DeepCopy()
	d.Companions = slices.Clone(d.Companions)
	for i := range d.Companions {
		d.Companions[i].Object = d.Companions[i].Object.DeepCopy()
	}
	d.Targets = slices.Clone(d.Targets)
	for i := range d.Targets {
		t := &d.Targets[i]
		if t.Manifest != nil {
			t.Manifest = t.Manifest.DeepCopy()
		}
		if t.Replicas != nil {
			t.Replicas = pointer(*t.Replicas)
		}
	}
	return d
}
