// Command kubectl-fw shows what FleetWorkloads do and what they would write. It also works as `kubectl fw`.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := newRoot(os.Args[0], streams)
	root.SetArgs(os.Args[1:])
	if code := exitCodeAfter(root.ExecuteContext(ctx), streams.ErrOut); code != 0 {
		os.Exit(code)
	}
}

// exitCodeAfter is with what the program ends after a command; it tells of an error.
func exitCodeAfter(err error, errOut io.Writer) int {
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	default:
		fmt.Fprintln(errOut, "error:", err)
		return 1
	}
}

// newRoot builds the command tree. called is the name under which the program was started.
func newRoot(called string, streams genericiooptions.IOStreams) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{
		Use:           "kubectl-fw",
		Short:         "Show what FleetWorkloads do, and what they would write",
		Long:          "Show what FleetWorkloads do, and what they would write.\n\nAll connection flags of kubectl are accepted.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: displayName(called)},
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	flags.AddFlags(root.PersistentFlags())
	hideRareFlags(root.PersistentFlags())
	completeConnection(root, flags)
	root.AddCommand(newGetCommand(flags, streams), newStatusCommand(flags, streams), newEventsCommand(flags, streams), newMigrateCommand(flags, streams),
		newApproveCommand(flags, streams), newHistoryCommand(flags, streams), newUndoCommand(flags, streams), newRestartCommand(flags, streams),
		newLogsCommand(flags, streams), newSuspendCommand(flags, streams), newResumeCommand(flags, streams), newPlanCommand(flags, streams),
		newRenderCommand(flags, streams), newImportCommand(flags, streams), newInterpretCommand(streams), newBackendCommand(flags, streams), newKubeconfigCommand(flags, streams),
		newDoctorCommand(flags, streams))
	for _, sub := range root.Commands() {
		sub.Example = strings.ReplaceAll(sub.Example, "kubectl-fw", root.DisplayName())
	}
	return root
}

// displayName is how people call the program. kubectl starts plugins by their absolute path, shells by what was typed.
func displayName(called string) string {
	if filepath.IsAbs(called) && strings.HasPrefix(filepath.Base(called), "kubectl-") {
		return "kubectl fw"
	}
	return "kubectl-fw"
}

// hideRareFlags keeps the help short. The flags work all the same.
func hideRareFlags(flags *pflag.FlagSet) {
	shown := []string{"kubeconfig", "context", "namespace"}
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shown, f.Name) })
}
