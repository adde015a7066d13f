//go:build e2e

package e2e

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	externalmetrics "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

// appliesEvery is how often all that is in Git is applied. Ten seconds are often for a GitOps controller; this is oftener.
const appliesEvery = 2 * time.Second

// gitOps applies all that is in Git again and again, whether it has changed or not, and takes every field that Git has. Argo CD and Flux do
// that by server-side apply, each with an owner of its own.
type gitOps struct {
	owner string

	mu      sync.Mutex
	inGit   []*unstructured.Unstructured
	rounds  int
	failure error
}

func newGitOps(owner string) *gitOps {
	g := &gitOps{owner: owner}
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			g.apply(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(appliesEvery):
			}
		}
	})
	DeferCleanup(func() {
		stop()
		done.Wait()
	})
	return g
}

func (g *gitOps) apply(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, obj := range g.inGit {
		err := hub().Apply(ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner(g.owner), client.ForceOwnership)
		if err != nil && ctx.Err() == nil {
			g.failure = err
		}
	}
	g.rounds++
}

// commit puts objects into Git, each in the place of the one of its name.
func (g *gitOps) commit(objects ...client.Object) {
	GinkgoHelper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, obj := range objects {
		gvk, err := hub().GroupVersionKindFor(obj)
		Expect(err).NotTo(HaveOccurred())
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		Expect(err).NotTo(HaveOccurred())
		delete(content, "status")
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(gvk)
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		var others []*unstructured.Unstructured
		for _, old := range g.inGit {
			if old.GroupVersionKind() != gvk || old.GetName() != obj.GetName() {
				others = append(others, old)
			}
		}
		g.inGit = append(others, u)
	}
}

// applied waits until all that is in Git has been applied so many times more.
func (g *gitOps) applied(ctx context.Context, times int) {
	GinkgoHelper()
	now := func() (int, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.rounds, g.failure
	}
	before, err := now()
	Expect(err).NotTo(HaveOccurred())
	Eventually(now).WithContext(ctx).WithTimeout(readyTimeout).Should(BeNumerically(">=", before+times))
}

// writtenFor are the operator's writes on FleetWorkloads of a namespace, and on what stands for them on backends.
func writtenFor(o *operator, fws map[string]*v1alpha1.FleetWorkload) (all []proxy.Entry) {
	for _, e := range o.journal.Entries() {
		for _, fw := range fws {
			if e.Concerns(fw.Namespace, fw.Name) {
				all = append(all, e)
				break
			}
		}
	}
	return all
}

// What is in Git has no number of replicas: that is a HorizontalPodAutoscaler's, which is in Git, too.
var _ = Describe("A GitOps controller that applies all the time", Label("gitops", "karmada", "ocm"), func() {
	It("fights nobody, and its commits are carried out, a hand-over too", func(ctx SpecContext) {
		o := sharedOperator(ctx)
		namespace, m := newNamespace(ctx, "gitops"), world.members
		queue := serveMetric(ctx, hub(), externalmetrics.SchemeGroupVersion, 60)
		git := map[string]*gitOps{"karmada": newGitOps("argocd-controller"), "ocm": newGitOps("kustomize-controller")}
		inGit, all := map[string]*v1alpha1.FleetWorkload{}, map[string]*v1alpha1.FleetWorkload{}
		for _, backend := range backends {
			fw := workload(namespace, "web-"+backend, backend, cloneSet, 1)
			fw.Spec.Replicas = nil
			fw.Spec.Placement.Clusters, fw.Spec.Placement.Division = on(m[:2]...), divided()
			inGit[backend], all[backend] = fw, fw.DeepCopy()
			git[backend].commit(fw, autoscaler(fw, 10))
			git[backend].applied(ctx, 2)
			kubectl(ctx, "scale", "fleetworkload/"+fw.Name, "-n", namespace, "--replicas=1") // once: see docs/autoscaling.md
		}
		each := func(do func(g *gitOps, inGit, live *v1alpha1.FleetWorkload)) {
			for _, backend := range backends {
				do(git[backend], inGit[backend], all[backend])
			}
		}
		each(func(_ *gitOps, _, live *v1alpha1.FleetWorkload) { settles(ctx, live, 6) })

		By("applying what is there")
		generations := map[string]int64{}
		each(func(_ *gitOps, _, live *v1alpha1.FleetWorkload) { generations[live.Name] = live.Generation })
		converged(ctx, o)
		o.journal.Reset()
		each(func(g *gitOps, _, live *v1alpha1.FleetWorkload) {
			g.applied(ctx, 5)
			refresh(ctx, live)
			Expect(live.Generation).To(Equal(generations[live.Name]), live.Name)
		})
		Expect(writtenFor(o, all)).To(BeEmpty())

		By("taking an edit back that is not in Git")
		each(func(g *gitOps, _, live *v1alpha1.FleetWorkload) {
			edit(ctx, live, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
			g.applied(ctx, 2)
			becomesReady(ctx, live)
			runs(ctx, live, cloneSet, map[string]want{m[0]: {3, imageOld, "info"}, m[1]: {3, imageOld, "info"}})
		})
		Expect(proxy.Describe(writtenFor(o, all))).To(And( // else it would not have been seen above
			MatchRegexp(`/namespaces/%s/manifestworks/%s-web-ocm-`, m[0], namespace), MatchRegexp(`/namespaces/%s/clonesets/web-karmada`, namespace)))

		By("carrying a commit out")
		each(func(g *gitOps, inGit, live *v1alpha1.FleetWorkload) {
			setImage(inGit, imageNew)
			g.commit(inGit)
			g.applied(ctx, 2)
			becomesReady(ctx, live)
			runs(ctx, live, cloneSet, map[string]want{m[0]: {3, imageNew, "info"}, m[1]: {3, imageNew, "info"}})
		})

		By("handing over by a commit")
		pods := watchPods(namespace)
		each(func(g *gitOps, inGit, _ *v1alpha1.FleetWorkload) {
			inGit.Spec.Backend = otherBackend(inGit.Spec.Backend)
			g.commit(inGit)
			g.applied(ctx, 2)
		})
		each(func(_ *gitOps, inGit, live *v1alpha1.FleetWorkload) {
			refresh(ctx, live)
			Expect(live.Spec.Backend).To(Equal(inGit.Spec.Backend))
			arrive(ctx, carried(live, cloneSet))
		})
		pods.undisturbed(0)

		By("scaling what Git says nothing of")
		queue.load.Store(30)
		each(func(_ *gitOps, _, live *v1alpha1.FleetWorkload) { settles(ctx, live, 3) })
	})
})
