package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/bulk"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

const migrateLong = `Move a running workload to another backend, by setting spec.backend. No pod is touched, and setting it
back turns round at any time until the old backend is released. A GitOps controller that owns the field undoes this: change
the field in its source then.

--dry-run changes nothing. It reads both backends, by the operator's configuration file (--config), and prints all that
stands against the migration and what would happen to each cluster.

--wait follows the migration, also one that is under way already. It fails when the workload does not end on the backend,
or when a person has to decide: nothing is undone by that, and it can be followed again.

Several NAMEs, --all or -l move a fleet: so many at once, until all are there or too many have failed, followed to the end unless
--wait=false. Those that wait for a person do not hold up others. The same command, begun again, goes on where it was.`

const migrateExample = `  # What would happen?
  kubectl-fw migrate web -n shop --to ocm --dry-run --config operator.yaml

  # Move a workload to another backend, and watch it until it is there
  kubectl-fw migrate web -n shop --to ocm --wait

  # Turn round, from wherever it is
  kubectl-fw migrate web -n shop --to karmada --wait

  # Let it go on when it waits for a person
  kubectl-fw approve web -n shop

  # Which would be moved, and in which order?
  kubectl-fw migrate --all -A --from karmada --to ocm --order size --dry-run

  # What would happen to each cluster, for scripts
  kubectl-fw migrate web -n shop --to ocm --dry-run --config operator.yaml -o json

  # Move all that a backend has, and keep on record what ran before and after
  kubectl-fw migrate --all -A --from karmada --to ocm --order size --at-once 10 --max-failures 2 --report move.yaml`

type migrateOptions struct {
	to, config, operatorNamespace string
	wait, dryRun                  bool
	output                        *output
	many                          manyOptions
}

func newMigrateCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	opts := migrateOptions{output: newOutput(false)}
	cmd := &cobra.Command{
		Use:               "migrate (NAME... | --all | -l SELECTOR) --to BACKEND",
		Short:             "Move running workloads to another backend",
		Long:              migrateLong,
		Example:           migrateExample,
		ValidArgsFunction: completeNames(flags, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.check(); err != nil {
				return err
			}
			if opts.many.many(cmd, args) {
				return opts.runMany(cmd, flags, streams, args)
			}
			return opts.run(cmd, flags, streams, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.to, "to", "", "name of the backend that is to have it")
	f.BoolVar(&opts.wait, "wait", false, "show how far it is until it is over; fail when it has to be decided by a person; true for a fleet")
	f.BoolVar(&opts.dryRun, "dry-run", false,
		"print what stands against it and what would happen, and change nothing; needs --config, but for the list of a fleet")
	f.StringVar(&opts.config, "config", "", "the operator's configuration file, to read the backends for --dry-run")
	f.StringVar(&opts.operatorNamespace, "operator-namespace", "fleetworkload-system",
		"where Secrets that the configuration names are, on the management cluster")
	_ = cmd.MarkFlagRequired("to") // the flag exists
	cmd.MarkFlagsMutuallyExclusive("wait", "dry-run")
	opts.output.addFlags(cmd, "With --dry-run, print what it finds in fields instead of a text; name prints the FleetWorkloads that would begin")
	opts.many.addFlags(cmd)
	completeFlag(cmd, "to", completeBackends(flags))
	completeFlag(cmd, "from", completeBackends(flags))
	completeFlag(cmd, "operator-namespace", completeNamespaces(flags))
	completeFlag(cmd, "order", cobra.FixedCompletions([]string{string(bulk.OrderName), string(bulk.OrderSize)}, cobra.ShellCompDirectiveNoFileComp))
	cmd.MarkFlagsMutuallyExclusive("report", "dry-run")
	return cmd
}

func (o migrateOptions) check() error {
	if !o.dryRun && !o.output.isText() {
		return fmt.Errorf("--output %s is for what --dry-run finds: add --dry-run, or follow the migration with --wait", o.output.format())
	}
	return o.output.check()
}

func (o migrateOptions) run(cmd *cobra.Command, flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams,
	name string,
) error {
	if o.dryRun && o.config == "" {
		return errors.New("--dry-run reads the backends: say with --config where the operator's configuration file is")
	}
	c, key, err := connectFor(flags, name)
	if err != nil {
		return err
	}
	ctx, program := cmd.Context(), cmd.Root().DisplayName()
	if o.dryRun {
		fw, err := read(ctx, c, key)
		if err != nil {
			return err
		}
		live, err := openLive(ctx, flags, o.config, o.operatorNamespace)
		if err != nil {
			return err
		}
		defer live.close()
		return (&rehearsal{fw: fw, to: o.to, source: live, program: program}).print(streams.Out, time.Now(), o.output)
	}
	if err := setBackend(ctx, c, key, o.to, streams.Out); err != nil || !o.wait {
		return err
	}
	a := &awaiting{client: c, key: key, to: o.to, program: program, picture: pictureOn(streams.Out)}
	return a.run(ctx, c, streams)
}

const approveLong = `Let a migration go on, or a change of the spec be carried out, that waits for a person.

What waits at this moment is approved. That may be another change than the one you have looked at: somebody may have edited the FleetWorkload since, or a
cluster may have joined. With --change VALUE, as plan prints it, only what you have seen is approved.`

func newApproveCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var only string
	cmd := &cobra.Command{
		Use:               "approve NAME",
		Short:             "Let a migration go on, or a change be carried out, that waits for a person",
		Long:              approveLong,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeNames(flags, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, key, err := connectFor(flags, args[0])
			if err != nil {
				return err
			}
			return approve(cmd.Context(), c, key, only, streams.Out)
		},
	}
	cmd.Flags().StringVar(&only, "change", "", "approve the change that plan has printed with this value, and no other")
	return cmd
}

func connectFor(flags *genericclioptions.ConfigFlags, name string) (client.WithWatch, client.ObjectKey, error) {
	namespace, _, err := namespaceOf(flags)
	if err != nil {
		return nil, client.ObjectKey{}, err
	}
	c, err := newClient(flags)
	return c, client.ObjectKey{Namespace: namespace, Name: name}, err
}

func read(ctx context.Context, c client.Reader, key client.ObjectKey) (*v1alpha1.FleetWorkload, error) {
	fw := &v1alpha1.FleetWorkload{}
	if err := c.Get(ctx, key, fw); apierrors.IsNotFound(err) {
		return nil, notFound(key)
	} else if err != nil {
		return nil, fmt.Errorf("read FleetWorkload %s: %w", key, explain(err))
	}
	return fw, nil
}

func setBackend(ctx context.Context, c client.Client, key client.ObjectKey, to string, out io.Writer) error {
	fw, err := read(ctx, c, key)
	if err != nil {
		return err
	}
	if fw.Spec.Backend == to {
		fmt.Fprintf(out, "spec.backend of %s is %s already\n", key, to)
		return nil
	}
	if err := patchSpec(ctx, c, fw, []jsondiff.Op{{Op: jsondiff.OpReplace, Path: jsondiff.Pointer("spec", "backend"), Value: to}}); err != nil {
		return fmt.Errorf("set spec.backend of %s: %w", key, err)
	}
	fmt.Fprintf(out, "spec.backend of %s is %s, it was %s\n", key, to, fw.Spec.Backend)
	return nil
}

// approve annotates the FleetWorkload with the token of the very step, or the very change, that waits. only, where it is given, is the one
// change that is to be approved.
func approve(ctx context.Context, c client.Client, key client.ObjectKey, only string, out io.Writer) error {
	fw, err := read(ctx, c, key)
	if err != nil {
		return err
	}
	m, change := fw.Status.Migration, fw.Status.Change
	waits := m != nil && m.Approval != ""
	switch {
	case only != "" && (change == nil || change.Approval != only):
		return notThatChange(fw, only)
	case only != "", !waits && change != nil && change.Approval != "":
		return approveChange(ctx, c, fw, out)
	case !waits:
		return fmt.Errorf("FleetWorkload %s does not wait for an approval%s", key, standingOf(m))
	case fw.Annotations[v1alpha1.AnnotationApproveMigration] == m.Approval:
		fmt.Fprintf(out, "approved already: %s\n", m.Approval)
		return nil
	}
	if err := annotate(ctx, c, fw, v1alpha1.AnnotationApproveMigration, m.Approval); err != nil {
		return err
	}
	does := "goes on"
	if m.Failure != "" {
		does = "tries it again"
	}
	fmt.Fprintf(out, "approved, the migration %s: %s\n", does, m.Approval)
	return nil
}

// notThatChange says what waits instead of the change that was to be approved.
func notThatChange(fw *v1alpha1.FleetWorkload, only string) error {
	key, change := client.ObjectKeyFromObject(fw), fw.Status.Change
	switch {
	case change != nil && change.Approval != "":
		return fmt.Errorf("FleetWorkload %s: the change that waits is %s (%s), not %s; look at it again with plan", key, change.Approval, change.Message, only)
	case fw.Annotations[v1alpha1.AnnotationApproveChange] == only:
		return fmt.Errorf("FleetWorkload %s: %s is approved already, and no change waits", key, only)
	default:
		return fmt.Errorf("FleetWorkload %s: %s does not wait for approval", key, only)
	}
}

// standingOf says why there is nothing to approve.
func standingOf(m *v1alpha1.MigrationStatus) string {
	switch {
	case m == nil || m.Phase == "":
		return ": no migration is under way"
	case m.Phase == v1alpha1.MigrationPhaseValidating:
		return ": its migration has not begun; what stands against it has to be mended, see status.migration.problems"
	default:
		return fmt.Sprintf(": its migration to backend %s goes on by itself, in phase %s", m.To, m.Phase)
	}
}
