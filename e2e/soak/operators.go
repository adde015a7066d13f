// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/hack/install"
)

// leaseName is the operators' lease.
const leaseName = "fleetworkload.fleetworkload.io"

var leaseGVK = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}

const (
	// tokenLifetime is longer than any soak.
	tokenLifetime = 12 * time.Hour
	// restartDelay is after what time an operator that has ended is started again, as a kubelet would.
	restartDelay = time.Second
	stopTimeout  = 15 * time.Second
)

// servers are what an operator connects to, and on which control plane each is.
var servers = map[string]string{choice.ServerManagement: lab.Hub, choice.ServerKarmada: lab.Karmada, choice.ServerOCM: lab.Hub}

// cutModes are the ways in which connections fail.
var cutModes = map[string]proxy.Mode{
	choice.CutRefuse: proxy.Refuse, choice.CutBlackhole: proxy.Blackhole,
	choice.CutThrottle: proxy.TooManyRequests, choice.CutUnauthorized: proxy.Unauthorized,
}

// operators are two of them, of which one leads.
type operators struct {
	all map[string]*operator
}

// operator is one manager as a process, behind proxies that count what it writes. It is started again when it ends.
type operator struct {
	name, dir, binary string
	journal           *proxy.Journal
	proxies           map[string]*proxy.Proxy
	out               *report

	mu     sync.Mutex
	pid    int
	starts int
	// may is closed while it may be started.
	may     chan struct{}
	exited  chan struct{} // closed when the present process has ended
	scanned int64         // how much of the log has been looked at
}

func newOperators(ctx context.Context, s *soak, dir, binary string) (*operators, error) {
	o := &operators{all: map[string]*operator{}}
	for _, name := range []string{choice.OperatorA, choice.OperatorB} {
		one := &operator{
			name: name, dir: filepath.Join(dir, name), binary: binary, out: s.out, journal: &proxy.Journal{}, proxies: map[string]*proxy.Proxy{},
			may: make(chan struct{}),
		}
		close(one.may)
		o.all[name] = one
		if err := one.connect(ctx, s); err != nil {
			o.close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return o, nil
}

// connect writes the operator's configuration, with a proxy in front of every server.
func (o *operator) connect(ctx context.Context, s *soak) error {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return fmt.Errorf("make its folder: %w", err)
	}
	for server, control := range servers {
		admin := s.clusters[control].rest
		token, err := install.Token(ctx, admin, control, tokenLifetime)
		if err != nil {
			return err
		}
		if o.proxies[server], err = proxy.New(server, admin, o.journal); err != nil {
			return fmt.Errorf("proxy to %s: %w", server, err)
		}
		if err := clientcmd.WriteToFile(o.proxies[server].Kubeconfig(token), o.kubeconfig(server)); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", server, err)
		}
	}
	type object = map[string]any
	raw, err := yaml.Marshal(object{
		"apiVersion": "config.fleetworkload.io/v1alpha1", "kind": "OperatorConfiguration",
		"backends": []any{
			object{"name": choice.ServerKarmada, "type": "Karmada", "connection": object{"kubeconfigFile": o.kubeconfig(choice.ServerKarmada)}},
			object{
				"name": choice.ServerOCM, "type": "OCM", "connection": object{"kubeconfigFile": o.kubeconfig(choice.ServerOCM)},
				"ocm": object{"clusterSets": []string{"global"}},
			},
		},
	})
	if err != nil {
		return fmt.Errorf("encode its configuration: %w", err)
	}
	return os.WriteFile(o.path("config.yaml"), raw, 0o600)
}

func (o *operator) path(name string) string         { return filepath.Join(o.dir, name) }
func (o *operator) kubeconfig(server string) string { return o.path(server + ".kubeconfig") }

// start starts both. That they work shows when workloads become ready.
func (o *operators) start(ctx context.Context) error {
	for _, one := range o.sorted() {
		if err := one.launch(ctx); err != nil {
			return fmt.Errorf("start %s: %w", one.name, err)
		}
	}
	return nil
}

func (o *operators) sorted() []*operator {
	return []*operator{o.all[choice.OperatorA], o.all[choice.OperatorB]}
}

// launch starts the process, and again each time it has ended.
func (o *operator) launch(ctx context.Context) error {
	log, err := os.OpenFile(o.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open its log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(o.binary, "--config="+o.path("config.yaml"), "--kubeconfig="+o.kubeconfig(choice.ServerManagement),
		"--namespace="+install.Namespace, "--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect=true")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start its process: %w", err)
	}
	exited := make(chan struct{})
	o.mu.Lock()
	o.pid, o.exited = cmd.Process.Pid, exited
	o.starts++
	o.mu.Unlock()
	go func() {
		_ = cmd.Wait() // an operator that has lost its lease, or was killed, ends with an error
		close(exited)
		o.lookForPanics()
		o.relaunch(ctx)
	}()
	return nil
}

// relaunch starts it again, a moment later and as soon as it may.
func (o *operator) relaunch(ctx context.Context) {
	for _, wait := range []func() <-chan struct{}{func() <-chan struct{} { return after(restartDelay) }, o.allowed} {
		select {
		case <-ctx.Done():
			return
		case <-wait():
		}
	}
	if err := o.launch(ctx); err != nil {
		o.out.fail("%s cannot be started again: %v", o.name, err)
	}
}

// after is closed when some time has passed.
func after(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}

func (o *operator) allowed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.may
}

// allow says whether it may be started.
func (o *operator) allow(may bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := true
	select {
	case <-o.may:
	default:
		before = false
	}
	switch {
	case may && !before:
		close(o.may)
	case !may && before:
		o.may = make(chan struct{})
	}
}

// lookForPanics reads what the log has got since the last time.
func (o *operator) lookForPanics() {
	raw, err := os.ReadFile(o.path("log"))
	if err != nil {
		return
	}
	o.mu.Lock()
	fresh := raw[min(int64(len(raw)), o.scanned):]
	o.scanned = int64(len(raw))
	o.mu.Unlock()
	for _, mark := range []string{"panic: ", "fatal error: "} {
		if i := bytes.Index(fresh, []byte("\n"+mark)); i >= 0 {
			o.out.fail("%s has crashed: %.600s", o.name, fresh[i+1:])
		}
	}
}

// signal sends a signal to the process that runs.
func (o *operator) signal(sig syscall.Signal) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.exited:
		return nil // it is about to be started again
	default:
	}
	if err := syscall.Kill(-o.pid, sig); err != nil {
		return fmt.Errorf("send %s to %s: %w", sig, o.name, err)
	}
	return nil
}

// cut has connections of both to a server fail, or mends them.
func (o *operators) cut(server string, mode proxy.Mode) {
	for _, one := range o.all {
		one.proxies[server].Set(mode)
	}
}

// written is what both have written since forget.
func (o *operators) written() []proxy.Entry {
	return slices.Concat(o.all[choice.OperatorA].journal.Entries(), o.all[choice.OperatorB].journal.Entries())
}

func (o *operators) forget() {
	for _, one := range o.all {
		one.journal.Reset()
	}
}

// close ends both for good.
func (o *operators) close() {
	for _, one := range o.all {
		one.allow(false)
		if one.exited != nil {
			_ = one.signal(syscall.SIGCONT)
			_ = one.signal(syscall.SIGTERM)
		}
	}
	for _, one := range o.all {
		if one.exited != nil {
			select {
			case <-one.exited:
			case <-time.After(stopTimeout):
				_ = one.signal(syscall.SIGKILL)
				<-one.exited
			}
		}
		for _, p := range one.proxies {
			_ = p.Close()
		}
	}
}
