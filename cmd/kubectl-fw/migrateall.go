package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/bulk"
)

// manyOptions say which FleetWorkloads are moved together, and how.
type manyOptions struct {
	all, allNamespaces   bool
	selector, from       string
	order, report        string
	atOnce, maxFailures  int
	patience             time.Duration
	retry                bool
	names                []string
	namespace            string
	requirements         labels.Selector
	leaveAfterTheLastOne bool
}

// flagsOfMany are those that make one NAME a fleet of one.
var flagsOfMany = []string{"all", "all-namespaces", "selector", "from", "order", "at-once", "max-failures", "patience", "retry", "report"}

func (o *manyOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "move all FleetWorkloads of the namespace")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "of all namespaces, with --all or -l")
	f.StringVarP(&o.selector, "selector", "l", "", "move those with these labels, such as team=shop,tier!=db")
	f.StringVar(&o.from, "from", "", "of these only what that backend has, or is leaving it")
	f.StringVar(&o.order, "order", string(bulk.OrderName), "which begin first: name, or size for those on the fewest clusters with the fewest replicas")
	f.IntVar(&o.atOnce, "at-once", 5, "how many may be under way at once; those that wait for a person are not counted")
	f.IntVar(&o.maxFailures, "max-failures", 0, "how many may have failed and others still begin")
	f.DurationVar(&o.patience, "patience", time.Minute, "how long one may be stalled until it counts as failed")
	f.BoolVar(&o.retry, "retry", false, "also move those whose last migration to the backend was turned round")
	f.StringVar(&o.report, "report", "", "file for the report, in which each cluster's state before and after is: *.yaml or *.json")
}

// many tells whether a fleet is meant, and not one FleetWorkload.
func (o *manyOptions) many(cmd *cobra.Command, args []string) bool {
	return len(args) != 1 || slices.ContainsFunc(flagsOfMany, func(name string) bool { return cmd.Flags().Changed(name) })
}

// check completes the options, or says what is wrong with them.
func (o *manyOptions) check(flags *genericclioptions.ConfigFlags, args []string) (err error) {
	o.names = args
	switch {
	case len(args) == 0 && !o.all && o.selector == "":
		return errors.New("say which FleetWorkloads are to be moved: NAMEs, --all, or those with labels (-l)")
	case len(args) > 0 && (o.all || o.selector != "" || o.allNamespaces):
		return errors.New("NAMEs are of one namespace, and chosen whatever their labels: leave out --all, -l and -A, or the NAMEs")
	case o.order != string(bulk.OrderName) && o.order != string(bulk.OrderSize):
		return fmt.Errorf("--order %q: choose name or size", o.order)
	case o.atOnce < 1:
		return fmt.Errorf("--at-once %d: nothing would ever begin; choose 1 or more", o.atOnce)
	case o.maxFailures < 0:
		return fmt.Errorf("--max-failures %d: choose 0 or more", o.maxFailures)
	}
	if o.requirements, err = labels.Parse(o.selector); err != nil {
		return fmt.Errorf("--selector %q: %w", o.selector, err)
	}
	if !o.allNamespaces {
		o.namespace, _, err = namespaceOf(flags)
	}
	return err
}

// listOptions choose on the API server as much as can be chosen there.
func (o *manyOptions) listOptions() []client.ListOption {
	opts := []client.ListOption{client.MatchingLabelsSelector{Selector: o.requirements}}
	if o.namespace != "" {
		opts = append(opts, client.InNamespace(o.namespace))
	}
	return opts
}

// rules are those by which it is decided who begins.
func (o *manyOptions) rules(to string) bulk.Rules {
	return bulk.Rules{
		To: to, AtOnce: o.atOnce, MaxFailures: o.maxFailures, Patience: o.patience,
		Retry: o.retry || len(o.names) > 0, Leave: o.leaveAfterTheLastOne,
	}
}

// choose picks the FleetWorkloads out of a list, in the order in which they begin. Names that are not there are an error.
func (o *manyOptions) choose(list *v1alpha1.FleetWorkloadList, to string) ([]*v1alpha1.FleetWorkload, error) {
	var chosen []*v1alpha1.FleetWorkload
	missing := slices.Clone(o.names)
	for i := range list.Items {
		fw := &list.Items[i]
		if len(o.names) > 0 && !slices.Contains(o.names, fw.Name) {
			continue
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == fw.Name })
		if o.from == "" || bulk.IsOf(fw, o.from, to) {
			chosen = append(chosen, fw)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("not found in namespace %q: FleetWorkload %s; choose the namespace with -n", o.namespace, strings.Join(missing, ", "))
	}
	bulk.Sort(chosen, bulk.Order(o.order))
	return chosen, nil
}

// runMany moves a fleet.
func (o migrateOptions) runMany(cmd *cobra.Command, flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams, args []string) error {
	many, ctx := &o.many, cmd.Context()
	if err := many.check(flags, args); err != nil {
		return err
	}
	many.leaveAfterTheLastOne = cmd.Flags().Changed("wait") && !o.wait
	file, err := reportFileAt(many.report)
	if err != nil {
		return err
	}
	c, err := newClient(flags)
	if err != nil {
		return err
	}
	f, watch, err := many.gather(ctx, c, o.to)
	if err != nil {
		return err
	}
	f.program, watch.errOut = cmd.Root().DisplayName(), streams.ErrOut
	if f.Counts().Chosen == 0 {
		fmt.Fprintln(streams.ErrOut, "no FleetWorkload is chosen")
	}
	if o.dryRun {
		return o.rehearseMany(ctx, flags, f, streams)
	}
	f.picture = fleetPictureOn(streams.Out)
	return f.run(ctx, watch, file, streams.Out)
}

// gather reads the FleetWorkloads that are to be moved, and says how to learn of their changes.
func (o *manyOptions) gather(ctx context.Context, c client.WithWatch, to string) (*fleet, *fleetWatch, error) {
	list := &v1alpha1.FleetWorkloadList{}
	if err := c.List(ctx, list, o.listOptions()...); err != nil {
		return nil, nil, fmt.Errorf("list FleetWorkloads: %w", explain(err))
	}
	chosen, err := o.choose(list, to)
	if err != nil {
		return nil, nil, err
	}
	f := &fleet{client: c, rules: o.rules(to), began: time.Now(), versions: map[client.ObjectKey]string{}}
	f.Migration = bulk.New(f.rules, chosen, f.began)
	return f, &fleetWatch{client: c, options: o.listOptions(), from: list.ResourceVersion}, nil
}

// rehearseMany says what would begin, in which order, and with a configuration also what stands against each.
func (o migrateOptions) rehearseMany(ctx context.Context, flags *genericclioptions.ConfigFlags, f *fleet, streams genericiooptions.IOStreams) error {
	if o.config == "" {
		return f.rehearse(streams.Out, nil, o.output)
	}
	live, err := openLive(ctx, flags, o.config, o.operatorNamespace)
	if err != nil {
		return err
	}
	defer live.close()
	return f.rehearse(streams.Out, live, o.output)
}
