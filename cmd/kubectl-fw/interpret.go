package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

const interpretLong = `Print what the operator makes of live objects: replicas, health and why, status fields, dependencies, and, for several
objects of one workload from several clusters, what they combine to. No cluster is asked.

The exit code is 0 when all objects were understood. One that cannot be read has health Unknown, and the error says why.`

const interpretExample = `  # Why is this CloneSet not healthy?
  kubectl --context member1 -n shop get cloneset web -o yaml | kubectl-fw interpret -f -

  # What do two clusters combine to?
  kubectl-fw interpret -f member1.yaml -f member2.yaml

  # A kind that the operator's configuration describes, for scripts
  kubectl-fw interpret -f widget.yaml --config operator.yaml -o json`

type interpretOptions struct {
	files  []string
	config string
	output *output
}

func newInterpretCommand(streams genericiooptions.IOStreams) *cobra.Command {
	opts := interpretOptions{output: newOutput(false)}
	cmd := &cobra.Command{
		Use:               "interpret -f FILE",
		Short:             "Print what the operator makes of live objects",
		Long:              interpretLong,
		Example:           interpretExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return opts.run(streams) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&opts.files, "filename", "f", nil,
		"file with one object, many documents or a List; - reads standard input; may be repeated, once a cluster")
	f.StringVar(&opts.config, "config", "", "the operator's configuration file, for the kinds that it describes")
	opts.output.addFlags(cmd, "Print fields instead of a text; name prints the objects' names")
	for _, err := range []error{cmd.MarkFlagRequired("filename"), cmd.MarkFlagFilename("filename", "yaml", "yml", "json")} {
		if err != nil {
			panic(err) // the flag is registered above
		}
	}
	return cmd
}

func (o interpretOptions) run(streams genericiooptions.IOStreams) error {
	if err := o.output.check(); err != nil {
		return err
	}
	kinds, err := kindsIn(o.config)
	if err != nil {
		return err
	}
	var objects []sourced
	var errs []error
	for _, file := range o.files {
		found, err := readObjects(file, streams.In)
		objects, errs = append(objects, found...), append(errs, err)
	}
	if len(objects) == 0 {
		return errors.Join(errs...)
	}
	result, err := interpretAll(kinds, objects)
	if errors.Join(errs...) != nil {
		result.Aggregate.unread()
	}
	errs = append(errs, err)
	if o.output.isText() {
		errs = append(errs, result.writeText(streams.Out))
	} else {
		errs = append(errs, o.output.write(streams.Out, result, result.names()...))
	}
	return errors.Join(errs...)
}

// interpretation is what we make of all objects that were given.
type interpretation struct {
	Items     []item    `json:"items"`
	Aggregate aggregate `json:"aggregate"`
}

// item is what we make of one object. Numbers are null when they are not known, which is not zero.
type item struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Source is where the object was read.
	Source   string             `json:"source"`
	Health   v1alpha1.Health    `json:"health"`
	Reason   interpreter.Reason `json:"reason"`
	Message  string             `json:"message"`
	Replicas replicas           `json:"replicas"`
	Progress *progress          `json:"progress,omitempty"`
	// UpToDate is null when the kind does not count pods of the newest revision, or has not reported them.
	UpToDate     *bool        `json:"upToDate"`
	Fields       []field      `json:"fields"`
	Dependencies []dependency `json:"dependencies"`
}

type replicas struct {
	Desired   *int32 `json:"desired"`
	Current   *int32 `json:"current"`
	Ready     *int32 `json:"ready"`
	Updated   *int32 `json:"updated"`
	Available *int32 `json:"available"`
}

type progress struct {
	Done  int32 `json:"done"`
	Total int32 `json:"total"`
}

// field is one status field; the value is null when it was not reported.
type field struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

type dependency struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Optional   bool   `json:"optional,omitempty"`
}

// interpretAll interprets each object, and what they come to together. What was not understood is in the error, and in
// the result as far as it goes.
func interpretAll(kinds *interpreter.Registry, objects []sourced) (interpretation, error) {
	result := interpretation{Items: make([]item, 0, len(objects))}
	var errs []error
	for _, o := range objects {
		i, err := interpret(kinds.For(o.object.GroupVersionKind()), o)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", i.Source, i.title(), err))
		}
		result.Items = append(result.Items, i)
	}
	result.Aggregate = aggregateOf(kinds, objects, result.Items)
	return result, errors.Join(errs...)
}

func interpret(kind *interpreter.Kind, o sourced) (item, error) {
	report := interpreter.ReportOf(o.object)
	state, err := kind.State(report)
	i := item{
		APIVersion: o.object.GetAPIVersion(), Kind: o.object.GetKind(),
		Namespace: o.object.GetNamespace(), Name: o.object.GetName(), Source: o.source,
		Health: state.Health, Reason: state.Reason, Message: state.Message, UpToDate: state.UpToDate,
		Replicas: replicas{
			Desired: state.Desired, Current: state.Replicas, Ready: state.Ready, Updated: state.Updated, Available: state.Available,
		},
		Fields: []field{}, Dependencies: []dependency{},
	}
	if p := state.Progress; p != nil {
		i.Progress = &progress{Done: p.Done, Total: p.Total}
	}
	// A status that cannot be read fails State and Fields alike; it is told once.
	if fields, errFields := kind.Fields(report); errFields == nil {
		for _, f := range fields {
			i.Fields = append(i.Fields, field{Name: f.Name, Value: f.Value})
		}
	}
	found, errFound := interpreter.Dependencies(kind, o.object)
	for _, d := range found {
		i.Dependencies = append(i.Dependencies, dependency{
			APIVersion: d.GroupVersion().String(), Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, Optional: d.Optional,
		})
	}
	return i, errors.Join(err, errFound)
}

func (r interpretation) names() (all []named) {
	for _, i := range r.Items {
		all = append(all, named{schema.FromAPIVersionAndKind(i.APIVersion, i.Kind), i.Name})
	}
	return all
}
