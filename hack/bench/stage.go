package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prommodel "github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
	"github.com/fleetworkload/fleetworkload/hack/install"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

// stage is the test fleet with an operator on it whose writes are counted.
type stage struct {
	hub      client.WithWatch
	others   map[string]client.WithWatch
	members  map[string]*kubernetes.Clientset
	operator *operator
	journal  *proxy.Journal
	proxies  []*proxy.Proxy
	progress io.Writer
	// direct says that nothing stands between the operator and the API servers, and so that nothing is counted.
	direct bool
}

// Names of the operator's connections in the journal.
const (
	toManagement = "management"
	toKarmada    = "karmada"
	toHub        = "hub"
)

// testFleet opens the fleet in the folder, or starts one with so many members, which release removes.
func testFleet(ctx context.Context, dir string, members int, progress io.Writer) (fleet *lab.Fleet, release func() error, err error) {
	if dir != "" {
		fleet, err = lab.Open(dir)
		return fleet, func() error { return nil }, err
	}
	if dir, err = os.MkdirTemp("", "fleetworkload-bench-"); err != nil {
		return nil, nil, fmt.Errorf("make a folder: %w", err)
	}
	fleet, err = lab.Up(ctx, lab.Options{Dir: filepath.Join(dir, "fleet"), Members: members, Out: progress})
	release = func() error {
		started, err := lab.Open(filepath.Join(dir, "fleet"))
		if err == nil {
			err = started.Down(context.WithoutCancel(ctx))
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return fleet, release, nil
}

// newStage installs the operator on the fleet and starts it, behind proxies unless it is to be direct.
func newStage(ctx context.Context, fleet *lab.Fleet, direct bool, progress io.Writer) (s *stage, err error) {
	s = &stage{others: map[string]client.WithWatch{}, members: map[string]*kubernetes.Clientset{}, journal: &proxy.Journal{}, progress: progress, direct: direct}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.connect(fleet); err != nil {
		return nil, err
	}
	if err := install.Bases(ctx, fleet, progress); err != nil {
		return nil, err
	}
	// It goes with the fleet.
	dir := filepath.Join(fleet.Dir(), "bench")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	kubeconfigs := map[string]string{}
	for connection, cluster := range map[string]string{toManagement: lab.Hub, toKarmada: lab.Karmada, toHub: lab.Hub} {
		if kubeconfigs[connection], err = s.standBetween(ctx, fleet, dir, connection, cluster); err != nil {
			return nil, err
		}
	}
	backends := []config.Backend{
		{Name: "karmada", Type: config.TypeKarmada, Connection: config.Connection{KubeconfigFile: kubeconfigs[toKarmada]}},
		ocmBackend(kubeconfigs[toHub]),
	}
	s.operator, err = startOperator(ctx, dir, kubeconfigs[toManagement], backends, progress)
	return s, err
}

// connect makes clients of all clusters.
func (s *stage) connect(fleet *lab.Fleet) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	clusters := []string{lab.Hub, lab.Karmada}
	for _, m := range fleet.Members() {
		clusters = append(clusters, m.Name)
	}
	for _, name := range clusters {
		cfg, err := fleet.RESTConfig(name)
		if err != nil {
			return err
		}
		cfg.QPS = -1 // the API server's own limits are enough
		c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
		if err != nil {
			return fmt.Errorf("client of %s: %w", name, err)
		}
		switch name {
		case lab.Hub:
			s.hub = c
		case lab.Karmada:
			s.others[name] = c
		default:
			s.others[name] = c
			if s.members[name], err = kubernetes.NewForConfig(cfg); err != nil {
				return fmt.Errorf("client of %s: %w", name, err)
			}
		}
	}
	return nil
}

// standBetween starts a proxy for one of the operator's connections, and returns the kubeconfig that leads there, or right to the API server.
func (s *stage) standBetween(ctx context.Context, fleet *lab.Fleet, dir, connection, cluster string) (string, error) {
	admin, err := fleet.RESTConfig(cluster)
	if err != nil {
		return "", err
	}
	token, err := install.Token(ctx, admin, cluster, 4*time.Hour)
	if err != nil {
		return "", err
	}
	var kubeconfig clientcmdapi.Config
	if s.direct {
		kubeconfig = withToken(admin, token)
	} else {
		p, err := proxy.New(connection, admin, s.journal)
		if err != nil {
			return "", err
		}
		s.proxies, kubeconfig = append(s.proxies, p), p.Kubeconfig(token)
	}
	raw, err := clientcmd.Write(kubeconfig)
	if err != nil {
		return "", fmt.Errorf("encode the kubeconfig of %s: %w", connection, err)
	}
	file := filepath.Join(dir, connection+".kubeconfig")
	return file, os.WriteFile(file, raw, 0o600)
}

// close ends the operator, and what stands between.
func (s *stage) close() error {
	var errs []error
	if s.operator != nil {
		errs = append(errs, s.operator.stop())
	}
	for _, p := range s.proxies {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

func (s *stage) ensureNamespace(ctx context.Context, name string) error {
	if err := s.hub.Create(ctx, namespaceObject(name)); err != nil {
		return fmt.Errorf("create namespace %s, which an earlier run may have left: %w", name, err)
	}
	return nil
}

// removeNamespace deletes it everywhere: backends leave namespaces behind.
func (s *stage) removeNamespace(ctx context.Context, name string) error {
	errs := []error{client.IgnoreNotFound(s.hub.Delete(ctx, namespaceObject(name)))}
	for _, c := range s.others {
		errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, namespaceObject(name))))
	}
	return errors.Join(errs...)
}

func namespaceObject(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// pods are the restarts of all pods on all members, by UID.
func (s *stage) pods(ctx context.Context, namespace string) (map[string]int32, error) {
	all := map[string]int32{}
	for name, member := range s.members {
		list, err := member.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list pods of %s: %w", name, err)
		}
		for _, p := range list.Items {
			all[string(p.UID)] = 0
			for _, c := range p.Status.ContainerStatuses {
				all[string(p.UID)] += c.RestartCount
			}
		}
	}
	return all, nil
}

// disturbed counts pods that went, came or were restarted.
func disturbed(before, after map[string]int32) (n int) {
	for uid, restarts := range before {
		if now, there := after[uid]; !there || now != restarts {
			n++
		}
	}
	for uid := range after {
		if _, known := before[uid]; !known {
			n++
		}
	}
	return n
}

// writes counts requests that change something, Leases and Events left out.
type writes struct {
	// management, karmada and hub are the operator's.
	management, karmada, hub int
	// works are those of the hub's that are for a certain cluster, member those that backends send to members' API servers for
	// workloads, whatever has come of them.
	works, member int
	// moves is for how many FleetWorkloads they are.
	moves int
	kinds map[string]int
}

func (w writes) plus(o writes) writes {
	kinds := maps.Clone(w.kinds)
	for kind, n := range o.kinds {
		kinds[kind] += n
	}
	return writes{
		management: w.management + o.management, karmada: w.karmada + o.karmada, hub: w.hub + o.hub,
		works: w.works + o.works, member: w.member + o.member, kinds: kinds, moves: w.moves + o.moves,
	}
}

// perCluster is what was written for one FleetWorkload on one cluster.
type perCluster struct{ hub, member float64 }

func (w writes) per(clusters int) perCluster {
	all := float64(w.moves * clusters)
	return perCluster{hub: float64(w.works) / all, member: float64(w.member) / all}
}

// countFromNow returns what tells how much has been written since.
func (s *stage) countFromNow(ctx context.Context) (func() (writes, error), error) {
	before, err := s.memberWrites(ctx)
	if err != nil {
		return nil, err
	}
	s.journal.Reset()
	return func() (writes, error) {
		w := countEntries(s.journal.Entries(), slices.Collect(maps.Keys(s.members)))
		after, err := s.memberWrites(ctx)
		w.member = after - before
		return w, err
	}, nil
}

func countEntries(entries []proxy.Entry, clusters []string) writes {
	w := writes{kinds: map[string]int{}}
	for _, e := range entries {
		cluster, resource := target(e.Path)
		switch e.Server {
		case toManagement:
			w.management++
		case toKarmada:
			w.karmada++
		case toHub:
			w.hub++
			if slices.Contains(clusters, cluster) {
				w.works++
			}
		}
		kind := fmt.Sprintf("%s %s %s", e.Server, e.Method, resource)
		if e.Status >= 400 {
			kind += fmt.Sprintf(" (%d)", e.Status)
		}
		w.kinds[kind]++
	}
	return w
}

// target reads the namespace and the resource, with its subresource, from a request's path.
func target(path string) (namespace, resource string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 2 // api/v1
	if parts[0] == "apis" {
		skip = 3 // apis/GROUP/VERSION
	}
	parts = parts[min(skip, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) == 0 {
		return namespace, path
	}
	resource = parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return namespace, resource
}

// memberWrites adds up, from the metrics of the members' API servers, the requests that change CloneSets, but for their status.
func (s *stage) memberWrites(ctx context.Context) (int, error) {
	var sum int
	for name, member := range s.members {
		raw, err := member.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		if err != nil {
			return 0, fmt.Errorf("read the metrics of %s: %w", name, err)
		}
		parser := expfmt.NewTextParser(prommodel.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
		if err != nil {
			return 0, fmt.Errorf("read the metrics of %s: %w", name, err)
		}
		for _, m := range families["apiserver_request_total"].GetMetric() {
			if isWorkloadWrite(m) {
				sum += int(m.GetCounter().GetValue())
			}
		}
	}
	return sum, nil
}

func isWorkloadWrite(m *dto.Metric) bool {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels["group"] == "apps.kruise.io" && labels["resource"] == "clonesets" && labels["subresource"] == "" &&
		labels["dry_run"] == "" && slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, labels["verb"])
}

// withToken is a kubeconfig for an API server whose address and authority an administrator's configuration has.
func withToken(admin *rest.Config, token string) clientcmdapi.Config {
	const name = "direct"
	return clientcmdapi.Config{
		CurrentContext: name,
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: admin.Host, CertificateAuthority: admin.CAFile, CertificateAuthorityData: admin.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:  map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
	}
}
