package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

// planOf prints what the operator says that a waiting change comes to, and approves just that if it is asked to.
func (o planOptions) planOf(ctx context.Context, c client.Client, key client.ObjectKey, program string, streams genericiooptions.IOStreams) error {
	fw, err := read(ctx, c, key)
	if err != nil {
		return err
	}
	switch {
	case fw.Spec.Approval != v1alpha1.ApprovalPolicyManual:
		return fmt.Errorf("FleetWorkload %s: spec.approval is not Manual, so that changes do not wait; with -f FILE it is shown what a file would change", key)
	case ptr.Deref(fw.Status.ObservedGeneration, 0) != fw.Generation:
		return fmt.Errorf("FleetWorkload %s: the operator has not looked at the newest spec yet; try again", key)
	}
	r, err := waitingChange(ctx, c, fw)
	if err != nil {
		return err
	}
	out, steps := o.output.sheet(streams.Out), streams.ErrOut // what is done is no part of a result for scripts
	if o.output.isText() {
		err, steps = r.writeOfChange(out), out
	} else {
		err = o.output.write(streams.Out, r, r.changing()...)
	}
	switch {
	case err != nil:
		return err
	case r.Refused != "":
		return fmt.Errorf("FleetWorkload %s: the change cannot be approved yet: %s", key, r.Refused)
	case r.Changes && o.approve:
		return approveChange(ctx, c, fw, steps)
	case r.Changes && o.output.isText():
		writeCommand(out, fmt.Sprintf("approve it until %s with:", r.ExpiresAt.UTC().Format(time.RFC3339)), commandFor(program, "approve", fw)+" --change "+r.Approval)
	}
	return r.ended(nil)
}

// waitingChange is the change that waits for approval, or that cannot be approved yet; nothing changes when there is none.
func waitingChange(ctx context.Context, c client.Client, fw *v1alpha1.FleetWorkload) (*planResult, error) {
	r, change := newPlanResult(fw), ptr.Deref(fw.Status.Change, v1alpha1.ChangeStatus{})
	r.New = fw.Status.SpecRevision == nil
	if change.Approval == "" && change.Message == "" {
		r.Edits, r.Clusters = []string{}, []planCluster{}
		return r, nil
	}
	if r.Changes = change.Approval != ""; r.Changes {
		r.Message, r.Approval, r.ExpiresAt = change.Message, change.Approval, change.ExpiresAt
	} else {
		r.Refused = change.Message
	}
	if r.Changes || len(change.Clusters)+len(change.Companions) > 0 {
		r.tell(change.Clusters, change.Truncated, change.Companions, change.CompanionsTruncated)
	}
	return r, readEdits(ctx, c, fw, r)
}

// readEdits notes what differs from what is shipped. Where it goes is in the rows of clusters.
func readEdits(ctx context.Context, c client.Client, fw *v1alpha1.FleetWorkload, r *planResult) error {
	if r.New {
		return nil
	}
	kept := &appsv1.ControllerRevision{}
	err := c.Get(ctx, client.ObjectKey{Namespace: fw.Namespace, Name: fw.Status.SpecRevision.Name}, kept)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("read what FleetWorkload %s/%s ships: %w", fw.Namespace, fw.Name, explain(err))
	}
	shipped, ours := revisions.Read(fw, kept)
	switch {
	case apierrors.IsForbidden(err):
		r.Notes = append(r.Notes, "what changes of it is not shown: that takes the right to get ControllerRevisions in namespace "+fw.Namespace)
		return nil
	case !ours: // or nothing is there
		r.Notes = append(r.Notes, "what changes of it is not shown: what is shipped was not kept")
		return nil
	}
	lines, err := changes(shipped, revisions.Of(&fw.Spec))
	r.Edits = orEmpty(lines)
	return err
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
		return o.output.check()
	}
}
