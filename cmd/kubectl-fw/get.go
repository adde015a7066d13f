package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

const getLong = `Show FleetWorkloads at a glance: those that need a person first, then those that are on their way, then those that are Ready. The last
line counts them. Without NAMEs it shows all of the namespace, or of all namespaces with -A. Of one NAME it shows what that is made of: the
backends that have it, the clusters of each, and the objects on them.`

const getExample = `  # What needs me?
  kubectl-fw get -A

  # What is it made of?
  kubectl-fw get web -n shop

  # How do they get on?
  kubectl-fw get -n shop --watch

  # Names, for scripts
  kubectl-fw get -n shop -l team=web -o name`

// getPage is how many FleetWorkloads are asked for at once.
const getPage = 500

type getOptions struct {
	namespace, selector string
	everywhere, watch   bool
	names               []string
	print               *genericclioptions.PrintFlags
}

func newGetCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	scheme := runtime.NewScheme()
	_ = v1alpha1.AddToScheme(scheme) // it knows its own types
	opts := getOptions{print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme)}
	cmd := &cobra.Command{
		Use:               "get [NAME...]",
		Short:             "Show FleetWorkloads at a glance, those that need a person first, or what one is made of",
		Long:              getLong,
		Example:           getExample,
		ValidArgsFunction: completeNames(flags, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, _, err := namespaceOf(flags)
			if err != nil {
				return err
			}
			if opts.everywhere && len(args) > 0 {
				return fmt.Errorf("--all-namespaces shows all: leave out the names %s, or the flag", strings.Join(args, ", "))
			}
			opts.names, opts.namespace = args, namespace
			if err := opts.checkWatch(); err != nil {
				return err
			}
			c, err := newClient(flags)
			if err != nil {
				return err
			}
			if opts.watch {
				return opts.follow(cmd.Context(), c, streams, time.Now)
			}
			return opts.get(cmd.Context(), c, streams.Out, time.Now())
		},
	}
	cmd.Flags().BoolVarP(&opts.everywhere, "all-namespaces", "A", false, "show those of all namespaces")
	cmd.Flags().StringVarP(&opts.selector, "selector", "l", "", "show those whose labels match, such as team=web")
	cmd.Flags().BoolVarP(&opts.watch, "watch", "w", false, "go on until interrupted: redraw on a terminal, append what changes otherwise")
	opts.print.AddFlags(cmd)
	completeOutput(cmd, append(opts.print.AllowedFormats(), "wide")...)
	return cmd
}

func (o *getOptions) get(ctx context.Context, c client.Reader, out io.Writer, now time.Time) error {
	objects, err := o.objectPrinter()
	if err != nil {
		return err
	}
	list, err := o.list(ctx, c)
	if err != nil {
		return err
	}
	if objects != nil {
		return o.objects(objects, list, out)
	}
	if !o.wide() {
		out = sheetOn(out)
	}
	return o.table(out, list, now)
}

func (o *getOptions) wide() bool { return *o.print.OutputFormat == formatWide }

// objectPrinter is that of -o; nil for a text.
func (o *getOptions) objectPrinter() (printers.ResourcePrinter, error) {
	if format := *o.print.OutputFormat; format == "" || format == formatWide {
		return nil, nil
	}
	printer, err := o.print.ToPrinter()
	if err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	return printer, nil
}

// list reads those that are asked for, the first to need a person first.
func (o *getOptions) list(ctx context.Context, c client.Reader) (*v1alpha1.FleetWorkloadList, error) {
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector %q: %w", o.selector, err)
	}
	all := &v1alpha1.FleetWorkloadList{}
	if len(o.names) > 0 {
		for _, name := range o.names {
			fw, err := read(ctx, c, client.ObjectKey{Namespace: o.namespace, Name: name})
			if err != nil {
				return nil, err
			}
			if selector.Matches(labels.Set(fw.Labels)) {
				all.Items = append(all.Items, *fw)
			}
		}
		return all, nil
	}
	for {
		page := &v1alpha1.FleetWorkloadList{}
		if err := c.List(ctx, page, append(o.ask(selector), client.Limit(getPage), client.Continue(all.Continue))...); err != nil {
			return nil, fmt.Errorf("list FleetWorkloads: %w", explain(err))
		}
		all.Items, all.Continue, all.ResourceVersion = append(all.Items, page.Items...), page.Continue, page.ResourceVersion
		if all.Continue == "" {
			break
		}
	}
	slices.SortStableFunc(all.Items, byUrgency)
	return all, nil
}

// ask is what the API server is asked for.
func (o *getOptions) ask(selector labels.Selector) []client.ListOption {
	options := []client.ListOption{client.MatchingLabelsSelector{Selector: selector}}
	if !o.everywhere {
		options = append(options, client.InNamespace(o.namespace))
	}
	return options
}

// byUrgency has those first that need a person first.
func byUrgency(a, b v1alpha1.FleetWorkload) int {
	return cmp.Or(cmp.Compare(urgency(&a), urgency(&b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// urgency is 0 for what needs a person, 1 for what is on its way, 2 for what is as it should be.
func urgency(fw *v1alpha1.FleetWorkload) int {
	switch {
	case meta.IsStatusConditionTrue(fw.Status.Conditions, v1alpha1.ConditionStalled):
		return 0
	case ready(fw):
		return 2
	default:
		return 1
	}
}

// ready tells whether the present spec is carried out everywhere.
func ready(fw *v1alpha1.FleetWorkload) bool {
	return fw.DeletionTimestamp.IsZero() && fw.Status.ObservedGeneration != nil && *fw.Status.ObservedGeneration == fw.Generation &&
		meta.IsStatusConditionTrue(fw.Status.Conditions, v1alpha1.ConditionReady)
}

// stateOf is a word and a message about a FleetWorkload.
func stateOf(fw *v1alpha1.FleetWorkload) (reason, message string) {
	c := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case c == nil:
		return "New", "the operator has not looked at it yet"
	case ready(fw):
		return c.Reason, ""
	case c.Status == metav1.ConditionTrue && !fw.DeletionTimestamp.IsZero():
		return v1alpha1.ReasonDeleting, "it is being deleted"
	case c.Status == metav1.ConditionTrue:
		return v1alpha1.ReasonProgressing, "the operator has not looked at its last edit yet"
	default:
		return c.Reason, oneLine(c.Message)
	}
}

func (o *getOptions) table(out io.Writer, list *v1alpha1.FleetWorkloadList, now time.Time) error {
	if len(o.names) == 1 && len(list.Items) == 1 {
		return writeTree(out, &list.Items[0], now, o.wide())
	}
	if len(list.Items) == 0 {
		where := "in namespace " + o.namespace
		if o.everywhere {
			where = "in any namespace"
		}
		fmt.Fprintf(out, "no FleetWorkloads %s\n", where)
		return nil
	}
	_, edged := out.(*sheet)
	rows, counts := [][]string{o.head()}, map[string]int{}
	for i := range list.Items {
		reason, _ := stateOf(&list.Items[i])
		counts[reason]++
		rows = append(rows, o.row(&list.Items[i], now, edged))
	}
	if err := writeRows(out, rows, o.nameColumn()); err != nil {
		return err
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[reason], reason))
	}
	fmt.Fprintf(out, "\n%s: %s\n", counted(len(list.Items), "FleetWorkload", "FleetWorkloads"), strings.Join(parts, ", "))
	return nil
}

func (o *getOptions) head() []string {
	head := []string{"NAME", "KIND", "BACKEND", "READY", "CLUSTERS", "STATUS", "AGE"}
	if o.everywhere {
		head = append([]string{"NAMESPACE"}, head...)
	}
	if o.wide() {
		head = append(head, "REVISION", "MIGRATION")
	}
	return append(head, "MESSAGE")
}

// nameColumn is that of the name.
func (o *getOptions) nameColumn() int { return slices.Index(o.head(), "NAME") }

// row is one of the table. edged is true when something else keeps it short.
func (o *getOptions) row(fw *v1alpha1.FleetWorkload, now time.Time, edged bool) []string {
	reason, message := stateOf(fw)
	if !o.wide() && !edged {
		message = begin(message)
	}
	return o.cells(fw, now, reason, message)
}

func (o *getOptions) cells(fw *v1alpha1.FleetWorkload, now time.Time, reason, message string) []string {
	row := []string{fw.Name, workloadKind(fw), backendOf(fw), orNone(fw.Status.Ready), orNone(fw.Status.ClustersReady), reason, age(&fw.CreationTimestamp, now)}
	if o.everywhere {
		row = append([]string{fw.Namespace}, row...)
	}
	if o.wide() {
		row = append(row, orNone(fw.Status.Revision), migrationOf(fw))
	}
	return append(row, orNone(message))
}

// begin keeps the rows of a table short where there is no edge that does. The whole message is in -o wide, and in status.
func begin(message string) string {
	const most = 60
	runes := []rune(message)
	if len(runes) <= most {
		return message
	}
	return string(runes[:most-1]) + "…"
}

func workloadKind(fw *v1alpha1.FleetWorkload) string {
	if fw.Status.Workload == nil {
		return none
	}
	return fw.Status.Workload.Kind
}

// backendOf is the one that has it, and the one that is to have it.
func backendOf(fw *v1alpha1.FleetWorkload) string {
	if has := fw.Status.Backend; has != "" && has != fw.Spec.Backend {
		return has + " > " + fw.Spec.Backend
	}
	return fw.Spec.Backend
}

func migrationOf(fw *v1alpha1.FleetWorkload) string {
	if fw.Status.Migration == nil {
		return none
	}
	return orNone(string(fw.Status.Migration.Phase))
}

// objects prints the whole objects: one alone as itself, several as a list, names one by one.
func (o *getOptions) objects(printer printers.ResourcePrinter, list *v1alpha1.FleetWorkloadList, out io.Writer) error {
	if len(o.names) == 1 && len(list.Items) == 1 || *o.print.OutputFormat == "name" {
		for i := range list.Items {
			if err := printer.PrintObj(whole(&list.Items[i]), out); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range list.Items {
		whole(&list.Items[i])
	}
	return printer.PrintObj(list, out)
}

// whole is a FleetWorkload as it is printed: with its kind, and its status in plain words.
func whole(fw *v1alpha1.FleetWorkload) *v1alpha1.FleetWorkload {
	fw.Status = unpacked(fw.Status)
	fw.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FleetWorkload"))
	return fw
}
