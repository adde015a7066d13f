package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

const doctorLong = `Look for what is wrong with an installation, and say what to do about it: the CRD, the operator's lease, its webhook, clocks, FleetWorkloads
that need a person, and with --config each backend: its clusters, the kinds that it serves, the operator's rights, bindings of cluster sets, and
the versions of OpenKruise on clusters. Nothing is changed.

Run it on a machine that reaches the management cluster and, with --config, the backends. What you may not read is said to be unknown.

The exit code is 0 when there is no problem, and 1 when there is one.`

const doctorExample = `  # The management cluster
  kubectl-fw doctor

  # The backends, too
  kubectl-fw doctor --config operator.yaml

  # For a program
  kubectl-fw doctor --config operator.yaml -o json`

// doctorTimeout bounds one request.
const doctorTimeout = 10 * time.Second

type doctorOptions struct {
	config, operatorNamespace, account, lease, output string
}

func newDoctorCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var opts doctorOptions
	cmd := &cobra.Command{
		Use:               "doctor [--config FILE]",
		Short:             "Look for what is wrong with an installation, and say what to do about it",
		Long:              doctorLong,
		Example:           doctorExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), flags, streams.Out) },
	}
	f := cmd.Flags()
	f.StringVar(&opts.config, "config", "", "the operator's configuration file, to look at the backends")
	f.StringVar(&opts.operatorNamespace, "operator-namespace", "fleetworkload-system", "where the operator is, on the management cluster")
	f.StringVar(&opts.account, "service-account", "fleetworkload", "the operator's ServiceAccount there, for a backend that is the management cluster")
	f.StringVar(&opts.lease, "leader-election-id", "fleetworkload.fleetworkload.io", "name of the operator's lease")
	f.StringVarP(&opts.output, "output", "o", "", "json and yaml print the findings as a list")
	completeOutput(cmd, "json", "yaml")
	completeFlag(cmd, "operator-namespace", completeNamespaces(flags))
	return cmd
}

func (o doctorOptions) run(ctx context.Context, flags *genericclioptions.ConfigFlags, out io.Writer) error {
	if !slices.Contains([]string{"", "json", "yaml"}, o.output) {
		return fmt.Errorf("--output %q: choose json or yaml, or leave it out for text", o.output)
	}
	cfg, err := flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("connect to the management cluster: %w", err)
	}
	c, err := newClient(flags)
	if err != nil {
		return err
	}
	var from *live
	if o.config != "" {
		if from, err = openLive(ctx, flags, o.config, o.operatorNamespace); err != nil {
			return err
		}
		defer from.close()
	}
	return report(out, o.output, o.lookAround(ctx, newEndpoint(cfg), c, from))
}

// lookAround looks at the management cluster, at each backend of from when it is there, and at FleetWorkloads.
func (o doctorOptions) lookAround(ctx context.Context, management endpoint, c client.Reader, from *live) []section {
	all := getOptions{everywhere: true}
	list, unlisted := all.list(ctx, c)
	var workloads []v1alpha1.FleetWorkload
	if unlisted == nil {
		workloads = list.Items
	}
	sections := []section{{title: "management cluster " + management.host}}
	var known source
	if from != nil {
		known = from
		for _, b := range from.cfg.Backends {
			sections = append(sections, section{title: fmt.Sprintf("backend %s (%s)", b.Name, b.Type)})
		}
	}
	var group sync.WaitGroup
	group.Go(func() {
		sections[0].findings = atOnce(ctx, append([]look{management.lookAtReach}, o.managementLooks(c, time.Now)...)...)
	})
	if from != nil {
		for i, b := range from.cfg.Backends {
			group.Go(func() {
				account := o.operatorNamespace + "/" + o.account
				d := backendDoctor{Backend: b, from: from, load: from.load, account: account, workloads: workloads, now: time.Now,
					management: managementCluster{c, o.operatorNamespace, management.asksFor(account)}}
				sections[1+i].findings = d.look(ctx)
			})
		}
	}
	group.Wait()
	fleet := section{title: "FleetWorkloads"}
	if unlisted != nil {
		fleet.findings = []finding{unread(aspectFleetWorkloads, "FleetWorkloads", unlisted)}
	} else {
		fleet.findings = lookAtFleetWorkloads(workloads, known)
	}
	return append(sections, fleet)
}

// lookAtFleetWorkloads finds those that need a person, and those whose backend nobody has configured.
func lookAtFleetWorkloads(all []v1alpha1.FleetWorkload, from source) (found []finding) {
	counts := [3]int{}
	for i := range all {
		fw := &all[i]
		counts[urgency(fw)]++
		key := client.ObjectKeyFromObject(fw)
		if urgency(fw) == 0 {
			reason, message := stateOf(fw)
			found = append(found, ill(gradeProblem, aspectFleetWorkloads, do("docs/conditions.md#%s", strings.ToLower(reason)), "%s: %s: %s", key, reason, message))
		}
		if from != nil && !slices.Contains(from.names(), fw.Spec.Backend) {
			found = append(found, ill(gradeProblem, aspectFleetWorkloads, do("correct spec.backend, or add the backend to the configuration"),
				"%s: the configuration has no backend %q", key, fw.Spec.Backend))
		}
	}
	return append(found, well(aspectFleetWorkloads, "%d in all: %d as asked, %d on their way", len(all), counts[2], counts[1]))
}
