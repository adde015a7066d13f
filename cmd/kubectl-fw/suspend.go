package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

const suspendLong = `Hold a FleetWorkload as it is on all clusters: nothing is changed, moved, scaled or removed there until it is resumed, whatever is edited.
What runs goes on. It sets spec.suspend to true.`

const resumeLong = `Carry out what a FleetWorkload's spec says again, with all that was edited meanwhile. It sets spec.suspend to false. To see what that would
do, use kubectl-fw render or status first.`

func newSuspendCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	return suspension(flags, streams, true, &cobra.Command{
		Use: "suspend NAME...", Short: "Hold FleetWorkloads as they are on all clusters", Long: suspendLong,
		Example: "  # Nothing changes anywhere until it is resumed\n  kubectl-fw suspend web -n shop",
	})
}

func newResumeCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	return suspension(flags, streams, false, &cobra.Command{
		Use: "resume NAME...", Short: "Carry out again what FleetWorkloads say", Long: resumeLong,
		Example: "  # What was edited meanwhile reaches the clusters now\n  kubectl-fw resume web -n shop",
	})
}

func suspension(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams, suspend bool, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.ValidArgsFunction = completeNames(flags, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range args {
			c, key, err := connectFor(flags, name)
			if err != nil {
				return err
			}
			if err := setSuspend(cmd.Context(), c, key, suspend, streams.Out); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

func setSuspend(ctx context.Context, c client.Client, key client.ObjectKey, suspend bool, out io.Writer) error {
	fw, err := read(ctx, c, key)
	if err != nil {
		return err
	}
	if is := fw.Spec.Suspend != nil && *fw.Spec.Suspend; is == suspend {
		fmt.Fprintf(out, "spec.suspend of %s is %t already\n", key, suspend)
		return nil
	}
	if err := patchSpec(ctx, c, fw, []jsondiff.Op{{Op: jsondiff.OpAdd, Path: jsondiff.Pointer("spec", "suspend"), Value: suspend}}); err != nil {
		return fmt.Errorf("set spec.suspend of %s: %w", key, err)
	}
	fmt.Fprintf(out, "spec.suspend of %s is %t\n", key, suspend)
	if who := gitOps(fw); who != "" {
		fmt.Fprintf(out, "note: %s manages it and may set this field to its source again: change the source, too\n", who)
	}
	return nil
}
