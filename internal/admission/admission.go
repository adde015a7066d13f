// Package admission is the validating webhook of FleetWorkloads: nobody gets something onto clusters through one that they may not create
// on the management cluster themselves.
package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/plan"
	"github.com/fleetworkload/fleetworkload/internal/proposal"
)

// Path is where the webhook is served.
const Path = "/validate-fleetworkload"

// Asked are the fields of a spec that say what is shipped and where: whoever changes one is asked for their rights.
var Asked = []string{
	"backend", "template", "companions", "dependencies", "placement", "overrides", "conflictPolicy", "serviceAccountName", "backendOptions",
}

// Free are the fields that anybody who may update a FleetWorkload may change, also while nobody answers the webhook: to scale, to suspend and
// to delete must work always.
var Free = []string{"replicas", "migration", "drift", "deletionPolicy", "suspend", "approval", "revisionHistoryLimit"}

// Validator answers admission reviews of FleetWorkloads.
type Validator struct {
	// Reviews creates SubjectAccessReviews on the management cluster.
	Reviews client.Writer
	// Decoder knows FleetWorkloads.
	Decoder admission.Decoder
	// Kinds are those that the operator carries.
	Kinds *interpreter.Registry
	// LeaveOut are kinds of dependencies that are never read, so that no right to them is needed.
	LeaveOut []string
}

// Handle allows a FleetWorkload when its author may create all that it ships, and get all that is read for it. When its spec names a ServiceAccount, the
// author must be allowed to use that; what the account may ship is asked by the operator, at every pass.
func (v *Validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	fw, proposes, changed, err := v.read(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if changed {
		if response := v.mayShip(ctx, request, fw); !response.Allowed {
			return response
		}
	}
	if proposes {
		// What nobody could apply is not looked at, and the status says why.
		if next, err := proposal.Decode(ctx, fw, fw.Annotations[v1alpha1.AnnotationPropose]); err == nil {
			return v.mayShip(ctx, request, next)
		}
	}
	return admission.Allowed("")
}

// mayShip allows what the author may create by themselves. To learn what a spec comes to takes the same rights as to have it carried out: the answer
// says what there is on clusters.
func (v *Validator) mayShip(ctx context.Context, request admission.Request, fw *v1alpha1.FleetWorkload) admission.Response {
	rights, because := v.rights(fw)
	var refused []plan.Right
	for _, right := range rights {
		allowed, err := v.allowed(ctx, request.UserInfo, right)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot ask what an author may do", "namespace", fw.Namespace, "name", fw.Name)
			return admission.Errored(http.StatusServiceUnavailable, fmt.Errorf("ask the management cluster whether you may %s: %w; nothing is "+
				"changed, try again", right, err))
		}
		if !allowed {
			refused = append(refused, right)
		}
	}
	if len(refused) > 0 {
		return admission.Denied(refusal(request.UserInfo.Username, fw, refused, because))
	}
	return admission.Allowed("")
}

// read returns the FleetWorkload as it will be, and whether its author is to be asked for anything: for what it ships, or for what they propose.
func (v *Validator) read(request admission.Request) (fw *v1alpha1.FleetWorkload, proposes, changed bool, err error) {
	fw = &v1alpha1.FleetWorkload{}
	if request.Operation != admissionv1.Create && request.Operation != admissionv1.Update {
		return fw, false, false, nil
	}
	if err := v.Decoder.Decode(request, fw); err != nil {
		return nil, false, false, fmt.Errorf("read the FleetWorkload: %w", err)
	}
	// generateName has no name yet, and needs one to be understood.
	if fw.Name == "" {
		fw.Name = fw.GenerateName + "x"
	}
	fw.Namespace = request.Namespace
	// Rights are to what the spec says; what a status says was written by the operator, or by somebody who would like it to be.
	fw.Status = v1alpha1.FleetWorkloadStatus{}
	asked := fw.Annotations[v1alpha1.AnnotationPropose]
	if request.Operation == admissionv1.Create {
		return fw, asked != "", true, nil
	}
	var old v1alpha1.FleetWorkload
	if err := v.Decoder.DecodeRaw(request.OldObject, &old); err != nil {
		return nil, false, false, fmt.Errorf("read the FleetWorkload as it was: %w", err)
	}
	changed, err = ships(&old.Spec, &fw.Spec)
	return fw, asked != "" && asked != old.Annotations[v1alpha1.AnnotationPropose], changed, err
}

// ships tells whether a change of the spec changes what is shipped, or where.
func ships(old, now *v1alpha1.FleetWorkloadSpec) (bool, error) {
	was, err := askedOf(old)
	if err != nil {
		return false, err
	}
	is, err := askedOf(now)
	return !reflect.DeepEqual(was, is), err
}

// askedOf is a spec without its free fields, as data, in which the order of keys makes no difference.
func askedOf(spec *v1alpha1.FleetWorkloadSpec) (map[string]any, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("write spec as JSON: %w", err)
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("read spec as data: %w", err)
	}
	for _, name := range Free {
		delete(fields, name)
	}
	return fields, nil
}

// rights are what the author needs. Nobody can tell of what cannot be understood, which may ship something once an administrator allows its kind: who writes
// it must be allowed to create everything in the namespace, and otherwise learns why it is not understood.
func (v *Validator) rights(fw *v1alpha1.FleetWorkload) (rights []plan.Right, because error) {
	if account := fw.Spec.ServiceAccountName; account != "" {
		return []plan.Right{{Verb: v1alpha1.VerbUse, Resource: "serviceaccounts", Namespace: fw.Namespace, Name: account}}, nil
	}
	p, err := plan.New(fw, v.Kinds)
	if err != nil {
		return []plan.Right{{Verb: "create", Group: "*", Resource: "*", Namespace: fw.Namespace}}, err
	}
	needs := slices.DeleteFunc(p.NeedsAnywhere(), func(n plan.Need) bool { return slices.Contains(v.LeaveOut, n.Kind) })
	return p.Rights(needs), nil
}

// allowed asks as the API server would for a request of the user.
func (v *Validator) allowed(ctx context.Context, user authenticationv1.UserInfo, right plan.Right) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: right.Verb, Group: right.Group, Resource: right.Resource, Namespace: right.Namespace, Name: right.Name,
		},
	}}
	if err := v.Reviews.Create(ctx, review); err != nil {
		return false, fmt.Errorf("create SubjectAccessReview: %w", err)
	}
	return review.Status.Allowed, nil
}

// refusal says what is missing, and what to do.
func refusal(user string, fw *v1alpha1.FleetWorkload, refused []plan.Right, because error) string {
	if because != nil {
		return fmt.Sprintf("%s. Only who may create everything in namespace %q may write what cannot be understood", because, fw.Namespace)
	}
	const shown = 5
	texts := make([]string, 0, shown)
	for _, right := range refused[:min(shown, len(refused))] {
		where := " on the management cluster"
		if right.Namespace != "" {
			where = fmt.Sprintf(" in namespace %q", right.Namespace)
		}
		texts = append(texts, right.String()+where)
	}
	if more := len(refused) - shown; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	remedy := "get a Role on the management cluster that allows it, or name a ServiceAccount in spec.serviceAccountName that may, and that you may use"
	if fw.Spec.ServiceAccountName != "" {
		remedy = fmt.Sprintf("spec.serviceAccountName %q: get a Role that allows it, or name another one", fw.Spec.ServiceAccountName)
	}
	return fmt.Sprintf("user %q may not %s, so that no FleetWorkload may do it for them: %s", user, strings.Join(texts, ", "), remedy)
}
