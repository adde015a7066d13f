package controllers

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/backendtest"
	"github.com/fleetworkload/fleetworkload/backends/backendtest/memory"
	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/manifest"
	"github.com/fleetworkload/fleetworkload/e2e/soak/oracle"
	"github.com/fleetworkload/fleetworkload/e2e/statuscheck"
	"github.com/fleetworkload/fleetworkload/internal/guard"
)

// TestHistories runs random histories of edits, of facts about clusters and of faults through the reconciler and two backends in memory,
// and has the soak's oracle judge what becomes of the members' objects. HISTORIES is how many; HISTORY runs one again by its seed.
func TestHistories(t *testing.T) {
	if seed, err := strconv.ParseUint(os.Getenv("HISTORY"), 10, 64); err == nil {
		for _, problem := range play(t, seed, true) {
			t.Error(problem)
		}
		return
	}
	count := 12
	if n, err := strconv.Atoi(os.Getenv("HISTORIES")); err == nil {
		count = n
	}
	hash := fnv.New64a()
	fmt.Fprint(hash, os.Getenv("TEST_SEED"))
	first, failed := hash.Sum64()>>16, 0
	for i := range count {
		seed := first + uint64(i)
		problems := play(t, seed, false)
		if len(problems) == 0 {
			continue
		}
		t.Errorf("HISTORY=%d: %s", seed, problems[0])
		if failed++; failed == 10 {
			t.Fatalf("and no more were run after the %d. of %d", i+1, count)
		}
	}
}

// past is one history as it is told.
type past struct {
	*world
	dice    *rand.Rand
	loud    bool
	members map[string]*memory.Backend
	oracle  *oracle.Oracle
	facts   history.Facts
	kinds   map[history.Key]history.Kind
	// lanes are the actions that wait for those before them, in order.
	lanes map[string][]history.Action
	// adopting are the lanes that wait until what an earlier FleetWorkload has left is taken over: what leaves a cluster before that is nobody's.
	adopting map[string]history.Key
	// leaving are the FleetWorkloads that were deleted and are not gone yet.
	leaving map[history.Key]bool
	// queue is when which FleetWorkload has a pass: events bring it, as they do in the operator, or a pass that asks for the next one.
	queue map[history.Key]time.Time
	// told are what takes the events of backends.
	told map[string]func() []types.NamespacedName
	// now are the FleetWorkloads as they are, seen as the operator's cache has them, and coming what it does not show yet.
	now, seen map[history.Key]*v1alpha1.FleetWorkload
	coming    []*v1alpha1.FleetWorkload
	// pods are the UIDs of those that run, by workload and cluster.
	pods map[string][]string
	// cut is how many writes the backends take before they fail; less than zero is any number.
	cut      int
	problems []string
}

// atOnce is how many FleetWorkloads are handed over at once.
const atOnce = 2

// length of a history, as the choices count it.
const length = 100 * time.Second

func play(t *testing.T, seed uint64, told bool) []string {
	t.Helper()
	p := newPast(t, seed, told)
	plan := choice.Make(seed, length, false)
	for _, step := range plan.Steps {
		p.begin(step.Action)
		p.live(p.dice.IntN(12))
	}
	p.cut = -1
	for _, action := range plan.End {
		p.begin(action)
		p.live(p.dice.IntN(12))
	}
	p.cut = -1
	p.rest()
	for _, v := range p.oracle.Violations {
		p.problems = append(p.problems, v.String()+"\n  "+strings.Join(v.Actions, "\n  "))
	}
	return p.problems
}

func newPast(t *testing.T, seed uint64, told bool) *past {
	t.Helper()
	w := newWorld(t)
	p := &past{
		world: w, dice: rand.New(rand.NewPCG(seed, 1)), loud: told, facts: choice.Facts(), kinds: map[history.Key]history.Kind{}, cut: -1, pods: map[string][]string{},
		queue: map[history.Key]time.Time{}, told: map[string]func() []types.NamespacedName{},
		now: map[history.Key]*v1alpha1.FleetWorkload{}, seen: map[history.Key]*v1alpha1.FleetWorkload{},
		lanes: map[string][]history.Action{}, adopting: map[string]history.Key{}, leaving: map[history.Key]bool{},
		members: map[string]*memory.Backend{history.Karmada: memory.New(memory.Options{})},
	}
	p.members[history.OCM] = memory.New(memory.Options{Members: p.members[history.Karmada]})
	for name, b := range p.members {
		p.told[name] = b.Listen()
	}
	w.Reconciler.Client, w.Reconciler.Backends, w.Reconciler.MigrationLimiter = cached{w.client, p}, p, NewMigrationLimiter(atOnce)
	w.Reconciler.MaxRemovalPercent = 50
	p.oracle = oracle.New(p.facts, w.Clock.Now())
	for _, name := range p.facts.Names() {
		p.setCluster(name)
	}
	return p
}

// Driver connects to a backend that fails when it is cut off.
func (p *past) Driver(name string) (backends.Driver, error) {
	b, is := p.members[name]
	if !is {
		return nil, backends.ErrNotConfigured
	}
	return b.GatedDriver(func(kind backendtest.RequestKind, _ string) error {
		if kind == backendtest.WriteRequest && p.cut > 0 {
			p.cut--
		}
		if p.cut == 0 {
			return errors.New("cut off")
		}
		return nil
	}), nil
}

func (p *past) Names() []string { return []string{history.Karmada, history.OCM} }

// setCluster tells both backends what is true of a cluster.
func (p *past) setCluster(name string) {
	fact := p.facts[name]
	for _, b := range p.members {
		if !fact.Joined {
			b.RemoveCluster(name)
			continue
		}
		c := backends.Cluster{Name: name, Identity: "id-" + name, Ready: metav1.ConditionTrue, ReadySince: p.Clock.Now(), Labels: map[string]string{}}
		if fact.Lost {
			c.Ready = metav1.ConditionUnknown
		}
		if fact.Tainted {
			c.Taints = []backends.Taint{{Key: "soak", Effect: backends.TaintNoSchedule, Added: p.Clock.Now()}}
		}
		for k := range fact.Labels {
			c.Labels[manifest.LabelKey(k)] = "on"
		}
		b.SetCluster(c)
	}
}

func (p *past) tell(format string, args ...any) {
	if p.loud {
		p.t.Logf("%s %s", p.Clock.Now().Format("04:05"), fmt.Sprintf(format, args...))
	}
}

// begin has an action carried out when those before it in its lane have been.
func (p *past) begin(a history.Action) {
	p.lanes[a.Lane()] = append(p.lanes[a.Lane()], a)
	p.advance()
}

// advance carries out what nothing stands in the way of.
func (p *past) advance() {
	for _, lane := range slices.Sorted(maps.Keys(p.lanes)) {
		for len(p.lanes[lane]) > 0 && !p.adopts(lane) && p.can(p.lanes[lane][0]) {
			a := p.lanes[lane][0]
			p.lanes[lane] = p.lanes[lane][1:]
			p.do(a)
			if a.Kind == choice.Adopt {
				p.adopting[lane] = a.Workload
			}
		}
	}
}

// adopts tells whether a lane waits for an adoption: the workload is as asked while nobody is away who could have something of it.
func (p *past) adopts(lane string) bool {
	k, is := p.adopting[lane]
	away := func(c history.Cluster) bool { return c.Joined && !c.Available() }
	if is && p.asAsked(k) && !slices.ContainsFunc(slices.Collect(maps.Values(p.facts)), away) {
		delete(p.adopting, lane)
		return false
	}
	return is
}

// can tells whether an action can be carried out now.
func (p *past) can(a history.Action) bool {
	fw := p.read(a.Workload)
	gone := fw == nil || fw.DeletionTimestamp == nil
	switch a.Verb {
	case history.Apply, history.Clear:
		return gone
	case history.Delete:
		return fw == nil || !a.Spec.Orphan || fw.Spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan ||
			p.asAsked(a.Workload) && !p.oracle.Unsure(a.Workload)
	case history.Confirm:
		return fw == nil || p.held(a.Workload) != "" || p.asAsked(a.Workload)
	default:
		return a.Fact == nil || p.decided()
	}
}

// decided tells whether the operator has seen all specs under the facts of now. The oracle measures what goes by the facts under which
// a spec was first seen, and cannot know which these were when they change before.
func (p *past) decided() bool {
	return !slices.ContainsFunc(choice.Keys(), func(k history.Key) bool {
		fw := p.read(k)
		if fw == nil {
			return false
		}
		seen := fw.Status.ObservedGeneration
		suspended := fw.Spec.Suspend != nil && *fw.Spec.Suspend
		return seen == nil || *seen != fw.Generation || fw.Status.Placement == nil && p.stalled(k) == "" && !suspended
	})
}

// do carries an action out.
func (p *past) do(a history.Action) {
	p.tell("%s", a)
	if a.Spec != nil && a.Spec.Kind == history.AdvancedStatefulSet {
		spec := a.Spec.Clone()
		spec.Kind, a.Spec = history.CloneSet, &spec // the backends in memory run no others
	}
	switch a.Verb {
	case history.Apply:
		p.oracle.Begin(a, p.Clock.Now())
		p.applySpec(a)
	case history.Delete:
		p.deleteOne(a)
	case history.Clear:
		p.clear(a)
	case history.Confirm:
		p.confirmRemoval(a)
	case history.Kill, history.End, history.Stop:
		p.restart()
	case history.Cut:
		p.cut = p.dice.IntN(6)
	case history.Mend, history.Start, history.Continue:
		p.cut = -1
	default:
		if a.Fact == nil {
			return
		}
		p.oracle.Begin(a, p.Clock.Now())
		p.facts = p.facts.After(a)
		p.setCluster(a.Cluster)
		if a.Verb == history.Leave { // what runs there goes along
			for k := range p.kinds {
				p.takeAway(a.Cluster, k)
			}
		}
	}
}

// restart has another operator go on, which remembers nothing.
func (p *past) restart() {
	old := p.Reconciler
	p.Reconciler = &Reconciler{
		Client: old.Client, Live: old.Live, Backends: old.Backends, Kinds: old.Kinds, Sources: old.Sources, Recorder: old.Recorder, Clock: old.Clock,
		MaxRemovalPercent: old.MaxRemovalPercent, MigrationLimiter: NewMigrationLimiter(atOnce),
	}
	p.queue, p.seen = map[history.Key]time.Time{}, map[history.Key]*v1alpha1.FleetWorkload{}
	p.read(history.Key{})
	p.coming = slices.Collect(maps.Values(p.now)) // it lists them all
	p.hear()
}

// read is the FleetWorkload as it is stored; nil when it is not.
func (p *past) read(k history.Key) *v1alpha1.FleetWorkload {
	for _, fw := range p.stored {
		if k := history.Key(client.ObjectKeyFromObject(fw)); gone(fw) {
			delete(p.now, k)
		} else {
			p.now[k] = fw
		}
	}
	p.coming, p.stored = append(p.coming, p.stored...), nil
	return p.now[k].DeepCopy()
}

// gone tells whether what was stored last of a FleetWorkload has let it go.
func gone(fw *v1alpha1.FleetWorkload) bool {
	return fw.DeletionTimestamp != nil && len(fw.Finalizers) == 0
}

// cached is the operator's client, whose reads lag behind.
type cached struct {
	client.Client
	past *past
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	fw, is := obj.(*v1alpha1.FleetWorkload)
	if !is {
		return c.Client.Get(ctx, key, obj, opts...)
	}
	seen, there := c.past.seen[history.Key(key)]
	if !there {
		return apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "fleetworkloads"}, key.Name)
	}
	seen.DeepCopyInto(fw)
	return nil
}

func (c cached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	if fws, is := list.(*v1alpha1.FleetWorkloadList); is {
		listed := fws.Items
		fws.Items = nil
		for i := range listed {
			if seen, there := c.past.seen[history.Key(client.ObjectKeyFromObject(&listed[i]))]; there {
				fws.Items = append(fws.Items, *seen.DeepCopy())
			}
		}
	}
	return err
}

func (p *past) applySpec(a history.Action) {
	p.t.Helper()
	want, err := manifest.FleetWorkload(a.Workload, *a.Spec)
	if err != nil {
		p.t.Fatal(err)
	}
	p.kinds[a.Workload] = a.Spec.Kind
	fw := p.read(a.Workload)
	if fw == nil {
		fw = want
		fw.UID, fw.Generation = types.UID(fmt.Sprint("uid-", p.dice.Uint64())), 1
		err = p.client.Create(context.Background(), fw)
	} else {
		fw.Spec = want.Spec
		fw.Generation++
		err = p.client.Update(context.Background(), fw)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.oracle.Carried(a.Workload, string(fw.UID), fw.Generation, p.Clock.Now())
}

// deleteOne deletes a FleetWorkload.
func (p *past) deleteOne(a history.Action) {
	p.t.Helper()
	fw := p.read(a.Workload)
	if fw == nil {
		return
	}
	if a.Spec.Orphan && fw.Spec.DeletionPolicy != v1alpha1.DeletionPolicyOrphan {
		fw.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
		fw.Generation++
		if err := p.client.Update(context.Background(), fw); err != nil {
			p.t.Fatal(err)
		}
	}
	p.oracle.Begin(a, p.Clock.Now())
	if err := p.client.Delete(context.Background(), fw); err != nil {
		p.t.Fatal(err)
	}
	if len(fw.Finalizers) > 0 {
		if err := p.client.Get(context.Background(), types.NamespacedName(a.Workload), fw); err != nil {
			p.t.Fatal(err)
		}
	} else {
		fw.DeletionTimestamp = &metav1.Time{Time: p.Clock.Now()}
	}
	p.stored = append(p.stored, fw)
	p.leaving[a.Workload] = true
}

func (p *past) clear(a history.Action) {
	p.oracle.Begin(a, p.Clock.Now())
	for _, cluster := range p.facts.Names() {
		p.takeAway(cluster, a.Workload)
	}
	p.see()
	p.oracle.Gone(a.Workload, p.Clock.Now())
}

// takeAway removes a workload and its companions from a cluster, without a backend.
func (p *past) takeAway(cluster string, k history.Key) {
	p.members[history.Karmada].Remove(cluster, p.ref(k))
	for _, companion := range manifest.Companions(k) {
		obj := unstructured.Unstructured{Object: companion}
		ref := backendtest.Ref{GVK: obj.GroupVersionKind(), NamespacedName: types.NamespacedName{Namespace: k.Namespace, Name: obj.GetName()}}
		p.members[history.Karmada].Remove(cluster, ref)
	}
}

var confirmation = regexp.MustCompile(regexp.QuoteMeta(v1alpha1.AnnotationConfirmRemoval) + `=(\S+)`)

func (p *past) confirmRemoval(a history.Action) {
	p.t.Helper()
	if token := p.held(a.Workload); token != "" {
		p.confirmToken(a, token)
	}
}

func (p *past) confirmToken(a history.Action, token string) {
	p.t.Helper()
	p.tell("%s", a)
	p.oracle.Begin(a, p.Clock.Now())
	fw := p.read(a.Workload)
	metav1.SetMetaDataAnnotation(&fw.ObjectMeta, v1alpha1.AnnotationConfirmRemoval, token)
	if err := p.client.Update(context.Background(), fw); err != nil {
		p.t.Fatal(err)
	}
	p.oracle.Carried(a.Workload, string(fw.UID), fw.Generation, p.Clock.Now())
}

func (p *past) asAsked(k history.Key) bool {
	fw := p.read(k)
	return fw != nil && fw.Status.ObservedGeneration != nil && *fw.Status.ObservedGeneration == fw.Generation &&
		meta.IsStatusConditionTrue(fw.Status.Conditions, v1alpha1.ConditionReady) && p.oracle.Differs(k) == ""
}

// until lets everybody go on until something is true; what never becomes true is a problem.
func (p *past) until(done func() bool) bool {
	for range 300 {
		if done() {
			return true
		}
		p.live(4)
	}
	p.problems = append(p.problems, "it does not come to an end:\n"+p.state())
	return false
}

// state tells how the FleetWorkloads are that are not as asked.
func (p *past) state() string {
	var text []string
	for _, lane := range slices.Sorted(maps.Keys(p.lanes)) {
		if len(p.lanes[lane]) > 0 {
			text = append(text, fmt.Sprintf("%s waits for %s", lane, p.lanes[lane][0]))
		}
	}
	for _, k := range choice.Keys() {
		fw := p.read(k)
		if differs := p.oracle.Differs(k); fw != nil && (differs != "" || !p.asAsked(k)) {
			text = append(text, fmt.Sprintf("%s: %s\n%s", k, differs, conditionsOf(fw)))
		}
	}
	return strings.Join(text, "\n")
}

func conditionsOf(fw *v1alpha1.FleetWorkload) string {
	var text []string
	for _, c := range fw.Status.Conditions {
		text = append(text, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(text, "; ")
}

// live lets a number of things happen in any order, most of them a second after the one before, some much sooner.
func (p *past) live(steps int) {
	for range steps {
		after := time.Second
		if p.dice.IntN(3) == 0 {
			after = 50 * time.Millisecond
		}
		p.Reconciler.Clock = clocktesting.NewFakePassiveClock(p.Clock.Now().Add(after))
		switch p.dice.IntN(4) {
		case 0:
			p.members[history.Karmada].Step()
		case 1:
			p.members[history.OCM].Step()
		default:
			if due := p.due(); len(due) > 0 {
				p.pass(due[p.dice.IntN(len(due))])
			}
		}
		if p.dice.IntN(4) > 0 {
			p.hear()
		}
		p.see()
		p.settle()
		for k := range p.leaving {
			if p.read(k) == nil {
				delete(p.leaving, k)
				p.oracle.Gone(k, p.Clock.Now())
			}
		}
		p.advance()
	}
}

// add has a FleetWorkload have a pass after a while, unless it has one before that.
func (p *past) add(k history.Key, after time.Duration) {
	at := p.Clock.Now().Add(after)
	if due, waits := p.queue[k]; !waits || at.Before(due) {
		p.queue[k] = at
	}
}

// due are the FleetWorkloads that have a pass now.
func (p *past) due() (all []history.Key) {
	for _, k := range choice.Keys() {
		if at, waits := p.queue[k]; waits && !at.After(p.Clock.Now()) {
			all = append(all, k)
		}
	}
	return all
}

// queue is the operator's, as its events use it.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	past *past
}

func (q queue) AddAfter(req reconcile.Request, after time.Duration) {
	q.past.add(history.Key(req.NamespacedName), after)
}

// hear shows the operator what has become of FleetWorkloads and on backends.
func (p *past) hear() {
	p.read(history.Key{})
	for _, fw := range p.coming {
		k := history.Key(client.ObjectKeyFromObject(fw))
		if gone(fw) {
			delete(p.seen, k)
			p.add(k, 0)
			continue
		}
		if was, known := p.seen[k]; !known || p.matters(event.UpdateEvent{ObjectOld: was, ObjectNew: fw}) {
			p.add(k, 0)
		}
		p.seen[k] = fw
	}
	p.coming = nil
	for name, take := range p.told {
		for _, about := range take() {
			p.Reconciler.told(context.Background(), event.TypedGenericEvent[BackendEvent]{Object: BackendEvent{Backend: name, Name: about}}, queue{past: p})
		}
	}
	for len(p.MigrationLimiter.wake) > 0 {
		for _, req := range p.requestsFor(context.Background(), (<-p.MigrationLimiter.wake).Object) {
			p.add(history.Key(req.NamespacedName), 0)
		}
	}
}

func (p *past) pass(k history.Key) {
	before := p.read(k)
	delete(p.queue, k)
	res, err := p.Reconcile(context.Background(), ctrl.Request{NamespacedName: types.NamespacedName(k)})
	switch {
	case err != nil:
		p.add(k, time.Duration(1+p.dice.IntN(16))*time.Second)
	case res.RequeueAfter > 0:
		p.add(k, res.RequeueAfter)
	}
	written, after := p.stored, p.read(k)
	if before == nil || after == nil {
		return
	}
	if p.loud && !cmp.Equal(before.Status, after.Status) {
		p.tell("  %s says %s: %v", k, conditionsOf(after), guard.Decided(after.Status.Placement))
	}
	for _, written := range written { // a pass may write two
		if wrong := errors.Join(statuscheck.Check(written), statuscheck.Transition(before, written)); wrong != nil {
			p.problems = append(p.problems, fmt.Sprintf("the status of %s is wrong: %v", k, wrong))
		}
		before = written
	}
	p.see()
}

// settle tells the oracle which FleetWorkloads say that they are as asked.
func (p *past) settle() {
	for k, fw := range p.now {
		if o := fw.Status.ObservedGeneration; o != nil && meta.IsStatusConditionTrue(fw.Status.Conditions, v1alpha1.ConditionReady) {
			p.oracle.Settled(k, string(fw.UID), *o, p.Clock.Now())
		}
	}
}

func (p *past) ref(k history.Key) backendtest.Ref {
	return backendtest.Ref{GVK: manifest.GVKs[p.kinds[k]], NamespacedName: types.NamespacedName(k)}
}

// see shows the oracle what is on the members.
func (p *past) see() {
	p.t.Helper()
	now := oracle.Span{From: p.Clock.Now(), To: p.Clock.Now()}
	for k := range p.kinds {
		for _, cluster := range p.facts.Names() {
			obj, err := p.members[history.Karmada].Member(cluster).Get(context.Background(), p.ref(k))
			if apierrors.IsNotFound(err) {
				p.oracle.ObjectGone(cluster, k, p.oracle.UID(cluster, k), now)
				p.seePods(cluster, k, oracle.Object{}, now)
				continue
			}
			if err != nil {
				p.t.Fatal(err)
			}
			replicas, pods, whole, err := manifest.Object(obj)
			if err != nil {
				p.t.Fatal(err)
			}
			seen := oracle.Object{UID: string(obj.GetUID()), Replicas: replicas, Pods: pods, Whole: whole}
			p.oracle.SeeObject(cluster, k, seen, now)
			p.seePods(cluster, k, seen, now)
		}
	}
}

// seePods has the members run what their objects ask for, at once.
func (p *past) seePods(cluster string, k history.Key, of oracle.Object, now oracle.Span) {
	where := k.String() + " on " + cluster
	var run []string
	for i := range of.Replicas {
		run = append(run, fmt.Sprintf("%s-%s-%s-%d", of.UID, of.Pods.Image, of.Pods.Env, i))
	}
	for _, uid := range p.pods[where] {
		if !slices.Contains(run, uid) {
			p.oracle.PodGone(cluster, k, uid, now)
		}
	}
	for _, uid := range run {
		p.oracle.SeePod(cluster, k, oracle.Pod{Name: uid, UID: uid, Owner: of.UID, Pods: of.Pods, Ready: true}, now)
	}
	p.pods[where] = run
}

// rest lets everything come to its end, and sees that nothing is written any more.
func (p *past) rest() {
	p.t.Helper()
	ended := p.until(func() bool {
		ended := len(p.leaving) == 0
		for _, lane := range p.lanes {
			ended = ended && len(lane) == 0
		}
		for _, k := range choice.Keys() {
			p.letGo(k)
			p.tryAgain(k)
			ended = ended && (p.read(k) == nil || p.asAsked(k) && !p.moves(k) || p.stalled(k) == v1alpha1.ReasonAdoptionHeld)
		}
		return ended
	})
	if !ended {
		return
	}
	keys := slices.DeleteFunc(choice.Keys(), func(k history.Key) bool { return p.read(k) == nil })
	p.live(200) // what is still on its way, such as companions that go
	for _, k := range keys {
		before, was := p.read(k), p.sent()
		p.round([]history.Key{k})
		if after := p.read(k); before.ResourceVersion != after.ResourceVersion || p.sent() != was {
			p.problems = append(p.problems, fmt.Sprintf("%s: at rest, its status becomes\n%s\nand %d requests are sent",
				k, cmp.Diff(before.Status, after.Status), p.sent()-was))
		}
	}
}

// sent counts the writes on both backends.
func (p *past) sent() (n int64) {
	for _, b := range p.members {
		n += b.Writes()
	}
	return n
}

// letGo confirms what is held at the end, once both backends have said all that they have to say: the oracle does not know by which facts the
// operator goes.
func (p *past) letGo(k history.Key) {
	if p.held(k) == "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(p.members)) {
		p.members[name].Settle()
	}
	p.hear()
	p.pass(k)
	p.hear()
	if token := p.held(k); token != "" {
		p.confirmToken(history.Action{Kind: "confirm at the end", Verb: history.Confirm, Workload: k}, token)
	}
}

// tryAgain has a person try a wave again that has failed because an object is another one. It is when its cluster left and came back meanwhile; the
// oracle judges who else has replaced it.
func (p *past) tryAgain(k history.Key) {
	fw := p.read(k)
	if p.stalled(k) != v1alpha1.ReasonMigrationFailed || !strings.Contains(fw.Status.Migration.Failure, ": the object was ") {
		return
	}
	p.tell("a person tries the migration of %s again", k)
	metav1.SetMetaDataAnnotation(&fw.ObjectMeta, v1alpha1.AnnotationApproveMigration, fw.Status.Migration.Approval)
	if err := p.client.Update(context.Background(), fw); err != nil {
		p.t.Fatal(err)
	}
}

// held is the token of a removal that is held.
func (p *past) held(k history.Key) string {
	if p.stalled(k) != v1alpha1.ReasonRemovalHeld {
		return ""
	}
	message := meta.FindStatusCondition(p.read(k).Status.Conditions, v1alpha1.ConditionStalled).Message
	if found := confirmation.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return ""
}

// moves tells whether a change of backend has not ended.
func (p *past) moves(k history.Key) bool {
	fw := p.read(k)
	return fw.Status.Backend != fw.Spec.Backend || fw.Status.Migration != nil && fw.Status.Migration.Phase != ""
}

// stalled is the reason why a FleetWorkload needs a person.
func (p *past) stalled(k history.Key) string {
	if fw := p.read(k); fw != nil {
		if c := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

func (p *past) round(keys []history.Key) {
	p.hear()
	p.Reconciler.Clock = clocktesting.NewFakePassiveClock(p.Clock.Now().Add(time.Minute))
	for _, k := range keys {
		p.pass(k)
	}
	for _, name := range slices.Sorted(maps.Keys(p.members)) {
		p.members[name].Settle()
	}
	p.see()
}
