package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/drivers"
	"github.com/fleetworkload/fleetworkload/backends/karmada"
	"github.com/fleetworkload/fleetworkload/backends/ocm"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/plan"
	"github.com/fleetworkload/fleetworkload/internal/tenancy"
)

// placeholderUID stands for the UID of a FleetWorkload that no API server has seen. Names of the backends' objects and
// one label depend on it.
const placeholderUID = "00000000-0000-0000-0000-000000000000"

const renderLong = `Print the objects that the operator would write to the backend, and write nothing.

The clusters come from a file (--inventory), or from the live backends that the operator's configuration file (--config)
connects to. They are only read.

A FleetWorkload in a file has no UID, and the names of some objects depend on it. One that the management cluster knows
is rendered with its UID there; otherwise 00000000-0000-0000-0000-000000000000 stands in its place.

The file is not checked against the CRD's schema. kubectl apply --dry-run=server does that.`

const renderExample = `  # Without any cluster at hand
  kubectl-fw render -f web.yaml --inventory clusters.yaml

  # What would another backend be told?
  kubectl-fw render -f web.yaml --backend ocm --inventory clusters.yaml

  # Against the live backends
  kubectl-fw render -f web.yaml --config operator.yaml`

type renderOptions struct {
	file, backend, inventory, config, operatorNamespace string
}

func newRenderCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var opts renderOptions
	cmd := &cobra.Command{
		Use:               "render -f FILE (--inventory FILE | --config FILE)",
		Short:             "Print the objects that the operator would write to the backend",
		Long:              renderLong,
		Example:           renderExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return opts.run(cmd.Context(), flags, streams)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&opts.file, "filename", "f", "", "file with FleetWorkloads; - reads standard input")
	f.StringVar(&opts.backend, "backend", "", "render for this backend instead of spec.backend")
	f.StringVar(&opts.inventory, "inventory", "", "file with backends and their clusters, to render offline")
	f.StringVar(&opts.config, "config", "", "the operator's configuration file, to read the clusters of live backends")
	f.StringVar(&opts.operatorNamespace, "operator-namespace", "fleetworkload-system",
		"where Secrets that the configuration names are, on the management cluster")
	for _, err := range []error{cmd.MarkFlagRequired("filename"), cmd.MarkFlagFilename("filename", "yaml", "yml", "json")} {
		if err != nil {
			panic(err) // the flag is registered above
		}
	}
	completeFlag(cmd, "backend", completeBackends(flags))
	completeFlag(cmd, "operator-namespace", completeNamespaces(flags))
	cmd.MarkFlagsOneRequired("inventory", "config")
	cmd.MarkFlagsMutuallyExclusive("inventory", "config")
	return cmd
}

func (o renderOptions) run(ctx context.Context, flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) error {
	fws, err := o.read(flags, streams)
	if err != nil {
		return err
	}
	var from source
	if o.inventory != "" {
		if from, err = loadInventory(o.inventory); err != nil {
			return err
		}
	} else {
		live, err := openLive(ctx, flags, o.config, o.operatorNamespace)
		if err != nil {
			return err
		}
		defer live.close()
		if err := live.identify(ctx, fws); err != nil {
			return err
		}
		from = live
	}
	kinds, err := from.kinds()
	if err != nil {
		return err
	}
	r := renderer{out: streams.Out, source: from, kinds: kinds, written: map[string]bool{}}
	var errs []error
	for _, fw := range fws {
		fw.Spec.Backend = cmp.Or(o.backend, fw.Spec.Backend)
		if err := r.render(fw); err != nil {
			errs = append(errs, fmt.Errorf("FleetWorkload %s/%s: %w", fw.Namespace, fw.Name, err))
		}
	}
	return errors.Join(errs...)
}

// read returns the FleetWorkloads of the file with namespace and UID filled in.
func (o renderOptions) read(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) ([]*v1alpha1.FleetWorkload, error) {
	fws, skipped, err := readFile(o.file, streams.In)
	if err != nil {
		return nil, err
	}
	for _, what := range skipped {
		fmt.Fprintln(streams.ErrOut, "skipped: "+what)
	}
	namespace, explicit, err := namespaceOf(flags)
	if err != nil {
		return nil, err
	}
	for _, fw := range fws {
		if explicit && fw.Namespace != "" && fw.Namespace != namespace {
			return nil, fmt.Errorf("FleetWorkload %s/%s: the file's namespace is not %q; leave -n out, or correct one of them",
				fw.Namespace, fw.Name, namespace)
		}
		fw.Namespace = cmp.Or(fw.Namespace, namespace)
		fw.UID = cmp.Or(fw.UID, placeholderUID)
	}
	return fws, nil
}

// source knows backends and their clusters.
type source interface {
	// backend fails with backends.ErrNotConfigured when there is none of that name.
	backend(name string) (backend, error)
	names() []string
	// kinds are those that may be carried.
	kinds() (*interpreter.Registry, error)
}

// backend is what rendering needs to know of one.
type backend struct {
	name     string
	kind     config.Type
	ocm      *config.OCM
	fleet    backends.Fleet
	features backends.Features
	// guards are those of the operator's configuration.
	guards config.Guards
	// observe asks the live backend what it has of a workload. It is nil offline.
	observe func(backends.Query) (backends.Observation, error)
	// dryRun asks the live backend what stands against carrying a workload out. It is nil offline.
	dryRun func(backends.Desired) ([]string, error)
	// brought asks the live backend what a workload needs on clusters and would lose with it. It is nil offline.
	brought func(workload backends.Workload, clusters []string) ([]backends.Dependent, error)
	// served asks the live backend what clusters serve of an API group. It is nil offline.
	served func(group string) (map[string]backends.Served, error)
	// restarts asks a cluster, through the live backend, for pods of a namespace, as the operator does to count restarts. It is nil offline.
	restarts func(ctx context.Context, cluster, namespace string) error
	// installation names that of the operator; offline it is none.
	installation string
	// aliases are those of the operator's configuration.
	aliases plan.Aliases
	// tenancy is that of the operator's configuration; offline nothing bounds what may be rendered.
	tenancy tenancy.Tenancy
	// namespace asks the management cluster for one; offline it has no labels.
	namespace func(name string) *pass.Namespace
	// dependency reads what pods refer to from the management cluster, as who runs the command; offline it is nil.
	dependency func(namespace string, need plan.Need) pass.Object
	// leaveOut are the kinds of those that are not looked at.
	leaveOut []string
	// others are the FleetWorkloads of a namespace, as far as who runs the command may list them; offline it is nil.
	others func(namespace string) []v1alpha1.FleetWorkload
}

// renderer prints objects as a stream of YAML documents. What several FleetWorkloads share is printed once.
type renderer struct {
	out     io.Writer
	source  source
	kinds   *interpreter.Registry
	written map[string]bool
}

func (r *renderer) render(fw *v1alpha1.FleetWorkload) error {
	b, err := r.source.backend(fw.Spec.Backend)
	if errors.Is(err, backends.ErrNotConfigured) {
		return noBackend(r.source, "spec.backend", fw.Spec.Backend)
	}
	if err != nil {
		return fmt.Errorf("backend %q: %w", fw.Spec.Backend, err)
	}
	objects, err := b.objects(fw, r.kinds)
	if err != nil {
		return err
	}
	return r.write(b.name, objects)
}

// objects are what the driver would write first, as the operator would ask it to.
func (b backend) objects(fw *v1alpha1.FleetWorkload, kinds *interpreter.Registry) ([]*unstructured.Unstructured, error) {
	d, err := b.decide(fw, kinds)
	if err != nil {
		return nil, err
	}
	return b.rendered(*d.Orders[0].Apply)
}

func (b backend) rendered(desired backends.Desired) ([]*unstructured.Unstructured, error) {
	if b.kind == config.TypeKarmada {
		return karmada.Render(desired)
	}
	return ocm.Render(desired, drivers.OCMOptions(b.ocm))
}

// decide decides as the operator would for a FleetWorkload that this backend has, or that is new to it. What pods refer to is left out.
func (b backend) decide(fw *v1alpha1.FleetWorkload, kinds *interpreter.Registry) (*pass.Decision, error) {
	b.dependency = nil
	return b.decideAll(fw, kinds)
}

// decideAll is decide with what pods refer to, where that can be read.
func (b backend) decideAll(fw *v1alpha1.FleetWorkload, kinds *interpreter.Registry) (*pass.Decision, error) {
	fw = fw.DeepCopy()
	fw.Spec.Backend, fw.Status.Migration = b.name, nil
	if b.dependency == nil {
		fw.Spec.Dependencies = v1alpha1.DependencyPolicyIgnore
	}
	if record := fw.Status.Placement; fw.Status.Backend != b.name {
		fw.Status = v1alpha1.FleetWorkloadStatus{}
		if record != nil {
			fw.Status.Placement = &v1alpha1.PlacementRecord{Group: record.Group}
		}
	}
	return b.rehearse(fw, kinds, func(in *pass.In, reads pass.Reads) { b.read(in, reads) })
}

// rivals are the others in its namespace that this backend carries. Other backends are not read here.
func (b backend) rivals(fw *v1alpha1.FleetWorkload) *[]pass.Rival {
	found := []pass.Rival{}
	if b.others == nil {
		return &found
	}
	others := b.others(fw.Namespace)
	for i := range others {
		if other := &others[i]; other.Status.Backend == b.name && other.Name != fw.Name {
			found = append(found, pass.RivalOf(other))
		}
	}
	return &found
}

// rehearse decides with what read answers. Its error is what the status would say.
func (b backend) rehearse(fw *v1alpha1.FleetWorkload, kinds *interpreter.Registry, read func(*pass.In, pass.Reads)) (*pass.Decision, error) {
	d, problem := pass.Rehearse(pass.In{
		Settings: pass.Settings{
			Kinds: kinds, Installation: b.installation, Aliases: b.aliases, Backends: []string{b.name}, MaxRemovalPercent: b.guards.RemovalPercent(), Tenancy: b.tenancy,
			LeaveOut: b.leaveOut,
		},
		FleetWorkload: fw, Now: time.Now(), Rivals: b.rivals(fw),
	}, read)
	if problem != nil {
		return d, errors.New(problem.Message)
	}
	return d, nil
}

// read answers for this backend.
func (b backend) read(in *pass.In, reads pass.Reads) {
	for _, read := range reads.Sides {
		if read.Backend == b.name {
			in.Sides[b.name] = b.side(read)
		}
	}
	for _, access := range reads.Access { // whoever renders does it for themselves
		in.Access[access] = pass.Answer{Allowed: true}
	}
	if reads.Namespace {
		in.Namespace = b.namespace(in.FleetWorkload.Namespace)
	}
	for _, need := range reads.Objects {
		in.Objects[need.String()] = b.dependency(in.FleetWorkload.Namespace, need)
	}
}

func (b backend) side(read pass.SideRead) *pass.Side {
	side := &pass.Side{Features: b.features, Fleet: &b.fleet, Live: read.Live()}
	if side.Features == nil {
		side.Features = backends.Features{}
	}
	if read.Query == nil {
		return side
	}
	observed, err := b.observed(*read.Query)
	side.Observed, side.Err = &observed, err
	return side
}

// observed is what the backend has of the workload. One that was not asked, or has not chosen yet, would choose what the selectors
// choose; and nothing runs there of one that was not asked.
func (b backend) observed(query backends.Query) (observed backends.Observation, err error) {
	if b.observe != nil {
		if observed, err = b.observe(query); err != nil || observed.Selection.Settled {
			return observed, err
		}
	}
	if observed.Selection, err = b.fleet.Chosen(observed.Selection, query.Selectors); err != nil {
		return observed, err
	}
	if b.observe == nil {
		for _, cluster := range observed.Selection.Clusters {
			observed.Clusters = append(observed.Clusters, backends.ClusterObservation{
				Cluster: cluster, Applied: metav1.ConditionUnknown, Probe: &backends.ProbeResult{Answered: true},
			})
		}
	}
	return observed, nil
}

// noBackend words that a field or flag names a backend that is not there.
func noBackend(from source, field, name string) error {
	return fmt.Errorf("%s %q: no such backend; configured are: %s. Choose one of them, or add it to the inventory or configuration file",
		field, name, cmp.Or(strings.Join(from.names(), ", "), "none"))
}

// write prints the objects that were not printed before. A comment names the backend whose API server they are for.
func (r *renderer) write(backend string, objects []*unstructured.Unstructured) error {
	for _, obj := range objects {
		id := strings.Join([]string{backend, obj.GroupVersionKind().String(), obj.GetNamespace(), obj.GetName()}, "/")
		if r.written[id] {
			continue
		}
		r.written[id] = true
		raw, err := yaml.Marshal(obj.Object)
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		if _, err := fmt.Fprintf(r.out, "---\n# backend: %s\n%s", backend, raw); err != nil {
			return err
		}
	}
	return nil
}
