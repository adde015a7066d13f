package karmada

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// TestWhatKarmadaFailsAt: the newest word is told, once Karmada has failed for a while with what was written.
func TestWhatKarmadaFailsAt(t *testing.T) {
	written := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	event := func(after time.Duration, message string) corev1.Event {
		return corev1.Event{LastTimestamp: metav1.NewTime(written.Add(after)), Message: message}
	}
	tests := map[string]struct {
		told  []corev1.Event
		since time.Time
		want  string
	}{
		"nothing":                 {since: written},
		"of what was before":      {told: []corev1.Event{event(-time.Minute, "old")}, since: written},
		"a moment after":          {told: []corev1.Event{event(lastingFailure-time.Second, "a conflict")}, since: written},
		"for long":                {told: []corev1.Event{event(lastingFailure, "no webhook")}, since: written, want: "no webhook"},
		"the newest of several":   {told: []corev1.Event{event(time.Minute, "newer"), event(time.Second*30, "older")}, since: written, want: "newer"},
		"since nobody knows when": {told: []corev1.Event{event(time.Minute, "no webhook")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := lasting(tt.told, tt.since); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestWhatIsKeptOfAnEvent: failures with a template, within bounds; of all others nothing that takes room or is found.
func TestWhatIsKeptOfAnEvent(t *testing.T) {
	tests := map[string]struct {
		kind, reason string
		kept         bool
	}{
		"no Works":               {kind: "CloneSet", reason: "SyncWorkFailed", kept: true},
		"no binding":             {kind: "CloneSet", reason: "ApplyPolicyFailed", kept: true},
		"of the binding":         {kind: "ResourceBinding", reason: "SyncWorkFailed"},
		"of a cluster's binding": {kind: "ClusterResourceBinding", reason: "SyncWorkFailed"},
		"of something else":      {kind: "CloneSet", reason: "AggregateStatusFailed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			event := &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: "web.1", ResourceVersion: "7", Annotations: map[string]string{"a": "b"}},
				InvolvedObject: corev1.ObjectReference{Kind: tt.kind, Namespace: "shop", Name: "web", UID: "u"},
				Reason:         tt.reason, Message: strings.Repeat("x", 2000),
			}
			obj, err := stripEvent(event)
			if err != nil {
				t.Fatal(err)
			}
			kept := obj.(*corev1.Event)
			if kept.Name != "web.1" || kept.ResourceVersion != "7" || len(kept.Annotations) > 0 || len(kept.Message) > longestFailure {
				t.Errorf("kept %+v", kept)
			}
			if found := len(indexEvent(kept)) > 0; found != tt.kept || (kept.Message != "") != tt.kept {
				t.Errorf("found %t, message of %d bytes, want %t", found, len(kept.Message), tt.kept)
			}
		})
	}
}

// TestWhatIsToldInEvents: Events are looked up for what Karmada is to do with the template, and not for what others are.
func TestWhatIsToldInEvents(t *testing.T) {
	s, shares := atRest(t)
	d := desiredFor("r1", "pause:1", v1alpha1.DivisionTypeDivided, shares...)
	want := mustRender(t, d)
	s.apply(want.template)
	unrendered := s.now
	s.settle()
	unbound, undispatched := s.now, s.now
	unbound.binding = nil
	undispatched.works = slices.Clone(s.now.works)
	undispatched.works[1] = newWork(undispatched.works[1].DeepCopy())
	undispatched.works[1].Status.Conditions = nil
	for name, tt := range map[string]struct {
		words string
		want  bool
	}{
		"a manifest":   {words: decide(d, want, unrendered).waiting, want: true},
		"a binding":    {words: unfinished(d, want, unbound), want: true},
		"the dispatch": {words: decide(d, want, undispatched).waiting},
		"nothing":      {words: decide(d, want, s.now).waiting},
	} {
		if got := toldInEvents(tt.words); got != tt.want || (tt.words == "") != (name == "nothing") {
			t.Errorf("%s: %q: %t, want %t", name, tt.words, got, tt.want)
		}
	}
}

// TestFailuresThatMayNotBeRead: without the right to read Events nothing is told of failures, and nobody waits for it.
func TestFailuresThatMayNotBeRead(t *testing.T) {
	refused := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		select {
		case refused <- struct{}{}:
		default:
		}
	}))
	defer server.Close()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	var f failures
	if f.cache, err = newFailures(&rest.Config{Host: server.URL}, server.Client(), scheme, mapper); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.run(running, func(*corev1.Event) {}) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-refused
	asking, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if told := f.of(asking, "u"); len(told) > 0 || asking.Err() != nil {
		t.Errorf("told %v, %v", told, asking.Err())
	}
}
