package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/config/rbac"
	"github.com/fleetworkload/fleetworkload/internal/connection"
	"github.com/fleetworkload/fleetworkload/internal/tokens"
)

// managementCluster is where the Secrets with the operator's kubeconfigs are.
type managementCluster struct {
	client.Reader
	// namespace is the operator's.
	namespace string
	// ask tells what the operator's account may do there.
	ask asker
}

// asksFor asks an API server what an account, NAMESPACE/NAME, may do there.
func (e endpoint) asksFor(account string) asker {
	return func(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
		if e.err != nil {
			return false, e.err
		}
		reviews, err := authorizationclient.NewForConfigAndClient(e.cfg, e.client)
		if err != nil {
			return false, err
		}
		return ofAnother(reviews, account)(ctx, attributes)
	}
}

// lookAtToken tells whether the token by which the operator reaches the backend is renewed in time. One that does not end is not looked at,
// nor one that has ended: the connection says so.
func (d backendDoctor) lookAtToken(ctx context.Context, api endpoint) []finding {
	token, err := tokens.Read(api.cfg.BearerToken)
	if d.Connection.SecretRef == nil || err != nil || !d.now().Before(token.Expires) {
		return nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: d.management.namespace, Name: d.Connection.SecretRef.Name}
	if err := d.management.Get(ctx, key, secret); err != nil {
		return []finding{unread(aspectRights, "the Secret "+key.String(), err)}
	}
	due := token.Issued.Add(tokens.RenewAfter(token.Life()))
	until, late := token.Expires.UTC().Format(time.RFC3339), d.now().Sub(due)
	if _, renewed := secret.Annotations[tokens.AnnotationRenewAfter]; !renewed {
		if late < 0 {
			return nil
		}
		return []finding{ill(gradeNote, aspectConnection, do("renew it in time, or make one that the operator renews: %s", connection.Anew(d.Backend)),
			"the operator's token in Secret %s holds until %s, and the operator does not renew it", key, until)}
	}
	found := d.lookAtRenewal(ctx, api, token, key)
	if len(found) == 0 && late > token.Life()/10 {
		return []finding{ill(gradeProblem, aspectConnection, do("see the operator's log, and the Events of the Secret: kubectl events -n %s --for secret/%s", key.Namespace, key.Name),
			"the operator's token in Secret %s holds until %s, and the operator has not renewed it", key, until)}
	}
	return found
}

// lookAtRenewal tells whether the operator may ask the backend for another token of its account, and write it into the Secret.
func (d backendDoctor) lookAtRenewal(ctx context.Context, api endpoint, token tokens.Token, key client.ObjectKey) (found []finding) {
	until := fmt.Sprintf("its token holds until %s, and then the backend is lost", token.Expires.UTC().Format(time.RFC3339))
	folder := "config/backends/" + strings.ToLower(string(d.Type))
	reviews, err := authorizationclient.NewForConfigAndClient(api.cfg, api.client)
	if err != nil {
		return []finding{unread(aspectRights, "the operator's right to renew its token", err)}
	}
	rules, err := rbac.TokenRules()
	if err != nil {
		return []finding{unread(aspectRights, "the operator's right to renew its token", err)}
	}
	for _, check := range []struct {
		rights []right
		ask    asker
		on     authorizationv1.ResourceAttributes
		remedy remedy
	}{
		{rightsOf(rules), ofMyself(reviews), authorizationv1.ResourceAttributes{Namespace: token.Account.Namespace, Name: token.Account.Name},
			do("grant it as an administrator of the backend: kubectl apply -k %s", folder)},
		{[]right{{"", "secrets", "update"}}, d.management.ask, authorizationv1.ResourceAttributes{Namespace: key.Namespace, Name: key.Name},
			do("name the Secret in the Role fleetworkload-management of the management cluster: with Helm in backends, with kustomize in config/rbac/management/role.yaml")},
	} {
		missing, err := denied(ctx, check.rights, check.ask, check.on)
		switch {
		case err != nil:
			found = append(found, unread(aspectRights, "the operator's right to renew its token", err))
		case len(missing) > 0:
			found = append(found, ill(gradeProblem, aspectRights, check.remedy, "the operator may not %s (%s/%s): %s",
				phrase(missing), check.on.Namespace, check.on.Name, until))
		}
	}
	return found
}
