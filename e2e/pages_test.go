//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/hack/docs"
)

const (
	onlyNamed = "it names a command"
	// schemas is why parts of manifests are not applied.
	schemas = "TestManifests of hack/docs holds them to their schemas"
)

func companionsPage() walk {
	return walk{page: "docs/companions.md", standIns: because(onlyNamed, "kubectl fw interpret", "kubectl fw plan")}
}

func autoscalingPage() walk {
	return walk{page: "docs/autoscaling.md", parts: schemas, standIns: because(onlyNamed, "kubectl scale")}
}

func conditionsPage() walk {
	return walk{page: "docs/conditions.md", standIns: because(onlyNamed,
		"kubectl wait", "kubectl fw backend retire", "kubectl fw plan NAME", "kubectl fw approve NAME")}
}

// conceptsPage has two changes wait for approval: one that is approved by the value that its plan shows, and one by its plan.
func (n *newcomer) conceptsPage() walk {
	types := func(where string, command func() string) func(context.Context) {
		return func(ctx context.Context) {
			GinkgoHelper()
			n.types(ctx, docs.Step{Where: where, Text: command()}, 0)
		}
	}
	shown := func() string { return lastLineAfter("with: ", n.said["kubectl fw plan web"]) }
	return walk{page: "docs/concepts.md", parts: schemas, standIns: map[string]standIn{
		"make soak":                      {why: "make test runs it after the scenarios"},
		"kubectl fw status NAME -o yaml": {why: "a name is to be filled in", do: types("with a name", func() string { return "kubectl fw status web -o yaml" })},
		"kubectl get fleetworkload NAME -o jsonpath='{.status.packed}' | base64 -d | gunzip": {
			why: "only large fleets have the field; api/v1alpha1/packed_test.go unpacks it"},
		"kubectl fw approve web --change VALUE": {why: "a value is to be filled in", do: types("with the value that the plan shows", shown)},
	}, before: map[string]func(context.Context){
		"kubectl fw plan web":           func(ctx context.Context) { waitsForApprovalOf(ctx, "nginx:1.28") },
		"kubectl fw plan web --approve": func(ctx context.Context) { waitsForApprovalOf(ctx, "nginx:1.29") },
	}, ends: map[string]int{"kubectl fw plan web": 2}}.but(because(onlyNamed,
		"kubectl fw", "kubectl scale", "kubectl get -o yaml", "kubectl fw import", "kubectl fw history", "kubectl fw undo"))
}

// lastLineAfter is what follows some words in the last of several outputs, up to the end of the line.
func lastLineAfter(words string, printed []string) string {
	GinkgoHelper()
	Expect(printed).NotTo(BeEmpty())
	_, rest, found := strings.Cut(printed[len(printed)-1], words)
	Expect(found).To(BeTrue(), "%q in\n%s", words, printed[len(printed)-1])
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// waitsForApprovalOf gives the page's workload another image, which waits.
func waitsForApprovalOf(ctx context.Context, image string) {
	GinkgoHelper()
	web := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web"}}
	becomesReady(ctx, web)
	edit(ctx, web, func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Approval = v1alpha1.ApprovalPolicyManual
		setImage(fw, image)
	})
	eventually(ctx, web, readyTimeout, func(g Gomega) { g.Expect(web.Status.Change).NotTo(BeNil()) })
}

func (n *newcomer) alertsPage() walk {
	onKarmada := func(ctx context.Context) {
		GinkgoHelper()
		n.types(ctx, docs.Step{Where: "the same on Karmada", Text: "kubectl --kubeconfig karmada-admin.kubeconfig get clusters"}, 0)
	}
	const nothingFound = 1 // by grep: all is well
	return walk{page: "docs/alerts.md", standIns: map[string]standIn{
		"kubectl get clusters":                            {why: "Karmada has them, and the context is the management cluster", do: onKarmada},
		"kubectl top pod -n fleetworkload-system":         {why: "the fleet has no metrics server"},
		"helm test fleetworkload -n fleetworkload-system": {why: noPods},
	}, ends: map[string]int{
		"kubectl get fw -A | grep RemovalHeld":            nothingFound,
		"kubectl get fw -A | grep MigrationNeedsApproval": nothingFound,
		"kubectl get fw -A | grep MigrationFailed":        nothingFound,
	}}.but(because(onlyNamed, "kubectl port-forward", "kubectl fw kubeconfig", "kubectl fw status", "kubectl fw approve"))
}

func tenancyPage() walk {
	return walk{page: "docs/tenancy.md", parts: schemas,
		standIns: because(onlyNamed, "kubectl fw render --config", "kubectl fw migrate --dry-run", "kubectl fw plan -f", "kubectl create role"),
		before:   map[string]func(context.Context){"kubectl apply -f api.yaml --as=jane": rightsOfJane},
	}
}

// rightsOfJane waits until the API server knows what the bindings that are there give.
func rightsOfJane(ctx context.Context) {
	GinkgoHelper()
	for binding, resource := range map[string]string{"jane-edits": "fleetworkloads.apps.fleetworkload.io", "jane-ships": "deployments.apps"} {
		err := hub().Get(ctx, client.ObjectKey{Namespace: shop, Name: binding}, &rbacv1.RoleBinding{})
		if apierrors.IsNotFound(err) {
			continue
		}
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (string, error) {
			return world.kubectl(ctx, lab.Hub, "auth", "can-i", "create", resource, "-n", shop, "--as=jane")
		}).WithContext(ctx).Should(Equal("yes\n"))
	}
}

// argoCD is a ConfigMap of Argo CD's with something in it, and its namespace, as somebody applies them who says --server-side and no field manager.
const argoCD = `
apiVersion: v1
kind: Namespace
metadata: {name: argocd}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd}
data: {url: "https://argocd.example.com"}
`

func gitopsPage() walk {
	const applied = "kubectl apply --server-side --field-manager=fleetworkload -n argocd -f config/argocd/argocd-cm.yaml"
	return walk{page: "docs/gitops.md", parts: "hack/tools builds the chart and the kustomizations, and " + schemas, standIns: map[string]standIn{
		"kubectl wait --for=condition=Ready fleetworkload/shop-web --timeout=15m": {why: "the chart is for other clusters than the fleet's"},
	}, before: map[string]func(context.Context){applied: func(ctx context.Context) {
		GinkgoHelper()
		_, err := world.kubectlWith(ctx, argoCD, lab.Hub, "apply", "--server-side", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
	}}}.but(because(onlyNamed, "kubectl scale", "helm rollback", "kubectl fw undo", "helm uninstall", "helm upgrade", "kubectl rollout restart",
		"kubectl apply --server-side"))
}

func testFleetPage() walk {
	return walk{page: "docs/test-fleet.md", standIns: because("it starts fleets of its own, or ends one",
		"make lab-up", "make lab-down", "make drivers", "make scenarios", "make e2e", "make demo")}
}

func securityPage() walk {
	return walk{page: "docs/security.md", standIns: because(onlyNamed, "kubectl fw undo --dry-run")}
}

// holder comes to Karmada with the kubeconfig that kubectl fw kubeconfig has made.
func holder(ctx context.Context) kubernetes.Interface {
	GinkgoHelper()
	var secret corev1.Secret
	Expect(hub().Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "karmada-kubeconfig"}, &secret)).To(Succeed())
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	Expect(err).NotTo(HaveOccurred())
	clients, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return clients
}

// isKnown asks Karmada who has a token.
func isKnown(ctx context.Context, clients kubernetes.Interface) error {
	_, err := clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	return err
}

// losesAToken has somebody steal the operator's token of Karmada, and follows the page. All operators' tokens of Karmada end with it.
func (n *newcomer) losesAToken(ctx context.Context) {
	GinkgoHelper()
	stopShared(ctx)
	DeferCleanup(func(ctx SpecContext) {
		_, err := world.kubectl(ctx, lab.Karmada, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(world.config, "backends/karmada"))
		Expect(err).NotTo(HaveOccurred())
		Expect(world.newToken(ctx, lab.Karmada)).To(Succeed())
		kubectl(ctx, "delete", "secret", "karmada-kubeconfig", "-n", operatorNamespace, "--ignore-not-found")
	})
	n.types(ctx, docs.Step{Where: "what comes before", Text: "kubectl fw kubeconfig karmada --backend-kubeconfig karmada-admin.kubeconfig"}, 0)
	thief := holder(ctx)
	Expect(isKnown(ctx, thief)).To(Succeed())
	n.follow(ctx, securityPage())
	Eventually(func() error { return isKnown(ctx, thief) }).WithContext(ctx).WithTimeout(time.Minute).Should(MatchError(apierrors.IsUnauthorized, "IsUnauthorized"))
	Expect(isKnown(ctx, holder(ctx))).To(Succeed())
}

var _ = Describe("Whoever tries what a page says", Label("docs", "commandline", "karmada", "ocm"), long, func() {
	It("ships companions, approves changes, scales, and looks for what an alert is about", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) { removeEverywhere(ctx, shop) }, NodeTimeout(4*time.Minute))
		n := newNewcomer()
		n.afterFirstHour(ctx)
		n.follow(ctx, companionsPage())
		n.types(ctx, docs.Step{Where: "what comes before", Text: "kubectl config set-context --current --namespace=" + shop}, 0)
		n.follow(ctx, n.conceptsPage())
		n.follow(ctx, conditionsPage())
		n.follow(ctx, autoscalingPage())
		web := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web"}}
		becomesReady(ctx, web)
		Expect(web.Spec.Replicas).To(HaveValue(BeEquivalentTo(12)), "what the page on autoscaling has people write last")
		n.follow(ctx, n.alertsPage())
		remove(ctx, web)
	}, NodeTimeout(5*time.Minute))

	It("ships what an author may, has Argo CD understand it, and takes a stolen token's power away", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) { removeEverywhere(ctx, shop) }, NodeTimeout(4*time.Minute))
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "namespace", "argocd", "--ignore-not-found") })
		n := newNewcomer()
		n.afterFirstHour(ctx)
		n.follow(ctx, tenancyPage())
		api := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "api"}}
		becomesReady(ctx, api)
		remove(ctx, api)

		n.follow(ctx, gitopsPage())
		var settings corev1.ConfigMap
		Expect(hub().Get(ctx, client.ObjectKey{Namespace: "argocd", Name: "argocd-cm"}, &settings)).To(Succeed())
		Expect(settings.Data).To(And(HaveLen(1+4), HaveKeyWithValue("url", "https://argocd.example.com")), "four keys beside what was there")

		Expect(os.Symlink(world.fleet.Dir(), filepath.Join(n.dir, ".lab"))).To(Succeed())
		n.follow(ctx, testFleetPage())
		n.losesAToken(ctx)
	}, NodeTimeout(5*time.Minute))
})
