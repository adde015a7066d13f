package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/difference"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/plan"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

const planLong = `Print what a change comes to on each cluster, before it is carried out.

With NAME: of a FleetWorkload whose change waits for approval (spec.approval: Manual), as the operator says. No backend is asked from here.
--approve approves just what is printed: if anything of it changes before the operator carries it out, it waits for another approval.

With -f FILE: what applying a file would change, in each FleetWorkload and on each cluster. The management cluster is asked what the FleetWorkload would be, by an apply that it does not keep: what it refuses, and what its webhook does
not allow you, it says here. It is the apply of kubectl apply, or with --server-side that of kubectl apply --server-side. What Secrets hold is not shown.

The operator then says what becomes of clusters. It is asked through an annotation of the FleetWorkload, fleetworkload.io/propose, which goes again once it has
answered; so that takes the right to patch the FleetWorkload, and one that is there. With --config FILE, the operator's configuration, the backends are read from
here, with the operator's Secrets, and nothing is written: that works for a new FleetWorkload, too.

-o json and -o yaml print the same as fields. Of a file they are a list.

The exit code is 0 when nothing would change, 2 when something would, and 1 after an error, or when a change would be refused or held.`

const planExample = `  # What does the change come to that waits? It is fine.
  kubectl-fw plan web -n shop
  kubectl-fw plan web -n shop --approve

  # What would change?
  kubectl-fw plan -f web.yaml

  # The same for scripts
  kubectl-fw plan -f web.yaml -o json

  # The same of a new one, by who may read the operator's Secrets
  kubectl-fw plan -f web.yaml --config operator.yaml

  # Of a FleetWorkload that Argo CD applies
  kubectl-fw plan -f web.yaml --config operator.yaml --server-side --field-manager argocd-controller`

// exitCode ends the program with a code of its own, without a message.
type exitCode int

// Error implements error.
func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// somethingChanges is the exit code for that.
const somethingChanges exitCode = 2

type planOptions struct {
	renderOptions
	serverSide bool
	manager    string
	approve    bool
	output     *output
}

func newPlanCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	opts := planOptions{output: newOutput(true)}
	cmd := &cobra.Command{
		Use:               "plan (NAME | -f FILE)",
		Aliases:           []string{"diff"},
		Short:             "Print what a change comes to on each cluster, and approve it",
		Long:              planLong,
		Example:           planExample,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeNames(flags, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.check(args); err != nil {
				return err
			}
			if len(args) == 0 {
				return opts.run(cmd, flags, streams)
			}
			c, key, err := connectFor(flags, args[0])
			if err != nil {
				return err
			}
			return opts.planOf(cmd.Context(), c, key, cmd.Root().DisplayName(), streams)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&opts.file, "filename", "f", "", "file with FleetWorkloads; - reads standard input")
	f.StringVar(&opts.config, "config", "", "the operator's configuration file, to read the backends instead of asking the operator")
	f.StringVar(&opts.operatorNamespace, "operator-namespace", "fleetworkload-system",
		"where Secrets that the configuration names are, on the management cluster")
	f.BoolVar(&opts.serverSide, "server-side", false, "apply as kubectl apply --server-side does")
	f.StringVar(&opts.manager, "field-manager", "kubectl", "with --server-side, who applies the file: fields that this manager has set and the file lacks would go")
	f.BoolVar(&opts.approve, "approve", false, "approve the change that NAME waits with, just as it is printed")
	opts.output.addFlags(cmd, "wide is not cut at the edge of a terminal; json, yaml and the others print fields; name prints the FleetWorkloads that would change")
	completeFlag(cmd, "operator-namespace", completeNamespaces(flags))
	if err := cmd.MarkFlagFilename("filename", "yaml", "yml", "json"); err != nil {
		panic(err) // the flag is registered above
	}
	return cmd
}

func (o planOptions) run(cmd *cobra.Command, flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) error {
	fws, err := o.read(flags, streams)
	if err != nil {
		return err
	}
	c, comesTo, closed, err := o.source(cmd.Context(), flags)
	if err != nil {
		return err
	}
	defer closed()
	out := o.output.sheet(streams.Out)
	var all plansOfFile
	var errs []error
	var changing []named
	for i, fw := range fws {
		if i > 0 && o.output.isText() {
			fmt.Fprintln(out)
		}
		r, err := o.resultOf(cmd, c, fw, comesTo)
		all.FleetWorkloads, changing = append(all.FleetWorkloads, r), append(changing, r.changing()...)
		if o.output.isText() {
			err = errors.Join(err, r.writeOfFile(out))
		}
		if err = r.ended(err); err != nil {
			err = fmt.Errorf("FleetWorkload %s/%s: %w", fw.Namespace, fw.Name, err)
		}
		errs = append(errs, err)
	}
	if !o.output.isText() {
		errs = append(errs, o.output.write(streams.Out, all, changing...))
	}
	return worst(errs)
}

func (o planOptions) resultOf(cmd *cobra.Command, c client.Client, fw *v1alpha1.FleetWorkload, comesTo outcomeOf) (*planResult, error) {
	p, err := o.preview(cmd.Context(), c, fw)
	if err != nil {
		r := newPlanResult(fw)
		r.fail(err)
		return r, err
	}
	p.program = cmd.Root().DisplayName()
	return p.result(comesTo)
}

// outcomeOf finds out what becomes of clusters, and notes it in the result. It tells whether anything would change there.
type outcomeOf func(p *preview, r *planResult) (changes bool, err error)

// source is who says what a FleetWorkload comes to on clusters: the operator, asked through the FleetWorkload itself, or with its configuration
// its own code, run here.
func (o planOptions) source(ctx context.Context, flags *genericclioptions.ConfigFlags) (
	c client.Client, comesTo outcomeOf, closed func(), err error,
) {
	if o.config == "" {
		c, err := newClient(flags)
		return c, func(p *preview, r *planResult) (bool, error) { return false, p.ask(ctx, c, r) }, func() {}, err
	}
	live, err := openLive(ctx, flags, o.config, o.operatorNamespace)
	if err != nil {
		return nil, nil, nil, err
	}
	return live.client, func(p *preview, r *planResult) (bool, error) { return p.decide(live, r) }, live.close, nil
}

// worst are the errors but those that only say that something changes; if there are no others, one of these.
func worst(errs []error) error {
	var change error
	failures := slices.DeleteFunc(errs, func(err error) bool {
		is := errors.Is(err, somethingChanges)
		if is {
			change = somethingChanges
		}
		return is
	})
	return cmp.Or(errors.Join(failures...), change)
}

// preview is a FleetWorkload as it is and as it would be.
type preview struct {
	// was is nil when there is none yet.
	was, next *v1alpha1.FleetWorkload
	program   string
}

// preview has the management cluster say what applying would make of a FleetWorkload.
func (o planOptions) preview(ctx context.Context, c client.Client, fw *v1alpha1.FleetWorkload) (*preview, error) {
	p := &preview{was: &v1alpha1.FleetWorkload{}, next: &v1alpha1.FleetWorkload{}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(fw), p.was); apierrors.IsNotFound(err) {
		p.was = nil
	} else if err != nil {
		return nil, fmt.Errorf("read it: %w", explain(err))
	}
	obj, err := written(fw)
	if err != nil {
		return nil, err
	}
	switch {
	case o.serverSide:
		err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(o.manager), client.ForceOwnership, client.DryRunAll)
	case p.was == nil:
		err = c.Create(ctx, obj, client.DryRunAll)
	default:
		err = patched(ctx, c, obj, p.was)
	}
	if err != nil {
		return nil, fmt.Errorf("apply it in a dry run: %w", explain(err))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, p.next); err != nil {
		return nil, fmt.Errorf("read what it would be: %w", err)
	}
	return p, nil
}

// written is a FleetWorkload as people write it.
func written(fw *v1alpha1.FleetWorkload) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fw)
	if err != nil {
		return nil, fmt.Errorf("encode it: %w", err)
	}
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FleetWorkload"))
	for _, path := range [][]string{{"status"}, {"metadata", "uid"}, {"metadata", "creationTimestamp"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"}} {
		unstructured.RemoveNestedField(obj.Object, path...)
	}
	return obj, nil
}

// patched makes obj what kubectl apply would make of it: what the file says, without what it said the last time and says no longer
// (kubectl pkg/cmd/apply/patcher.go).
func patched(ctx context.Context, c client.Client, obj *unstructured.Unstructured, was *v1alpha1.FleetWorkload) error {
	modified, err := obj.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encode it: %w", err)
	}
	live, err := json.Marshal(was)
	if err != nil {
		return fmt.Errorf("encode what there is: %w", err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(was.Annotations[corev1.LastAppliedConfigAnnotation]), modified, live)
	if err != nil {
		return fmt.Errorf("compare it with what was applied last: %w", err)
	}
	return c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), client.DryRunAll)
}

// result is what would change. comesTo finds out what that makes of clusters.
func (p *preview) result(comesTo outcomeOf) (*planResult, error) {
	r := newPlanResult(p.next)
	err := p.fill(r, comesTo)
	r.fail(err)
	return r, err
}

func (p *preview) fill(r *planResult, comesTo outcomeOf) error {
	if !p.next.DeletionTimestamp.IsZero() {
		return errors.New("it is being deleted: nothing else becomes of it")
	}
	edits, err := p.edits()
	if err != nil {
		return err
	}
	if r.New = p.was == nil; !r.New {
		r.Edits = orEmpty(edits)
	}
	changes := r.New || len(edits) > 0
	if r.Elsewhere = p.elsewhere(); r.Elsewhere == "" {
		there, err := comesTo(p, r)
		if err != nil {
			return err
		}
		changes = changes || there
	}
	r.Changes = changes
	return nil
}

// decide finds out what becomes of clusters with the operator's own code.
func (p *preview) decide(from source, r *planResult) (changes bool, err error) {
	comesTo, err := p.comesTo(from)
	if err != nil {
		return false, err
	}
	r.Clusters, r.Companions = orEmpty(comesTo.clusters), comesTo.travels(r.Edits)
	r.Follows = later(r.Clusters, r.Companions)
	for _, kind := range comesTo.unread {
		r.Notes = append(r.Notes, fmt.Sprintf("you may not read %s objects in this namespace: those that pods refer to are sent along, and are not looked at here", kind))
	}
	return comesTo.changes(), nil
}

// edits are what changes of the FleetWorkload, a line each.
func (p *preview) edits() ([]string, error) {
	if p.was == nil {
		return nil, nil
	}
	lines, err := changes(revisions.Of(&p.was.Spec), revisions.Of(&p.next.Spec))
	if err != nil {
		return nil, err
	}
	was, err := unshipped(p.was.Spec)
	if err != nil {
		return nil, err
	}
	next, err := unshipped(p.next.Spec)
	if err != nil {
		return nil, err
	}
	for _, op := range jsondiff.Diff(was, next) {
		lines = append(lines, "spec: "+difference.Line(op, was, next))
	}
	return lines, nil
}

// unshipped is a spec without what is shipped.
func unshipped(spec v1alpha1.FleetWorkloadSpec) (map[string]any, error) {
	spec.Template, spec.Companions, spec.Overrides, spec.Dependencies = runtime.RawExtension{}, nil, nil, ""
	rest, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return nil, fmt.Errorf("encode the spec: %w", err)
	}
	delete(rest, "template")
	return rest, nil
}

// elsewhere says why clusters are not looked at, if they are not: a hand-over has a dry run of its own.
func (p *preview) elsewhere() string {
	has := p.next.Status.Backend
	switch {
	case pass.HandsOver(p.next):
		return "it is being handed over: edits wait until that is over. Follow it with: " + commandFor(p.program, "status", p.next)
	case has != "" && has != p.next.Spec.Backend:
		return fmt.Sprintf("it would be handed over from backend %s, without touching a pod. What stands against it, and how it would go: %s --to %s --dry-run --config FILE",
			has, commandFor(p.program, "migrate", p.next), p.next.Spec.Backend)
	default:
		return ""
	}
}

// outcome is what a spec would come to.
type outcome struct {
	clusters   []planCluster
	companions []pass.PlannedCompanion
	// unread are the kinds of what pods refer to that who asks may not read. Nothing is said of those.
	unread []string
}

// comesTo decides as the operator would.
func (p *preview) comesTo(from source) (*outcome, error) {
	b, err := from.backend(p.next.Spec.Backend)
	if errors.Is(err, backends.ErrNotConfigured) {
		return nil, noBackend(from, "spec.backend", p.next.Spec.Backend)
	} else if err != nil {
		return nil, fmt.Errorf("backend %q: %w", p.next.Spec.Backend, err)
	}
	kinds, err := from.kinds()
	if err != nil {
		return nil, err
	}
	return b.planned(p.next, kinds)
}

func (b backend) planned(fw *v1alpha1.FleetWorkload, kinds *interpreter.Registry) (*outcome, error) {
	out := &outcome{}
	d, err := b.decideReadable(fw, kinds, out)
	if err != nil {
		return nil, refusal(err.Error())
	}
	for _, r := range d.Rows(fw.Status.Placement) {
		out.clusters = append(out.clusters, plannedOn(r))
	}
	out.companions = slices.DeleteFunc(d.Companions(true), func(c pass.PlannedCompanion) bool {
		return c.Shared && slices.Contains(out.unread, c.Kind)
	})
	return out, nil
}

// decideReadable decides with what pods refer to, but for the kinds that who asks may not read.
func (b backend) decideReadable(fw *v1alpha1.FleetWorkload, kinds *interpreter.Registry, out *outcome) (*pass.Decision, error) {
	read := b.dependency
	for {
		var forbidden []string
		if read != nil {
			b.dependency = func(namespace string, need plan.Need) pass.Object {
				found := read(namespace, need)
				if found.Forbidden {
					forbidden = append(forbidden, need.Kind)
				}
				return found
			}
		}
		d, err := b.decideAll(fw, kinds)
		if len(forbidden) == 0 {
			return d, err
		}
		// A kind that is left out is not read again, and there are few.
		out.unread = slices.Compact(slices.Sorted(slices.Values(append(out.unread, forbidden...))))
		b.leaveOut = slices.Concat(b.leaveOut, forbidden)
	}
}

// changes tells whether anything would change on a cluster.
func (o *outcome) changes() bool {
	nothing := []clusterAction{clusterHold, clusterLeave, clusterNone}
	return slices.ContainsFunc(o.clusters, func(c planCluster) bool { return !slices.Contains(nothing, c.Action) }) ||
		slices.ContainsFunc(o.companions, pass.PlannedCompanion.Acts)
}

// travels are the rows of companions. What an edit of the spec says already is not repeated.
func (o *outcome) travels(edits []string) []v1alpha1.PlannedCompanion {
	rows := make([]v1alpha1.PlannedCompanion, 0, len(o.companions))
	for _, c := range o.companions {
		row := c.PlannedCompanion
		if slices.ContainsFunc(edits, func(line string) bool { return strings.HasPrefix(line, "companion "+titleOf(row)+": ") }) {
			row.Changes = nil
		}
		rows = append(rows, row)
	}
	return rows
}
