//go:build e2e

package e2e

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// All scenarios run with config/flowcontrol.
var _ = Describe("What the operator asks of an API server", Label("karmada", "ocm"), func() {
	It("has a share of its own, and its lease goes first", func(ctx SpecContext) {
		for _, control := range []string{lab.Hub, lab.Karmada} {
			cfg := rest.AnonymousClientConfig(world.clusters[control].rest)
			cfg.BearerToken = world.tokens[control]
			operator, err := rest.HTTPClientFor(cfg)
			Expect(err).NotTo(HaveOccurred())
			for path, schema := range map[string]string{
				"/api/v1/namespaces": "fleetworkload",
				"/apis/coordination.k8s.io/v1/namespaces/" + operatorNamespace + "/leases/x": "fleetworkload-lease",
			} {
				var found flowcontrolv1.FlowSchema
				Expect(world.clusters[control].Get(ctx, client.ObjectKey{Name: schema}, &found)).To(Succeed())
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+path, nil)
				Expect(err).NotTo(HaveOccurred())
				Eventually(func(g Gomega) { // an API server learns of a schema by a watch
					answer, err := operator.Do(request)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(answer.Body.Close()).To(Succeed())
					g.Expect(answer.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)).To(BeEquivalentTo(found.UID), "%s on %s", path, control)
				}).WithContext(ctx).Should(Succeed())
			}
		}
	})
})
