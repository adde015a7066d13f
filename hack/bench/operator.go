package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/internal/config"
)

const (
	// backend is the hub's name in the operator's configuration.
	backend = "ocm"
	// stopTime is how long the operator may take to stop.
	stopTime = 30 * time.Second
)

// memoryLimit is what the operator makes of the limit of 1 GiB that the chart gives its container.
const memoryLimit = "GOMEMLIMIT=966367641"

// isGOGC is true for the variable by which the other programs of the hub collect garbage. The operator has a default of its own.
func isGOGC(variable string) bool { return strings.HasPrefix(variable, "GOGC=") }

// operator is the operator's own program, running.
type operator struct {
	// arguments are the program and its flags.
	arguments []string
	command   *exec.Cmd
	metrics   string
	log       string
	ended     chan struct{}
	err       error
}

// ocmBackend is the configuration of a hub as a backend.
func ocmBackend(kubeconfig string) config.Backend {
	return config.Backend{
		Name: backend, Type: config.TypeOCM, Connection: config.Connection{KubeconfigFile: kubeconfig},
		OCM: &config.OCM{ClusterSets: []string{clusterSet}},
	}
}

// startOperator builds the operator and starts it with a management cluster and backends. Its log stays in the folder.
func startOperator(
	ctx context.Context, dir, kubeconfig string, backends []config.Backend, progress io.Writer,
) (*operator, error) {
	program := filepath.Join(dir, "manager")
	fmt.Fprintln(progress, "building the operator")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/manager")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the operator: %w\n%s", err, out)
	}
	file, err := writeConfig(dir, backends)
	if err != nil {
		return nil, err
	}
	o := &operator{log: filepath.Join(dir, "manager.log")}
	if o.metrics, err = freeAddress(); err != nil {
		return nil, err
	}
	o.arguments = []string{
		program, "--config=" + file, "--kubeconfig=" + kubeconfig, "--leader-elect=false",
		"--metrics-bind-address=" + o.metrics, "--metrics-open", "--health-probe-bind-address=0",
	}
	return o, o.start(ctx)
}

// start starts the operator, for the first time or again.
func (o *operator) start(ctx context.Context) error {
	log, err := os.OpenFile(o.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the operator's log: %w", err)
	}
	defer log.Close()
	o.command, o.ended = exec.Command(o.arguments[0], o.arguments[1:]...), make(chan struct{})
	o.command.Stdout, o.command.Stderr = log, log
	o.command.Env = append(slices.DeleteFunc(os.Environ(), isGOGC), memoryLimit)
	// It is told to stop by us, after whoever waits for it.
	o.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := o.command.Start(); err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	go func(command *exec.Cmd, ended chan struct{}) {
		o.err = command.Wait()
		close(ended)
	}(o.command, o.ended)
	err = poll(ctx, "the operator to start", func() error {
		_, err := o.effort(ctx)
		return err
	})
	if err != nil {
		return errors.Join(err, o.check(), o.stop())
	}
	return nil
}

func writeConfig(dir string, backends []config.Backend) (string, error) {
	raw, err := yaml.Marshal(config.Configuration{APIVersion: config.APIVersion, Kind: config.Kind, Backends: backends})
	if err != nil {
		return "", fmt.Errorf("encode the operator's configuration: %w", err)
	}
	file := filepath.Join(dir, "manager.yaml")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return "", fmt.Errorf("write the operator's configuration: %w", err)
	}
	return file, nil
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

// check is an error once the operator has ended.
func (o *operator) check() error {
	select {
	case <-o.ended:
		log, _ := os.ReadFile(o.log)
		return errors.Join(fmt.Errorf("the operator has ended; its log:\n%s", log), o.err)
	default:
		return nil
	}
}

// whileItRuns is a context that ends with the operator.
func (o *operator) whileItRuns(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func(ended <-chan struct{}) {
		select {
		case <-ended:
			cancel(o.check())
		case <-ctx.Done():
		}
	}(o.ended)
	return ctx, func() { cancel(nil) }
}

func (o *operator) stop() error {
	// An operator that has ended cannot be told to.
	_ = o.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.ended:
		return nil
	case <-time.After(stopTime):
		return errors.Join(errors.New("the operator did not stop"), o.command.Process.Kill())
	}
}

// effort is what the operator has done since its start.
type effort struct {
	passes    int
	processor time.Duration
	// pending is what it has yet to look at, or is looking at.
	pending int
}

// effort reads the operator's metrics.
func (o *operator) effort(ctx context.Context) (effort, error) {
	text, err := o.scrape(ctx)
	if err != nil {
		return effort{}, err
	}
	return readEffort(bytes.NewReader(text))
}

// scrape reads the operator's metrics as they are served.
func (o *operator) scrape(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.metrics+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("read the operator's metrics: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the operator's metrics: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the operator's metrics: %w", err)
	}
	return text, nil
}

// readEffort sums up the metrics of an operator.
func readEffort(metrics io.Reader) (effort, error) {
	var e effort
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		name, number, _ := strings.Cut(lines.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		var add func(value float64)
		switch name {
		case "controller_runtime_reconcile_total":
			add = func(value float64) { e.passes += int(value) }
		case "workqueue_depth", "controller_runtime_active_workers":
			add = func(value float64) { e.pending += int(value) }
		case "process_cpu_seconds_total":
			add = func(value float64) { e.processor = time.Duration(value * float64(time.Second)) }
		default:
			continue
		}
		value, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return effort{}, fmt.Errorf("read the operator's metric %s: %w", name, err)
		}
		add(value)
	}
	return e, lines.Err()
}
