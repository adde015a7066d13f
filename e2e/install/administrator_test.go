//go:build api

// Package install types what the pages have administrators type to install and to uninstall the operator, with Helm and kubectl, on an API server
// with a control plane's controllers. No node runs pods there.
package install

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/hack/docs"
)

const (
	root      = "../.."
	namespace = "fleetworkload-system"
)

// administrator follows pages on a control plane of its own.
type administrator struct {
	// dir is a checkout as far as it is needed: the chart and the kustomize bases, and the files that pages have people write.
	dir    string
	env    []string
	server *lab.APIServer
	config *rest.Config
	api    client.Client
	steps  []docs.Step
	typed  map[string]bool
}

func newAdministrator(tb testing.TB) *administrator {
	tb.Helper()
	home := tb.TempDir()
	server, err := lab.StartAPIServer(tb.Context(), filepath.Join(home, "lab"), os.Stderr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := server.Stop(); err != nil {
			tb.Error(err)
		}
	})
	if err := server.RunControllers(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	config, err := server.RESTConfig()
	if err != nil {
		tb.Fatal(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	tools := filepath.Join(home, "tools")
	a := &administrator{dir: filepath.Join(home, "checkout"), server: server, config: config, api: newClient(tb, config), steps: stepsOfPages(tb), typed: map[string]bool{}}
	a.env = append(os.Environ(), "PATH="+tools+string(filepath.ListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+server.Kubeconfig(), "HOME="+home)
	link(tb, helmProgram(tb), filepath.Join(tools, "helm"))
	link(tb, server.Kubectl(), filepath.Join(tools, "kubectl"))
	for _, folder := range []string{"charts", "config"} {
		link(tb, filepath.Join(root, folder), filepath.Join(a.dir, folder))
	}
	return a
}

func newClient(tb testing.TB, config *rest.Config) client.Client {
	tb.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		tb.Fatal(err)
	}
	return api
}

// as is a client of somebody else.
func (a *administrator) as(tb testing.TB, user string) client.Client {
	tb.Helper()
	config := rest.CopyConfig(a.config)
	config.Impersonate.UserName = user
	return newClient(tb, config)
}

// helmProgram is the one that hack/tools pins.
func helmProgram(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(root, "bin", "helm")
	if _, err := os.Stat(path); err != nil {
		tb.Fatalf("there is no Helm (`make bin/helm` builds it): %v", err)
	}
	return path
}

func link(tb testing.TB, to, at string) {
	tb.Helper()
	to, err := filepath.Abs(to)
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		tb.Fatal(err)
	}
}

// stepsOfPages are those of the pages that are about installing.
func stepsOfPages(tb testing.TB) []docs.Step {
	tb.Helper()
	pages, err := docs.Read(root)
	if err != nil {
		tb.Fatal(err)
	}
	var all []docs.Step
	for _, page := range pages {
		if !slices.Contains([]string{"docs/first-hour.md", "docs/installation.md"}, page.Path) {
			continue
		}
		steps, err := page.Steps()
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, steps...)
	}
	return all
}

// files are the contents that the pages have people write into a file, in their order.
func (a *administrator) files(tb testing.TB, name string, count int) []string {
	tb.Helper()
	var all []string
	for _, step := range a.steps {
		if step.File == name && step.Shown == "" {
			all = append(all, step.Text)
		}
	}
	if len(all) != count {
		tb.Fatalf("the pages have %s %d times, want %d", name, len(all), count)
	}
	return all
}

func (a *administrator) writes(tb testing.TB, name, content string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, name), []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// types runs a command of the pages.
func (a *administrator) types(tb testing.TB, command string) {
	tb.Helper()
	var out bytes.Buffer
	begin := time.Now()
	if err := a.command(tb, command, &out).Run(); err != nil {
		tb.Fatalf("%s: %v\n%s", command, err, &out)
	}
	tb.Logf("%s, in %s", command, time.Since(begin).Round(10*time.Millisecond))
}

// command is one of the pages.
func (a *administrator) command(tb testing.TB, command string, out io.Writer) *exec.Cmd {
	tb.Helper()
	if !slices.ContainsFunc(a.steps, func(s docs.Step) bool { return s.Text == command }) {
		tb.Fatalf("no page says %q", command)
	}
	a.typed[command] = true
	return a.inShell(tb, command, out)
}

// shell runs a command that no page has people type.
func (a *administrator) shell(tb testing.TB, command string) (string, error) {
	tb.Helper()
	var out bytes.Buffer
	err := a.inShell(tb, command, &out).Run()
	return out.String(), err
}

func (a *administrator) inShell(tb testing.TB, command string, out io.Writer) *exec.Cmd {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "bash", "-c", "exec "+command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = a.dir, a.env, out, out
	return cmd
}

// hasTyped wants each command of the pages that is about something to have been typed, or to be listed with the reason why not.
func (a *administrator) hasTyped(tb testing.TB, about func(string) bool, notTyped map[string]string) {
	tb.Helper()
	for _, step := range a.steps {
		if _, listed := notTyped[step.Text]; about(step.Text) && !listed && !a.typed[step.Text] {
			tb.Errorf("%s: %q is neither typed nor listed", step.Where, step.Text)
		}
	}
	for command := range notTyped {
		if !slices.ContainsFunc(a.steps, func(s docs.Step) bool { return s.Text == command }) {
			tb.Errorf("no page says %q any more", command)
		}
	}
}

// eventually waits until something is as it should be, and says what was wrong with it last.
func eventually(tb testing.TB, what string, wrong func(context.Context) string) {
	tb.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(tb.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		now := wrong(ctx)
		if ctx.Err() == nil { // the end of time is not what is wrong
			last = now
		}
		return now == "", nil
	})
	if err != nil {
		tb.Fatalf("%s: %s", what, last)
	}
}
