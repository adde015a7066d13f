package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// reconnectPause is how long to wait before a lost watch is begun again.
const reconnectPause = time.Second

// errDeleted ends a watch when there is nothing more to see.
var errDeleted = errors.New("deleted")

// follow prints the FleetWorkload whenever it changes, until ctx ends, it is deleted, or show returns an error. A lost
// connection is taken up again; the first one must succeed.
func follow(ctx context.Context, c client.WithWatch, key client.ObjectKey, show printer, errOut io.Writer) error {
	last, connected := "", false
	var stopped error
	once := func(fw *v1alpha1.FleetWorkload) error {
		connected = true
		if fw.ResourceVersion == last {
			return nil
		}
		last = fw.ResourceVersion
		stopped = show(fw)
		return stopped
	}
	for ctx.Err() == nil {
		err := followOnce(ctx, c, key, once)
		switch {
		case stopped != nil:
			return stopped
		case errors.Is(err, errDeleted) && !connected:
			return notFound(key)
		case errors.Is(err, errDeleted):
			fmt.Fprintf(errOut, "FleetWorkload %s was deleted\n", key)
			return nil
		}
		if err := beforeNextWatch(ctx, err, connected, errOut); err != nil {
			return err
		}
	}
	return nil
}

// beforeNextWatch waits after a watch that has ended with err: what may pass by itself is told, and only what is wrong from the beginning, or for
// good, is an error.
func beforeNextWatch(ctx context.Context, err error, connected bool, errOut io.Writer) error {
	if err != nil && ctx.Err() == nil {
		if !connected || !transient(err) {
			return err
		}
		fmt.Fprintf(errOut, "lost the connection, trying again: %v\n", err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(reconnectPause):
	}
	return nil
}

// transient tells whether a later attempt may succeed.
func transient(err error) bool {
	return !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err)
}

// followOnce lists, then watches from there until the server ends the watch.
func followOnce(ctx context.Context, c client.WithWatch, key client.ObjectKey, show printer) error {
	only := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}}
	list := &v1alpha1.FleetWorkloadList{}
	if err := c.List(ctx, list, only...); err != nil {
		return fmt.Errorf("read FleetWorkload %s: %w", key, explain(err))
	}
	if len(list.Items) == 0 {
		return errDeleted
	}
	if err := show(&list.Items[0]); err != nil {
		return err
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	w, err := c.Watch(ctx, &v1alpha1.FleetWorkloadList{}, append(only, from)...)
	if err != nil {
		return fmt.Errorf("watch FleetWorkload %s: %w", key, err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		switch e.Type {
		case watch.Deleted:
			return errDeleted
		case watch.Error:
			return fmt.Errorf("watch FleetWorkload %s: %w", key, apierrors.FromObject(e.Object))
		}
		if fw, ok := e.Object.(*v1alpha1.FleetWorkload); ok {
			if err := show(fw); err != nil {
				return err
			}
		}
	}
	return nil
}
