package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// A shell waits for completions: better none than late ones, and rather some than all.
const (
	completionTimeout = 2 * time.Second
	completionMost    = 500
)

type completion = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective)

// completeNames completes the names of FleetWorkloads, of several when many are taken.
func completeNames(flags *genericclioptions.ConfigFlags, many bool) completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completing(cmd.Context(), flags, func(fw *v1alpha1.FleetWorkload) []string {
			if slices.Contains(args, fw.Name) {
				return nil
			}
			return []string{fw.Name}
		}, begun)
	}
}

// completeBackends completes the names of backends that FleetWorkloads of the namespace name.
func completeBackends(flags *genericclioptions.ConfigFlags) completion {
	return func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completing(cmd.Context(), flags, func(fw *v1alpha1.FleetWorkload) []string { return []string{fw.Spec.Backend, fw.Status.Backend} }, begun)
	}
}

func completing(ctx context.Context, flags *genericclioptions.ConfigFlags, words func(*v1alpha1.FleetWorkload) []string, begun string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	namespace, _, err := namespaceOf(flags)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	c, err := newClient(flags)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	found, err := completions(ctx, c, namespace, words, begun)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completions are the words that begin so, sorted.
func completions(ctx context.Context, c client.Reader, namespace string, words func(*v1alpha1.FleetWorkload) []string, begun string) ([]string, error) {
	list := &v1alpha1.FleetWorkloadList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(completionMost)); err != nil {
		return nil, err
	}
	var found []string
	for i := range list.Items {
		for _, word := range words(&list.Items[i]) {
			if word != "" && strings.HasPrefix(word, begun) {
				found = append(found, word)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
