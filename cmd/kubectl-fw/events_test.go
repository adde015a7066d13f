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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// happened is an Event as the operator records it.
func happened(namespace, of, name, reason string, ago time.Duration, change func(*corev1.Event)) *corev1.Event {
	e := &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: of + "." + name},
		InvolvedObject:      corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FleetWorkload", Namespace: namespace, Name: of},
		Type:                "Normal",
		Reason:              reason,
		Message:             reason + " is\nwhat happened",
		EventTime:           metav1.NewMicroTime(noon.Add(-ago)),
		ReportingController: "fleetworkload",
	}
	change(e)
	return e
}

func diary(t *testing.T) client.WithWatch {
	t.Helper()
	once := func(*corev1.Event) {}
	return fakeClient(t,
		glanced("shop", "quiet", func(*v1alpha1.FleetWorkload) {}),
		happened("shop", "web", "1", "Ready", 50*time.Minute, once),
		happened("shop", "web", "2", "RemovalHeld", 2*time.Hour, func(e *corev1.Event) {
			e.Type, e.Series = "Warning", &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(noon.Add(-time.Minute))}
		}),
		happened("shop", "web", "3", "MigrationShadowing", 0, func(e *corev1.Event) { // of an older library
			e.EventTime, e.ReportingController = metav1.MicroTime{}, ""
			e.FirstTimestamp, e.LastTimestamp, e.Count = metav1.NewTime(noon.Add(-10*time.Minute)), metav1.NewTime(noon.Add(-5*time.Minute)), 2
			e.Source.Component = "somebody"
		}),
		happened("shop", "cart", "1", "Ready", 20*time.Minute, once),
		happened("data", "lake", "1", "Ready", 30*time.Minute, once),
		happened("shop", "web", "pod", "Scheduled", time.Second, func(e *corev1.Event) { e.InvolvedObject.Kind, e.InvolvedObject.APIVersion = "Pod", "v1" }),
		happened("shop", "web", "other", "NotOurs", time.Second, func(e *corev1.Event) { e.InvolvedObject.APIVersion = "example.com/v1" }),
	)
}

func telling(o eventsOptions, format string) eventsOptions {
	o.print = eventsPrintFlags()
	*o.print.OutputFormat = format
	return o
}

func atNoon() time.Time { return noon }

func TestEventsTable(t *testing.T) {
	for name, o := range map[string]eventsOptions{
		"events/one.golden":       telling(eventsOptions{namespace: "shop", name: "web"}, ""),
		"events/namespace.golden": telling(eventsOptions{namespace: "shop"}, ""),
		"events/all-wide.golden":  telling(eventsOptions{everywhere: true}, "wide"),
		"events/name.golden":      telling(eventsOptions{namespace: "shop", name: "web"}, "name"),
		"events/none.golden":      telling(eventsOptions{namespace: "shop", name: "quiet"}, ""),
		"events/nowhere.golden":   telling(eventsOptions{namespace: "empty"}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := o.run(t.Context(), diary(t), genericiooptions.IOStreams{Out: &out, ErrOut: &out}, atNoon); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name, out.String())
		})
	}
}

func TestEventsObjects(t *testing.T) {
	for format, want := range map[string]string{
		"jsonpath={.items[*].reason}": "Ready MigrationShadowing RemovalHeld",
		"jsonpath={.kind}":            "EventList",
	} {
		var out bytes.Buffer
		o := telling(eventsOptions{namespace: "shop", name: "web"}, format)
		if err := o.run(t.Context(), diary(t), genericiooptions.IOStreams{Out: &out, ErrOut: &out}, atNoon); err != nil || out.String() != want {
			t.Errorf("-o %s: %q, %v, want %q", format, out.String(), err, want)
		}
	}
}

func TestEventsAreRefused(t *testing.T) {
	for want, o := range map[string]eventsOptions{
		`FleetWorkload "wbe" not found in namespace "shop"`: telling(eventsOptions{namespace: "shop", name: "wbe"}, ""),
		"--output": telling(eventsOptions{namespace: "shop"}, "picture"),
	} {
		err := o.run(t.Context(), diary(t), genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}, atNoon)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Each Event is shown once, and again when it has happened again, also after the connection was lost; what is old goes without a word.
func TestEventsAreFollowed(t *testing.T) {
	sources := make(chan *watch.FakeWatcher, 2)
	c := interceptor.NewClient(diary(t), interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			w := watch.NewFake()
			sources <- w
			return w, nil
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	o := telling(eventsOptions{namespace: "shop", name: "cart", watch: true}, "")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- o.run(ctx, c, genericiooptions.IOStreams{Out: in, ErrOut: io.Discard}, atNoon)
		_ = in.Close()
	}()
	said := bufio.NewScanner(out)
	expect := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if !said.Scan() || strings.Join(strings.Fields(said.Text()), " ") != w {
				t.Fatalf("it says %q, want %q", said.Text(), w)
			}
		}
	}
	expect("LAST SEEN TYPE REASON MESSAGE", "20m Normal Ready Ready is what happened")
	again := &corev1.Event{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "cart.1"}, again); err != nil {
		t.Fatal(err)
	}
	again.EventTime = metav1.NewMicroTime(noon)
	if err := c.Update(ctx, again); err != nil {
		t.Fatal(err)
	}
	w := <-sources
	w.Delete(happened("shop", "cart", "0", "Ready", time.Hour, func(*corev1.Event) {}))
	w.Add(happened("shop", "cart", "2", "NotOurs", 0, func(e *corev1.Event) { e.InvolvedObject.Kind = "Pod" }))
	w.Modify(again)
	expect("0s Normal Ready Ready is what happened")
	w.Modify(again)
	w.Stop()
	w = <-sources // what was shown is not shown again
	w.Add(happened("shop", "cart", "3", "RevisionChanged", 0, func(e *corev1.Event) { e.ResourceVersion = "2001" }))
	expect("0s Normal RevisionChanged RevisionChanged is what happened")
	cancel()
	w.Stop() // as a real one does then
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
