package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// webhookSecret keeps the certificate that the webhook serves with: the operator's own, or cert-manager's.
const webhookSecret = "fleetworkload-webhook"

// soon is how long before its end a certificate is told of. Whoever renews it has had time to by then.
const soon = 14 * 24 * time.Hour

// lookAtWebhook tells whether authors are asked for their rights: the API server trusts the webhook, and finds somebody who answers.
func (o doctorOptions) lookAtWebhook(ctx context.Context, c client.Reader, now time.Time) (found []finding) {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := c.Get(ctx, client.ObjectKey{Name: "fleetworkload"}, configuration)
	switch {
	case apierrors.IsNotFound(err):
		return []finding{ill(gradeNote, aspectWebhook, do("turn the webhook on, or bound who may create FleetWorkloads otherwise (docs/security.md)"),
			"there is no webhook: who may create a FleetWorkload may ship what the operator may")}
	case err != nil:
		return []finding{unread(aspectWebhook, "the webhook's configuration", err)}
	}
	for _, w := range configuration.Webhooks {
		distrusted := lookAtAuthority(w.ClientConfig.CABundle, now)
		found = append(found, distrusted...)
		if !slices.ContainsFunc(distrusted, func(f finding) bool { return f.Grade == gradeProblem }) {
			found = append(found, o.lookAtServing(ctx, c, w.ClientConfig, now)...)
		}
		if service := w.ClientConfig.Service; service != nil {
			found = append(found, lookAtService(ctx, c, service)...)
		}
	}
	if len(found) == 0 {
		return []finding{well(aspectWebhook, "the webhook is configured")}
	}
	return found
}

// unanswered is what a webhook without which nothing can be admitted means.
const unanswered = "nobody can create or edit a FleetWorkload"

// lookAtAuthority looks at what the API server trusts the webhook by. Of several certificates one that holds is enough.
func lookAtAuthority(bundle []byte, now time.Time) []finding {
	own := do("look at the operator's log: it puts its own certificate authority there")
	if len(bundle) == 0 {
		return []finding{ill(gradeProblem, aspectWebhook, own, "the webhook has no certificate authority: %s", unanswered)}
	}
	authorities, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return []finding{ill(gradeProblem, aspectWebhook, own, "the webhook's certificate authority cannot be read (%v): %s", err, unanswered)}
	}
	var until time.Time
	for _, authority := range authorities {
		if authority.NotAfter.After(until) {
			until = authority.NotAfter
		}
	}
	renew := do("look at the operator's log: it renews its certificate authority; one of your own (--webhook-cert-dir) is yours to renew")
	switch left := until.Sub(now); {
	case left <= 0:
		return []finding{ill(gradeProblem, aspectWebhook, renew, "the webhook's certificate authority has expired at %s: %s", until.UTC().Format(time.RFC3339), unanswered)}
	case left < soon:
		return []finding{ill(gradeNote, aspectWebhook, renew, "the webhook's certificate authority expires at %s", until.UTC().Format(time.RFC3339))}
	}
	return nil
}

// lookAtServing looks at the certificate that the webhook serves with: the API server trusts it, for the name by which it calls the webhook.
func (o doctorOptions) lookAtServing(ctx context.Context, c client.Reader, hook admissionregistrationv1.WebhookClientConfig, now time.Time) []finding {
	key, host := client.ObjectKey{Namespace: o.operatorNamespace, Name: webhookSecret}, ""
	switch {
	case hook.Service != nil:
		key.Namespace, host = hook.Service.Namespace, hook.Service.Name+"."+hook.Service.Namespace+".svc"
	case hook.URL != nil:
		if address, err := url.Parse(*hook.URL); err == nil {
			host = address.Hostname()
		}
	}
	secret := &corev1.Secret{}
	err := c.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return []finding{ill(gradeUnknown, aspectWebhook, do("one of your own (--webhook-cert-dir) is yours to look at; else look at the operator's log: it makes one"),
			"the webhook's certificate: there is no Secret %s", key)}
	case err != nil:
		return []finding{unread(aspectWebhook, "the Secret "+key.String()+" with the webhook's certificate", err)}
	}
	return judgeServing(key, secret.Data[corev1.TLSCertKey], hook.CABundle, host, now)
}

// judgeServing judges certificates, of which the first is the server's, as an API server does that trusts those authorities.
func judgeServing(key client.ObjectKey, certificates, authorities []byte, host string, now time.Time) []finding {
	chain, err := cert.ParseCertsPEM(certificates)
	renew := do("look at the operator's log: it renews its own; for one of cert-manager: kubectl describe certificates -n %s", key.Namespace)
	if err != nil {
		return []finding{ill(gradeProblem, aspectWebhook, renew, "the webhook's certificate in Secret %s cannot be read (%v): %s", key, err, unanswered)}
	}
	serving, options := chain[0], x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), DNSName: host, CurrentTime: now}
	options.Roots.AppendCertsFromPEM(authorities)
	for _, between := range chain[1:] {
		options.Intermediates.AddCert(between)
	}
	until := serving.NotAfter.UTC().Format(time.RFC3339)
	_, err = serving.Verify(options)
	switch left := serving.NotAfter.Sub(now); {
	case left <= 0:
		return []finding{ill(gradeProblem, aspectWebhook, renew, "the webhook's certificate in Secret %s has expired at %s: %s", key, until, unanswered)}
	case serving.VerifyHostname(host) != nil:
		return []finding{ill(gradeProblem, aspectWebhook, do("name %s in --webhook-hosts of the operator, or in dnsNames of the Certificate that is yours", host),
			"the webhook's certificate in Secret %s is for %s, and the API server calls %s: %s", key, cmp.Or(brief.List(serving.DNSNames), "no name"), host, unanswered)}
	case err != nil:
		return []finding{ill(gradeProblem, aspectWebhook, do("look at the operator's log: it has its own authority trusted; for one of cert-manager, see whether its ca-injector runs"),
			"the API server does not trust the webhook's certificate in Secret %s (%v): %s", key, err, unanswered)}
	case left < soon:
		return []finding{ill(gradeNote, aspectWebhook, renew, "the webhook's certificate in Secret %s expires at %s", key, until)}
	}
	return nil
}

// lookAtService tells whether somebody answers behind the webhook's Service.
func lookAtService(ctx context.Context, c client.Reader, service *admissionregistrationv1.ServiceReference) []finding {
	var list discoveryv1.EndpointSliceList
	if err := c.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}); err != nil {
		return []finding{unread(aspectWebhook, fmt.Sprintf("the endpoints of the webhook's Service %s/%s", service.Namespace, service.Name), err)}
	}
	for _, slice := range list.Items {
		if slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return ptr.Deref(e.Conditions.Ready, true) }) {
			return nil
		}
	}
	return []finding{ill(gradeProblem, aspectWebhook, do("look at the operator's pods, and at the Service's selector: kubectl get pods,services -n %s", service.Namespace),
		"the webhook's Service %s/%s has no endpoint that is ready: %s", service.Namespace, service.Name, unanswered)}
}
