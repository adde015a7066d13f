package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

const statusExample = `  # What runs where, and what is wrong with it
  kubectl-fw status web -n shop

  # Follow a change until it is everywhere
  kubectl-fw status web -n shop --watch

  # The status object, for scripts
  kubectl-fw status web -n shop -o json`

type statusOptions struct {
	output *output
	watch  bool
}

func newStatusCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	opts := statusOptions{output: newOutput(true)}
	cmd := &cobra.Command{
		Use:               "status NAME",
		Short:             "Show a FleetWorkload's state, cluster by cluster",
		Example:           statusExample,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeNames(flags, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			show, err := printerFor(opts, streams.Out)
			if err != nil {
				return err
			}
			namespace, _, err := namespaceOf(flags)
			if err != nil {
				return err
			}
			c, err := newClient(flags)
			if err != nil {
				return err
			}
			key := client.ObjectKey{Namespace: namespace, Name: args[0]}
			if opts.watch {
				return follow(cmd.Context(), c, key, show, streams.ErrOut)
			}
			return showStatus(cmd.Context(), c, key, show)
		},
	}
	opts.output.addFlags(cmd, "wide shows all that is known of each condition and cluster; json, yaml and the others print the status object")
	cmd.Flags().BoolVarP(&opts.watch, "watch", "w", false, "go on until interrupted: redraw on a terminal, append otherwise")
	return cmd
}

// printer shows one state of a FleetWorkload.
type printer func(*v1alpha1.FleetWorkload) error

func printerFor(opts statusOptions, out io.Writer) (printer, error) {
	if err := opts.output.check(); err != nil {
		return nil, err
	}
	switch wide := opts.output.isWide(); {
	case !opts.output.isText():
		return func(fw *v1alpha1.FleetWorkload) error {
			return opts.output.write(out, unpacked(fw.Status), namedFleetWorkload(fw.Name))
		}, nil
	case opts.watch:
		return watchPrinter(out, wide), nil
	default:
		out = opts.output.sheet(out)
		return func(fw *v1alpha1.FleetWorkload) error { return writeTable(out, fw, time.Now(), wide) }, nil
	}
}

// unpacked is a status with all that it holds in plain words only.
func unpacked(status v1alpha1.FleetWorkloadStatus) v1alpha1.FleetWorkloadStatus {
	status.Packed = ""
	return status
}

func showStatus(ctx context.Context, c client.Reader, key client.ObjectKey, show printer) error {
	fw := &v1alpha1.FleetWorkload{}
	if err := c.Get(ctx, key, fw); err != nil {
		if apierrors.IsNotFound(err) {
			return notFound(key)
		}
		return fmt.Errorf("read FleetWorkload %s: %w", key, explain(err))
	}
	return show(fw)
}

func notFound(key client.ObjectKey) error {
	return fmt.Errorf("FleetWorkload %q not found in namespace %q; choose the namespace with -n", key.Name, key.Namespace)
}

// watchPrinter shows each state of a FleetWorkload as a table.
func watchPrinter(out io.Writer, wide bool) printer {
	return pictures(out, time.Now, func(on io.Writer, fw *v1alpha1.FleetWorkload, at time.Time) error {
		return writeTable(on, fw, at, wide)
	})
}

// pictures replaces what it drew before on a terminal, and appends under the time otherwise.
func pictures(out io.Writer, now func() time.Time, draw func(on io.Writer, fw *v1alpha1.FleetWorkload, at time.Time) error) printer {
	screen, picture := isTerminal(out), &inPlace{out: out}
	return func(fw *v1alpha1.FleetWorkload) error {
		at := now()
		if screen {
			return picture.draw(false, func(on io.Writer) error { return draw(on, fw, at) })
		}
		fmt.Fprintf(out, "--- %s\n", at.Format(time.TimeOnly))
		return draw(out, fw, at)
	}
}
