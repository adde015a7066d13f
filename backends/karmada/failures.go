package karmada

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-io/karmada/pkg/events"

	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// What Karmada cannot do with a template, to bind it or to make Works of it, it tells in Events alone, and tries again (the detector in
// pkg/detector, syncBinding in pkg/controllers/binding). Without them all that can be said is what is waited for.

const (
	// eventByObject is the index of Events by the UID of the template that they are of.
	eventByObject = "object"
	// lastingFailure is how long after the last write Karmada must still fail: that others write in the same moment is nothing to tell of.
	lastingFailure = 5 * time.Second
	// longestFailure bounds what is told of a failure, in bytes.
	longestFailure = 400
)

// toldInEvents tells from the words for what is waited for whether Karmada tells in Events why it fails. The scheduler and members tell in
// statuses.
func toldInEvents(waiting string) bool {
	return slices.ContainsFunc([]string{"Karmada to bind ", "Karmada to take up ", "Karmada to render "}, func(begin string) bool {
		return strings.HasPrefix(waiting, begin)
	})
}

// newFailures caches the Events of failures. It is a cache of its own because nobody waits for it: without the right to read them, all
// but the reasons is there.
func newFailures(cfg *rest.Config, httpClient *http.Client, scheme *runtime.Scheme, mapper meta.RESTMapper) (cache.Cache, error) {
	shared := true
	c, err := cache.New(cfg, cache.Options{
		HTTPClient: httpClient, Scheme: scheme, Mapper: mapper,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Event{}: {
				Field:     fields.SelectorFromSet(fields.Set{"type": corev1.EventTypeWarning}),
				Transform: stripEvent, UnsafeDisableDeepCopy: &shared,
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("build cache of events: %w", err)
	}
	return c, nil
}

// stripEvent keeps what is told, and of other failures nothing but the name.
func stripEvent(obj any) (any, error) {
	e, ok := obj.(*corev1.Event)
	if !ok {
		return obj, nil
	}
	kept := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion}}
	if tellsOfTemplate(e) {
		kept.InvolvedObject = corev1.ObjectReference{
			Kind: e.InvolvedObject.Kind, Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name, UID: e.InvolvedObject.UID,
		}
		kept.Reason, kept.LastTimestamp, kept.Message = e.Reason, e.LastTimestamp, brief.Cut(strings.ToValidUTF8(e.Message, ""), longestFailure)
	}
	return kept, nil
}

// tellsOfTemplate tells whether an Event is of a template, and not of its binding, for which Karmada writes a second one.
func tellsOfTemplate(e *corev1.Event) bool {
	return (e.Reason == events.EventReasonSyncWorkFailed || e.Reason == events.EventReasonApplyPolicyFailed) &&
		e.InvolvedObject.UID != "" && !strings.HasSuffix(e.InvolvedObject.Kind, "ResourceBinding")
}

// failures are what Karmada tells that it cannot do.
type failures struct {
	cache  cache.Cache
	synced atomic.Pointer[toolscache.InformerSynced]
}

// run has the Events tell of the FleetWorkloads that they are of, until ctx ends.
func (f *failures) run(ctx context.Context, tell func(*corev1.Event)) error {
	go func() {
		indexed := false
		_ = wait.PollUntilContextCancel(ctx, startRetry, true, func(ctx context.Context) (bool, error) {
			return f.watch(ctx, &indexed, tell) == nil, nil // setUp tells of a control plane that is not there
		})
	}()
	return f.cache.Start(ctx)
}

func (f *failures) watch(ctx context.Context, indexed *bool, tell func(*corev1.Event)) error {
	if !*indexed {
		if err := f.cache.IndexField(ctx, &corev1.Event{}, eventByObject, indexEvent); err != nil {
			return err
		}
		*indexed = true
	}
	informer, err := f.cache.GetInformer(ctx, &corev1.Event{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(handler(func(a, b *corev1.Event) bool { return a.LastTimestamp.Equal(&b.LastTimestamp) }, tell))
	if err == nil {
		synced := toolscache.InformerSynced(registration.HasSynced)
		f.synced.Store(&synced)
	}
	return err
}

// of are the Events of a template, as far as they are known. A cache that is not filled would be waited for, and may never be.
func (f *failures) of(ctx context.Context, template types.UID) []corev1.Event {
	if synced := f.synced.Load(); synced == nil || !(*synced)() {
		return nil
	}
	var told corev1.EventList
	if err := f.cache.List(ctx, &told, client.MatchingFields{eventByObject: string(template)}); err != nil {
		return nil // no Event is a reason to say less, and none to fail
	}
	return told.Items
}

func indexEvent(obj client.Object) []string {
	if e, is := obj.(*corev1.Event); is && e.InvolvedObject.UID != "" {
		return []string{string(e.InvolvedObject.UID)}
	}
	return nil
}

func (w *watches) tellOfFailure(e *corev1.Event) {
	if of := e.InvolvedObject; of.UID != "" {
		w.tell(types.NamespacedName{Namespace: of.Namespace, Name: bindingNameOf(of.Kind, of.Name)})
	}
}

// failure is what Karmada fails to do for long with what was written, in its own words; empty when it does not, or what is waited for is
// somebody else's turn.
func (d *Driver) failure(ctx context.Context, waiting string, live currentState) string {
	if live.template == nil || !toldInEvents(waiting) {
		return ""
	}
	return lasting(d.failures.of(ctx, live.template.GetUID()), lastWritten(live.template, live.policy, live.override))
}

// lasting is the newest message, if it came long enough after what was written at since.
func lasting(told []corev1.Event, since time.Time) string {
	var newest corev1.Event
	for _, e := range told {
		if newest.LastTimestamp.Before(&e.LastTimestamp) {
			newest = e
		}
	}
	if since.IsZero() || newest.LastTimestamp.Sub(since) < lastingFailure {
		return ""
	}
	return newest.Message
}

// lastWritten is when the operator last wrote any of the objects; zero when that is not known.
func lastWritten(objects ...*unstructured.Unstructured) (last time.Time) {
	for _, obj := range objects {
		if obj == nil {
			continue
		}
		for _, entry := range obj.GetManagedFields() {
			if entry.Time != nil && entry.Time.After(last) {
				last = entry.Time.Time
			}
		}
	}
	return last
}
