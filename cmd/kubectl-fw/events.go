package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

const eventsLong = `Show the Events of a FleetWorkload, the newest last. Without NAME it shows those of all FleetWorkloads of the namespace, or of all
namespaces with -A. An API server keeps Events for an hour, unless it was told otherwise, also those of what was deleted.`

const eventsExample = `  # What has happened to it?
  kubectl-fw events web -n shop

  # What happens everywhere, as it happens?
  kubectl-fw events -A --watch`

type eventsOptions struct {
	// name is empty for all of the namespace.
	namespace, name   string
	everywhere, watch bool
	print             *genericclioptions.PrintFlags
}

func newEventsCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	opts := eventsOptions{print: eventsPrintFlags()}
	cmd := &cobra.Command{
		Use:               "events [NAME]",
		Short:             "Show what has happened to FleetWorkloads, the newest last",
		Long:              eventsLong,
		Example:           eventsExample,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeNames(flags, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.everywhere && len(args) > 0 {
				return fmt.Errorf("--all-namespaces shows all: leave out the name %s, or the flag", args[0])
			}
			c, key, err := connectFor(flags, strings.Join(args, ""))
			if err != nil {
				return err
			}
			opts.namespace, opts.name = key.Namespace, key.Name
			return opts.run(cmd.Context(), c, streams, time.Now)
		},
	}
	cmd.Flags().BoolVarP(&opts.everywhere, "all-namespaces", "A", false, "show those of all namespaces")
	cmd.Flags().BoolVarP(&opts.watch, "watch", "w", false, "go on until interrupted, and show each as it comes")
	opts.print.AddFlags(cmd)
	completeOutput(cmd, append(opts.print.AllowedFormats(), "wide")...)
	return cmd
}

func eventsPrintFlags() *genericclioptions.PrintFlags {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme) // it knows its own types
	return genericclioptions.NewPrintFlags("").WithTypeSetter(scheme)
}

func (o *eventsOptions) run(ctx context.Context, c client.WithWatch, streams genericiooptions.IOStreams, now func() time.Time) error {
	show, err := o.printer(streams.Out, now)
	if err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx, c, show, streams.ErrOut)
	}
	list, err := o.list(ctx, c)
	if err != nil {
		return err
	}
	if len(list.Items) == 0 && o.name != "" { // it may be mistyped
		if _, err := read(ctx, c, client.ObjectKey{Namespace: o.namespace, Name: o.name}); err != nil {
			return err
		}
	}
	if len(list.Items) == 0 {
		fmt.Fprintf(streams.ErrOut, "no Events of %s: they are kept for an hour, unless the API server was told otherwise\n", o.whose())
	}
	return show(list)
}

func (o *eventsOptions) whose() string {
	switch {
	case o.name != "":
		return o.namespace + "/" + o.name
	case o.everywhere:
		return "FleetWorkloads in any namespace"
	default:
		return "FleetWorkloads in namespace " + o.namespace
	}
}

// ask is what the API server is asked for. It cannot be asked for a group.
func (o *eventsOptions) ask() []client.ListOption {
	fields := client.MatchingFields{"involvedObject.kind": "FleetWorkload"}
	if o.name != "" {
		fields["involvedObject.name"] = o.name
	}
	if o.everywhere {
		return []client.ListOption{fields}
	}
	return []client.ListOption{fields, client.InNamespace(o.namespace)}
}

// asked tells whether an Event is one of those that are asked for.
func (o *eventsOptions) asked(e *corev1.Event) bool {
	of := e.InvolvedObject
	gv, err := schema.ParseGroupVersion(of.APIVersion)
	return err == nil && gv.Group == v1alpha1.GroupVersion.Group && of.Kind == "FleetWorkload" && (o.name == "" || of.Name == o.name)
}

// list reads those that are asked for, the newest last.
func (o *eventsOptions) list(ctx context.Context, c client.Reader) (*corev1.EventList, error) {
	all := &corev1.EventList{}
	for {
		page := &corev1.EventList{}
		if err := c.List(ctx, page, append(o.ask(), client.Limit(getPage), client.Continue(all.Continue))...); err != nil {
			return nil, fmt.Errorf("list Events of %s: %w", o.whose(), err)
		}
		all.Items, all.Continue, all.ResourceVersion = append(all.Items, page.Items...), page.Continue, page.ResourceVersion
		if all.Continue == "" {
			break
		}
	}
	all.Items = slices.DeleteFunc(all.Items, func(e corev1.Event) bool { return !o.asked(&e) })
	slices.SortStableFunc(all.Items, func(a, b corev1.Event) int {
		return cmp.Or(lastSeen(&a).Compare(lastSeen(&b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// lastSeen is when an Event happened last. Which field tells depends on who has written it.
func lastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	default:
		return firstSeen(e)
	}
}

func firstSeen(e *corev1.Event) time.Time {
	switch {
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	default:
		return e.CreationTimestamp.Time
	}
}

// timesSeen is how often an Event has happened.
func timesSeen(e *corev1.Event) int32 {
	if e.Series != nil {
		return e.Series.Count
	}
	return max(e.Count, 1)
}

// eventsPrinter shows some Events more.
type eventsPrinter func(*corev1.EventList) error

func (o *eventsOptions) printer(out io.Writer, now func() time.Time) (eventsPrinter, error) {
	format := *o.print.OutputFormat
	if format == "" || format == "wide" {
		if !o.wide() {
			out = sheetOn(out)
		}
		w, rows := newRows(out, o.nameColumns()...), [][]string{o.head()}
		return func(list *corev1.EventList) error {
			if len(list.Items) == 0 {
				return nil
			}
			for i := range list.Items {
				rows = append(rows, o.row(&list.Items[i], now()))
			}
			err := w.add(rows)
			rows = nil
			return err
		}, nil
	}
	objects, err := o.print.ToPrinter()
	if err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	return func(list *corev1.EventList) error {
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Event"))
		}
		if !o.watch && format != "name" {
			return objects.PrintObj(list, out)
		}
		for i := range list.Items {
			if err := objects.PrintObj(&list.Items[i], out); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func (o *eventsOptions) wide() bool { return *o.print.OutputFormat == "wide" }

// nameColumns are those of head that may be long.
func (o *eventsOptions) nameColumns() (columns []int) {
	for i, title := range o.head() {
		if title == "NAMESPACE" || title == "FLEETWORKLOAD" {
			columns = append(columns, i)
		}
	}
	return columns
}

func (o *eventsOptions) head() []string {
	head := []string{"LAST SEEN", "TYPE", "REASON"}
	if o.everywhere {
		head = append([]string{"NAMESPACE"}, head...)
	}
	if o.name == "" {
		head = append(head, "FLEETWORKLOAD")
	}
	if o.wide() {
		head = append(head, "SOURCE", "EVENT")
	}
	return append(head, "MESSAGE")
}

func (o *eventsOptions) row(e *corev1.Event, now time.Time) []string {
	seen := age(&metav1.Time{Time: lastSeen(e)}, now)
	if times := timesSeen(e); times > 1 {
		seen = fmt.Sprintf("%s (x%d over %s)", seen, times, age(&metav1.Time{Time: firstSeen(e)}, now))
	}
	row := []string{seen, e.Type, e.Reason}
	if o.everywhere {
		row = append([]string{e.Namespace}, row...)
	}
	if o.name == "" {
		row = append(row, e.InvolvedObject.Name)
	}
	if o.wide() {
		row = append(row, orNone(cmp.Or(e.ReportingController, e.Source.Component)), e.Name)
	}
	return append(row, orNone(oneLine(e.Message)))
}
