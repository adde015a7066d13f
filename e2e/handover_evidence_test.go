//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// right is a ClusterRole with one rule, and its binding to a ServiceAccount.
func right(name, rule, account string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules:
- %[2]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects:
- {kind: ServiceAccount, %[3]s}
`, name, rule, account)
}

// letSeePods gives the operator the rights that docs/migration.md names for podEvidence.
func letSeePods(ctx context.Context, clusters ...string) {
	GinkgoHelper()
	const role = "e2e-pod-evidence"
	operator := fmt.Sprintf("name: %s, namespace: %s", operatorAccount, operatorNamespace)
	grant(ctx, lab.Karmada, right(role, `{apiGroups: [cluster.karmada.io], resources: [clusters/proxy], verbs: [get]}`, operator))
	for _, name := range clusters {
		grant(ctx, name, right(role, `{apiGroups: [""], resources: [pods], verbs: [list]}`, operator))
		grant(ctx, name, right(role+"-groups", `{apiGroups: [""], resources: [groups], verbs: [impersonate], `+
			`resourceNames: ["system:serviceaccounts", "system:serviceaccounts:`+operatorNamespace+`"]}`,
			"name: karmada-impersonator, namespace: karmada-cluster"))
	}
}

// grant gives rights to the operator until the spec ends.
func grant(ctx context.Context, control, manifests string) {
	GinkgoHelper()
	_, err := world.kubectlWith(ctx, manifests, control, "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		_, err := world.kubectlWith(ctx, manifests, control, "delete", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
	})
}

// seesPods waits until the operator's user may list pods through Karmada: Karmada lets it into members some time after it was
// given the right.
func seesPods(ctx context.Context, cluster, namespace string) {
	GinkgoHelper()
	cfg := rest.AnonymousClientConfig(world.clusters[lab.Karmada].rest)
	cfg.BearerToken = world.tokens[lab.Karmada]
	clients, err := kubernetes.NewForConfig(cfg)
	Expect(err).NotTo(HaveOccurred())
	path := fmt.Sprintf("/apis/cluster.karmada.io/v1alpha1/clusters/%s/proxy/api/v1/namespaces/%s/pods", cluster, namespace)
	Eventually(func() error { return clients.RESTClient().Get().AbsPath(path).Do(ctx).Error() }).WithContext(ctx).
		WithTimeout(30 * time.Second).Should(Succeed())
}

// restart has the containers of one of a workload's pods look as if they had been restarted.
func restart(ctx context.Context, fw *v1alpha1.FleetWorkload, cluster string, times int32) {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(member(cluster).List(ctx, pods, client.InNamespace(fw.Namespace))).To(Succeed())
	Expect(pods.Items).NotTo(BeEmpty())
	pod := &pods.Items[0]
	Expect(pod.Status.ContainerStatuses).NotTo(BeEmpty())
	pod.Status.ContainerStatuses[0].RestartCount = times
	Expect(member(cluster).Status().Update(ctx, pod)).To(Succeed())
}

var _ = Describe("The evidence of a hand-over", Label("handover", "karmada", "ocm"), func() {
	It("counts restarts when the operator may look at pods, and goes without when it may not", func(ctx SpecContext) {
		o, _ := ownOperator(ctx, "evidence", operatorOptions{everywhere: true, podEvidence: true})
		o.start(ctx)
		m := world.members
		fw := workload(newNamespace(ctx, "evidence"), "web", "karmada", cloneSet, 2)
		fw.Spec.Placement.Clusters = on(m[0], m[1])
		becomesReady(ctx, create(ctx, fw))
		restart(ctx, fw, m[1], 3)
		counts := func(backend string, want ...any) {
			GinkgoHelper()
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = backend })
			eventually(ctx, fw, readyTimeout, func(g Gomega) {
				g.Expect(fw.Status.Backend).To(Equal(backend))
				g.Expect(fw.Status.Migration.Phase).To(BeEmpty())
				for i, c := range fw.Status.Migration.History[0].Clusters {
					g.Expect(c.Before.Restarts).To(HaveValue(Equal(want[i])), "before, on %s", c.Name)
					g.Expect(c.After.Restarts).To(HaveValue(Equal(want[i])), "after, on %s", c.Name)
				}
			})
		}
		By("moving without the rights")
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "ocm" })
		eventually(ctx, fw, readyTimeout, func(g Gomega) {
			g.Expect(fw.Status.Backend).To(Equal("ocm"))
			g.Expect(fw.Status.Migration.Phase).To(BeEmpty())
		})
		for _, c := range fw.Status.Migration.History[0].Clusters {
			Expect(c.Before.Restarts).To(BeNil())
			Expect(c.After.Restarts).To(BeNil())
		}
		By("moving with them")
		letSeePods(ctx, m[0], m[1])
		for _, name := range m[:2] {
			seesPods(ctx, name, fw.Namespace)
		}
		counts("karmada", int32(0), int32(3))
		counts("ocm", int32(0), int32(3))
		remove(ctx, fw)
	}, SpecTimeout(12*time.Minute))
})
