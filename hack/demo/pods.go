package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// podName is a pod's place in the fleet.
type podName struct{ cluster, name string }

// pod is what must not change while its workload changes hands.
type pod struct {
	uid      string
	restarts int64
	ready    bool
}

func readPod(obj *unstructured.Unstructured) pod {
	p := pod{uid: string(obj.GetUID()), ready: podReady(*obj)}
	containers, _, _ := unstructured.NestedSlice(obj.Object, "status", "containerStatuses")
	for _, c := range containers {
		if m, ok := c.(map[string]any); ok {
			n, _, _ := unstructured.NestedInt64(m, "restartCount")
			p.restarts += n
		}
	}
	return p
}

// podWatch sees every event of the pods of some workloads, on every member.
type podWatch struct {
	selector string
	members  map[string]dynamic.ResourceInterface
	stop     context.CancelFunc
	watching sync.WaitGroup

	mu            sync.Mutex
	pods          map[podName]pod
	start, lowest int
	events        int
	problems      []string
}

// watchPods begins with the pods that are there; from then on it misses nothing, and a gap is a problem.
func (d *demo) watchPods(ctx context.Context, of []sample) (*podWatch, error) {
	var names []string
	for _, s := range of {
		names = append(names, s.name)
	}
	ctx, stop := context.WithCancel(ctx)
	w := &podWatch{
		selector: "app in (" + strings.Join(names, ",") + ")", stop: stop,
		members: map[string]dynamic.ResourceInterface{}, pods: map[podName]pod{},
	}
	for _, m := range d.fleet.Members() {
		c, _, err := d.client(m.Name)
		if err == nil {
			w.members[m.Name] = c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
			err = w.begin(ctx, m.Name)
		}
		if err != nil {
			w.end()
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start = w.ready()
	w.lowest = w.start
	return w, nil
}

func (w *podWatch) begin(ctx context.Context, cluster string) error {
	pods, version, err := w.list(ctx, cluster)
	if err != nil {
		return err
	}
	w.mu.Lock()
	maps.Copy(w.pods, pods)
	w.mu.Unlock()
	events, err := toolswatch.NewRetryWatcherWithContext(ctx, version, &toolscache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = w.selector
			return w.members[cluster].Watch(ctx, o)
		},
	})
	if err != nil {
		return fmt.Errorf("watch pods of %s: %w", cluster, err)
	}
	w.watching.Go(func() {
		for e := range events.ResultChan() {
			w.see(cluster, e)
		}
		if ctx.Err() == nil {
			w.note("the watch of %s has ended: what happened since is not known", cluster)
		}
	})
	return nil
}

func (w *podWatch) list(ctx context.Context, cluster string) (map[podName]pod, string, error) {
	list, err := w.members[cluster].List(ctx, metav1.ListOptions{LabelSelector: w.selector})
	if err != nil {
		return nil, "", fmt.Errorf("list pods of %s: %w", cluster, err)
	}
	pods := map[podName]pod{}
	for i := range list.Items {
		pods[podName{cluster, list.Items[i].GetName()}] = readPod(&list.Items[i])
	}
	return pods, list.GetResourceVersion(), nil
}

// now reads all pods anew: the answer does not depend on the watch.
func (w *podWatch) now(ctx context.Context) (map[podName]pod, error) {
	all := map[podName]pod{}
	for cluster := range w.members {
		pods, _, err := w.list(ctx, cluster)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, pods)
	}
	return all, nil
}

func (w *podWatch) see(cluster string, e watch.Event) {
	obj, ok := e.Object.(*unstructured.Unstructured)
	if !ok || e.Type == watch.Error {
		w.note("the watch of %s has a gap: %v", cluster, e.Object)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Type != watch.Bookmark {
		w.events++
		w.compare(podName{cluster, obj.GetName()}, readPod(obj), e.Type)
		w.lowest = min(w.lowest, w.ready())
	}
}

// compare notes what a pod's event says of it, if that is more than its workload's change of hands may cause: nothing.
func (w *podWatch) compare(name podName, is pod, event watch.EventType) {
	was, known := w.pods[name]
	if event == watch.Deleted {
		delete(w.pods, name)
	} else {
		w.pods[name] = is
	}
	switch {
	case event == watch.Deleted:
		w.problem(name, "was deleted, UID %s", is.uid)
	case !known:
		w.problem(name, "is new, UID %s", is.uid)
	case was.uid != is.uid:
		w.problem(name, "was replaced: UID %s, then %s", was.uid, is.uid)
	case was.restarts != is.restarts:
		w.problem(name, "was restarted: %d restarts, then %d", was.restarts, is.restarts)
	case was.ready && !is.ready:
		w.problem(name, "was no longer ready")
	}
}

func (w *podWatch) problem(of podName, format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf("pod %s on %s ", of.name, of.cluster)+fmt.Sprintf(format, args...))
}

func (w *podWatch) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func (w *podWatch) ready() (n int) {
	for _, p := range w.pods {
		if p.ready {
			n++
		}
	}
	return n
}

func (w *podWatch) end() {
	w.stop()
	w.watching.Wait()
}

// verdict ends the watch, says what it saw, and is an error when that is anything but peace.
func (w *podWatch) verdict(out io.Writer) error {
	w.end()
	fmt.Fprintf(out, "%d pods were ready at the start, and never fewer than %d (%d events of pods)\n", w.start, w.lowest, w.events)
	if len(w.problems) > 0 {
		return errors.New(strings.Join(w.problems, "\n"))
	}
	fmt.Fprintln(out, "none came, went, was restarted or lost its readiness")
	return nil
}

// allPods are the pods that were there at any of the times, in the order of their names.
func allPods(times ...map[podName]pod) []podName {
	all := map[podName]bool{}
	for _, pods := range times {
		for name := range pods {
			all[name] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b podName) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.cluster, b.cluster))
	})
}

// printPods shows the pods' UIDs before, between and after. It is an error when a pod is not the same all the time.
func printPods(out io.Writer, before, between, after map[podName]pod) error {
	w := printers.GetNewTabWriter(out)
	fmt.Fprintln(w, "POD\tCLUSTER\tUID BEFORE\tON OCM\tUID AFTER\tRESTARTS\tTHE SAME")
	var changed []error
	for _, name := range allPods(before, between, after) {
		a, b, c := before[name], between[name], after[name]
		onOCM, same := b.uid, "yes"
		if onOCM == a.uid {
			onOCM = "same"
		}
		if a.uid != b.uid || a.uid != c.uid || a.restarts != c.restarts {
			same = "NO"
			changed = append(changed, fmt.Errorf("pod %s on %s is not the same: before %+v, on OCM %+v, after %+v", name.name, name.cluster, a, b, c))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", name.name, name.cluster, orNone(a.uid), orNone(onOCM), orNone(c.uid),
			c.restarts-a.restarts, same)
	}
	return errors.Join(append(changed, w.Flush())...)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
