package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

const logsLong = `Print the commands that show the logs of a FleetWorkload's pods, one for each cluster that runs it. Nothing is run: neither the operator
nor this command talks to member clusters. A cluster's name is taken for that of a context of your kubeconfig; --contexts gives other names.

What stands after -- are flags of kubectl logs, instead of --all-containers --prefix --tail=20.`

const logsExample = `  # The commands, one a cluster
  kubectl-fw logs web -n shop

  # Run them, with the last ten minutes of each
  kubectl-fw logs web -n shop -- --since=10m --prefix | sh`

type logsOptions struct {
	clusters []string
	contexts map[string]string
	flags    []string
}

func newLogsCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var opts logsOptions
	var path string
	cmd := &cobra.Command{
		Use:               "logs NAME [-- FLAGS]",
		Short:             "Print the commands that show the pods' logs on each cluster",
		Long:              logsLong,
		Example:           logsExample,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeNames(flags, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 && len(args) > 1 {
				return errors.New("one name is wanted; flags of kubectl logs stand after --")
			}
			kinds, err := kindsIn(path)
			if err != nil {
				return err
			}
			c, key, err := connectFor(flags, args[0])
			if err != nil {
				return err
			}
			opts.flags = args[1:]
			return printLogs(cmd.Context(), c, key, kinds, opts, streams.Out)
		},
	}
	cmd.Flags().StringSliceVar(&opts.clusters, "cluster", nil, "print those of these clusters only")
	completeFlag(cmd, "cluster", completeClusters(flags))
	cmd.Flags().StringToStringVar(&opts.contexts, "contexts", nil, "the context of a cluster where it has another name, such as member1=prod-eu")
	cmd.Flags().StringVar(&path, "config", "", "the operator's configuration file, for the kinds that it describes")
	return cmd
}

func printLogs(ctx context.Context, c client.Client, key client.ObjectKey, kinds *interpreter.Registry, opts logsOptions, out io.Writer) error {
	fw, err := read(ctx, c, key)
	if err != nil {
		return err
	}
	pods, err := podsOf(fw, kinds)
	if err != nil {
		return fmt.Errorf("FleetWorkload %s: %w", key, err)
	}
	wanted := opts.clusters
	flags := opts.flags
	if len(flags) == 0 {
		flags = []string{"--all-containers", "--prefix", "--tail=20"}
	}
	var there []string
	for _, row := range fw.Status.Clusters {
		if len(wanted) > 0 && !slices.Contains(wanted, row.Name) {
			continue
		}
		there = append(there, row.Name)
		words := append([]string{"kubectl", "--context", cmp.Or(opts.contexts[row.Name], row.Name), "-n", fw.Namespace, "logs"}, append(pods, flags...)...)
		for i, word := range words {
			words[i] = shellWord(word)
		}
		fmt.Fprintln(out, strings.Join(words, " "))
	}
	for _, name := range wanted {
		if !slices.Contains(there, name) {
			return fmt.Errorf("FleetWorkload %s has nothing on cluster %s; kubectl fw status shows where it is", key, name)
		}
	}
	if len(there) == 0 {
		return fmt.Errorf("FleetWorkload %s is on no cluster yet", key)
	}
	return nil
}

// podsOf are the words by which kubectl logs finds the pods of a workload.
func podsOf(fw *v1alpha1.FleetWorkload, kinds *interpreter.Registry) ([]string, error) {
	manifest := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(fw.Spec.Template.Raw, &manifest.Object); err != nil || manifest.Object == nil {
		return nil, errors.New("spec.template is not an object")
	}
	kind := kinds.For(manifest.GroupVersionKind())
	selector := interpreter.Selector(kind, manifest)
	switch {
	case kind.ClusterScoped:
		return nil, fmt.Errorf("the pods of a %s are of other workloads: ask for those", manifest.GetKind())
	case selector != "":
		return []string{"-l", selector}, nil
	case manifest.GroupVersionKind().Group == "batch" && manifest.GetKind() == "Job":
		return []string{"job/" + cmp.Or(manifest.GetName(), fw.Name)}, nil
	}
	return nil, fmt.Errorf("by which label the pods of a %s are found is not known; on a cluster, kubectl get pods shows them", manifest.GetKind())
}

// shellWord is a word as a shell reads it again.
func shellWord(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@") == "" && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
