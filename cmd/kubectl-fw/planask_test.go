package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/proposal"
)

// answering is a client of a management cluster with an operator that answers each question with that, at once.
func answering(t *testing.T, fw *v1alpha1.FleetWorkload, answer func(*v1alpha1.FleetWorkload)) (c client.WithWatch, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	base := fakeClient(t, fw)
	return interceptor.NewClient(base, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := c.Patch(ctx, obj, patch, opts...); err != nil {
				return err
			}
			is, err := read(ctx, base, client.ObjectKeyFromObject(obj))
			if err != nil {
				return err
			}
			*asked = append(*asked, is.Annotations[v1alpha1.AnnotationPropose])
			if is.Annotations[v1alpha1.AnnotationPropose] == "" {
				return nil
			}
			answer(is)
			status := is.Status
			if err := base.Update(ctx, is); err != nil {
				return err
			}
			is.Status = status
			return base.Status().Update(ctx, is)
		},
	}), asked
}

// TestPlanAsksTheOperator: without a configuration, the operator says what an edit comes to, and is asked no longer than that takes.
func TestPlanAsksTheOperator(t *testing.T) {
	says := func(p v1alpha1.ProposalStatus) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) {
			p.Hash, p.AnsweredAt = proposal.Hash(fw.Annotations[v1alpha1.AnnotationPropose]), ptr.To(metav1.Now())
			fw.Status.Proposal = &p
		}
	}
	updates := says(v1alpha1.ProposalStatus{Message: "Update on member1", Clusters: []v1alpha1.PlannedCluster{
		{Name: "member1", Action: v1alpha1.PlannedUpdate, Replicas: ptr.To[int32](3), ReplicasBefore: ptr.To[int32](3)},
	}, Truncated: ptr.To[int32](2)})
	image := func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"}}`)}}
	}
	for name, test := range map[string]struct {
		fresh     bool
		edit      func(*v1alpha1.FleetWorkload)
		answer    func(*v1alpha1.FleetWorkload)
		out, fail string
		questions int
	}{
		"an edit": {edit: image, answer: updates, questions: 2, out: `shop/web on backend karmada
what changes of it:
  companion Service/web: added
Update on member1

CLUSTER   ACTION   REPLICAS   WHY
member1   update   3          -
and 2 clusters more

this is the first step; what follows:
  each cluster replaces pods as the workload's own update strategy has it
`},
		"it is refused": {edit: image, answer: says(v1alpha1.ProposalStatus{Refused: "spec.template: no containers"}), questions: 2,
			out:  "shop/web on backend karmada\nwhat changes of it:\n  companion Service/web: added\n",
			fail: "it would not be carried out: spec.template: no containers"},
		"somebody else asks": {edit: image, questions: 1,
			answer: func(fw *v1alpha1.FleetWorkload) { fw.Annotations[v1alpha1.AnnotationPropose] = "theirs" },
			out:    "shop/web on backend karmada\nwhat changes of it:\n  companion Service/web: added\n",
			fail:   "somebody else has asked about FleetWorkload shop/web in the same moment"},
		"nothing changes": {edit: func(*v1alpha1.FleetWorkload) {}, out: "shop/web on backend karmada\nnothing of it changes\n"},
		"it is new": {fresh: true, edit: image, out: "shop/web on backend karmada\nit is new\nnote: what becomes of clusters is not shown: " +
			"the operator can be asked about a FleetWorkload that is there. Give --config FILE, or create it with spec.approval: Manual and look at it with plan NAME\n"},
	} {
		t.Run(name, func(t *testing.T) {
			was := moving(t, resting)
			was.Spec.Backend, was.Status.Backend = "karmada", "karmada"
			next := was.DeepCopy()
			test.edit(next)
			c, asked := answering(t, was, test.answer)
			p := &preview{was: was, next: next, program: "kubectl-fw"}
			if test.fresh {
				p.was = nil
			}
			var out bytes.Buffer
			_, err := printedPlan(p, &out, func(p *preview, r *planResult) (bool, error) { return false, p.ask(t.Context(), c, r) })
			if out.String() != test.out {
				t.Errorf("it prints\n%s, want\n%s", out.String(), test.out)
			}
			changes := errors.Is(err, somethingChanges)
			if changes != (test.fail == "" && name != "nothing changes") || test.fail != "" && (err == nil || !strings.Contains(err.Error(), test.fail)) {
				t.Errorf("the error is %v", err)
			}
			if len(*asked) != test.questions || test.questions == 2 && (*asked)[1] != "" {
				t.Errorf("it asks %q", *asked)
			}
		})
	}
}

// TestTheQuestionIsTakenAway also when somebody interrupts the command.
func TestTheQuestionIsTakenAway(t *testing.T) {
	was := moving(t, resting)
	ctx, interrupt := context.WithCancel(t.Context())
	c, asked := answering(t, was, func(*v1alpha1.FleetWorkload) { interrupt() })
	if _, err := answered(ctx, c, was); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if len(*asked) != 2 || (*asked)[1] != "" {
		t.Errorf("it leaves %q", *asked)
	}
}
