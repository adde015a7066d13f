//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/statuscheck"
)

// statusWatch sees every status that is written, in order: an API server's watch leaves none out.
type statusWatch struct {
	mu      sync.Mutex
	wrong   []string
	checked int
	// lapsed are the times at which a FleetWorkload was Ready no more although its spec had not changed, nor anything on members.
	lapsed  map[types.UID][]string
	watcher *watchtools.RetryWatcher
	done    chan struct{}
}

func watchStatuses(e *environment) *statusWatch {
	GinkgoHelper()
	w := &statusWatch{lapsed: map[types.UID][]string{}}
	w.start(e)
	return w
}

func (w *statusWatch) start(e *environment) {
	GinkgoHelper()
	w.watcher, w.done = watchAll(context.Background(), e.clusters["hub"], &v1alpha1.FleetWorkloadList{}), make(chan struct{})
	go w.run()
}

// across does what no watch outlives, such as the death of the API server, which remembers no earlier versions when it is
// back.
func (w *statusWatch) across(f func()) {
	GinkgoHelper()
	w.watcher.Stop()
	<-w.done
	f()
	w.start(world)
}

// watchAll lists objects and sees every event from then on: a watch that breaks goes on where it was.
func watchAll(ctx context.Context, c *cluster, list client.ObjectList, opts ...client.ListOption) *watchtools.RetryWatcher {
	GinkgoHelper()
	Expect(c.List(ctx, list, opts...)).To(Succeed())
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list.DeepCopyObject().(client.ObjectList), append(opts, &client.ListOptions{Raw: &options})...)
		},
	})
	Expect(err).NotTo(HaveOccurred())
	return watcher
}

func (w *statusWatch) run() {
	defer close(w.done)
	last := map[types.UID]*v1alpha1.FleetWorkload{}
	for event := range w.watcher.ResultChan() {
		fw, ok := event.Object.(*v1alpha1.FleetWorkload)
		if !ok {
			w.report("the watch on FleetWorkloads ended: %v", event.Object)
			return
		}
		if event.Type == watch.Deleted {
			delete(last, fw.UID)
			continue
		}
		w.mu.Lock()
		w.checked++
		w.mu.Unlock()
		if err := statuscheck.Check(fw); err != nil {
			w.report("%v\n%s", err, describe(fw))
		}
		if before := last[fw.UID]; before != nil {
			if err := statuscheck.Transition(before, fw); err != nil {
				w.report("%v\nbefore: %s\nafter: %s", err, describe(before), describe(fw))
			}
			reason := condition(fw, v1alpha1.ConditionReady).Reason
			if isReady(before) && !isReady(fw) && before.Generation == fw.Generation && reason != v1alpha1.ReasonProgressing {
				w.mu.Lock()
				w.lapsed[fw.UID] = append(w.lapsed[fw.UID], describe(fw))
				w.mu.Unlock()
			}
		}
		last[fw.UID] = fw
	}
}

func (w *statusWatch) report(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// lapses are the times at which the FleetWorkload was Ready no more although its spec had not changed, nor anything on members: Karmada's
// marks are a new generation of a Deployment, which its controller has to take note of.
func (w *statusWatch) lapses(fw *v1alpha1.FleetWorkload) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lapsed[fw.UID])
}

// violations returns what was wrong since it was asked last.
func (w *statusWatch) violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	wrong := w.wrong
	w.wrong = nil
	return wrong
}

func (w *statusWatch) stop() {
	w.watcher.Stop()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	GinkgoWriter.Printf("%d states of FleetWorkloads were checked\n", w.checked)
	Expect(w.checked).NotTo(BeZero(), "the watch saw nothing: statuses were not checked")
}
