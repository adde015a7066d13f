package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/bulk"
)

// fleet moves many FleetWorkloads. What is to be done is decided by internal/bulk; here it is carried out and shown.
type fleet struct {
	*bulk.Migration
	client  client.Client
	rules   bulk.Rules
	program string
	picture fleetPicture
	began   time.Time
	// versions are the newest ones that were seen: a watch is behind what was written.
	versions map[client.ObjectKey]string
}

// fleetNews is what a watch tells.
type fleetNews struct {
	// seen are the newest states; gone is what is not there any more.
	seen []*v1alpha1.FleetWorkload
	gone *client.ObjectKey
	// whole is true when there are no others than those that are seen.
	whole bool
	// err ends everything.
	err error
}

// run moves the fleet until it is over, or ctx ends, and reports.
func (f *fleet) run(ctx context.Context, w *fleetWatch, file *reportFile, out io.Writer) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	news := make(chan fleetNews)
	go w.run(watching, news)
	f.picture.begin(f, time.Now())
	outcome, err := f.follow(ctx, news)
	now := time.Now()
	f.picture.end(f, now)
	writeFleetEnd(out, f, outcome, now)
	if reportErr := file.write(f.Report(outcome, f.began, now), out); reportErr != nil {
		return errors.Join(err, reportErr)
	}
	if err != nil {
		return err
	}
	return f.verdict(outcome)
}

// follow has one after the other begin, until nothing is awaited any more.
func (f *fleet) follow(ctx context.Context, news <-chan fleetNews) (bulk.Outcome, error) {
	for {
		step := f.act(ctx)
		f.picture.draw(f, time.Now())
		if step.Over {
			return f.Outcome(), nil
		}
		select {
		case <-ctx.Done():
			return bulk.OutcomeInterrupted, nil
		case <-after(step.PollAfter, f.picture.every()): // time passes for those that are stalled, and on a screen
		case n := <-news:
			if n.err != nil {
				return bulk.OutcomeInterrupted, n.err
			}
			f.learn(n, time.Now())
		}
	}
}

// after waits for the shorter of the times that are not 0; for ever when none is.
func after(times ...time.Duration) <-chan time.Time {
	times = slices.DeleteFunc(times, func(d time.Duration) bool { return d == 0 })
	if len(times) == 0 {
		return nil
	}
	return time.After(slices.Min(times))
}

// act sets spec.backend of all whose turn it is.
func (f *fleet) act(ctx context.Context) bulk.Step {
	for {
		step := f.Next(time.Now())
		if step.Start == nil || ctx.Err() != nil {
			return step
		}
		key := client.ObjectKeyFromObject(step.Start)
		fw, err := f.set(ctx, step.Start)
		switch now := time.Now(); {
		case err == nil:
			f.see(fw, now)
		case apierrors.IsNotFound(err):
			f.Gone(key, now)
		case ctx.Err() == nil:
			f.Refuse(key, oneLine(fmt.Sprintf("spec.backend could not be set: %v", err)), now)
		}
	}
}

// learn takes in what a watch tells.
func (f *fleet) learn(n fleetNews, now time.Time) {
	if n.gone != nil {
		f.Gone(*n.gone, now)
	}
	there := make(map[client.ObjectKey]bool, len(n.seen))
	for _, fw := range n.seen {
		there[client.ObjectKeyFromObject(fw)] = true
		f.see(fw, now)
	}
	if !n.whole {
		return
	}
	for _, e := range f.All() {
		if key := client.ObjectKeyFromObject(e.FleetWorkload); !there[key] {
			f.Gone(key, now)
		}
	}
}

// see leaves out what is older than what is known.
func (f *fleet) see(fw *v1alpha1.FleetWorkload, now time.Time) {
	key := client.ObjectKeyFromObject(fw)
	if last := f.versions[key]; last != "" {
		if order, err := resourceversion.CompareResourceVersion(fw.ResourceVersion, last); err == nil && order < 0 {
			return
		}
	}
	f.versions[key] = fw.ResourceVersion
	f.See(fw, now)
}

// setBackoff is how often setting spec.backend is tried when the API server is busy or away, or somebody else has written.
var setBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 3, Steps: 5}

// setTimeout is how long one attempt may take.
const setTimeout = 10 * time.Second

// set sets spec.backend, if it still is what it was. Who interrupts it learns whether it has been set: what is on its way is not cut off.
func (f *fleet) set(ctx context.Context, known *v1alpha1.FleetWorkload) (*v1alpha1.FleetWorkload, error) {
	fw, key := known.DeepCopy(), client.ObjectKeyFromObject(known)
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, setBackoff, func(ctx context.Context) (done bool, err error) {
		whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), setTimeout)
		defer cancel()
		if last != nil {
			fw = &v1alpha1.FleetWorkload{}
			if last = f.client.Get(whole, key, fw); last != nil {
				return false, permanent(last)
			}
		}
		if fw.Spec.Backend != known.Spec.Backend {
			return true, nil // by somebody else, or by an attempt whose answer was lost
		}
		before := fw.DeepCopy()
		fw.Spec.Backend = f.rules.To
		last = f.client.Patch(whole, fw, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		return last == nil, permanent(last)
	})
	if wait.Interrupted(err) && last != nil {
		err = last
	}
	return fw, err
}

// permanent is an error that another attempt does not mend; nil otherwise.
func permanent(err error) error {
	var status apierrors.APIStatus
	answered := errors.As(err, &status)
	passes := apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
	if answered && !passes {
		return err
	}
	return nil
}

// fleetWatch lists, watches, and begins again when a watch is lost.
type fleetWatch struct {
	client  client.WithWatch
	options []client.ListOption
	// from is the resource version up to which all is known; empty: nothing is.
	from   string
	errOut io.Writer
}

func (w *fleetWatch) run(ctx context.Context, news chan<- fleetNews) {
	tell := func(n fleetNews) {
		select {
		case news <- n:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		err := w.once(ctx, tell)
		w.from = ""
		switch {
		case err == nil || ctx.Err() != nil:
		case !transient(err):
			tell(fleetNews{err: explain(err)})
			return
		default:
			fmt.Fprintf(w.errOut, "lost the connection, trying again: %v\n", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectPause):
		}
	}
}

// once watches until the server ends the watch.
func (w *fleetWatch) once(ctx context.Context, tell func(fleetNews)) error {
	if w.from == "" {
		list := &v1alpha1.FleetWorkloadList{}
		if err := w.client.List(ctx, list, w.options...); err != nil {
			return fmt.Errorf("list FleetWorkloads: %w", err)
		}
		n := fleetNews{whole: true}
		for i := range list.Items {
			n.seen = append(n.seen, &list.Items[i])
		}
		tell(n)
		w.from = list.ResourceVersion
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: w.from}}
	events, err := w.client.Watch(ctx, &v1alpha1.FleetWorkloadList{}, append([]client.ListOption{from}, w.options...)...)
	if err != nil {
		return fmt.Errorf("watch FleetWorkloads: %w", err)
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		fw, is := e.Object.(*v1alpha1.FleetWorkload)
		switch {
		case e.Type == watch.Error && apierrors.IsResourceExpired(apierrors.FromObject(e.Object)):
			return nil // it is listed again
		case e.Type == watch.Error:
			return fmt.Errorf("watch FleetWorkloads: %w", apierrors.FromObject(e.Object))
		case e.Type == watch.Deleted && is:
			key := client.ObjectKeyFromObject(fw)
			tell(fleetNews{gone: &key})
		case is:
			tell(fleetNews{seen: []*v1alpha1.FleetWorkload{fw}})
		}
	}
	return nil
}
