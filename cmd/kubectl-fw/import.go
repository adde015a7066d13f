package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/importer"
)

const importLong = `Print the FleetWorkload that says what runs already, and write nothing.

Sources:
- a Karmada control plane: the resource template, the policy that has claimed it, the override policies that select it
- an Open Cluster Management hub: the ManifestWorks that carry the workload, or their ManifestWorkReplicaSet and its Placement
- plain objects of member clusters, in a file for each (--member)

They are read live (--config), or from files (-f, --member) with the clusters in an inventory (--inventory).

On standard error is what a FleetWorkload cannot say, with what to do instead; what would change on each cluster if it were applied, by
the operator's own decision; and the steps by which the operator gets the workload, with the way back.

The exit code is 1, and no FleetWorkload is printed, when something cannot be said or would change, unless --accept-differences is given.`

const importExample = `  # A Deployment that Karmada carries
  kubectl-fw import deployment/web -n shop --from karmada --config operator.yaml > web.yaml

  # Offline, from what kubectl get -o yaml has printed
  kubectl-fw import -f objects.yaml --from karmada --inventory clusters.yaml

  # Plain objects of two clusters
  kubectl-fw import --member member1=m1.yaml --member member2=m2.yaml --from karmada --inventory clusters.yaml`

type importOptions struct {
	files, members                                     []string
	from, inventory, config, output, operatorNamespace string
	accept                                             bool
}

func newImportCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var opts importOptions
	cmd := &cobra.Command{
		Use:               "import [KIND/NAME] --from BACKEND (--config FILE | --inventory FILE)",
		Short:             "Print the FleetWorkload that says what runs already",
		Long:              importLong,
		Example:           importExample,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return opts.run(cmd.Context(), flags, streams, strings.Join(args, ""))
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&opts.files, "filename", "f", nil, "file with the objects of the control plane or hub, instead of the live ones; - reads standard input; may be repeated")
	f.StringArrayVar(&opts.members, "member", nil, "CLUSTER=FILE with the plain objects of a member cluster; may be repeated, once a cluster")
	f.StringVar(&opts.from, "from", "", "the backend that carries it now, or that is to carry what --member gives")
	f.StringVar(&opts.inventory, "inventory", "", "file with backends and their clusters, to work offline")
	f.StringVar(&opts.config, "config", "", "the operator's configuration file, to read live backends")
	f.StringVar(&opts.operatorNamespace, "operator-namespace", "fleetworkload-system",
		"where Secrets that the configuration names are, on the management cluster")
	f.StringVarP(&opts.output, "output", "o", "yaml", "yaml prints the FleetWorkload; report and json print what is to be known about it instead")
	f.BoolVar(&opts.accept, "accept-differences", false, "print the FleetWorkload, with exit code 0, although something cannot be said or would change")
	for _, err := range []error{cmd.MarkFlagRequired("from"), cmd.MarkFlagFilename("filename", "yaml", "yml", "json")} {
		if err != nil {
			panic(err) // the flag is registered above
		}
	}
	completeFlag(cmd, "from", completeBackends(flags))
	completeFlag(cmd, "operator-namespace", completeNamespaces(flags))
	completeOutput(cmd, "yaml", "report", "json")
	cmd.MarkFlagsOneRequired("inventory", "config")
	cmd.MarkFlagsMutuallyExclusive("inventory", "config")
	cmd.MarkFlagsMutuallyExclusive("filename", "member")
	return cmd
}

// check refuses options that do not fit together.
func (o importOptions) check() error {
	switch {
	case !slices.Contains([]string{"yaml", "report", "json"}, o.output):
		return fmt.Errorf("--output %q: choose yaml, report or json", o.output)
	case o.inventory != "" && len(o.files)+len(o.members) == 0:
		return errors.New("with --inventory nothing is read from a cluster: give the objects with -f or --member, or read them live with --config")
	default:
		return nil
	}
}

func (o importOptions) run(ctx context.Context, flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams, what string) error {
	if err := o.check(); err != nil {
		return err
	}
	request, err := o.request(flags, what)
	if err != nil {
		return err
	}
	var from source
	var live *live
	if o.inventory != "" {
		if from, err = loadInventory(o.inventory); err != nil {
			return err
		}
	} else {
		if live, err = openLive(ctx, flags, o.config, o.operatorNamespace); err != nil {
			return err
		}
		defer live.close()
		from = live
	}
	if request.Kinds, err = from.kinds(); err != nil {
		return err
	}
	b, err := from.backend(o.from)
	if errors.Is(err, backends.ErrNotConfigured) {
		return noBackend(from, "--from", o.from)
	}
	if err != nil {
		return fmt.Errorf("backend %q: %w", o.from, err)
	}
	request.Backend, request.Fleet = b.name, b.fleet
	result, err := o.result(request, b, live, streams)
	if err != nil {
		return err
	}
	return o.print(streams, newImportReport(result, b, request.Kinds))
}

// request says what is asked for. Namespaces count for objects that are read live, and else when a flag gives one.
func (o importOptions) request(flags *genericclioptions.ConfigFlags, what string) (importer.Request, error) {
	namespace, explicit, err := namespaceOf(flags)
	if err != nil {
		return importer.Request{}, err
	}
	r := importer.Request{Home: namespace}
	isLive := len(o.files)+len(o.members) == 0
	if explicit || isLive {
		r.Namespace = namespace
	}
	kind, name, split := strings.Cut(what, "/")
	if what != "" && (!split || kind == "" || name == "") || what == "" && isLive {
		return r, fmt.Errorf("%q is no KIND/NAME, such as deployment/web or clonesets.apps.kruise.io/web", what)
	}
	r.Kind, r.Name = kind, name
	return r, nil
}

// result imports from where the options say.
func (o importOptions) result(request importer.Request, b backend, live *live, streams genericiooptions.IOStreams) (importer.Result, error) {
	if len(o.members) > 0 {
		byCluster, err := o.readMembers(streams)
		if err != nil {
			return importer.Result{}, err
		}
		return importer.Plain(request, byCluster)
	}
	var objects []*unstructured.Unstructured
	var err error
	if len(o.files) > 0 {
		objects, err = o.readFiles(streams)
	} else {
		objects, err = live.importable(request, b)
	}
	if err != nil {
		return importer.Result{}, err
	}
	if b.kind == config.TypeKarmada {
		return importer.Karmada(request, objects)
	}
	return importer.OCM(request, objects)
}

func (o importOptions) readFiles(streams genericiooptions.IOStreams) (objects []*unstructured.Unstructured, err error) {
	var errs []error
	for _, file := range o.files {
		found, err := readObjects(file, streams.In)
		for _, one := range found {
			objects = append(objects, one.object)
		}
		errs = append(errs, err)
	}
	return objects, errors.Join(errs...)
}

// readMembers reads the file of each cluster. Files of one cluster are taken together.
func (o importOptions) readMembers(streams genericiooptions.IOStreams) (map[string][]*unstructured.Unstructured, error) {
	byCluster := map[string][]*unstructured.Unstructured{}
	var errs []error
	for _, given := range o.members {
		cluster, file, split := strings.Cut(given, "=")
		if !split || cluster == "" || file == "" {
			return nil, fmt.Errorf("--member %q: write CLUSTER=FILE", given)
		}
		found, err := readObjects(file, streams.In)
		for _, one := range found {
			byCluster[cluster] = append(byCluster[cluster], one.object)
		}
		errs = append(errs, err)
	}
	return byCluster, errors.Join(errs...)
}

// print writes the FleetWorkload on standard output and the report on standard error, or the report alone on standard output. Without leave
// there is no FleetWorkload of which anything has to be known first: it may be on its way into kubectl apply.
func (o importOptions) print(streams genericiooptions.IOStreams, report importReport) error {
	problems := report.problems()
	refused := problems != "" && !o.accept
	var err error
	switch o.output {
	case "json":
		err = report.writeJSON(streams.Out)
	case "report":
		err = report.writeText(streams.Out)
	default:
		err = report.writeText(streams.ErrOut)
		if err == nil && !refused {
			err = report.writeFleetWorkload(streams.Out)
		}
	}
	if err == nil && refused {
		return fmt.Errorf("%s; correct it at its source, or take the FleetWorkload as it is with --accept-differences", problems)
	}
	return err
}
