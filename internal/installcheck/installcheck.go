// Package installcheck asks of an operator that was just installed whether it does its work there: what `helm test` runs.
package installcheck

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Webhook is what the API server calls the operator's webhook, as in config/webhook.
const Webhook = "authors.fleetworkload.io"

// interval is how often it is asked.
const interval = 2 * time.Second

// Ready waits until a replica answers that it is ready. The error has what was answered last.
func Ready(ctx context.Context, replicas *http.Client, url string) error {
	err := until(ctx, func(ctx context.Context) error { return ready(ctx, replicas, url) })
	if err != nil {
		return fmt.Errorf("no replica of the operator says that it is ready: %w; look at its pods and their logs", err)
	}
	return nil
}

func ready(ctx context.Context, replicas *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := replicas.Do(request)
	if err != nil {
		return err // it has method and address
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return fmt.Errorf("read what %s answers: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, response.Status, strings.Join(strings.Fields(string(said)), " "))
	}
	return nil
}

// Authors waits until the API server refuses, on the webhook's word, a FleetWorkload whose author may not create the Deployment in it. So the API server
// has the CRD, reaches the webhook and trusts its certificate, and the webhook can ask what people may do. The author is who api belongs to: they need
// the right to create FleetWorkloads in the namespace, and none to create Deployments. Nothing is stored.
func Authors(ctx context.Context, api client.Client, namespace string) error {
	return until(ctx, func(ctx context.Context) error {
		err := api.Create(ctx, refusable(namespace), client.DryRunAll)
		switch {
		case err == nil:
			return fmt.Errorf("a FleetWorkload in namespace %s was accepted from an author without the right to create its Deployment: nobody asks the webhook %s; "+
				"see whether its ValidatingWebhookConfiguration is there, and that the author has no more rights than to create FleetWorkloads", namespace, Webhook)
		case strings.Contains(err.Error(), fmt.Sprintf("admission webhook %q denied the request", Webhook)):
			return nil
		case strings.Contains(err.Error(), fmt.Sprintf("failed calling webhook %q", Webhook)):
			return fmt.Errorf("the API server gets no answer from the operator's webhook: %w; see whether its network reaches the operator's pods", err)
		}
		return fmt.Errorf("create a FleetWorkload in namespace %s, as a dry run: %w", namespace, err)
	})
}

// refusable is a FleetWorkload that is sound, but for its author's rights.
func refusable(namespace string) *v1alpha1.FleetWorkload {
	const name = "installation-check"
	return &v1alpha1.FleetWorkload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.FleetWorkloadSpec{
			Backend: name,
			Template: runtime.RawExtension{Raw: []byte(`{"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": {"matchLabels": {"app": "a"}},
				"template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}}}`)},
			Placement: v1alpha1.Placement{Clusters: &v1alpha1.ClusterSelector{Names: []string{name}}},
		},
	}
}

// until asks again and again, and returns the last error when the context ends.
func until(ctx context.Context, ask func(context.Context) error) error {
	var last error
	if err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		// What the end of the context has cut off tells nothing.
		if err := ask(ctx); ctx.Err() == nil || last == nil {
			last = err
		}
		return last == nil, nil
	}); err != nil && last == nil {
		return err
	}
	return last
}
