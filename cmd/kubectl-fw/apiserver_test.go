//go:build api

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// TestEventsOnAnAPIServer: what a recorder such as the operator's writes is found there, and nothing of others.
func TestEventsOnAnAPIServer(t *testing.T) {
	server := startAPIServer(t)
	record := recorder(t, server)
	fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}}
	record.Eventf(fw, nil, "Warning", "RemovalHeld", "Reconcile", "held")
	record.Eventf(fw, nil, "Warning", "RemovalHeld", "Reconcile", "held")
	record.Eventf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "2"}}, nil, "Normal", "Scheduled", "Bind", "a pod's")
	said := func(args ...string) string {
		t.Helper()
		out, err := command(t.Context(), server, args...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out), " ")
	}
	for _, test := range []struct{ what, want, never string }{
		{"events web -n default", "Warning RemovalHeld held", "Scheduled"},
		{"events -n default", "Warning RemovalHeld web held", "Scheduled"},
		{"events -A -o wide", "default ", "Scheduled"},
		{"events web -n default -o jsonpath={.items[*].series.count}", "2", ""},
	} {
		var got string
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
			got, _ = command(t.Context(), server, strings.Fields(test.what)...)
			got = strings.Join(strings.Fields(got), " ")
			return strings.Contains(got, test.want), nil
		})
		if err != nil || test.never != "" && strings.Contains(got, test.never) {
			t.Errorf("%s: %v, %q", test.what, err, got)
		}
	}
	if got := said("events", "-n", "kube-system"); !strings.Contains(got, "no Events of FleetWorkloads in namespace kube-system") {
		t.Errorf("elsewhere it says %q", got)
	}
	if _, err := command(t.Context(), server, "events", "other", "-n", "default"); err == nil || !strings.Contains(err.Error(), "does not serve FleetWorkloads") {
		t.Errorf("without the CRD: %v", err)
	}

	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	watched, err := command(ctx, server, "events", "web", "-n", "default", "--watch")
	if err != nil || strings.Count(watched, "RemovalHeld") != 1 {
		t.Errorf("a watch says %q, %v", watched, err)
	}
}

// command runs the command line as an administrator.
func command(ctx context.Context, server *lab.APIServer, args ...string) (string, error) {
	var out bytes.Buffer
	root := newRoot("kubectl-fw", genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
	root.SetArgs(append([]string{"--kubeconfig", server.Kubeconfig()}, args...))
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

func recorder(t *testing.T, server *lab.APIServer) events.EventRecorder {
	t.Helper()
	cfg, err := server.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broadcaster.Shutdown)
	return broadcaster.NewRecorder(scheme, "fleetworkload")
}

// startAPIServer runs one until the test ends.
func startAPIServer(t *testing.T) *lab.APIServer {
	t.Helper()
	server, err := lab.StartAPIServer(t.Context(), filepath.Join(t.TempDir(), "lab"), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}
