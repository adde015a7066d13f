package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
	"github.com/fleetworkload/fleetworkload/internal/proposal"
)

const (
	// answerPatience is how long the operator may take to answer. A pass takes milliseconds; others may be before it.
	answerPatience = 30 * time.Second
	// answerPoll is how often it is looked for.
	answerPoll = 200 * time.Millisecond
	// takeAwayPatience is for taking the question away after the command was interrupted.
	takeAwayPatience = 5 * time.Second
)

// ask has the operator say what becomes of clusters.
func (p *preview) ask(ctx context.Context, c client.Client, r *planResult) error {
	switch {
	case r.New:
		r.Notes = append(r.Notes, "what becomes of clusters is not shown: the operator can be asked about a FleetWorkload that is there. "+
			"Give --config FILE, or create it with spec.approval: Manual and look at it with plan NAME")
		return nil
	case len(r.Edits) == 0:
		return nil
	}
	answer, err := answered(ctx, c, p.next)
	if err != nil {
		return err
	}
	if answer.Refused != "" {
		return refusal(answer.Refused)
	}
	r.Message = answer.Message
	r.tell(answer.Clusters, answer.Truncated, answer.Companions, answer.CompanionsTruncated)
	return nil
}

// answered writes the question, waits for its answer, and takes the question away, whatever comes.
func answered(ctx context.Context, c client.Client, fw *v1alpha1.FleetWorkload) (*v1alpha1.ProposalStatus, error) {
	value, err := proposal.Encode(fw.Spec)
	if err != nil {
		return nil, fmt.Errorf("ask the operator: %w; give --config FILE to have it decided here", err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationPropose: value}}})
	if err != nil {
		return nil, fmt.Errorf("ask the operator: %w", err)
	}
	key := client.ObjectKeyFromObject(fw)
	asked := &v1alpha1.FleetWorkload{}
	asked.Namespace, asked.Name = key.Namespace, key.Name
	if err := c.Patch(ctx, asked, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return nil, fmt.Errorf("ask the operator, by an annotation: %w", explain(err))
	}
	answer, err := awaitAnswer(ctx, c, key, value)
	return answer, errors.Join(err, takeAway(ctx, c, key, value))
}

// awaitAnswer waits for the answer to this very question.
func awaitAnswer(ctx context.Context, c client.Client, key client.ObjectKey, value string) (*v1alpha1.ProposalStatus, error) {
	var answer *v1alpha1.ProposalStatus
	err := wait.PollUntilContextTimeout(ctx, answerPoll, answerPatience, true, func(ctx context.Context) (bool, error) {
		fw, err := read(ctx, c, key)
		if err != nil {
			return false, err
		}
		if fw.Annotations[v1alpha1.AnnotationPropose] != value {
			return false, fmt.Errorf("somebody else has asked about FleetWorkload %s in the same moment; try again", key)
		}
		answer = fw.Status.Proposal
		return answer != nil && answer.Hash == proposal.Hash(value), nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, fmt.Errorf("the operator has not answered within %s: it may be down, busy, or of a version that does not know the annotation %s; "+
			"see what doctor says, or give --config FILE to have it decided here", answerPatience, v1alpha1.AnnotationPropose)
	}
	return answer, err
}

// takeAway removes the question, unless another one has taken its place.
func takeAway(ctx context.Context, c client.Client, key client.ObjectKey, value string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeAwayPatience)
	defer cancel()
	fw, err := read(ctx, c, key)
	if err != nil || fw.Annotations[v1alpha1.AnnotationPropose] != value {
		return err
	}
	path := jsondiff.Pointer("metadata", "annotations", v1alpha1.AnnotationPropose)
	patch, err := json.Marshal([]map[string]string{{"op": "test", "path": path, "value": value}, {"op": jsondiff.OpRemove, "path": path}})
	if err != nil {
		return fmt.Errorf("take the question away: %w", err)
	}
	if err := c.Patch(ctx, fw, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("take the annotation %s away again: %w", v1alpha1.AnnotationPropose, explain(err))
	}
	return nil
}
