package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/plan"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

const undoLong = `Set template, companions, dependencies and overrides of a FleetWorkload back to a version that was shipped before, and nothing
else of its spec. Without --to-revision that is the version before the present one; when the present spec was never shipped, because it
is refused, it is the one that was shipped last.

A GitOps controller that owns these fields sets them to its source again: change the source then.`

const undoExample = `  # What would it change?
  kubectl-fw undo web -n shop --dry-run

  # Back to the version before
  kubectl-fw undo web -n shop

  # Back to one of kubectl-fw history
  kubectl-fw undo web -n shop --to-revision 3`

type undoOptions struct {
	to     int64
	dryRun bool
}

func newUndoCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var opts undoOptions
	cmd := &cobra.Command{
		Use:               "undo NAME",
		Short:             "Ship a version again that a FleetWorkload has shipped before",
		Long:              undoLong,
		Example:           undoExample,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeNames(flags, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.to < 0 {
				return fmt.Errorf("--to-revision %d: versions are numbered from 1", opts.to)
			}
			c, key, err := connectFor(flags, args[0])
			if err != nil {
				return err
			}
			return opts.undo(cmd.Context(), c, key, streams.Out)
		},
	}
	cmd.Flags().Int64Var(&opts.to, "to-revision", 0, "number of the version, as kubectl-fw history shows it; 0 is the one before the present one")
	cmd.Flags().BoolVar(&opts.dryRun, "dry-run", false, "print what it would change, and change nothing")
	completeFlag(cmd, "to-revision", completeRevisions(flags))
	return cmd
}

func (o undoOptions) undo(ctx context.Context, c client.Client, key client.ObjectKey, out io.Writer) error {
	p, err := readPast(ctx, c, key)
	if err != nil {
		return err
	}
	if !p.fw.DeletionTimestamp.IsZero() {
		return fmt.Errorf("FleetWorkload %s is being deleted", key)
	}
	i, err := p.target(o.to)
	if err != nil {
		return err
	}
	back := p.versions[i]
	if err := sameObject(p.fw, back); err != nil {
		return err
	}
	lines, err := changes(revisions.Of(&p.fw.Spec), back.shipped)
	if err != nil {
		return err
	}
	from := "a spec that was not shipped"
	if p.present >= 0 {
		from = fmt.Sprintf("revision %d", p.versions[p.present].number)
	}
	writeLines(out, fmt.Sprintf("%s: from %s back to revision %d", key, from, back.number), lines)
	for _, note := range editNotes(p.fw, true) {
		fmt.Fprintln(out, "note: "+note)
	}
	if o.dryRun {
		fmt.Fprintln(out, "A dry run: nothing was changed")
		return nil
	}
	if err := patchSpec(ctx, c, p.fw, back.operations(&p.fw.Spec)); err != nil {
		return fmt.Errorf("set the spec of %s back: %w", key, err)
	}
	fmt.Fprintf(out, "the spec of %s ships revision %d again\n", key, back.number)
	return nil
}

// target is the index of the version to go back to.
func (p *past) target(number int64) (int, error) {
	if number == 0 {
		switch {
		case p.present > 0:
			return p.present - 1, nil
		case p.present < 0 && len(p.versions) > 0:
			return len(p.versions) - 1, nil
		default:
			return 0, fmt.Errorf("no version of %s is kept from before the present one; there are: %s", p.key(), p.numbers())
		}
	}
	i, err := p.find(number)
	if err == nil && i == p.present {
		return 0, fmt.Errorf("the spec of %s is that of revision %d already", p.key(), number)
	}
	return i, err
}

// sameObject refuses a revision of another object than the one that runs, as the operator would. In which version it may be, the operator knows.
func sameObject(fw *v1alpha1.FleetWorkload, back version) error {
	next := fw.DeepCopy()
	next.Spec.Template = back.shipped.Template
	manifest, err := plan.Manifest(next)
	if err != nil {
		return fmt.Errorf("revision %d: %w", back.number, err)
	}
	runs := fw.Status.Workload
	if is := plan.Reference(manifest); runs != nil && pass.ObjectKey(*is) != pass.ObjectKey(*runs) {
		return fmt.Errorf("revision %d is %s %s %q, and %s %s %q runs: kind and name of a running workload cannot change",
			back.number, is.APIVersion, is.Kind, is.Name, runs.APIVersion, runs.Kind, runs.Name)
	}
	return nil
}

// operations set what differs, each field as a whole.
func (v version) operations(spec *v1alpha1.FleetWorkloadSpec) []jsondiff.Op {
	var ops []jsondiff.Op
	set := func(field string, was, is any) {
		path := jsondiff.Pointer("spec", field)
		switch {
		case reflect.DeepEqual(was, is):
		case reflect.ValueOf(is).Len() == 0:
			ops = append(ops, jsondiff.Op{Op: jsondiff.OpRemove, Path: path})
		default:
			ops = append(ops, jsondiff.Op{Op: jsondiff.OpAdd, Path: path, Value: is})
		}
	}
	if string(spec.Template.Raw) != string(v.shipped.Template.Raw) {
		ops = append(ops, jsondiff.Op{Op: jsondiff.OpReplace, Path: jsondiff.Pointer("spec", "template"), Value: v.shipped.Template})
	}
	set("companions", spec.Companions, v.shipped.Companions)
	set("dependencies", spec.Dependencies, v.shipped.Dependencies)
	set("overrides", spec.Overrides, v.shipped.Overrides)
	return ops
}

// patchSpec changes just what is said, and only of the very spec that was read. It takes no other field over from whom it is.
func patchSpec(ctx context.Context, c client.Client, fw *v1alpha1.FleetWorkload, ops []jsondiff.Op) error {
	const attempts = 20
	for range attempts {
		raw, err := json.Marshal(append([]jsondiff.Op{{Op: jsondiff.OpReplace, Path: "/metadata/resourceVersion", Value: fw.ResourceVersion}}, ops...))
		if err != nil {
			return fmt.Errorf("encode the patch: %w", err)
		}
		err = c.Patch(ctx, fw.DeepCopy(), client.RawPatch(types.JSONPatchType, raw))
		if !apierrors.IsConflict(err) {
			return explain(err)
		}
		// While pods come and go the operator writes the status all the time.
		now, err := read(ctx, c, client.ObjectKeyFromObject(fw))
		if err != nil {
			return err
		}
		if now.UID != fw.UID || !equality.Semantic.DeepEqual(now.Spec, fw.Spec) {
			break
		}
		fw = now
	}
	return errors.New("somebody has changed it in this moment; look at it, and try again")
}

// editNotes say when an edit of what is shipped reaches clusters, and who may take it back.
func editNotes(fw *v1alpha1.FleetWorkload, undoes bool) []string {
	var notes []string
	if pass.HandsOver(fw) {
		m := fw.Status.Migration
		notes = append(notes, fmt.Sprintf("it is moving from backend %s to %s: the change waits until that is over", m.From, m.To))
	}
	if fw.Spec.Suspend != nil && *fw.Spec.Suspend {
		notes = append(notes, "spec.suspend is true: the change does not reach any cluster until it is false")
	}
	who := gitOps(fw)
	switch {
	case who != "":
		notes = append(notes, fmt.Sprintf("%s manages it and may set these fields to its source again: change the source, too", who))
	case undoes:
		notes = append(notes, "a GitOps controller that owns these fields sets them to its source again: change the source then")
	}
	return notes
}

// gitOps names the GitOps controller whose marks a FleetWorkload has; empty when it has none.
func gitOps(fw *v1alpha1.FleetWorkload) string {
	for _, marks := range []map[string]string{fw.Labels, fw.Annotations} {
		for key := range marks {
			switch domain, _, _ := strings.Cut(key, "/"); {
			case domain == "argocd.argoproj.io":
				return "Argo CD"
			case strings.HasSuffix(domain, ".toolkit.fluxcd.io"):
				return "Flux"
			}
		}
	}
	return ""
}
