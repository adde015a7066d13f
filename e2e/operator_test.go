//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

// operator is the manager as a process of its own, behind proxies. It can be started again and again.
type operator struct {
	name    string
	dir     string
	journal *proxy.Journal
	// management, karmada and ocm stand between the operator and its three connections.
	management, karmada, ocm *proxy.Proxy
	opts                     operatorOptions

	metrics, health, profiles string
	// webhook stays the same over restarts, since the API server is told of it once.
	webhook string

	mu  sync.Mutex
	run *run
}

// run is one life of the process.
type run struct {
	cmd     *exec.Cmd
	done    chan struct{}
	err     error
	wanted  bool
	started time.Time
}

type operatorOptions struct {
	// namespaces are watched; all when empty.
	namespaces []string
	// selector of namespaces; all when empty.
	selector string
	// everywhere has an operator of one's own watch all namespaces.
	everywhere bool
	// karmadaSecret is the name of a Secret with the Karmada connection, instead of a file.
	karmadaSecret string
	// more backends, as in the configuration file.
	more []any
	// kinds and allowedKinds, as in the configuration file.
	kinds, allowedKinds []any
	// interpreters is the mode on Karmada; empty: the default.
	interpreters string
	// migrationsAtOnce is how many are handed over together; 0: all that scenarios keep in one phase together.
	migrationsAtOnce int
	// podEvidence has it look at pods through Karmada.
	podEvidence bool
	// guardedMetrics has it serve metrics as it is installed: over TLS, to who may get them.
	guardedMetrics bool
	// tenancy is what namespaces may use, as in the configuration file; nil lets all use SidecarSets.
	tenancy map[string]any
	// tracing as in the configuration file.
	tracing map[string]any
	// aliases are clusterAliases, as in the configuration file.
	aliases []any
	// installation is another one than that of the other scenarios.
	installation string
	// webhook has it answer the admission webhook at the operator's webhook address.
	webhook bool
	// webhookCertificate is a folder with the webhook's certificate; empty: the operator makes its own.
	webhookCertificate string
	// noBackends leaves it without any.
	noBackends bool
	// manager is another binary than the one that is tested.
	manager string
	// replica has it stand by until it gets the lease, which all replicas of a pair share.
	replica bool
	// lease is the name of the lease; empty: the default.
	lease string
}

var (
	runningMu sync.Mutex
	running   = map[*operator]bool{}
	shared    *operator
)

func operators() []*operator {
	runningMu.Lock()
	defer runningMu.Unlock()
	var all []*operator
	for o := range running {
		all = append(all, o)
	}
	return all
}

// sharedOperator is the one that specs use which neither disturb nor count it. It watches all namespaces.
func sharedOperator(ctx context.Context) *operator {
	GinkgoHelper()
	if shared == nil {
		shared = newOperator("shared", operatorOptions{more: brokenBackends()})
		shared.start(ctx)
	}
	return shared
}

// stopShared makes room for an operator of one's own.
func stopShared(ctx context.Context) {
	GinkgoHelper()
	if shared != nil {
		o := shared
		shared = nil
		o.stop(ctx)
		o.close()
	}
}

// ownOperator returns an operator that is not started yet, and the namespace that it watches, for one container or spec.
func ownOperator(ctx context.Context, name string, opts operatorOptions) (o *operator, namespace string) {
	GinkgoHelper()
	stopShared(ctx)
	namespace = makeNamespace(ctx, name)
	if !opts.everywhere {
		opts.namespaces = []string{namespace}
	}
	o = newOperator(name, opts)
	DeferCleanup(func(ctx SpecContext) { o.retire(ctx, namespace) }, NodeTimeout(4*time.Minute))
	return o, namespace
}

// retire ends an operator for good, when it has cleared its namespace.
func (o *operator) retire(ctx context.Context, namespace string) {
	GinkgoHelper()
	defer o.close()
	defer o.stop(ctx)
	for _, p := range []*proxy.Proxy{o.management, o.karmada, o.ocm} {
		p.Set(proxy.Forward)
		p.HideGroups()
	}
	o.journal.Disarm()
	if r := o.current(); r == nil || r.ended() {
		o.start(ctx)
	}
	removeNamespace(ctx, namespace)
}

func newOperator(name string, opts operatorOptions) *operator {
	GinkgoHelper()
	dir, err := os.MkdirTemp(world.dir, "operator-"+name+"-")
	Expect(err).NotTo(HaveOccurred())
	o := &operator{name: name, dir: dir, journal: &proxy.Journal{}, opts: opts}
	if opts.webhook {
		o.webhook = freeAddress()
	}
	for _, p := range []struct {
		at            **proxy.Proxy
		name, control string
	}{{&o.management, "management", lab.Hub}, {&o.karmada, "karmada", lab.Karmada}, {&o.ocm, "ocm", lab.Hub}} {
		*p.at, err = proxy.New(p.name, world.clusters[p.control].rest, o.journal)
		Expect(err).NotTo(HaveOccurred())
		(*p.at).Tell(used.of(p.name))
		Expect(clientcmd.WriteToFile((*p.at).Kubeconfig(world.tokens[p.control]), o.kubeconfig(p.name))).To(Succeed())
	}
	karmadaOptions := map[string]any{"podEvidence": opts.podEvidence}
	karmada := map[string]any{"kubeconfigFile": o.kubeconfig("karmada")}
	if opts.karmadaSecret != "" {
		karmada = map[string]any{"secretRef": map[string]any{"name": opts.karmadaSecret}}
	}
	if opts.interpreters != "" {
		karmadaOptions["interpreters"] = opts.interpreters
	}
	list := append([]any{
		map[string]any{"name": "karmada", "type": "Karmada", "connection": karmada, "karmada": karmadaOptions},
		map[string]any{"name": "ocm", "type": "OCM", "connection": map[string]any{"kubeconfigFile": o.kubeconfig("ocm")},
			"ocm": map[string]any{"clusterSets": []string{"global"}}},
	}, opts.more...)
	if opts.noBackends {
		list = nil
	}
	configured := map[string]any{
		"apiVersion": "config.fleetworkload.io/v1alpha1", "kind": "OperatorConfiguration",
		"installation": cmp.Or(opts.installation, installation),
		"backends":     list,
		"kinds":        opts.kinds, "allowedKinds": opts.allowedKinds,
		"migrations":     map[string]any{"atOnce": cmp.Or(opts.migrationsAtOnce, 100)},
		"clusterAliases": opts.aliases,
		"tenancy":        orDefault(opts.tenancy),
	}
	if opts.tracing != nil { // earlier versions do not know the field
		configured["tracing"] = opts.tracing
	}
	raw, err := yaml.Marshal(configured)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(o.path("config.yaml"), raw, 0o600)).To(Succeed())
	runningMu.Lock()
	defer runningMu.Unlock()
	running[o] = true
	return o
}

// orDefault lets FleetWorkloads of all kinds be made in all namespaces of scenarios, unless a scenario says otherwise.
func orDefault(tenancy map[string]any) map[string]any {
	if tenancy != nil {
		return tenancy
	}
	sidecarSet := map[string]any{"group": "apps.kruise.io", "kind": "SidecarSet"}
	return map[string]any{"rules": []any{map[string]any{"name": "scenarios", "clusterScopedKinds": []any{sidecarSet}}}}
}

func (o *operator) path(name string) string       { return filepath.Join(o.dir, name) }
func (o *operator) kubeconfig(name string) string { return o.path(name + ".kubeconfig") }

// start starts the process and waits until it is ready.
func (o *operator) start(ctx context.Context) {
	GinkgoHelper()
	o.launch()
	Eventually(func(g Gomega) {
		g.Expect(o.unexpectedExit()).To(Succeed())
		resp, err := http.Get("http://" + o.health + "/readyz")
		g.Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		g.Expect(resp.StatusCode).To(Equal(http.StatusOK))
	}).WithContext(ctx).WithTimeout(30*time.Second).WithPolling(50*time.Millisecond).Should(Succeed(), func() string { return o.logTail(30) })
}

// lacksRights is an error that names what the management cluster does not let the operator list and watch. One that does not answer, or is
// older than the check, does not say.
func (o *operator) lacksRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.health+"/readyz/rights", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusInternalServerError {
		return nil
	}
	body, err := io.ReadAll(answer.Body)
	return errors.Join(fmt.Errorf("operator %s is not ready: %s", o.name, body), err)
}

func (o *operator) launch() {
	GinkgoHelper()
	o.metrics, o.health, o.profiles = freeAddress(), freeAddress(), freeAddress()
	log, err := os.OpenFile(o.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	Expect(err).NotTo(HaveOccurred())
	defer log.Close()
	args := []string{
		"--config=" + o.path("config.yaml"), "--kubeconfig=" + o.kubeconfig("management"), "--namespace=" + operatorNamespace,
		"--metrics-bind-address=" + o.metrics, fmt.Sprintf("--metrics-open=%t", !o.opts.guardedMetrics), "--health-probe-bind-address=" + o.health,
		"--pprof-bind-address=" + o.profiles, fmt.Sprintf("--leader-elect=%t", o.opts.replica),
	}
	if len(o.opts.namespaces) > 0 {
		args = append(args, "--watch-namespaces="+strings.Join(o.opts.namespaces, ","))
	}
	if o.opts.selector != "" {
		args = append(args, "--watch-namespace-selector="+o.opts.selector)
	}
	if o.opts.lease != "" {
		args = append(args, "--leader-election-id="+o.opts.lease)
	}
	if o.opts.webhook {
		args = append(args, "--webhook-bind-address="+o.webhook, "--webhook-hosts=localhost", "--webhook-cert-dir="+o.opts.webhookCertificate)
	}
	cmd := exec.Command(cmp.Or(o.opts.manager, world.manager), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	Expect(cmd.Start()).To(Succeed())
	r := &run{cmd: cmd, done: make(chan struct{}), started: time.Now()}
	go func() {
		r.err = cmd.Wait()
		close(r.done)
	}()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.run = r
}

// lastPort is the last one that was given out. Ports below 32768 are not handed to clients' connections, each process has its
// own, and each is given out once, so that an operator that starts a moment later finds it free.
var lastPort atomic.Int32

// envPorts is the first port that operators may listen on, for suites that run side by side.
const envPorts = "E2E_PORTS"

// freeAddress is a loopback address that nobody listens on and nobody else is told.
func freeAddress() string {
	GinkgoHelper()
	const ports = 1000
	start, err := strconv.Atoi(cmp.Or(os.Getenv(envPorts), "2000"))
	Expect(err).NotTo(HaveOccurred())
	first := start + ports*(GinkgoParallelProcess()-1)
	for range ports {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+int(lastPort.Add(1))%ports))
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().String()
	}
	Fail("there is no free port")
	return ""
}

// stop ends the process as a kubelet would, and wants it to end well.
func (o *operator) stop(ctx context.Context) {
	GinkgoHelper()
	r := o.current()
	if r == nil || r.ended() {
		return
	}
	o.expectExit()
	Expect(r.cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
	select {
	case <-r.done:
	case <-time.After(8 * time.Second):
		// After 10 s it gives up by itself, and does not say what it hangs in.
		_ = r.cmd.Process.Signal(syscall.SIGQUIT)
	}
	Eventually(r.done).WithContext(ctx).WithTimeout(25*time.Second).Should(BeClosed(), "the operator does not stop")
	Expect(r.err).NotTo(HaveOccurred(), func() string { return o.hangsIn() + "the operator stopped with an error:\n" + o.logTail(3) })
}

var (
	goroutine = regexp.MustCompile(`(?m)^goroutine \d+[^\[\n]*\[([^\]\n]*)\]:$`)
	// ownFrame is a function of ours in a dump of goroutines.
	ownFrame = regexp.MustCompile(`(?m)^github\.com/fleetworkload/fleetworkload/(?:\S+/)?(\S+)\(`)
)

// hangsIn says what our goroutines waited for when the operator was ended; it is empty when it left no dump of them.
func (o *operator) hangsIn() string {
	raw, err := os.ReadFile(o.path("log"))
	if err != nil {
		return err.Error()
	}
	return waitsIn(string(raw))
}

// waitsIn says what our goroutines wait for in a dump of them, passes first; it is empty without one.
func waitsIn(dump string) string {
	var passes, others []string
	for part := range strings.SplitSeq(dump, "\n\n") {
		state := goroutine.FindStringSubmatch(part)
		var frames []string
		for _, match := range ownFrame.FindAllStringSubmatch(part, 3) {
			frames = append(frames, match[1])
		}
		if state == nil || len(frames) == 0 {
			continue
		}
		line := fmt.Sprintf("[%s] %s", state[1], strings.Join(frames, " < "))
		switch {
		case strings.Contains(part, "Reconciler).Reconcile("):
			passes = append(passes, line)
		case !slices.Contains(others, line):
			others = append(others, line)
		}
	}
	all := append(passes, others...)
	if len(all) == 0 {
		return ""
	}
	return "it was in " + strings.Join(all, "; ") + "; "
}

// doing says what the operator is busy with: what does not go on may hang in one of its passes, or wait for a worker.
func (o *operator) doing() string {
	r := o.current()
	if r == nil || r.ended() {
		return "operator " + o.name + " does not run"
	}
	resp, err := http.Get("http://" + o.profiles + "/debug/pprof/goroutine?debug=2")
	if err != nil {
		return "operator " + o.name + ": " + err.Error()
	}
	defer resp.Body.Close()
	dump, err := io.ReadAll(resp.Body)
	if err != nil {
		return "operator " + o.name + ": " + err.Error()
	}
	line := "operator " + o.name + ": " + waitsIn(string(dump))
	families, err := o.measures()
	if err != nil {
		return line + err.Error()
	}
	for _, name := range []string{"workqueue_depth", "workqueue_unfinished_work_seconds", "workqueue_longest_running_processor_seconds"} {
		line += fmt.Sprintf("%s %.1f, ", name, measure(families, name, "name", "fleetworkload"))
	}
	return line
}

// saidOf are the last lines of the log about a FleetWorkload.
func (o *operator) saidOf(fw v1alpha1.FleetWorkload) []string {
	const most, characters = 2, 400
	raw, err := os.ReadFile(o.path("log"))
	if err != nil {
		return []string{err.Error()}
	}
	var said []string
	for line := range strings.SplitSeq(string(raw), "\n") {
		if strings.Contains(line, fmt.Sprintf(`"namespace":%q`, fw.Namespace)) && strings.Contains(line, fmt.Sprintf(`"name":%q`, fw.Name)) {
			said = append(said, line[:min(len(line), characters)])
		}
	}
	return said[max(0, len(said)-most):]
}

// whatOperatorsDo ends the operators that run and names our functions that they were in: what does not go on may hang in one.
func whatOperatorsDo(ctx context.Context) string {
	var all strings.Builder
	for _, o := range operators() {
		r := o.current()
		if r == nil || r.ended() {
			fmt.Fprintf(&all, "operator %s does not run; ", o.name)
			continue
		}
		o.expectExit()
		_ = r.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-r.done:
		case <-ctx.Done():
		}
		fmt.Fprintf(&all, "operator %s: %s", o.name, o.hangsIn())
		if o == shared {
			shared = nil
			o.close()
		}
	}
	return all.String()
}

// kill ends the process at once. It is called by the proxy, in the middle of a write.
func (o *operator) kill() {
	r := o.current()
	o.expectExit()
	_ = r.cmd.Process.Kill()
	<-r.done
}

func (o *operator) expectExit() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.run.wanted = true
}

func (o *operator) current() *run {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.run
}

func (r *run) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// unexpectedExit is an error when the process has ended though nobody asked it to.
func (o *operator) unexpectedExit() error {
	o.mu.Lock()
	r := o.run
	wanted := r == nil || r.wanted
	o.mu.Unlock()
	if wanted || !r.ended() {
		return nil
	}
	return fmt.Errorf("operator %s has ended by itself: %w\n%s", o.name, errors.Join(errors.New("exit"), r.err), o.logTail(40))
}

// close ends the proxies.
func (o *operator) close() {
	GinkgoHelper()
	for _, p := range []*proxy.Proxy{o.management, o.karmada, o.ocm} {
		Expect(p.Close()).To(Succeed())
	}
	runningMu.Lock()
	defer runningMu.Unlock()
	delete(running, o)
}

func (o *operator) logTail(lines int) string {
	raw, err := os.ReadFile(o.path("log"))
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// writes describes what the operator has written since the journal was reset.
func (o *operator) writes() string { return proxy.Describe(o.journal.Entries()) }

// measures reads the operator's metrics.
func (o *operator) measures() (map[string]*dto.MetricFamily, error) {
	resp, err := http.Get("http://" + o.metrics + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(resp.Body)
}

// measure adds up the samples of a metric that have all of the labels, given as name, value, name, value.
func measure(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	var sum float64
	for _, m := range families[name].GetMetric() {
		if !hasLabels(m, labels) {
			continue
		}
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
	return sum
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		if !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
			return l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}) {
			return false
		}
	}
	return true
}

// reconciles is how many passes the operator has finished, and whether it has none left to do.
func (o *operator) reconciles() (passes float64, idle bool, err error) {
	families, err := o.measures()
	if err != nil {
		return 0, false, err
	}
	const controller = "fleetworkload"
	passes = measure(families, "controller_runtime_reconcile_total", "controller", controller)
	idle = measure(families, "workqueue_depth", "controller", controller) == 0 &&
		measure(families, "controller_runtime_active_workers", "controller", controller) == 0
	return passes, idle, nil
}

// calls is how often a driver's method succeeded.
func (o *operator) calls(backend, method string) (float64, error) {
	families, err := o.measures()
	if err != nil {
		return 0, err
	}
	return measure(families, "fleetworkload_driver_calls_total", "backend", backend, "method", method, "code", "ok"), nil
}

// reaches waits until the operator reaches the backends, or does not.
func (o *operator) reaches(ctx context.Context, up bool, backends ...string) {
	GinkgoHelper()
	want := map[bool]float64{true: 1}[up]
	Eventually(func(g Gomega) {
		families, err := o.measures()
		g.Expect(err).NotTo(HaveOccurred())
		for _, b := range backends {
			g.Expect(measure(families, "fleetworkload_backend_up", "backend", b)).To(BeNumerically("==", want), "backend %s", b)
		}
	}).WithContext(ctx).WithTimeout(60 * time.Second).Should(Succeed())
}
