//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// answering is the operator that answers the admission webhook in all scenarios. It carries nothing out, so that theirs may be killed and stopped.
var answering *operator

// answerWebhook has the API server ask about authors, as config/webhook does but for the address: here the operator is a process beside it.
func answerWebhook(ctx context.Context) {
	GinkgoHelper()
	answering = newOperator("webhook", operatorOptions{webhook: true, noBackends: true, namespaces: []string{operatorNamespace}})
	// What a scenario does to all operators that run is not done to this one.
	runningMu.Lock()
	delete(running, answering)
	runningMu.Unlock()
	for _, file := range []string{"cluster_role", "cluster_role_binding", "role", "role_binding"} {
		kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(world.config, "webhook", file+".yaml"))
	}
	raw, err := os.ReadFile(filepath.Join(world.config, "webhook", "configuration.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	Expect(yaml.UnmarshalStrict(raw, &configuration)).To(Succeed())
	hook := &configuration.Webhooks[0].ClientConfig
	url := strings.Replace("https://"+answering.webhook, "127.0.0.1", "localhost", 1) + *hook.Service.Path
	*hook = admissionregistrationv1.WebhookClientConfig{URL: &url}
	raw, err = yaml.Marshal(configuration)
	Expect(err).NotTo(HaveOccurred())
	_, err = world.kubectlWith(ctx, string(raw), lab.Hub, "apply", "--server-side", "--force-conflicts", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
	answering.start(ctx)
	DeferCleanup(func(ctx SpecContext) {
		kubectl(ctx, "delete", "validatingwebhookconfiguration", configuration.Name)
		answering.stop(ctx)
		answering.close()
	})
}

// wake has it answer again, whatever a scenario has done to it.
func (o *operator) wake(ctx context.Context) {
	GinkgoHelper()
	o.management.HideGroups()
	if r := o.current(); r == nil || r.ended() {
		o.start(ctx)
		return
	}
	Expect(o.current().cmd.Process.Signal(syscall.SIGCONT)).To(Succeed())
}
