package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

// planOf prints what the operator says that a waiting change comes to, and approves just that if it is asked to.
func planOf(ctx context.Context, c client.Client, key client.ObjectKey, approves bool, program string, out io.Writer) error {
	fw, err := read(ctx, c, key)
	if err != nil {
		return err
	}
	change := ptr.Deref(fw.Status.Change, v1alpha1.ChangeStatus{})
	switch {
	case fw.Spec.Approval != v1alpha1.ApprovalPolicyManual:
		return fmt.Errorf("FleetWorkload %s: spec.approval is not Manual, so that changes do not wait; with -f FILE it is shown what a file would change", key)
	case ptr.Deref(fw.Status.ObservedGeneration, 0) != fw.Generation:
		return fmt.Errorf("FleetWorkload %s: the operator has not looked at the newest spec yet; try again", key)
	case change.Approval == "" && change.Message != "":
		return fmt.Errorf("FleetWorkload %s: the change cannot be approved yet: %s", key, change.Message)
	case change.Approval == "":
		fmt.Fprintf(out, "%s: no change waits for approval\n", key)
		return nil
	}
	fmt.Fprintf(out, "%s on backend %s\n%s\n", key, fw.Spec.Backend, change.Message)
	if err := writeEdits(ctx, c, fw, out); err != nil {
		return err
	}
	told := operatorsPlan{change.Clusters, change.Companions, change.Truncated, change.CompanionsTruncated}
	if err := told.write(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if approves {
		return approveChange(ctx, c, fw, out)
	}
	fmt.Fprintf(out, "approve it until %s with: %s --change %s\n",
		change.ExpiresAt.UTC().Format(time.RFC3339), commandFor(program, "approve", fw), change.Approval)
	return somethingChanges
}

// writeEdits prints what differs from what is shipped. Where it goes is in the rows of clusters.
func writeEdits(ctx context.Context, c client.Client, fw *v1alpha1.FleetWorkload, out io.Writer) error {
	if fw.Status.SpecRevision == nil {
		return nil // it is new
	}
	kept := &appsv1.ControllerRevision{}
	err := c.Get(ctx, client.ObjectKey{Namespace: fw.Namespace, Name: fw.Status.SpecRevision.Name}, kept)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("read what FleetWorkload %s/%s ships: %w", fw.Namespace, fw.Name, explain(err))
	}
	shipped, ours := revisions.Read(fw, kept)
	switch {
	case apierrors.IsForbidden(err):
		fmt.Fprintf(out, "note: what changes of it is not shown: that takes the right to get ControllerRevisions in namespace %s\n", fw.Namespace)
		return nil
	case !ours: // or nothing is there
		fmt.Fprintln(out, "note: what changes of it is not shown: what is shipped was not kept")
		return nil
	}
	lines, err := changes(shipped, revisions.Of(&fw.Spec))
	if err == nil && len(lines) > 0 {
		writeLines(out, "what changes of it", lines)
	}
	return err
}

// operatorsPlan is what a status says that a spec comes to.
type operatorsPlan struct {
	clusters                       []v1alpha1.PlannedCluster
	companions                     []v1alpha1.PlannedCompanion
	truncated, companionsTruncated *int32
}

func (p operatorsPlan) write(out io.Writer) error {
	rows := make([]planRow, 0, len(p.clusters))
	for _, c := range p.clusters {
		rows = append(rows, planned(pass.Row{
			Cluster: c.Name, Action: c.Action, Replicas: c.Replicas, ReplicasBefore: c.ReplicasBefore, Reason: c.Reason,
		}))
	}
	if len(rows) > 0 {
		if err := writePlan(out, rows); err != nil {
			return err
		}
	}
	if more := ptr.Deref(p.truncated, 0); more > 0 {
		fmt.Fprintf(out, "and %d clusters more\n", more)
	}
	if err := writeCompanions(out, p.companions, int(ptr.Deref(p.companionsTruncated, 0))); err != nil {
		return err
	}
	writeLater(out, rows, p.companions)
	return nil
}

// approveChange annotates the FleetWorkload with what stands for the change that its status tells of.
func approveChange(ctx context.Context, c client.Client, fw *v1alpha1.FleetWorkload, out io.Writer) error {
	token, key := fw.Status.Change.Approval, client.ObjectKeyFromObject(fw)
	if err := annotate(ctx, c, fw, v1alpha1.AnnotationApproveChange, token); err != nil {
		return err
	}
	fmt.Fprintf(out, "approved, the change of %s is carried out: %s\n", key, token)
	return nil
}

func annotate(ctx context.Context, c client.Client, fw *v1alpha1.FleetWorkload, name, value string) error {
	before := fw.DeepCopy()
	if fw.Annotations == nil {
		fw.Annotations = map[string]string{}
	}
	fw.Annotations[name] = value
	if err := c.Patch(ctx, fw, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("annotate FleetWorkload %s: %w", client.ObjectKeyFromObject(fw), explain(err))
	}
	return nil
}

// check refuses flags that do not go together.
func (o planOptions) check(args []string) error {
	switch {
	case len(args) == 0 && o.approve:
		return errors.New("--approve needs the NAME of a FleetWorkload whose change waits")
	case len(args) == 0 && o.file == "":
		return errors.New("give the NAME of a FleetWorkload, or a file with -f FILE")
	case len(args) == 1 && (o.file != "" || o.config != ""):
		return errors.New("NAME shows what the operator says of a change that waits; -f and --config are for a file that is not applied yet")
	default:
		return nil
	}
}
