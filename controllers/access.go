package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/internal/pass"
)

// How long an answer counts, and how many are remembered. A right that is taken away is missed for half a minute at most, and one that is
// given is seen after ten seconds.
const (
	allowedCounts  = 30 * time.Second
	refusedCounts  = 10 * time.Second
	answersAtMost  = 10_000
	accountPrefix  = "system:serviceaccount:"
	accountsGroup  = "system:serviceaccounts"
	everybodyGroup = "system:authenticated"
)

// accesses asks the API server what ServiceAccounts may do, and remembers the answers for a while.
type accesses struct {
	once    sync.Once
	answers *cache.LRUExpireCache
}

// question is what is asked of an account of a namespace.
type question struct {
	namespace string
	pass.Access
}

// ask asks with a SubjectAccessReview, as the API server itself would for a request of the account. An error is never remembered.
func (a *accesses) ask(ctx context.Context, c client.Client, namespace string, access pass.Access) pass.Answer {
	a.once.Do(func() { a.answers = cache.NewLRUExpireCache(answersAtMost) })
	key := question{namespace, access}
	if answer, known := a.answers.Get(key); known {
		allowed, _ := answer.(bool) // nothing else is put in
		return pass.Answer{Allowed: allowed}
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   accountPrefix + namespace + ":" + access.ServiceAccount,
		Groups: []string{accountsGroup, accountsGroup + ":" + namespace, everybodyGroup},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: access.Namespace, Verb: access.Verb, Group: access.Group, Resource: access.Resource, Name: access.Name,
		},
	}}
	if err := c.Create(ctx, review); err != nil {
		return pass.Answer{Err: fmt.Errorf("create SubjectAccessReview: %w", err)}
	}
	counts := refusedCounts
	if review.Status.Allowed {
		counts = allowedCounts
	}
	a.answers.Add(key, review.Status.Allowed, counts)
	return pass.Answer{Allowed: review.Status.Allowed}
}
