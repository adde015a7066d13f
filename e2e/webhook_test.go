//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	world.withhold(ctx)
	answering.start(ctx)
	DeferCleanup(func(ctx SpecContext) {
		kubectl(ctx, "delete", "validatingwebhookconfiguration", configuration.Name)
		answering.stop(ctx)
		answering.close()
	})
}

// expiredCertificate writes one for the webhook, and returns it: whoever trusts it does so no longer.
func expiredCertificate(dir string) []byte {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)).To(Succeed())
	return certificate
}

// trustWebhook has the API server trust a certificate of the webhook.
func trustWebhook(ctx context.Context, certificate []byte) {
	GinkgoHelper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(hub().Get(ctx, client.ObjectKey{Name: "fleetworkload"}, configuration)).To(Succeed())
	before := configuration.DeepCopy()
	configuration.Webhooks[0].ClientConfig.CABundle = certificate
	Expect(hub().Patch(ctx, configuration, client.MergeFrom(before))).To(Succeed())
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
