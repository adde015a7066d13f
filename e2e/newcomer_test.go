//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/hack/docs"
)

const (
	// trial is the namespace that the first hour makes, store that of the story, examples that of the command line's page, shop that of the others.
	trial, store, examples, shop = "fw-trial", "store", "demo", "shop"
	// podsTyped is typed before a hand-over and after it.
	podsTyped = "kubectl --context %s get pods -n %s -o 'custom-columns=NAME:.metadata.name,UID:.metadata.uid,RESTARTS:.status.containerStatuses[*].restartCount'"
	imports   = "kubectl fw import deployment/web -n store --from karmada --config operator.yaml > web.yaml"
	noPods    = "no node of the management cluster runs pods"
	byHelm    = "the operator is a process here; TestHelm of e2e/install types it"
)

func (n *newcomer) firstHour() walk {
	return walk{page: "docs/first-hour.md", ends: map[string]int{"kubectl fw plan -f web.yaml --config operator.yaml": 2}, standIns: map[string]standIn{
		"make demo": {why: "it starts a fleet of its own"},
		"git clone https://github.com/fleetworkload/fleetworkload && cd fleetworkload": {why: "the commit to be tested is here", do: n.copyCheckout},
		"make images IMAGE_REPO=registry.example.com/fleetworkload IMAGE_TAG=trial":    {why: "there is no registry; make verify-images builds images"},
		"helm install fleetworkload charts/fleetworkload -n fleetworkload-system --create-namespace -f values.yaml": {
			why: byHelm, do: n.runOperator},
		"kubectl rollout status deployment/fleetworkload -n fleetworkload-system": {why: noPods},
		"helm test fleetworkload -n fleetworkload-system":                         {why: byHelm},
		"helm test": {why: "it names the command above it"},
		"helm upgrade fleetworkload charts/fleetworkload -n fleetworkload-system -f values.yaml": {why: "both backends are there from the beginning; TestHelm of e2e/install types it"},
		"helm uninstall fleetworkload -n fleetworkload-system":                                   {why: byHelm, do: n.stopOperator},
	}}
}

func (n *newcomer) readme() walk {
	return walk{page: "README.md", standIns: map[string]standIn{
		"make demo":   {why: "it starts a fleet of its own", do: n.begin},
		"make test":   {why: "it runs this scenario"},
		"make unit":   {why: "make test runs it before this scenario"},
		"make images": {why: "make verify-images builds images"},
	}}
}

func (n *newcomer) migration() walk {
	const part, placeholder, mention, one = "a part of the operator's configuration", "a name is to be filled in", "it names a command that stands elsewhere", "the fleet has one Karmada"
	return walk{page: "docs/migration.md", sooner: map[string]string{"soak: 5m": "soak: 1s", "soak: 1m": "soak: 1s"}, standIns: map[string]standIn{
		"kubectl fw backend retire NAME --preserve": {why: placeholder},
		"clusterAliases:":    {why: part},
		"backends:":          {why: part},
		"# on Karmada":       {why: "what counts restarts has scenarios of its own"},
		`- apiGroups: [""]`:  {why: "what counts restarts has scenarios of its own"},
		"migrations:":        {why: part, do: n.withoutWaves},
		"kubectl fw migrate": {why: mention},
		"to: ocm":            {why: "a report of other FleetWorkloads"},
		"kubectl fw migrate --all -A --from karmada-old --to ocm":                                                  {why: one},
		"kubectl fw backend retire karmada-old --config operator.yaml --backend-kubeconfig karmada-old.kubeconfig": {why: one},
		"kubectl fw migrate --all -A --from ocm --to karmada-new":                                                  {why: one},
		"kubectl fw backend retire karmada --config operator.yaml --backend-kubeconfig karmada-admin.kubeconfig": {
			why: "it lists what other scenarios have left on Karmada, too"},
		"kubectl delete manifestworks -A --wait=false -l fleetworkload.io/uid=IDENTITY": {why: placeholder},
		"kubectl fw backend retire": {why: mention},
	}}
}

// runOperator runs the program that the page has had people build, with what the chart makes of all values.yaml of the page: they say that the
// backends of both are to be listed together.
func (n *newcomer) runOperator(ctx context.Context) {
	GinkgoHelper()
	configured := map[string]any{"apiVersion": "config.fleetworkload.io/v1alpha1", "kind": "OperatorConfiguration"}
	var all []any
	for _, text := range n.written["values.yaml"] {
		var values map[string]any
		Expect(yaml.Unmarshal([]byte(text), &values)).To(Succeed())
		configured["installation"] = values["installation"]
		all = append(all, values["backends"].([]any)...)
	}
	configured["backends"] = all
	raw, err := yaml.Marshal(configured)
	Expect(err).NotTo(HaveOccurred())
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "fleetworkload-config"},
		Data: map[string]string{"config.yaml": string(raw)}}
	Expect(hub().Create(ctx, config)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hub().Delete(ctx, config))).To(Succeed()) })

	DeferCleanup(func(ctx SpecContext) {
		removeNamespace(ctx, trial)
		kubectl(ctx, "delete", "namespace", trial, "--ignore-not-found") // on a fleet for a while, too: the next one makes it
	}, NodeTimeout(4*time.Minute))
	n.starts(ctx, raw)
}

// starts has the program run that the page has had people build.
func (n *newcomer) starts(ctx context.Context, config []byte) {
	GinkgoHelper()
	n.operator, _ = ownOperator(ctx, "newcomer", operatorOptions{everywhere: true, replica: true, manager: filepath.Join(n.dir, "bin", "manager")})
	Expect(os.WriteFile(n.operator.path("config.yaml"), config, 0o600)).To(Succeed())
	n.operator.start(ctx)
}

// runConfigured runs the operator with the page's configuration.
func (n *newcomer) runConfigured(ctx context.Context) {
	GinkgoHelper()
	n.starts(ctx, []byte(n.written["config.yaml"][0]))
	n.operator.reaches(ctx, true, "karmada", "ocm")
}

// begin has what README wants to be there: a checkout, and an operator with both backends.
func (n *newcomer) begin(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) { removeEverywhere(ctx, shop) }, NodeTimeout(4*time.Minute))
	n.copyCheckout(ctx)
	n.configured(ctx)
}

// afterFirstHour has the checkout, its programs, an operator with both backends, and its configuration.
func (n *newcomer) afterFirstHour(ctx context.Context) {
	GinkgoHelper()
	n.copyCheckout(ctx)
	n.types(ctx, docs.Step{Where: "what comes before", Text: "make build && export PATH=$PWD/bin:$PATH"}, 0)
	n.configured(ctx)
}

// configured has the operator of all scenarios run, with both backends, and a copy of its configuration.
func (n *newcomer) configured(ctx context.Context) {
	GinkgoHelper()
	raw, err := os.ReadFile(sound(sharedOperator(ctx)))
	Expect(err).NotTo(HaveOccurred())
	n.write("operator.yaml", string(raw))
}

// keptPods wants the pods before a hand-over and after it to be the same ones.
func (n *newcomer) keptPods(cluster, namespace string) {
	GinkgoHelper()
	said := n.said[fmt.Sprintf(podsTyped, cluster, namespace)]
	Expect(said).To(HaveLen(2))
	Expect(said[1]).To(Equal(said[0]), "the pods before the hand-over and after it")
}

// releases types what an import has printed to be typed on Karmada.
func (n *newcomer) releases(ctx context.Context) {
	GinkgoHelper()
	_, steps, _ := strings.Cut(n.said[imports][0], "\nTo take it over, ")
	steps, _, _ = strings.Cut(steps, "\nThe way back:\n")
	typed, onKarmada := 0, false
	for line := range strings.Lines(steps) {
		command, isCommand := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "   ")
		if !isCommand {
			onKarmada = strings.Contains(line, "on Karmada,")
		} else if onKarmada {
			n.types(ctx, docs.Step{Where: "what the import prints", Text: "(export KUBECONFIG=karmada-admin.kubeconfig; " + command + ")"}, 0)
			typed++
		}
	}
	Expect(typed).To(BeNumerically(">=", 5), "commands for Karmada in:\n%s", steps)
}

// withoutWaves has the next migrations wait for nobody.
func (n *newcomer) withoutWaves(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "patch", "fleetworkload", "web", "-n", shop, "--type=json", `-p=[{"op":"remove","path":"/spec/migration"}]`)
}

// removeEverywhere takes a namespace away from a fleet for a while, too: who follows the page next makes it.
func removeEverywhere(ctx context.Context, namespace string) {
	GinkgoHelper()
	removeNamespace(ctx, namespace)
	for _, name := range slices.Concat([]string{lab.Hub, lab.Karmada}, world.members) {
		_, err := world.kubectl(ctx, name, "delete", "namespace", namespace, "--ignore-not-found")
		Expect(err).NotTo(HaveOccurred())
	}
}

func (n *newcomer) stopOperator(ctx context.Context) {
	GinkgoHelper()
	n.operator.stop(ctx)
}

// runsAlready is what the newcomer has on plain Karmada.
const runsAlready = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {containers: [{name: api, image: "registry.example.com/shop/api:1.0"}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: api, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: api}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
`

func troubleshooting() walk {
	const mention, report, drift = "it names a command, without an object", "it is what to send with a report", "what is changed on members has scenarios of its own"
	// The operator of all scenarios holds no lease, which doctor finds.
	ends := map[string]int{"kubectl fw doctor --config operator.yaml": 1}
	return walk{page: "docs/troubleshooting.md", ends: ends, standIns: map[string]standIn{
		"kubectl fw status":              {why: mention},
		"kubectl fw doctor":              {why: mention},
		"kubectl fw plan -f FILE":        {why: mention},
		"kubectl fw status NAME --watch": {why: mention},
		"kubectl fw approve NAME":        {why: mention},
		"kubectl fw -n shop events":      {why: drift},
		"spec:":                          {why: drift},
		`kubectl get fleetworkload web -n shop -o jsonpath='{.status.ready}{"\n"}{.status.conditions[?(@.type=="Drifted")].message}{"\n"}'`: {why: drift},
		"kubectl get fleetworkload NAME -n NAMESPACE -o yaml":                                                                               {why: report},
		"kubectl logs -n fleetworkload-system deployment/fleetworkload --since=1h":                                                          {why: noPods},
	}}
}

func (n *newcomer) installation() walk {
	const part, noRegistry = "a part of the operator's configuration, which is there as a whole", "make verify-images builds images"
	const byKustomize = "other scenarios need what it takes away; TestKustomize of e2e/install types it"
	return walk{page: "docs/installation.md", standIns: map[string]standIn{
		"helm install fleetworkload charts/fleetworkload -n fleetworkload-system --create-namespace --kubeconfig karmada-admin.kubeconfig \\\n" +
			"  --set manager.enabled=false --set crds.install=false --set rbac.management=false --set rbac.karmada=true --set rbac.ocm=false": {why: byHelm},
		"kubectl apply --server-side -k config/default":                                                             {why: noPods + "; TestKustomize of e2e/install types it", do: n.mayBeApplied},
		"helm install fleetworkload charts/fleetworkload -n fleetworkload-system --create-namespace -f values.yaml": {why: byHelm},
		"helm test fleetworkload -n fleetworkload-system":                                                           {why: byHelm},
		"kubectl logs -n fleetworkload-system fleetworkload-test":                                                   {why: noPods},
		"git describe --tags --always":                                                                              {why: "the copy of the checkout has no history"},
		"kubectl fw kubeconfig":                                                                                     {why: "it names the command"},
		"make images":                                                                                               {why: noRegistry},
		"make images IMAGE_REPO=registry.example.com/fleetworkload IMAGE_TAG=v0.1.0-1":                              {why: noRegistry},
		"helm install fleetworkload charts/fleetworkload -n fleetworkload-system -f values.yaml " +
			"--set manager.image.repository=registry.example.com/fleetworkload --set manager.image.tag=v0.1.0-1": {why: byHelm},
		"helm upgrade fleetworkload charts/fleetworkload -n fleetworkload-system --reset-then-reuse-values": {why: byHelm},
		"helm rollback fleetworkload -n fleetworkload-system":                                               {why: byHelm},
		"make upgrade BEFORE=<commit>":                                                                      {why: "it starts a fleet of its own"},
		"helm uninstall":                                                                                    {why: "it names the command below it", do: n.stopOperator},
		"helm uninstall fleetworkload -n fleetworkload-system":                                              {why: byHelm},
		"kubectl delete crd fleetworkloads.apps.fleetworkload.io":                                           {why: "other scenarios need it; TestHelm of e2e/install types it"},
		"kubectl delete namespace fleetworkload-system":                                                     {why: "other scenarios need it; TestHelm of e2e/install types it"},
		"kubectl delete -k config/default --ignore-not-found":                                               {why: byKustomize},
		"kubectl delete -k config/manager":                                                                  {why: byKustomize},
		"kubectl delete -k config/webhook":                                                                  {why: byKustomize},
		"kubectl apply -k config/monitoring":                                                                {why: "the fleet has no operator of the Prometheus project; TestKustomize of e2e/install types it"},
		"tracing:":                                                                                          {why: part},
		"apiVersion: networking.k8s.io/v1":                                                                  {why: "the fleet has no network between pods"},
	}, before: map[string]func(context.Context){"kubectl fw doctor --config config.yaml": n.runConfigured}}
}

func (n *newcomer) commandLine() walk {
	const mention, noKrew = "it names a command, without an object", "make verify builds the archives, and there is no krew"
	const offline = "TestOutputsInDocs of cmd/kubectl-fw runs it, with its files"
	return walk{page: "docs/kubectl-fw.md", standIns: map[string]standIn{
		"kubectl fw":                          {why: mention},
		"make plugin-archives VERSION=v0.1.0": {why: noKrew},
		"make plugin-archives VERSION=v0.1.0 PLATFORMS=linux/amd64":                                             {why: noKrew},
		"kubectl krew install --manifest=bin/plugin/fw.yaml --archive=bin/plugin/kubectl-fw_linux_amd64.tar.gz": {why: noKrew},
		"cp ~/.krew/store/fw/*/kubectl_complete-fw ~/.krew/bin/":                                                {why: noKrew},
		"kubectl wait --for=condition=Ready fleetworkload/NAME":                                                 {why: mention},
		"kubectl fw -n demo status cloneset-karmada --watch | cat":                                              {why: "it goes on until it is interrupted"},
		"kubectl rollout undo":           {why: mention},
		"kubectl rollout restart":        {why: mention},
		"kubectl logs":                   {why: mention},
		"kubectl apply":                  {why: mention},
		"kubectl apply --server-side":    {why: mention},
		"kubectl apply --dry-run=server": {why: mention},
		"kubectl get -o yaml":            {why: mention},
		"kubectl fw kubeconfig karmada --backend-kubeconfig karmada-admin.kubeconfig >/dev/null":                 {why: "the account may ask for tokens of itself here"},
		"kubectl fw backend retire karmada --config operator.yaml --backend-kubeconfig karmada-admin.kubeconfig": {why: "other scenarios have left things on Karmada"},
		"kubectl fw interpret -f web.yaml":                       {why: offline},
		"kubectl fw interpret -f member1.yaml -f member2.yaml":   {why: offline},
		"kubectl fw interpret -f bad.yaml -o json > result.json": {why: offline},
		"echo $?": {why: offline},
	}, ends: map[string]int{
		"kubectl fw -n demo migrate web --to ocm --wait 2>&1 | cat": 0,
		"kubectl fw migrate --all -n demo --to karmada 2>&1 | cat":  0,
		"kubectl fw doctor --config operator.yaml":                  1, // of typo; and the scenarios' operator holds no lease
		"kubectl fw -n demo plan web":                               2,
		"kubectl fw plan -f web.yaml":                               2,
	}}
}

// mayBeApplied asks the API server whether it would take the whole installation.
func (n *newcomer) mayBeApplied(ctx context.Context) {
	GinkgoHelper()
	n.types(ctx, docs.Step{Where: "a dry run", Text: "kubectl apply --server-side --force-conflicts --dry-run=server -k config/default"}, 0)
}

func (n *newcomer) story() walk {
	return walk{page: "docs/karmada-to-ocm.md", before: map[string]func(context.Context){
		imports:                          n.readsImporting,
		"kubectl create namespace store": n.releases,
	}}
}

// readsImporting follows that page while something runs on plain Karmada.
func (n *newcomer) readsImporting(ctx context.Context) {
	GinkgoHelper()
	const mention = "it names a command"
	n.follow(ctx, walk{page: "docs/importing.md", standIns: map[string]standIn{"kubectl fw import": {why: mention}, "kubectl apply": {why: mention}}})
}

var _ = Describe("A newcomer", Label("handover", "commandline", "docs", "karmada", "ocm"), long, func() {
	It("gets through the first hour by typing what the page says", func(ctx SpecContext) {
		onKarmada := func(ctx context.Context, verb string, args ...string) {
			GinkgoHelper()
			_, err := world.kubectlWith(ctx, runsAlready, lab.Karmada, append([]string{verb, "-f", "-"}, args...)...)
			Expect(err).NotTo(HaveOccurred())
		}
		DeferCleanup(func(ctx SpecContext) { onKarmada(ctx, "delete", "--ignore-not-found") }, NodeTimeout(2*time.Minute))
		onKarmada(ctx, "apply")
		for _, name := range world.members[:2] {
			Eventually(ctx, func(g Gomega) {
				var api appsv1.Deployment
				g.Expect(member(name).Get(ctx, client.ObjectKey{Namespace: shop, Name: "api"}, &api)).To(Succeed())
				g.Expect(api.Status.ReadyReplicas).To(BeEquivalentTo(2))
			}).WithTimeout(readyTimeout).Should(Succeed())
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "karmada-kubeconfig"}}
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hub().Delete(ctx, secret))).To(Succeed()) })

		n := newNewcomer()
		n.follow(ctx, n.firstHour())

		n.keptPods("member1", trial)
		for _, name := range world.members {
			Eventually(ctx, func(g Gomega) {
				var pods corev1.PodList
				g.Expect(member(name).List(ctx, &pods, client.InNamespace(trial))).To(Succeed())
				g.Expect(pods.Items).To(BeEmpty(), "pods that are left on %s", name)
			}).WithTimeout(deleteTimeout).Should(Succeed())
		}
	}, NodeTimeout(10*time.Minute))

	It("carries out what README shows, and moves it as the page on migrations says", func(ctx SpecContext) {
		n := newNewcomer()
		n.follow(ctx, n.readme())
		n.follow(ctx, n.migration())
		n.follow(ctx, troubleshooting())
		fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web"}}
		becomesReady(ctx, fw)
		Expect(fw.Status.Backend).To(Equal("ocm"))
		remove(ctx, fw)
	}, NodeTimeout(10*time.Minute))

	It("installs the operator as its page says", func(ctx SpecContext) {
		for _, made := range [][]string{{"secret", "karmada-kubeconfig", "-n", operatorNamespace},
			{"clusterrolebinding", "prometheus-fleetworkload", "fleetworkload-state-metrics"}, {"clusterrole", "fleetworkload-state-metrics"}} {
			DeferCleanup(func(ctx SpecContext) { kubectl(ctx, append([]string{"delete", "--ignore-not-found"}, made...)...) })
		}
		n := newNewcomer()
		n.copyCheckout(ctx)
		n.types(ctx, docs.Step{Where: "what comes before", Text: "make build && export PATH=$PWD/bin:$PATH"}, 0)
		n.follow(ctx, n.installation())
	}, NodeTimeout(5*time.Minute))

	It("tries the commands of kubectl fw as their page shows them", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, "delete", "secret", "karmada-kubeconfig", "-n", operatorNamespace, "--ignore-not-found")
		})
		DeferCleanup(func(ctx SpecContext) { removeEverywhere(ctx, examples) }, NodeTimeout(4*time.Minute))
		n := newNewcomer()
		n.afterFirstHour(ctx)
		n.follow(ctx, n.commandLine())
	}, NodeTimeout(10*time.Minute))

	It("takes over what runs on plain Karmada and moves it, as the story says", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			removeEverywhere(ctx, store)
			_, err := world.kubectl(ctx, "member2", "label", "nodes", "--all", "disk-")
			Expect(err).NotTo(HaveOccurred())
		}, NodeTimeout(4*time.Minute))
		n := newNewcomer()
		n.afterFirstHour(ctx)
		n.follow(ctx, n.story())
		n.keptPods("member2", store)
	}, NodeTimeout(10*time.Minute))
})
