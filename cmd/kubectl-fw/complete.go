package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// A shell waits for completions: better none than late ones, and rather some than all.
const (
	completionTimeout = 2 * time.Second
	completionMost    = 500
)

type completion = cobra.CompletionFunc

// question is the command line so far.
type question struct {
	cmd   *cobra.Command
	args  []string
	flags *genericclioptions.ConfigFlags
}

// flag is the value of a flag, when the command has it.
func (q question) flag(name string) string {
	f := q.cmd.Flag(name)
	if f == nil {
		return ""
	}
	return f.Value.String()
}

// words are those that may come next. What cannot be read gives none: a shell has no place for an error.
type words func(context.Context, question) []string

// complete offers the words that begin as what was typed, in alphabetical order, and never files.
func (w words) complete(flags *genericclioptions.ConfigFlags) completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		found := slices.DeleteFunc(w(ctx, question{cmd, args, flags}), func(word string) bool {
			return word == "" || !strings.HasPrefix(word, begun)
		})
		slices.Sort(found)
		return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag has a flag that the command has registered completed.
func completeFlag(cmd *cobra.Command, name string, with completion) {
	if err := cmd.RegisterFlagCompletionFunc(name, with); err != nil {
		panic(err) // it is registered, and once
	}
}

// completeOutput completes -o with the formats that a command has.
func completeOutput(cmd *cobra.Command, formats ...string) {
	completeFlag(cmd, "output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// completeNames completes the names of FleetWorkloads, of several when many are taken.
func completeNames(flags *genericclioptions.ConfigFlags, many bool) completion {
	return words(func(ctx context.Context, q question) []string {
		if len(q.args) > 0 && !many {
			return nil
		}
		var names []string
		for _, fw := range fleetWorkloadsAt(ctx, q) {
			if !slices.Contains(q.args, fw.Name) {
				names = append(names, fw.Name)
			}
		}
		return names
	}).complete(flags)
}

// fleetWorkloadsAt are those of the namespace.
func fleetWorkloadsAt(ctx context.Context, q question) []v1alpha1.FleetWorkload {
	c, key, err := connectFor(q.flags, "")
	if err != nil {
		return nil
	}
	list := &v1alpha1.FleetWorkloadList{}
	if err := c.List(ctx, list, client.InNamespace(key.Namespace), client.Limit(completionMost)); err != nil {
		return nil
	}
	return list.Items
}

// completeBackends completes the names of backends.
func completeBackends(flags *genericclioptions.ConfigFlags) completion {
	return words(backendsAt).complete(flags)
}

// completeBackend completes the one backend that a command takes as its argument.
func completeBackend(flags *genericclioptions.ConfigFlags) completion {
	return words(func(ctx context.Context, q question) []string {
		if len(q.args) > 0 {
			return nil
		}
		return backendsAt(ctx, q)
	}).complete(flags)
}

// backendsAt are those that a file of the command line names, or the operator's configuration, or else FleetWorkloads do.
func backendsAt(ctx context.Context, q question) []string {
	for _, flag := range []string{"config", "inventory"} {
		if raw, err := os.ReadFile(q.flag(flag)); err == nil {
			return backendsIn(raw)
		}
	}
	c, key, err := connectFor(q.flags, "")
	if err != nil {
		return nil
	}
	if names := backendsOfOperator(ctx, c, q.flag("operator-namespace")); len(names) > 0 {
		return names
	}
	list := &v1alpha1.FleetWorkloadList{}
	if err := c.List(ctx, list, client.Limit(completionMost)); err != nil { // perhaps for want of the right to see all namespaces
		if err := c.List(ctx, list, client.InNamespace(key.Namespace), client.Limit(completionMost)); err != nil {
			return nil
		}
	}
	var names []string
	for _, fw := range list.Items {
		names = append(names, fw.Spec.Backend, fw.Status.Backend)
	}
	return names
}

// The operator's configuration as config/manager and the chart install it.
const (
	operatorNamespace = "fleetworkload-system"
	operatorConfigKey = "config.yaml"
)

// backendsOfOperator are those of its configuration. Kustomize leaves the ConfigMaps of earlier ones: the newest counts.
func backendsOfOperator(ctx context.Context, c client.Reader, namespace string) []string {
	if namespace == "" {
		namespace = operatorNamespace
	}
	list := &corev1.ConfigMapList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": "fleetworkload"}); err != nil {
		return nil
	}
	var newest *corev1.ConfigMap
	for i := range list.Items {
		one := &list.Items[i]
		if _, is := one.Data[operatorConfigKey]; is && (newest == nil || newest.CreationTimestamp.Before(&one.CreationTimestamp)) {
			newest = one
		}
	}
	if newest == nil {
		return nil
	}
	return backendsIn([]byte(newest.Data[operatorConfigKey]))
}

// backendsIn are the backends of a configuration, or of an inventory, whatever else it has.
func backendsIn(raw []byte) []string {
	var file struct {
		Backends []struct {
			Name string `json:"name"`
		} `json:"backends"`
	}
	plain, err := yaml.YAMLToJSON(raw)
	if err != nil || utiljson.Unmarshal(plain, &file) != nil {
		return nil
	}
	var names []string
	for _, b := range file.Backends {
		names = append(names, b.Name)
	}
	return names
}

// completeNamespaces completes those of the management cluster.
func completeNamespaces(flags *genericclioptions.ConfigFlags) completion {
	return words(func(ctx context.Context, q question) []string {
		c, err := newClient(q.flags)
		if err != nil {
			return nil
		}
		list := &corev1.NamespaceList{}
		if err := c.List(ctx, list, client.Limit(completionMost)); err != nil {
			return nil
		}
		var names []string
		for _, namespace := range list.Items {
			names = append(names, namespace.Name)
		}
		return names
	}).complete(flags)
}

// completeConnection completes the flags that name something of a kubeconfig.
func completeConnection(root *cobra.Command, flags *genericclioptions.ConfigFlags) {
	of := func(names func(clientcmdapi.Config) []string) completion {
		return words(func(_ context.Context, q question) []string {
			kubeconfig, err := q.flags.ToRawKubeConfigLoader().RawConfig()
			if err != nil {
				return nil
			}
			return names(kubeconfig)
		}).complete(flags)
	}
	completeFlag(root, "context", of(func(c clientcmdapi.Config) []string { return slices.Collect(maps.Keys(c.Contexts)) }))
	completeFlag(root, "cluster", of(func(c clientcmdapi.Config) []string { return slices.Collect(maps.Keys(c.Clusters)) }))
	completeFlag(root, "user", of(func(c clientcmdapi.Config) []string { return slices.Collect(maps.Keys(c.AuthInfos)) }))
	completeFlag(root, "namespace", completeNamespaces(flags))
}

// completeContextsOf completes the contexts of the kubeconfig that another flag names.
func completeContextsOf(flags *genericclioptions.ConfigFlags, flag string) completion {
	return words(func(_ context.Context, q question) []string {
		kubeconfig, err := clientcmd.LoadFromFile(q.flag(flag))
		if err != nil {
			return nil
		}
		return slices.Collect(maps.Keys(kubeconfig.Contexts))
	}).complete(flags)
}

// completeClusters completes the clusters that have the FleetWorkload of the command line, several with commas between them.
func completeClusters(flags *genericclioptions.ConfigFlags) completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := begun[:strings.LastIndex(begun, ",")+1]
		return words(func(ctx context.Context, q question) []string {
			var names []string
			for _, fw := range fleetWorkloadsAt(ctx, q) {
				for _, c := range fw.Status.Clusters {
					if len(args) > 0 && fw.Name == args[0] && !slices.Contains(strings.Split(before, ","), c.Name) {
						names = append(names, before+c.Name)
					}
				}
			}
			return names
		}).complete(flags)(cmd, args, begun)
	}
}

// completeRevisions completes the versions that are kept of the FleetWorkload of the command line, the newest first, with what each changed.
func completeRevisions(flags *genericclioptions.ConfigFlags) completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if len(args) == 0 {
			return nil, directive
		}
		c, key, err := connectFor(flags, args[0])
		if err != nil {
			return nil, directive
		}
		p, err := readPast(ctx, c, key)
		if err != nil {
			return nil, directive
		}
		var found []cobra.Completion
		for i, v := range slices.Backward(p.versions) {
			number, told := fmt.Sprint(v.number), "the oldest that is kept"
			if lines, known, err := p.before(i); err == nil && known {
				told = brief.Clauses(lines, 1)
			}
			if strings.HasPrefix(number, begun) {
				found = append(found, cobra.CompletionWithDesc(number, told))
			}
		}
		return found, directive
	}
}
