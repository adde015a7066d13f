//go:build e2e

package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// From what is not ours to a backend of one's choice: the steps are those that import prints.
var _ = Describe("What a team has on plain Karmada", Label("handover", "commandline", "karmada", "ocm"), func() {
	It("is imported, taken over, and moved to OCM, without touching a pod", func(ctx SpecContext) {
		o := sharedOperator(ctx)
		program := buildKubectlFW(ctx)
		m, namespace, karmada := world.members, newNamespace(ctx, "import"), controlOf("karmada")
		Expect(client.IgnoreAlreadyExists(karmada.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))).To(Succeed())
		template, policy := plainDeployment(namespace), userPolicy(namespace, m[0], m[1])
		template.Spec.Replicas = ptr(int32(2))
		Expect(karmada.Create(ctx, template)).To(Succeed())
		Expect(karmada.Create(ctx, policy)).To(Succeed())
		for _, name := range m[:2] {
			Eventually(ctx, func(g Gomega) {
				var d appsv1.Deployment
				g.Expect(member(name).Get(ctx, client.ObjectKeyFromObject(template), &d)).To(Succeed())
				g.Expect(d.Status.ReadyReplicas).To(BeEquivalentTo(2))
			}).WithTimeout(readyTimeout).Should(Succeed())
		}
		pods := watchPods(namespace)
		fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}

		By("importing it")
		out, errOut, err := commandLine(ctx, program, fw, "import", "deployment/others", "--from", "karmada", "--config", o.path("config.yaml"))
		Expect(err).NotTo(HaveOccurred(), errOut)
		Expect(errOut).To(ContainSubstring("nothing: the target manifests of 2 clusters are what runs there now"))
		Expect(yaml.UnmarshalStrict([]byte(out), fw)).To(Succeed())

		By("letting go of it on Karmada, as the import has said")
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"preserveResourcesOnDeletion":true}}`))
		Expect(karmada.Patch(ctx, policy, patch)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			for _, name := range m[:2] {
				works, err := list(ctx, karmada, workGVK, client.InNamespace("karmada-es-"+name))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(preserving(works, fw)).To(BeTrue(), name)
			}
		}).WithTimeout(readyTimeout).Should(Succeed())
		Expect(karmada.Delete(ctx, template)).To(Succeed())
		Eventually(ctx, func() bool {
			return apierrors.IsNotFound(karmada.Get(ctx, client.ObjectKeyFromObject(template), &appsv1.Deployment{}))
		}).WithTimeout(readyTimeout).Should(BeTrue())
		gone(ctx, karmada, policyGVK, namespace, policy.GetName())

		By("taking it over")
		create(ctx, fw)
		becomesReady(ctx, fw)

		By("moving it")
		_, errOut, err = commandLine(ctx, program, fw, "migrate", fw.Name, "--to", "ocm", "--wait")
		Expect(err).NotTo(HaveOccurred(), errOut)
		becomesReady(ctx, fw)
		// Whether Karmada may be switched off hangs on what other scenarios have there.
		out, errOut, _ = commandLine(ctx, program, fw, "backend", "retire", "karmada", "--config", o.path("config.yaml"),
			"--backend-kubeconfig", world.fleet.Kubeconfig(lab.Karmada))
		Expect(errOut).To(Or(BeEmpty(), Equal("error: backend karmada may not be switched off yet\n")))
		Expect(out).NotTo(ContainSubstring(namespace + "/"))
		pods.undisturbed(0)
		for _, name := range m[:2] {
			var d unstructured.Unstructured
			d.SetGroupVersionKind(deployment.gvk)
			Expect(member(name).Get(ctx, client.ObjectKeyFromObject(template), &d)).To(Succeed())
			Expect(d.GetLabels()).NotTo(HaveKey("karmada.io/managed"))
		}
		remove(ctx, fw)
	}, NodeTimeout(8*time.Minute))
})
