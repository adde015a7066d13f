package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

const restartLong = `Have all pods of a FleetWorkload made anew, on all clusters, as their kind updates pods. It sets the annotation
kubectl.kubernetes.io/restartedAt in the pod template of spec.template, as kubectl rollout restart does, and changes nothing else.

Jobs, scheduled jobs, Workflows and SidecarSets cannot be restarted. For a kind that the operator's configuration describes, --config
says where its pod template is.`

const restartExample = `  # Make all pods anew, and wait for them
  kubectl-fw restart web -n shop
  kubectl wait --for=condition=Ready fleetworkload/web -n shop --timeout=10m`

// annotationRestartedAt is kubectl's.
const annotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

func newRestartCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:               "restart NAME",
		Short:             "Make the pods of a FleetWorkload anew",
		Long:              restartLong,
		Example:           restartExample,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeNames(flags, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, err := kindsIn(path)
			if err != nil {
				return err
			}
			c, key, err := connectFor(flags, args[0])
			if err != nil {
				return err
			}
			return restart(cmd.Context(), c, key, kinds, time.Now(), streams.Out)
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "the operator's configuration file, for the kinds that it describes")
	return cmd
}

// kindsIn are the kinds that are known with the operator's configuration in a file, or without one.
func kindsIn(path string) (*interpreter.Registry, error) {
	var cfg config.Configuration
	if path != "" {
		var err error
		if cfg, err = config.Load(path); err != nil {
			return nil, err
		}
	}
	return cfg.Registry()
}

func restart(ctx context.Context, c client.Client, key client.ObjectKey, kinds *interpreter.Registry, now time.Time, out io.Writer) error {
	fw, err := read(ctx, c, key)
	if err != nil {
		return err
	}
	if !fw.DeletionTimestamp.IsZero() {
		return fmt.Errorf("FleetWorkload %s is being deleted", key)
	}
	at := now.Format(time.RFC3339)
	ops, err := restartOperations(fw, kinds, at)
	if err != nil {
		return fmt.Errorf("FleetWorkload %s: %w", key, err)
	}
	if err := patchSpec(ctx, c, fw, ops); err != nil {
		return fmt.Errorf("restart %s: %w", key, err)
	}
	fmt.Fprintf(out, "%s makes its pods anew: %s is %s\n", key, annotationRestartedAt, at)
	for _, note := range editNotes(fw, false) {
		fmt.Fprintln(out, "note: "+note)
	}
	return nil
}

// restartOperations set the annotation in the pod template of spec.template, and make what it stands in where that is missing.
func restartOperations(fw *v1alpha1.FleetWorkload, kinds *interpreter.Registry, at string) ([]jsondiff.Op, error) {
	manifest := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(fw.Spec.Template.Raw, &manifest.Object); err != nil || manifest.Object == nil {
		return nil, errors.New("spec.template is not an object")
	}
	path, err := kinds.For(manifest.GroupVersionKind()).RestartPath(manifest)
	if err != nil {
		return nil, err
	}
	here, is, err := unstructured.NestedMap(manifest.Object, path...)
	if err != nil || !is {
		return nil, fmt.Errorf("spec.template.%s: there is no pod template", strings.Join(path, "."))
	}
	path = append([]string{"spec", "template"}, path...)
	var value any = map[string]any{annotationRestartedAt: at}
	for _, key := range []string{"metadata", "annotations"} {
		path = append(path, key)
		next, is := here[key].(map[string]any)
		if !is {
			if key == "metadata" {
				value = map[string]any{"annotations": value}
			}
			return []jsondiff.Op{{Op: jsondiff.OpAdd, Path: jsondiff.Pointer(path...), Value: value}}, nil
		}
		here = next
	}
	if here[annotationRestartedAt] == at {
		return nil, errors.New("it was restarted within this second already")
	}
	return []jsondiff.Op{{Op: jsondiff.OpAdd, Path: jsondiff.Pointer(append(path, annotationRestartedAt)...), Value: at}}, nil
}
