//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	diff "github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

// atOnce is how many operators are killed side by side, each with a namespace of its own.
const atOnce = 4

// act is what is interrupted: it begins with a write of a person.
type act struct {
	label string
	kind  kind
	// before is brought about by an operator that is left alone.
	before func(ctx context.Context, r *attempt)
	begin  func(ctx context.Context, r *attempt)
	// ended tells whether there is nothing left to come.
	ended func(ctx context.Context, g Gomega, r *attempt)
}

// attempt is one run of an act, in a namespace of its own.
type attempt struct {
	backend string
	kind    kind
	// operator is the one that works.
	operator *operator
	// replicas are two operators, of which one works; there may be only one.
	replicas pair
	fw       *v1alpha1.FleetWorkload
	pods     map[string]string
	// retire clears away what the attempt has made.
	retire func()
}

var acts = []act{
	{
		label: "update", kind: cloneSet,
		before: isRunning,
		begin: func(ctx context.Context, r *attempt) {
			m := world.members
			edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) {
				setImage(fw, imageNew)
				fw.Spec.Replicas = ptr(int32(6))
				fw.Spec.Overrides = []v1alpha1.Override{envOverride("trace", m[1]), envOverride("warn", m[0])}
			})
		},
		ended: endsReady,
	},
	{
		label: "delete", kind: deployment,
		before: isRunning,
		begin:  func(ctx context.Context, r *attempt) { Expect(hub().Delete(ctx, r.fw)).To(Succeed()) },
		ended:  endsGone,
	},
	{
		label: "orphan", kind: cloneSet,
		before: func(ctx context.Context, r *attempt) {
			r.fw.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
			isRunning(ctx, r)
			r.pods = podUIDs(ctx, r.fw)
		},
		begin: func(ctx context.Context, r *attempt) { Expect(hub().Delete(ctx, r.fw)).To(Succeed()) },
		ended: func(ctx context.Context, g Gomega, r *attempt) {
			endsGone(ctx, g, r)
			g.Expect(podUIDs(ctx, r.fw)).To(Equal(r.pods))
		},
	},
	{
		label: "create-along", kind: deployment,
		before: refersToSettings,
		begin:  func(ctx context.Context, r *attempt) { create(ctx, r.fw) },
		ended: func(ctx context.Context, g Gomega, r *attempt) {
			endsReady(ctx, g, r)
			g.Expect(withSettings(ctx, r)).To(Equal(world.members[:2]))
		},
	},
}

// refersToSettings makes the pods refer to a ConfigMap, which travels along.
func refersToSettings(ctx context.Context, r *attempt) {
	GinkgoHelper()
	Expect(hub().Create(ctx, configMap(r.fw.Namespace, "settings", "one"))).To(Succeed())
	r.fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
	podSpec(r.fw, func(spec map[string]any) {
		spec["volumes"] = []any{map[string]any{"name": "settings", "configMap": map[string]any{"name": "settings"}}}
	})
}

// withSettings are the members that have it.
func withSettings(ctx context.Context, r *attempt) (members []string) {
	GinkgoHelper()
	for _, name := range world.members {
		err := member(name).Get(ctx, client.ObjectKey{Namespace: r.fw.Namespace, Name: "settings"}, &corev1.ConfigMap{})
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		if err == nil {
			members = append(members, name)
		}
	}
	return members
}

func isRunning(ctx context.Context, r *attempt) {
	GinkgoHelper()
	create(ctx, r.fw)
	becomesReady(ctx, r.fw)
	converged(ctx, r.operator)
}

func endsReady(ctx context.Context, g Gomega, r *attempt) {
	g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(r.fw), r.fw)).To(Succeed())
	g.Expect(isReady(r.fw)).To(BeTrue(), func() string { return describe(r.fw) })
}

func endsGone(ctx context.Context, g Gomega, r *attempt) {
	left := &v1alpha1.FleetWorkload{}
	err := hub().Get(ctx, client.ObjectKeyFromObject(r.fw), left)
	g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	g.Expect(err).To(HaveOccurred(), func() string { return describe(left) })
}

// Law 6: the operator may be killed between any two writes. A sample has each act on one backend.
var _ = Describe("An operator that is killed after a write", Label("laws", "law6", "sweep"), long, func() {
	for i, backend := range backends {
		for _, a := range acts {
			if sampling() && draw(a.label, 2) != i {
				continue
			}
			It(fmt.Sprintf("ends in the same state: %s of a %s on %s", a.label, a.kind.gvk.Kind, backend), Label(backend, a.kind.label, a.label),
				func(ctx SpecContext) {
					stopShared(ctx)
					var group sync.WaitGroup
					defer group.Wait()
					alone := a.run(ctx, backend, 0, false, nil, &group)
					AddReportEntry("writes when left alone", ReportEntryVisibilityFailureOrVerbose, proxy.Describe(alone.writes))
					var kills atomic.Int32
					var attempts sync.WaitGroup
					sample := sweep(a.label+" on "+backend, len(alone.writes), alone.certain())
					turns := make(chan int)
					for range atOnce {
						attempts.Go(func() {
							for i := range turns {
								a.attempt(ctx, backend, sample[i], i%2 == 1, alone, &group, &kills)
							}
						})
					}
					for i := range sample {
						turns <- i
					}
					close(turns)
					attempts.Wait()
					alone.wasStruck(sample, int(kills.Load()))
				}, SpecTimeout(20*time.Minute))
		}
	}
})

// attempt runs the act with a kill after the k-th write, in a goroutine.
func (a act) attempt(ctx context.Context, backend string, k int, two bool, alone *outcome, cleaning *sync.WaitGroup, kills *atomic.Int32) {
	defer GinkgoRecover()
	if a.run(ctx, backend, k, two, alone, cleaning).killed {
		kills.Add(1)
	}
}

// outcome is what came of a run.
type outcome struct {
	end    *endState
	writes []proxy.Entry
	killed bool
}

// certain is how many writes an attempt has at least. How many times a status is written depends on how reports come in. What is
// written to a backend does not.
func (o *outcome) certain() int {
	GinkgoHelper()
	toBackend := slices.DeleteFunc(slices.Clone(o.writes), func(e proxy.Entry) bool { return e.Server == "management" })
	Expect(toBackend).NotTo(BeEmpty())
	return len(toBackend)
}

// wasStruck wants enough kills: each of the sample that certainly comes was struck, or the attempts prove nothing.
func (o *outcome) wasStruck(sample []int, kills int) {
	GinkgoHelper()
	certain := o.certain()
	struck := slices.DeleteFunc(slices.Clone(sample), func(k int) bool { return k > certain })
	Expect(struck).NotTo(BeEmpty(), "%d writes to the backend, and none in the sample", certain)
	Expect(kills).To(BeNumerically(">=", len(struck)), "operators that were killed")
}

// run carries the act out, with a kill after the k-th write unless k is zero, in a namespace of its own.
func (a act) run(ctx context.Context, backend string, k int, two bool, alone *outcome, cleaning *sync.WaitGroup) *outcome {
	r := a.prepare(ctx, backend, fmt.Sprintf("%s-%s-%d", backend, a.label, k), two, cleaning)
	defer r.explain(fmt.Sprintf("%s on %s, killed after write %d", a.label, backend, k))
	a.before(ctx, r)
	return a.perform(ctx, r, k, alone)
}

// prepare starts an operator for an attempt, or two: who is killed is started again at once, or replaced within its lease. The next attempt
// need not wait until this one is cleared away.
func (a act) prepare(ctx context.Context, backend, name string, two bool, cleaning *sync.WaitGroup) *attempt {
	namespace := makeNamespace(ctx, "kill")
	opts := operatorOptions{namespaces: []string{namespace}}
	if two {
		opts.replica, opts.lease = true, namespace
	}
	o := newOperator(name, opts)
	m := world.members
	fw := workload(namespace, "web", backend, a.kind, 3)
	fw.Spec.Placement.Clusters = on(m[0], m[1])
	fw.Spec.Placement.Division = divided(weight(2, m[0]), weight(1, m[1]))
	fw.Spec.Overrides = []v1alpha1.Override{envOverride("debug", m[1])}
	r := &attempt{backend: backend, kind: a.kind, operator: o, fw: fw}
	if two {
		r.replicas = pair{o, newOperator(name+"-2", opts)}
	}
	r.retire = func() {
		cleaning.Go(func() {
			defer GinkgoRecover()
			if two {
				r.replicas.leaveFirst(context.WithoutCancel(ctx))
			}
			o.retire(context.WithoutCancel(ctx), namespace)
		})
	}
	if two {
		r.replicas.start(ctx)
		r.operator, _ = r.replicas.roles(ctx)
	} else {
		o.start(ctx)
	}
	r.operator.reaches(ctx, true, backend)
	return r
}

// explain ends an attempt, and says what was written when it has failed. It is to be deferred.
func (r *attempt) explain(what string) {
	r.retire()
	if problem := recover(); problem != nil {
		AddReportEntry(what, ReportEntryVisibilityFailureOrVerbose, r.operator.writes()+"\n"+r.operator.logTail(15))
		panic(problem)
	}
}

// perform carries the act out from where the attempt stands, with a kill after the k-th write unless k is zero. It compares how
// it ended with the time when it was left alone, if there was one.
func (a act) perform(ctx context.Context, r *attempt, k int, alone *outcome) *outcome {
	GinkgoHelper()
	first := r.operator
	first.journal.Reset()
	if k > 0 {
		first.journal.KillAfter(k, first.kill)
	}
	a.begin(ctx, r)
	result := &outcome{killed: k > 0 && a.restartWhenKilled(ctx, r, k)}
	Eventually(func(g Gomega) { a.ended(ctx, g, r) }).WithContext(ctx).Should(Succeed())
	converged(ctx, r.operator)
	result.end, result.writes = endOf(ctx, r), first.journal.Entries()
	if alone != nil {
		Expect(diff.Diff(alone.end, result.end)).To(BeEmpty(), "%s on %s, killed after write %d: - left alone, + killed", a.label, r.backend, k)
	}
	return result
}

// restartWhenKilled starts the operator again as soon as it is killed, or has the one that stands by take over. An act that happens to take fewer writes this
// time, since reports came in larger pieces, ends without.
func (a act) restartWhenKilled(ctx context.Context, r *attempt, k int) (killed bool) {
	GinkgoHelper()
	var calm time.Time
	Eventually(func(g Gomega) {
		if r.operator.journal.Killed() {
			return
		}
		if calm.IsZero() {
			a.ended(ctx, g, r)
			calm = time.Now()
		}
		g.Expect(time.Since(calm)).To(BeNumerically(">", 2*time.Second))
	}).WithContext(ctx).WithPolling(50 * time.Millisecond).Should(Succeed())
	if r.operator.journal.Disarm() {
		if r.replicas[0] != nil {
			r.operator = r.replicas.takesOver(ctx, r.operator)
		} else {
			r.operator.start(ctx)
		}
		return true
	}
	GinkgoWriter.Printf("%s on %s ended before write %d\n", a.label, r.backend, k)
	return false
}

// endState is everything that must not depend on when the operator was killed.
type endState struct {
	// Status of the FleetWorkload, empty when it is gone.
	Status string
	// Backend has the backend's objects.
	Backend []string
	// Members has the members' objects, with the number of their generations.
	Members map[string]string
	// Pods is how many each member runs.
	Pods map[string]int
}

func endOf(ctx context.Context, r *attempt) *endState {
	GinkgoHelper()
	end := &endState{Members: map[string]string{}, Pods: map[string]int{}}
	plain := normalizer(r.fw)
	fw := &v1alpha1.FleetWorkload{}
	err := hub().Get(ctx, client.ObjectKeyFromObject(r.fw), fw)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	if err == nil {
		*fw.Status.ObservedGeneration -= fw.Generation
		for i := range fw.Status.Conditions {
			fw.Status.Conditions[i].LastTransitionTime.Reset()
			fw.Status.Conditions[i].ObservedGeneration -= fw.Generation
		}
		if r := fw.Status.SpecRevision; r != nil && r.ObservedGeneration != nil {
			*r.ObservedGeneration -= fw.Generation
		}
		for i := range fw.Status.Clusters {
			fw.Status.Clusters[i].LastTransitionTime = nil
		}
		if m := fw.Status.Migration; m != nil && len(m.History) > 0 {
			m.History = m.History[:1]
			m.History[0].FinishedAt.Reset()
		}
		end.Status = plain(fw.Status)
	}
	objects, err := backendObjects(ctx, r.fw, r.kind)
	Expect(err).NotTo(HaveOccurred())
	for i := range objects {
		end.Backend = append(end.Backend, plain(essence(&objects[i])))
	}
	slices.Sort(end.Backend)
	for _, name := range world.members {
		obj, err := object(ctx, member(name), r.kind, client.ObjectKeyFromObject(r.fw))
		Expect(err).NotTo(HaveOccurred())
		if obj != nil {
			end.Members[name] = fmt.Sprintf("generation %d %s", obj.GetGeneration(), plain(essence(obj)))
		}
		pods, err := podsOf(ctx, r.fw, name)
		Expect(err).NotTo(HaveOccurred())
		end.Pods[name] = len(pods)
	}
	return end
}

// essence is an object without what the API server makes up.
func essence(obj *unstructured.Unstructured) map[string]any {
	out := map[string]any{
		"kind": obj.GetKind(), "namespace": obj.GetNamespace(), "labels": obj.GetLabels(), "annotations": obj.GetAnnotations(),
		"finalizers": obj.GetFinalizers(), "owners": len(obj.GetOwnerReferences()), "deleting": obj.GetDeletionTimestamp() != nil,
	}
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
	unstructured.RemoveNestedField(spec, "resource", "resourceVersion")
	if clusters, found, _ := unstructured.NestedSlice(spec, "clusters"); found {
		slices.SortFunc(clusters, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		_ = unstructured.SetNestedSlice(spec, clusters, "clusters")
	}
	out["spec"] = spec
	if obj.GetKind() == decisionGVK.Kind {
		out["status"] = obj.Object["status"]
	}
	return out
}

var (
	uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// names that end in a hash: of the namespace, of a UID, or random.
	names = regexp.MustCompile(`\bweb-(revision-[0-9a-f]{16}|[0-9a-z]{5,12})\b`)
	// hashes that the operator makes.
	hashes = regexp.MustCompile(`\b([0-9a-f]{10}|[0-9a-f]{12})\b`)
)

// normalizer writes things as JSON, without what differs from one namespace to another.
func normalizer(fw *v1alpha1.FleetWorkload) func(any) string {
	return func(v any) string {
		raw, err := json.MarshalIndent(v, "", " ")
		Expect(err).NotTo(HaveOccurred())
		text := strings.NewReplacer(string(fw.UID), "UID", fw.Namespace, "NAMESPACE").Replace(string(raw))
		text = names.ReplaceAllString(uuids.ReplaceAllString(text, "UUID"), "web-HASH")
		return hashes.ReplaceAllString(text, "HASH")
	}
}
