//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/hack/docs"
)

const (
	// trial is the namespace that the first hour makes, shop that of the other pages.
	trial, shop = "fw-trial", "shop"
	// sameTwice is typed before the hand-over of the page and after it.
	sameTwice = "kubectl --context member1 get pods -n fw-trial " +
		"-o 'custom-columns=NAME:.metadata.name,UID:.metadata.uid,RESTARTS:.status.containerStatuses[*].restartCount'"
	noPods = "no node of the management cluster runs pods; make upgrade runs Helm"
)

// walk is how a page is followed.
type walk struct {
	page string
	// standIns are all commands of the page that a test fleet cannot run, and parts of files, by their first line.
	standIns map[string]standIn
	// ends are exit codes that the page announces, other than 0, and 1 where it shows an error.
	ends map[string]int
	// sooner is written in place of long times in files.
	sooner map[string]string
}

// standIn is why a command of a page is not typed, and what is done in its place.
type standIn struct {
	why string
	do  func(ctx context.Context)
}

func (n *newcomer) firstHour() walk {
	return walk{page: "docs/first-hour.md", ends: map[string]int{"kubectl fw plan -f web.yaml --config operator.yaml": 2}, standIns: map[string]standIn{
		"make demo": {why: "it starts a fleet of its own"},
		"git clone https://github.com/fleetworkload/fleetworkload && cd fleetworkload": {why: "the commit to be tested is here", do: n.copyCheckout},
		"make images IMAGE_REPO=registry.example.com/fleetworkload IMAGE_TAG=trial":    {why: "there is no registry; make verify-images builds images"},
		"helm install fleetworkload charts/fleetworkload -n fleetworkload-system --create-namespace -f values.yaml": {
			why: noPods, do: n.runOperator},
		"kubectl rollout status deployment/fleetworkload -n fleetworkload-system": {why: noPods},
		"helm test fleetworkload -n fleetworkload-system":                         {why: noPods},
		"helm test": {why: "it names the command above it"},
		"helm upgrade fleetworkload charts/fleetworkload -n fleetworkload-system -f values.yaml": {why: "both backends are there from the beginning"},
		"helm uninstall fleetworkload -n fleetworkload-system":                                   {why: noPods, do: n.stopOperator},
	}}
}

func (n *newcomer) readme() walk {
	return walk{page: "README.md", standIns: map[string]standIn{
		"make demo":                          {why: "it starts a fleet of its own", do: n.begin},
		"make test":                          {why: "it runs this scenario"},
		"make unit":                          {why: "make test runs it before this scenario"},
		"kubectl wait --for=condition=Ready": {why: "it names no object; the one above does"},
		"make images":                        {why: "make verify-images builds images"},
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

// newcomer follows a page in a copy of the checkout.
type newcomer struct {
	dir string
	env []string
	// written are the contents that files have had, said what commands have printed, each time.
	written, said map[string][]string
	// wrong are the outputs that the page shows otherwise.
	wrong    []string
	operator *operator
}

// newNewcomer has the management cluster as the current context, a context for each member, and kubectl on the PATH.
func newNewcomer() *newcomer {
	GinkgoHelper()
	home, err := os.MkdirTemp(world.dir, "newcomer-")
	Expect(err).NotTo(HaveOccurred())
	n := &newcomer{dir: filepath.Join(home, "fleetworkload"), written: map[string][]string{}, said: map[string][]string{}}
	tools, session, kubeconfig := filepath.Join(home, "tools"), filepath.Join(home, "session"), filepath.Join(home, "kubeconfig")
	Expect(os.Mkdir(tools, 0o755)).To(Succeed())
	Expect(os.Symlink(world.fleet.Kubectl(), filepath.Join(tools, "kubectl"))).To(Succeed())
	Expect(os.WriteFile(session, nil, 0o600)).To(Succeed())
	Expect(clientcmd.WriteToFile(contexts(append([]string{lab.Hub}, world.members...)...), kubeconfig)).To(Succeed())
	n.env = append(os.Environ(), "PATH="+tools+string(filepath.ListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig, "SESSION="+session)
	return n
}

// contexts is a kubeconfig with a context for each cluster, of its name; the first one is the current.
func contexts(names ...string) clientcmdapi.Config {
	GinkgoHelper()
	all := clientcmdapi.NewConfig()
	for _, name := range names {
		one, err := clientcmd.LoadFromFile(world.fleet.Kubeconfig(name))
		Expect(err).NotTo(HaveOccurred())
		current := one.Contexts[one.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = one.Clusters[current.Cluster], one.AuthInfos[current.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	all.CurrentContext = names[0]
	return *all
}

// follow does what a page says, step by step. Each command is typed, or one of standIns; and each of these is on the page.
func (n *newcomer) follow(ctx context.Context, w walk) {
	GinkgoHelper()
	steps := stepsOf(w.page)
	for _, listed := range slices.Concat(slices.Collect(maps.Keys(w.standIns)), slices.Collect(maps.Keys(w.ends))) {
		Expect(slices.ContainsFunc(steps, func(s docs.Step) bool { return entry(s) == listed })).To(BeTrue(), "%s does not have %q any more", w.page, listed)
	}
	for _, step := range steps {
		instead, isListed := w.standIns[entry(step)]
		switch {
		case step.File != "":
			n.write(step.File, w.shortened(step.Text))
		case isListed && instead.do != nil:
			By(step.Where + ": instead of " + entry(step) + ", since " + instead.why)
			instead.do(ctx)
			w.standIns[entry(step)] = standIn{why: instead.why} // it is done once
		case isListed:
		case step.Part:
			Fail(step.Where + ": nobody knows what to do with this part of a file")
		default:
			By(step.Where + ": " + step.Text)
			n.types(ctx, step, w.ends[step.Text])
		}
	}
	Expect(w.sooner).To(BeEmpty(), "times that no file of %s has any more", w.page)
	if len(n.wrong) > 0 {
		Fail("outputs are not as the page shows them; what is another each time is alike in both:\n" + strings.Join(n.wrong, "\n"))
	}
}

// entry is by what a step is listed.
func entry(s docs.Step) string {
	if s.Part {
		first, _, _ := strings.Cut(s.Text, "\n")
		return first
	}
	return s.Text
}

// shortened has the times of a file that is written, and forgets them.
func (w walk) shortened(text string) string {
	for long, short := range w.sooner {
		if strings.Contains(text, long) {
			text = strings.ReplaceAll(text, long, short)
			delete(w.sooner, long)
		}
	}
	return text
}

func stepsOf(path string) []docs.Step {
	GinkgoHelper()
	pages, err := docs.Read("..")
	Expect(err).NotTo(HaveOccurred())
	at := slices.IndexFunc(pages, func(p docs.Page) bool { return p.Path == path })
	Expect(at).To(BeNumerically(">=", 0), "there is no page %s", path)
	steps, err := pages[at].Steps()
	Expect(err).NotTo(HaveOccurred())
	return steps
}

func (n *newcomer) write(name, content string) {
	GinkgoHelper()
	n.written[name] = append(n.written[name], content)
	Expect(os.WriteFile(filepath.Join(n.dir, name), []byte(content), 0o600)).To(Succeed())
}

// types runs a command in a shell with what those before it have exported, and wants the exit code, and the output that the page shows.
func (n *newcomer) types(ctx context.Context, step docs.Step, ends int) {
	GinkgoHelper()
	if strings.Contains("\n"+step.Shown, "\nerror: ") {
		ends = 1
	}
	script := ". \"$SESSION\"\n" + step.Text + "\ncode=$?\nexport -p >\"$SESSION\"\nexit $code\n"
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env = n.dir, n.env
	out, err := cmd.CombinedOutput()
	said := string(out)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		Expect(err).NotTo(HaveOccurred(), step.Where)
	}
	AddReportEntry(step.Where+": "+step.Text, ReportEntryVisibilityFailureOrVerbose, said)
	Expect(cmd.ProcessState.ExitCode()).To(Equal(ends), "the exit code of what %s has people type, which printed:\n%s", step.Where, said)
	n.said[step.Text] = append(n.said[step.Text], said)
	shown, now := docs.Alike(step.Shown), docs.Alike(said)
	if shown != "" && !docs.Like(shown).MatchString(now) {
		n.wrong = append(n.wrong, fmt.Sprintf("%s: %s\nthe page:\n%snow:\n%s", step.Where, step.Text, shown, now))
	}
}

// copyCheckout takes what a commit would have, so that nothing is written into the checkout.
func (n *newcomer) copyCheckout(ctx context.Context) {
	GinkgoHelper()
	Expect(os.Mkdir(n.dir, 0o755)).To(Succeed())
	cmd := exec.CommandContext(ctx, "bash", "-c", `set -o pipefail; git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$0"`, n.dir)
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "copy the checkout: %s", out)
	admin, err := os.ReadFile(world.fleet.Kubeconfig(lab.Karmada))
	Expect(err).NotTo(HaveOccurred())
	n.write("karmada-admin.kubeconfig", string(admin))
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

	n.operator, _ = ownOperator(ctx, "newcomer", operatorOptions{everywhere: true, replica: true, manager: filepath.Join(n.dir, "bin", "manager")})
	Expect(os.WriteFile(n.operator.path("config.yaml"), raw, 0o600)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		removeNamespace(ctx, trial)
		kubectl(ctx, "delete", "namespace", trial, "--ignore-not-found") // on a fleet for a while, too: the next one makes it
	}, NodeTimeout(4*time.Minute))
	n.operator.start(ctx)
}

// begin has an operator with both backends run, as the demo does, and a namespace and the operator's configuration at hand.
func (n *newcomer) begin(ctx context.Context) {
	GinkgoHelper()
	n.copyCheckout(ctx)
	n.types(ctx, docs.Step{Where: "the demo", Text: "make build && export PATH=$PWD/bin:$PATH"}, 0)
	raw, err := os.ReadFile(sound(sharedOperator(ctx)))
	Expect(err).NotTo(HaveOccurred())
	n.write("operator.yaml", string(raw))
	Expect(client.IgnoreAlreadyExists(hub().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}))).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { removeNamespace(ctx, shop) }, NodeTimeout(4*time.Minute))
}

// withoutWaves has the next migrations wait for nobody.
func (n *newcomer) withoutWaves(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "patch", "fleetworkload", "web", "-n", shop, "--type=json", `-p=[{"op":"remove","path":"/spec/migration"}]`)
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

		Expect(n.said[sameTwice]).To(HaveLen(2))
		Expect(n.said[sameTwice][1]).To(Equal(n.said[sameTwice][0]), "the pods before the hand-over and after it")
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
		fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web"}}
		becomesReady(ctx, fw)
		Expect(fw.Status.Backend).To(Equal("ocm"))
		remove(ctx, fw)
	}, NodeTimeout(10*time.Minute))
})
