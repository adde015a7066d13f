package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/hack/install"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

const (
	leaseName = "fleetworkload.fleetworkload.io"
	// tokenLifetime is how long an operator that is left running can work.
	tokenLifetime = 7 * 24 * time.Hour
	pidFile       = "operator.pid"
	stopTimeout   = 30 * time.Second
)

// operator is the running process.
type operator struct {
	pid     int
	log     string
	pidFile string
	exited  chan error
}

// runOperator replaces the operator of an earlier run.
func (d *demo) runOperator(ctx context.Context, out io.Writer) error {
	if err := os.MkdirAll(d.path(""), 0o700); err != nil {
		return fmt.Errorf("make the demo's folder: %w", err)
	}
	if err := stopEarlier(d.path(pidFile), out); err != nil {
		return err
	}
	for _, cluster := range []string{lab.Hub, lab.Karmada} {
		if err := d.issueKubeconfig(ctx, cluster); err != nil {
			return err
		}
		fmt.Fprintf(out, "%-8s token of ServiceAccount %s/%s in %s\n", cluster, install.Namespace, install.Account, relative(d.kubeconfig(cluster)))
	}
	if err := d.writeConfig("karmada", "ocm"); err != nil {
		return err
	}
	began := time.Now()
	var err error
	if d.operator, err = d.start(); err != nil {
		return err
	}
	fmt.Fprintf(out, "process %d, log %s\n", d.operator.pid, relative(d.operator.log))
	return d.awaitLease(ctx, began, out)
}

func (d *demo) kubeconfig(cluster string) string {
	return d.path("operator-" + cluster + ".kubeconfig")
}

// issueKubeconfig writes a kubeconfig with which the operator has its ServiceAccount's rights and no others.
func (d *demo) issueKubeconfig(ctx context.Context, cluster string) error {
	_, admin, err := d.client(cluster)
	if err != nil {
		return err
	}
	token, err := install.Token(ctx, admin, cluster, tokenLifetime)
	if err != nil {
		return err
	}
	if err := rest.LoadTLSFiles(admin); err != nil {
		return fmt.Errorf("read certificates of %s: %w", cluster, err)
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[cluster] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	kubeconfig.AuthInfos[install.Account] = &clientcmdapi.AuthInfo{Token: token}
	kubeconfig.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: install.Account, Namespace: install.Namespace}
	kubeconfig.CurrentContext = cluster
	raw, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return fmt.Errorf("encode kubeconfig of %s: %w", cluster, err)
	}
	return os.WriteFile(d.kubeconfig(cluster), raw, 0o600)
}

// writeConfig writes the operator's configuration with these backends; the hub is the management cluster too.
func (d *demo) writeConfig(names ...string) error {
	backends := []config.Backend{
		{Name: "karmada", Type: config.TypeKarmada, Connection: config.Connection{KubeconfigFile: d.kubeconfig(lab.Karmada)}},
		{
			Name: "ocm", Type: config.TypeOCM, Connection: config.Connection{InCluster: &struct{}{}},
			OCM: &config.OCM{ClusterSets: []string{"global"}},
		},
	}
	raw, err := yaml.Marshal(config.Configuration{
		APIVersion: config.APIVersion, Kind: config.Kind,
		Backends: slices.DeleteFunc(backends, func(b config.Backend) bool { return !slices.Contains(names, b.Name) }),
	})
	if err != nil {
		return fmt.Errorf("encode the operator's configuration: %w", err)
	}
	return os.WriteFile(d.path("operator.yaml"), raw, 0o600)
}

// start starts the operator detached: it outlives the demo, and Ctrl-C does not reach it but through us.
func (d *demo) start() (*operator, error) {
	binary, err := filepath.Abs("bin/manager")
	if err != nil {
		return nil, err
	}
	metrics, err := freeAddress()
	if err != nil {
		return nil, err
	}
	health, err := freeAddress()
	if err != nil {
		return nil, err
	}
	o := &operator{log: d.path("operator.log"), pidFile: d.path(pidFile), exited: make(chan error, 1)}
	log, err := os.OpenFile(o.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the operator's log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(binary, "--config", d.path("operator.yaml"), "--kubeconfig", d.kubeconfig(lab.Hub),
		"--namespace", install.Namespace, "--metrics-bind-address", metrics, "--metrics-open", "--health-probe-bind-address", health)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	o.pid = cmd.Process.Pid
	go func() { o.exited <- cmd.Wait() }()
	line := fmt.Sprintf("%d %s\n", o.pid, startTime(o.pid))
	if err := os.WriteFile(o.pidFile, []byte(line), 0o644); err != nil {
		return o, fmt.Errorf("write the operator's pid file: %w", err)
	}
	return o, nil
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// awaitLease waits until the operator works: until then status may be that of an earlier run.
func (d *demo) awaitLease(ctx context.Context, began time.Time, out io.Writer) error {
	_, admin, err := d.client(lab.Hub)
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("client of %s: %w", lab.Hub, err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		lease, err := clients.CoordinationV1().Leases(install.Namespace).Get(ctx, leaseName, metav1.GetOptions{})
		if err == nil && lease.Spec.AcquireTime != nil && lease.Spec.AcquireTime.After(began.Truncate(time.Second)) {
			fmt.Fprintf(out, "it leads and works, %s after its start\n", time.Since(began).Round(100*time.Millisecond))
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the operator does not get its lease %s/%s: another one may hold it: %w", install.Namespace, leaseName, context.Cause(ctx))
		case err := <-d.operator.exited:
			return fmt.Errorf("the operator has ended: %w", errors.Join(err, errors.New("see its log")))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// stop ends the process that this run started.
func (o *operator) stop(out io.Writer) {
	fmt.Fprintf(out, "\nstopping the operator, process %d\n", o.pid)
	_ = syscall.Kill(o.pid, syscall.SIGTERM)
	select {
	case <-o.exited:
	case <-time.After(stopTimeout):
		_ = syscall.Kill(o.pid, syscall.SIGKILL)
	}
	_ = os.Remove(o.pidFile)
}

// stopEarlier ends the process of an earlier run, unless its number belongs to another one by now.
func stopEarlier(path string, out io.Writer) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the pid file of an earlier run: %w", err)
	}
	fields := strings.Fields(string(raw))
	if len(fields) != 2 {
		return os.Remove(path)
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil || startTime(pid) == noProcess || startTime(pid) != fields[1] {
		return os.Remove(path)
	}
	fmt.Fprintf(out, "stopping the operator of an earlier run, process %d\n", pid)
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the operator of an earlier run, process %d: %w", pid, err)
	}
	for deadline := time.Now().Add(stopTimeout); startTime(pid) == fields[1]; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			break
		}
	}
	return os.Remove(path)
}

// noProcess is the start time of a process that is not there.
const noProcess = "-"

// startTime tells a process from a later one of the same number.
func startTime(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return noProcess
	}
	// The name stands in parentheses and may hold anything.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	const state, started = 0, 19
	if len(fields) <= started || fields[state] == "Z" {
		return noProcess
	}
	return fields[started]
}

// widest is how much of a log line is shown; stack traces make some very long.
const widest = 400

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	all = all[max(0, len(all)-lines):]
	for i, line := range all {
		all[i] = line[:min(len(line), widest)]
	}
	return strings.Join(all, "\n")
}

// relative shortens a path for people.
func relative(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if short, err := filepath.Rel(here, path); err == nil && !strings.HasPrefix(short, "..") {
		return short
	}
	return path
}
