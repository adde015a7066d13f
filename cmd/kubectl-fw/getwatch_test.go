package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// watching is what get --watch says, line by line, of a management cluster whose watches the test feeds.
type watching struct {
	client  client.WithWatch
	sources chan *watch.FakeWatcher
	said    *bufio.Scanner
	// end interrupts it; a real watch stops then.
	end func(*watch.FakeWatcher) error
}

func watchingGet(t *testing.T, o getOptions, objects ...client.Object) *watching {
	t.Helper()
	w := &watching{sources: make(chan *watch.FakeWatcher, 2)}
	w.client = interceptor.NewClient(fakeClient(t, objects...), interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			source := watch.NewFake()
			w.sources <- source
			return source, nil
		},
	})
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.said = bufio.NewScanner(out)
	ctx, cancel := context.WithCancel(within(t))
	done := make(chan error, 1)
	go func() {
		done <- o.follow(ctx, w.client, genericiooptions.IOStreams{Out: in, ErrOut: io.Discard}, atNoon)
		_ = in.Close()
	}()
	w.end = func(source *watch.FakeWatcher) error {
		cancel()
		source.Stop()
		return <-done
	}
	return w
}

func (w *watching) says(t *testing.T, want ...string) {
	t.Helper()
	for _, line := range want {
		if !w.said.Scan() || strings.Join(strings.Fields(w.said.Text()), " ") != line {
			t.Fatalf("it says %q, want %q", w.said.Text(), line)
		}
	}
}

// TestGetIsFollowed: into a pipe goes a row for each change that a row shows, also for what has happened while the connection was lost.
func TestGetIsFollowed(t *testing.T) {
	shows := func(name, version, ready string) *v1alpha1.FleetWorkload {
		fw := &v1alpha1.FleetWorkload{}
		glanced("shop", name, func(g *v1alpha1.FleetWorkload) { fw = g })
		fw.ResourceVersion, fw.Status.Ready = version, ready
		return fw
	}
	cart := shows("cart", "", "4/4")
	w := watchingGet(t, getting(t, "", getOptions{namespace: "shop", watch: true}), cart, shows("api", "", "4/4"), glanced("data", "lake", func(*v1alpha1.FleetWorkload) {}))
	w.says(t, "NAME KIND BACKEND READY CLUSTERS STATUS AGE MESSAGE", "api Deployment ocm 4/4 2/2 Ready 60m -", "cart Deployment ocm 4/4 2/2 Ready 60m -")
	source := <-w.sources
	source.Modify(shows("cart", "1001", "4/4")) // a row shows nothing of it
	source.Modify(shows("cart", "1002", "5/6"))
	source.Add(shows("web", "1003", "0/1"))
	w.says(t, "cart Deployment ocm 5/6 2/2 Ready 60m -", "web Deployment ocm 0/1 2/2 Ready 60m -")
	source.Delete(shows("web", "1004", "0/1"))
	w.says(t, "web Deployment ocm 0/1 2/2 Gone 60m it was deleted")
	if err := w.client.Delete(t.Context(), cart); err != nil {
		t.Fatal(err)
	}
	source.Stop()
	w.says(t, "cart Deployment ocm 5/6 2/2 Gone 60m it was deleted")
	source = <-w.sources
	source.Add(shows("cart", "1005", "6/6")) // another one of that name
	w.says(t, "cart Deployment ocm 6/6 2/2 Ready 60m -")
	if err := w.end(source); err != nil {
		t.Error(err)
	}
}

// TestGetIsFollowedByLabel: what does not match any more is told, and nothing is, before there is something.
func TestGetIsFollowedByLabel(t *testing.T) {
	w := watchingGet(t, getting(t, "", getOptions{everywhere: true, selector: "team=web", watch: true}), glanced("shop", "cart", func(*v1alpha1.FleetWorkload) {}))
	source := <-w.sources
	web := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: "1001", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
	source.Add(web)
	w.says(t, "NAMESPACE NAME KIND BACKEND READY CLUSTERS STATUS AGE MESSAGE", "shop web - - - New 60m the operator has not looked at it yet")
	source.Delete(web)
	w.says(t, "shop web - - - Gone 60m it was deleted, or its labels do not match any more")
	if err := w.end(source); err != nil {
		t.Error(err)
	}
}

// TestGetFollowsObjects: each as it is, and again when it has changed.
func TestGetFollowsObjects(t *testing.T) {
	for _, names := range [][]string{nil, {"cart"}} {
		cart := &v1alpha1.FleetWorkload{}
		glanced("shop", "cart", func(g *v1alpha1.FleetWorkload) { cart = g })
		w := watchingGet(t, getting(t, "jsonpath={.kind} {.status.ready}\n", getOptions{namespace: "shop", names: names, watch: true}), cart)
		w.says(t, "FleetWorkload 4/4")
		next := cart.DeepCopy()
		next.ResourceVersion, next.Status.Ready = "1001", "5/5"
		source := <-w.sources
		source.Modify(next)
		w.says(t, "FleetWorkload 5/5")
		if err := w.end(source); err != nil {
			t.Error(err)
		}
	}
}

// TestGetFollowsATree: of one FleetWorkload each state is appended under its time, until it is deleted.
func TestGetFollowsATree(t *testing.T) {
	cart := &v1alpha1.FleetWorkload{}
	glanced("shop", "cart", func(g *v1alpha1.FleetWorkload) { cart = g })
	w := watchingGet(t, getting(t, "", getOptions{namespace: "shop", names: []string{"cart"}, watch: true}), cart)
	tree := []string{"--- " + noon.Format(time.TimeOnly), "NAME READY STATUS SINCE MESSAGE", "FleetWorkload cart 4/4 Ready - -", "├─ backend ocm", "└─ on each cluster", "└─ Deployment cart"}
	w.says(t, tree...)
	next := cart.DeepCopy()
	next.ResourceVersion, next.Status.Ready = "1001", "5/5"
	source := <-w.sources
	source.Modify(next)
	tree[2] = "FleetWorkload cart 5/5 Ready - -"
	w.says(t, tree...)
	source.Delete(next)
	if w.said.Scan() {
		t.Errorf("after the deletion it says %q", w.said.Text())
	}
	if err := w.end(source); err != nil {
		t.Error(err)
	}
}

func TestGetIsNotFollowed(t *testing.T) {
	for want, args := range map[string]string{
		"leave out the names after web":               "web cart --watch",
		"--watch of one FleetWorkload takes no":       "web -l team=web --watch",
		`--selector "a b"`:                            "-l|a b|--watch",
		"--output: unable to match a printer":         "--watch -o picture",
		`FleetWorkload "gone" not found in namespace`: "gone --watch",
		"list FleetWorkloads: ":                       "-n secret --watch",
	} {
		separator := " "
		if strings.Contains(args, "|") {
			separator = "|"
		}
		kubeconfig := managementWith(t, []string{"/apis/apps.fleetworkload.io/v1alpha1/namespaces/secret"})
		_, _, err := run(t, "", append([]string{"--kubeconfig", kubeconfig, "get"}, strings.Split(args, separator)...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", args, err, want)
		}
	}
}

// TestGetWatchWithoutTheRight: who may list and not watch is told so at once.
func TestGetWatchWithoutTheRight(t *testing.T) {
	c := interceptor.NewClient(fakeClient(t, glanced("shop", "cart", func(*v1alpha1.FleetWorkload) {})), interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return nil, apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("fleetworkloads").GroupResource(), "", nil)
		},
	})
	o := getting(t, "", getOptions{namespace: "shop", watch: true})
	var out, errOut bytes.Buffer
	if err := o.follow(within(t), c, streamsTo(&out, &errOut), atNoon); err == nil || !strings.Contains(err.Error(), "watch FleetWorkloads: ") {
		t.Errorf("the error is %v", err)
	}
}
