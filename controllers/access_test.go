package controllers

import (
	"context"
	"errors"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// An answer is remembered, a failure is not, and accounts of two namespaces are two.
func TestAccessIsAskedOnce(t *testing.T) {
	var asked []authorizationv1.SubjectAccessReviewSpec
	var fails error
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			review, is := obj.(*authorizationv1.SubjectAccessReview)
			if !is {
				t.Errorf("it creates %T", obj)
				return nil
			}
			asked = append(asked, review.Spec)
			review.Status.Allowed = review.Spec.ResourceAttributes.Namespace == "shop"
			return fails
		},
	}).Build()
	var known accesses
	may := func(namespace string) pass.Answer {
		return known.ask(t.Context(), c, namespace, pass.Access{
			ServiceAccount: "deployer", Right: plan.Right{Verb: "create", Group: "apps", Resource: "deployments", Namespace: namespace},
		})
	}
	fails = errors.New("away")
	if got := may("shop"); got.Err == nil || got.Allowed {
		t.Errorf("without an API server it is %+v", got)
	}
	fails = nil
	for range 3 {
		if got := may("shop"); got.Err != nil || !got.Allowed {
			t.Errorf("it is %+v", got)
		}
		if got := may("bank"); got.Err != nil || got.Allowed {
			t.Errorf("another namespace's account: it is %+v", got)
		}
	}
	if len(asked) != 3 {
		t.Errorf("it asks %d times, not 3", len(asked))
	}
	want := []string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"}
	if asked[0].User != "system:serviceaccount:shop:deployer" || !slices.Equal(asked[0].Groups, want) {
		t.Errorf("it asks for %s of %q", asked[0].User, asked[0].Groups)
	}
}
