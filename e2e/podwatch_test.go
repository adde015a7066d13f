//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podWatch stands for those who use the pods: it sees every event of the pods of a namespace, in all members.
type podWatch struct {
	namespace string
	stop      func()
	done      sync.WaitGroup

	// leaving were on their way out when the watch began: the last of a roll-out, whose going is nobody's harm.
	leaving map[string]bool

	mu            sync.Mutex
	pods          map[string]podSeen
	start, lowest int
	// short is since when fewer pods are ready than at the start, and longest the longest such time.
	short   time.Time
	longest time.Duration
	// harm is what nobody who uses the pods may see, and fresh how many came.
	harm  []string
	fresh int
}

type podSeen struct {
	ready    bool
	restarts int32
}

func seen(pod *corev1.Pod) podSeen {
	s := podSeen{ready: podReady(pod)}
	for _, c := range pod.Status.ContainerStatuses {
		s.restarts += c.RestartCount
	}
	return s
}

// watchPods begins with the pods that are there.
func watchPods(namespace string) *podWatch {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &podWatch{namespace: namespace, leaving: map[string]bool{}, pods: map[string]podSeen{}, stop: cancel}
	DeferCleanup(cancel)
	watchers := map[string]watch.Interface{}
	for _, name := range world.members {
		list, watcher, err := w.look(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		watchers[name] = watcher
		for i := range list.Items {
			pod := &list.Items[i]
			if key := w.key(name, pod); pod.DeletionTimestamp != nil {
				w.leaving[key] = true
			} else {
				w.pods[key] = seen(pod)
			}
		}
	}
	w.start = w.ready()
	w.lowest = w.start
	for name, watcher := range watchers {
		w.done.Go(func() { w.follow(ctx, name, watcher) })
	}
	return w
}

func (w *podWatch) key(cluster string, pod *corev1.Pod) string {
	return cluster + "/" + string(pod.UID)
}

// look lists the pods of one member, and watches them from there on.
func (w *podWatch) look(ctx context.Context, cluster string) (*corev1.PodList, watch.Interface, error) {
	list := &corev1.PodList{}
	if err := member(cluster).List(ctx, list, client.InNamespace(w.namespace)); err != nil {
		return nil, nil, err
	}
	from := &client.ListOptions{Namespace: w.namespace, Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	watcher, err := member(cluster).Watch(ctx, &corev1.PodList{}, from)
	return list, watcher, err
}

// follow sees the events of one member. An API server that was restarted does not know what happened before: then what is
// there tells.
func (w *podWatch) follow(ctx context.Context, cluster string, watcher watch.Interface) {
	for {
		for e := range watcher.ResultChan() {
			if pod, is := e.Object.(*corev1.Pod); is {
				w.see(cluster, pod, e.Type == watch.Deleted)
			}
		}
		var list *corev1.PodList
		err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (done bool, err error) {
			list, watcher, err = w.look(ctx, cluster)
			return err == nil, nil
		})
		if err != nil {
			return // the watch has ended
		}
		w.seeAll(cluster, list)
	}
}

// seeAll compares with what is there.
func (w *podWatch) seeAll(cluster string, list *corev1.PodList) {
	there := map[string]bool{}
	for i := range list.Items {
		there[w.key(cluster, &list.Items[i])] = true
		w.see(cluster, &list.Items[i], false)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.pods {
		if strings.HasPrefix(key, cluster+"/") && !there[key] {
			w.harm = append(w.harm, key+" is gone")
			delete(w.pods, key)
		}
	}
	w.count()
}

func (w *podWatch) ready() (n int) {
	for _, s := range w.pods {
		if s.ready {
			n++
		}
	}
	return n
}

func (w *podWatch) see(cluster string, pod *corev1.Pod, deleted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := w.key(cluster, pod)
	if w.leaving[key] {
		return
	}
	before, known := w.pods[key]
	now := seen(pod)
	told := fmt.Sprintf("%s/%s (%s) ", cluster, pod.Name, pod.UID)
	switch {
	case deleted:
		w.harm = append(w.harm, told+"was deleted")
	case !known:
		w.fresh++
	case before.ready && !now.ready:
		w.harm = append(w.harm, told+"is no longer ready")
	case before.restarts != now.restarts:
		w.harm = append(w.harm, fmt.Sprintf("%srestarted: %d times instead of %d", told, now.restarts, before.restarts))
	}
	if delete(w.pods, key); !deleted {
		w.pods[key] = now
	}
	w.count()
}

func (w *podWatch) count() {
	n := w.ready()
	w.lowest = min(w.lowest, n)
	switch {
	case n < w.start && w.short.IsZero():
		w.short = time.Now()
	case n >= w.start && !w.short.IsZero():
		w.longest, w.short = max(w.longest, time.Since(w.short)), time.Time{}
	}
}

// undisturbed ends the watch, and fails when a pod went, was not ready or was restarted, or when others came than expected.
func (w *podWatch) undisturbed(fresh int) {
	GinkgoHelper()
	w.stop()
	w.done.Wait()
	if !w.short.IsZero() {
		w.longest = max(w.longest, time.Since(w.short))
	}
	AddReportEntry("pods of "+w.namespace,
		fmt.Sprintf("%d ready at the start, lowest %d, longest gap %s, %d came", w.start, w.lowest, w.longest, w.fresh))
	Expect(w.harm).To(BeEmpty(), "what those saw who use the pods of %s", w.namespace)
	Expect(w.lowest).To(Equal(w.start), "ready pods of %s", w.namespace)
	Expect(w.longest).To(BeZero())
	Expect(w.fresh).To(Equal(fresh), "pods that came to %s", w.namespace)
}
