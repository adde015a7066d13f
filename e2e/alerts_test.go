//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

// alertAfter is what alerts wait for instead of their minutes. A few scrapes that fail on a busy machine are no reason for one.
const alertAfter = "10s"

// scrapes is Prometheus' configuration; docs/installation.md says how operators are scraped.
const scrapes = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
- job_name: fleetworkload
  scheme: https
  authorization: {credentials_file: token}
  tls_config: {insecure_skip_verify: true}
  file_sd_configs: [{files: [targets.json]}]
`

// prometheus is Prometheus' engine as a process of its own, with the rules of config/monitoring.
type prometheus struct {
	dir, address string
}

// startPrometheus starts one that scrapes nothing yet.
func startPrometheus(ctx context.Context, token string) *prometheus {
	GinkgoHelper()
	dir, err := os.MkdirTemp(world.dir, "prometheus-")
	Expect(err).NotTo(HaveOccurred())
	p := &prometheus{dir: dir, address: freeAddress()}
	build := exec.CommandContext(ctx, "go", "build", "-o", p.path("prometheus"), "./prometheus")
	build.Dir = "../hack/monitoring"
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "go build ./prometheus: %s", out)
	for name, content := range map[string]string{"prometheus.yaml": scrapes, "rules.yaml": impatientRules(), "token": token, "targets.json": "[]"} {
		Expect(os.WriteFile(p.path(name), []byte(content), 0o600)).To(Succeed())
	}
	log, err := os.Create(p.path("log"))
	Expect(err).NotTo(HaveOccurred())
	defer log.Close()
	cmd := exec.Command(p.path("prometheus"), "-config="+p.path("prometheus.yaml"), "-data="+p.path("data"), "-listen="+p.address)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
		Expect(cmd.Wait()).To(Succeed(), p.said)
	})
	return p
}

func (p *prometheus) path(name string) string { return filepath.Join(p.dir, name) }

// said is its log.
func (p *prometheus) said() string {
	raw, err := os.ReadFile(p.path("log"))
	if err != nil {
		return err.Error()
	}
	return "Prometheus said:\n" + string(raw[max(0, len(raw)-4000):])
}

// impatientRules are those of config/monitoring as Prometheus reads them, each with a short time instead of its own.
func impatientRules() string {
	GinkgoHelper()
	raw, err := os.ReadFile(filepath.Join(world.config, "monitoring", "prometheus-rules.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var file struct {
		Spec struct {
			Groups []struct {
				Name  string           `json:"name"`
				Rules []map[string]any `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	Expect(yaml.Unmarshal(raw, &file)).To(Succeed())
	for _, group := range file.Spec.Groups {
		for _, rule := range group.Rules {
			Expect(rule).To(HaveKey("for"))
			rule["for"] = alertAfter
		}
	}
	raw, err = yaml.Marshal(file.Spec)
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// scrape has it scrape an operator, which listens somewhere else after each start.
func (p *prometheus) scrape(o *operator) {
	GinkgoHelper()
	// It looks whenever the file changes, so that it must never see a half.
	next := p.path("next")
	Expect(os.WriteFile(next, fmt.Appendf(nil, `[{"targets": [%q]}]`, o.metrics), 0o600)).To(Succeed())
	Expect(os.Rename(next, p.path("targets.json"))).To(Succeed())
}

// get reads what its HTTP API has at the path.
func (p *prometheus) get(path string, data any) error {
	resp, err := http.Get("http://" + p.address + "/api/v1/" + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := struct {
		Status string `json:"status"`
		Data   any    `json:"data"`
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: status %q", path, answer.Status)
	}
	return nil
}

// firing are the alerts that fire, each with its summary.
func (p *prometheus) firing() ([]string, error) {
	var found struct {
		Alerts []struct {
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
			State       string            `json:"state"`
		} `json:"alerts"`
	}
	err := p.get("alerts", &found)
	var all []string
	for _, a := range found.Alerts {
		if a.State == "firing" {
			all = append(all, a.Labels["alertname"]+": "+a.Annotations["summary"])
		}
	}
	return all, err
}

// fails are the rules that Prometheus cannot evaluate, or has not yet.
func (p *prometheus) fails() ([]string, error) {
	var found struct {
		Groups []struct {
			Rules []struct {
				Name      string `json:"name"`
				Health    string `json:"health"`
				LastError string `json:"lastError"`
			} `json:"rules"`
		} `json:"groups"`
	}
	err := p.get("rules", &found)
	var all []string
	for _, group := range found.Groups {
		for _, rule := range group.Rules {
			if rule.Health != "ok" {
				all = append(all, rule.Name+" is "+rule.Health+" "+rule.LastError)
			}
		}
	}
	return all, err
}

// fires waits until an alert fires, and clears until it does not any more.
func (p *prometheus) fires(ctx context.Context, alert string) {
	GinkgoHelper()
	Eventually(p.firing).WithContext(ctx).WithTimeout(readyTimeout).Should(ContainElement(alert), p.said)
}

func (p *prometheus) clears(ctx context.Context, alert string) {
	GinkgoHelper()
	Eventually(p.firing).WithContext(ctx).WithTimeout(readyTimeout).ShouldNot(ContainElement(alert), p.said)
}

// metricsToken is of an account that may read operators' metrics.
func metricsToken(ctx context.Context, namespace string) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prometheus"}}
	Expect(hub().Create(ctx, account)).To(Succeed())
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus-" + namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "fleetworkload-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	}
	Expect(hub().Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(hub().Delete(ctx, binding)).To(Succeed()) })
	request := &authenticationv1.TokenRequest{}
	Expect(hub().SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

// Each alert is tried on samples in hack/monitoring. Whether operators serve what the rules ask for is seen here, by Prometheus' own engine, which scrapes one.
var _ = Describe("Alerts of a Prometheus that scrapes the operator", Label("alerts", "law2", "law8", "ocm"), long, Ordered, func() {
	const (
		noLeader    = "FleetWorkloadNoLeader: No FleetWorkload operator leads with lease fleetworkload.fleetworkload.io"
		removalHeld = "FleetWorkloadRemovalHeld: Removals on backend ocm are held"
		backendDown = "FleetWorkloadBackendDown: Backend ocm cannot be used"
	)
	var (
		o     *operator
		p     *prometheus
		fw    *v1alpha1.FleetWorkload
		label string
	)

	BeforeAll(func(ctx SpecContext) {
		var namespace string
		o, namespace = ownOperator(ctx, "alerts", operatorOptions{replica: true, guardedMetrics: true})
		p = startPrometheus(ctx, metricsToken(ctx, namespace))
		label = "example.com/" + namespace
		for _, name := range world.members {
			DeferCleanup(func(ctx SpecContext) { labelCluster(ctx, "ocm", name, label, "") })
			labelCluster(ctx, "ocm", name, label, "on")
		}
		fw = workload(namespace, "web", "ocm", deployment, 6)
		fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "on"}}}
		fw.Spec.Placement.Division = divided(weight(1, world.members[:2]...), weight(4, world.members[2]))
	})

	It("are only of an operator that is missing before there is one, and none while all is well", func(ctx SpecContext) {
		p.fires(ctx, noLeader)
		Expect(p.firing()).To(ConsistOf(noLeader))
		o.start(ctx)
		p.scrape(o)
		p.clears(ctx, noLeader)
		becomesReady(ctx, create(ctx, fw))
		Eventually(p.firing).WithContext(ctx).Should(BeEmpty(), p.said)
		Consistently(p.firing).WithContext(ctx).WithTimeout(2*hold).Should(BeEmpty(), p.said)
		Expect(p.fails()).To(BeEmpty())
	})

	It("tell of a removal that is held, until what went by mistake is back", func(ctx SpecContext) {
		labelCluster(ctx, "ocm", world.members[2], label, "")
		becomesStalled(ctx, fw, v1alpha1.ReasonRemovalHeld)
		p.fires(ctx, removalHeld)
		labelCluster(ctx, "ocm", world.members[2], label, "on")
		becomesReady(ctx, fw)
		p.clears(ctx, removalHeld)
	})

	It("tell of a backend that cannot be reached, until it is back", func(ctx SpecContext) {
		DeferCleanup(func() { o.ocm.Set(proxy.Forward) })
		o.ocm.Set(proxy.Refuse)
		p.fires(ctx, backendDown)
		o.ocm.Set(proxy.Forward)
		p.clears(ctx, backendDown)
	})

	It("tell of a leader that is lost, until there is another one", func(ctx SpecContext) {
		o.kill()
		p.fires(ctx, noLeader)
		o.start(ctx)
		p.scrape(o)
		p.clears(ctx, noLeader)
		Expect(p.fails()).To(BeEmpty())
	})
})
