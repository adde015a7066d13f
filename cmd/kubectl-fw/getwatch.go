package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// checkWatch refuses what cannot be followed.
func (o *getOptions) checkWatch() error {
	switch {
	case !o.watch || len(o.names) == 0:
		return nil
	case len(o.names) > 1:
		return fmt.Errorf("--watch follows one FleetWorkload, or all: leave out the names after %s, or all names", o.names[0])
	case o.selector != "":
		return errors.New("--watch of one FleetWorkload takes no --selector: leave out one of them")
	default:
		return nil
	}
}

// follow shows what get shows, again at every change, until ctx ends or the one NAME is deleted.
func (o *getOptions) follow(ctx context.Context, c client.WithWatch, streams genericiooptions.IOStreams, now func() time.Time) error {
	objects, err := o.objectPrinter()
	if err != nil {
		return err
	}
	if len(o.names) == 1 {
		key := client.ObjectKey{Namespace: o.namespace, Name: o.names[0]}
		return follow(ctx, c, key, o.treePrinter(objects, streams.Out, now), streams.ErrOut)
	}
	return o.followAll(ctx, c, o.fleetPrinter(objects, streams.Out, now), streams.ErrOut)
}

// fleetPrinter shows many: in place on a terminal, and what changes otherwise.
func (o *getOptions) fleetPrinter(objects printers.ResourcePrinter, out io.Writer, now func() time.Time) fleetPrinter {
	switch {
	case objects != nil:
		return func(_ followed, changed, _ []*v1alpha1.FleetWorkload) error {
			for _, fw := range changed {
				if err := objects.PrintObj(whole(fw), out); err != nil {
					return err
				}
			}
			return nil
		}
	case isTerminal(out):
		picture := &inPlace{out: out}
		return func(all followed, _, _ []*v1alpha1.FleetWorkload) error {
			return picture.draw(false, func(on io.Writer) error { return o.table(on, all.list(), now()) })
		}
	default:
		return o.rowPrinter(out, now)
	}
}

// treePrinter shows one FleetWorkload: in place on a terminal, and under the time otherwise.
func (o *getOptions) treePrinter(objects printers.ResourcePrinter, out io.Writer, now func() time.Time) printer {
	if objects != nil {
		return func(fw *v1alpha1.FleetWorkload) error { return objects.PrintObj(whole(fw), out) }
	}
	return pictures(out, now, func(on io.Writer, fw *v1alpha1.FleetWorkload, at time.Time) error {
		return writeTree(on, fw, at, o.wide())
	})
}

// rowPrinter appends a row for each FleetWorkload whose row has changed, as kubectl does. Ages change by themselves.
func (o *getOptions) rowPrinter(out io.Writer, now func() time.Time) fleetPrinter {
	if !o.wide() {
		out = sheetOn(out)
	}
	_, edged := out.(*sheet)
	table, rows, shown := newRows(out, o.nameColumn()), [][]string{o.head()}, map[client.ObjectKey]string{}
	return func(_ followed, changed, gone []*v1alpha1.FleetWorkload) error {
		for _, fw := range changed {
			key, ageless := client.ObjectKeyFromObject(fw), strings.Join(o.row(fw, fw.CreationTimestamp.Time, edged), "\t")
			if shown[key] != ageless {
				rows, shown[key] = append(rows, o.row(fw, now(), edged)), ageless
			}
		}
		for _, fw := range gone {
			delete(shown, client.ObjectKeyFromObject(fw))
			rows = append(rows, o.cells(fw, now(), "Gone", o.whyGone()))
		}
		if len(shown)+len(gone) == 0 {
			return nil // the head waits for a row
		}
		err := table.add(rows)
		rows = nil
		return err
	}
}

// whyGone says why a FleetWorkload is no longer among those that are followed.
func (o *getOptions) whyGone() string {
	if o.selector == "" {
		return "it was deleted"
	}
	return "it was deleted, or its labels do not match any more"
}

// followed are the FleetWorkloads that are followed, as they are known.
type followed map[client.ObjectKey]*v1alpha1.FleetWorkload

// list has those first that need a person first.
func (all followed) list() *v1alpha1.FleetWorkloadList {
	list := &v1alpha1.FleetWorkloadList{}
	for _, fw := range all {
		list.Items = append(list.Items, *fw)
	}
	slices.SortFunc(list.Items, byUrgency)
	return list
}

// fleetPrinter shows all, of which some have changed and some are gone since.
type fleetPrinter func(all followed, changed, gone []*v1alpha1.FleetWorkload) error

// followAll shows those that are there, then all again at every change, until ctx ends. A lost connection is taken up again; the first one must succeed.
func (o *getOptions) followAll(ctx context.Context, c client.WithWatch, show fleetPrinter, errOut io.Writer) error {
	all, connected := followed{}, false
	var stopped error
	showing := func(changed, gone []*v1alpha1.FleetWorkload) error {
		connected = true
		changed = slices.DeleteFunc(changed, func(fw *v1alpha1.FleetWorkload) bool {
			known := all[client.ObjectKeyFromObject(fw)]
			return known != nil && known.ResourceVersion == fw.ResourceVersion
		})
		for _, fw := range changed {
			all[client.ObjectKeyFromObject(fw)] = fw
		}
		for _, fw := range gone {
			delete(all, client.ObjectKeyFromObject(fw))
		}
		stopped = show(all, changed, gone)
		return stopped
	}
	for ctx.Err() == nil {
		err := o.followAllOnce(ctx, c, all, showing)
		if stopped != nil {
			return stopped
		}
		if err := beforeNextWatch(ctx, err, connected, errOut); err != nil {
			return err
		}
	}
	return nil
}

// followAllOnce lists, then watches from there until the server ends the watch. known are those that were there before.
func (o *getOptions) followAllOnce(ctx context.Context, c client.WithWatch, known followed, show func(changed, gone []*v1alpha1.FleetWorkload) error) error {
	list, err := o.list(ctx, c)
	if err != nil {
		return err
	}
	there, gone := followed{}, []*v1alpha1.FleetWorkload(nil)
	changed := make([]*v1alpha1.FleetWorkload, 0, len(list.Items))
	for i := range list.Items {
		changed = append(changed, &list.Items[i])
		there[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	for key, fw := range known {
		if there[key] == nil {
			gone = append(gone, fw)
		}
	}
	if err := show(changed, gone); err != nil {
		return err
	}
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return err // list has refused it before
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	w, err := c.Watch(ctx, &v1alpha1.FleetWorkloadList{}, append(o.ask(selector), from)...)
	if err != nil {
		return fmt.Errorf("watch FleetWorkloads: %w", err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		fw, is := e.Object.(*v1alpha1.FleetWorkload)
		switch {
		case e.Type == watch.Error:
			return fmt.Errorf("watch FleetWorkloads: %w", apierrors.FromObject(e.Object))
		case !is:
			continue
		case e.Type == watch.Deleted:
			err = show(nil, []*v1alpha1.FleetWorkload{fw})
		default:
			err = show([]*v1alpha1.FleetWorkload{fw}, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
