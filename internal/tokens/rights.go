package tokens

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Renews asks the API server of cfg, by a token that it gave, whether the account may ask for tokens of itself. Credentials in cfg are not used.
func Renews(ctx context.Context, cfg *rest.Config, token Token) (bool, error) {
	as := rest.AnonymousClientConfig(cfg)
	as.BearerToken = token.Text
	clients, err := kubernetes.NewForConfig(as)
	if err != nil {
		return false, fmt.Errorf("connect to %s: %w", cfg.Host, err)
	}
	answer, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: token.Account.Namespace, Verb: "create", Resource: "serviceaccounts", Subresource: "token", Name: token.Account.Name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask %s what ServiceAccount %s may do: %w", cfg.Host, token.Account, err)
	}
	return answer.Status.Allowed, nil
}
