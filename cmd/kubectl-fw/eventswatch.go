package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follow shows the Events that are there, then each as it comes or comes again, until ctx ends. A lost connection is taken up again; the first
// one must succeed.
func (o *eventsOptions) follow(ctx context.Context, c client.WithWatch, show eventsPrinter, errOut io.Writer) error {
	shown, connected := map[client.ObjectKey]string{}, false
	var stopped error
	fresh := func(list *corev1.EventList) error {
		connected = true
		list.Items = slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
			return shown[client.ObjectKeyFromObject(&e)] == e.ResourceVersion
		})
		for i := range list.Items {
			shown[client.ObjectKeyFromObject(&list.Items[i])] = list.Items[i].ResourceVersion
		}
		stopped = show(list)
		return stopped
	}
	for ctx.Err() == nil {
		err := o.followOnce(ctx, c, fresh)
		if stopped != nil {
			return stopped
		}
		if err := beforeNextWatch(ctx, err, connected, errOut); err != nil {
			return err
		}
	}
	return nil
}

// followOnce lists, then watches from there until the server ends the watch.
func (o *eventsOptions) followOnce(ctx context.Context, c client.WithWatch, show eventsPrinter) error {
	list, err := o.list(ctx, c)
	if err != nil {
		return err
	}
	if err := show(list); err != nil {
		return err
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	w, err := c.Watch(ctx, &corev1.EventList{}, append(o.ask(), from)...)
	if err != nil {
		return fmt.Errorf("watch Events of %s: %w", o.whose(), err)
	}
	defer w.Stop()
	for change := range w.ResultChan() {
		switch change.Type {
		case watch.Deleted: // an Event is deleted when it is old
			continue
		case watch.Error:
			return fmt.Errorf("watch Events of %s: %w", o.whose(), apierrors.FromObject(change.Object))
		}
		if e, is := change.Object.(*corev1.Event); is && o.asked(e) {
			if err := show(&corev1.EventList{Items: []corev1.Event{*e}}); err != nil {
				return err
			}
		}
	}
	return nil
}
