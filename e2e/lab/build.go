// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// packagePath is where this package lives; its folder holds the module files of the components.
const packagePath = "github.com/fleetworkload/fleetworkload/e2e/lab"

// Modules whose files (CRDs, webhook configurations, stages, RBAC) are read beside their binaries being built.
const (
	karmadaModule = "github.com/karmada-io/karmada"
	ocmModule     = "open-cluster-management.io/ocm"
	kruiseModule  = "github.com/openkruise/kruise"
	kwokModule    = "sigs.k8s.io/kwok"
	argoModule    = "github.com/argoproj/argo-workflows/v3"
)

const (
	kubernetesModule  = "k8s.io/kubernetes"
	kubernetesVersion = "v1.35.4"
)

// binary is one program of the fleet: family names the module file under components/ that pins it.
type binary struct {
	name, family, pkg, ldflags string
	patch                      *patch
}

// patch changes one place of a program's main.go for the build, or all of it where from is empty. Nothing of it is kept outside the cache.
type patch struct {
	// dir of main.go in the module.
	module, dir, from, to string
}

// apply returns a main.go with the change.
func (p *patch) apply(text []byte) ([]byte, error) {
	if p.from == "" {
		return []byte(p.to), nil
	}
	if n := bytes.Count(text, []byte(p.from)); n != 1 {
		return nil, fmt.Errorf("%s stands %d times in main.go of %s, want once", p.from, n, p.module)
	}
	return bytes.Replace(text, []byte(p.from), []byte(p.to), 1), nil
}

// kruiseHost: OpenKruise's manager serves its webhooks on every interface, and no flag changes that.
var kruiseHost = &patch{module: kruiseModule, from: `Host:    "0.0.0.0",`, to: `Host: webhookutil.GetHost(),`}

// argoHost: Argo's controller serves its health on every interface under one port, and no flag changes that.
var argoHost = &patch{
	module: argoModule, dir: "cmd/workflow-controller", from: `http.ListenAndServe(":6060", nil)`,
	to: `http.ListenAndServe(os.Getenv("HEALTH_ADDRESS"), nil)`,
}

// EnvAgentResync shortens the time after which an OCM agent that is started with it looks at every ManifestWork again, which is 4 to 6 minutes
// and has no flag.
const EnvAgentResync = "LAB_AGENT_RESYNC"

var agentResync = &patch{
	module: ocmModule, dir: "cmd/work", from: "\"open-cluster-management.io/ocm/pkg/version\"\n)\n",
	to: "\"open-cluster-management.io/ocm/pkg/version\"\n" +
		"\t\"open-cluster-management.io/ocm/pkg/work/spoke/controllers/manifestcontroller\"\n\t\"time\"\n)\n\n" +
		"func init() {\n\tif d, err := time.ParseDuration(os.Getenv(\"" + EnvAgentResync + "\")); err == nil {\n" +
		"\t\tmanifestcontroller.ResyncInterval = d\n\t}\n}\n",
}

// binaries in build order: the API server first, all others wait for it.
//
// Kubernetes and Karmada are one family, and OCM's has the same versions but for controller-runtime, of which it needs an earlier
// one; the operator has them too. So what they have in common, most of it Kubernetes' libraries, is compiled once. Their gRPC is
// later than that of Kubernetes 1.35: with its own, requests and watches of the API server may hang for a minute and more when a
// connection to etcd is made anew (https://github.com/kubernetes/kubernetes/issues/140911).
var binaries = []binary{
	{"etcd", "shared", "go.etcd.io/etcd/server/v3", "", nil},
	{"kube-apiserver", "shared", kubernetesModule + "/cmd/kube-apiserver", versionFlags(kubernetesVersion), nil},
	{"kube-controller-manager", "shared", kubernetesModule + "/cmd/kube-controller-manager", versionFlags(kubernetesVersion), nil},
	{"kube-scheduler", "shared", kubernetesModule + "/cmd/kube-scheduler", versionFlags(kubernetesVersion), nil},
	{"kubectl", "shared", kubernetesModule + "/cmd/kubectl", versionFlags(kubernetesVersion), nil},
	{"kwok", "kwok", kwokModule + "/cmd/kwok", "", nil},
	{"kruise-manager", "kruise", kruiseModule, "", kruiseHost},
	{"karmada-aggregated-apiserver", "shared", karmadaModule + "/cmd/aggregated-apiserver", "", nil},
	{"karmada-controller-manager", "shared", karmadaModule + "/cmd/controller-manager", "", nil},
	{karmadaAgent, "shared", karmadaModule + "/cmd/agent", "", nil},
	{"karmada-scheduler", "shared", karmadaModule + "/cmd/scheduler", "", nil},
	{"karmada-webhook", "shared", karmadaModule + "/cmd/webhook", "", nil},
	{"workflow-controller", "argo", argoModule + "/cmd/workflow-controller", "", argoHost},
	{"ocm-placement", "ocm", ocmModule + "/cmd/placement", "", nil},
	{"ocm-registration", "ocm", ocmModule + "/cmd/registration", "", nil},
	{"ocm-work", "ocm", ocmModule + "/cmd/work", "", agentResync},
	{workWebhook, "ocm", ocmModule + "/cmd/work", "", workWebhookHost},
}

// builder finds or builds the binaries.
type builder struct {
	source   string // folder of this package
	cache    string
	versions map[string]string // module -> the version that was chosen instead of that of components/
	out      io.Writer

	mu   sync.Mutex
	dirs map[string]string // family -> cache folder, module -> its folder
}

func newBuilder(ctx context.Context, versions map[string]string, out io.Writer) (*builder, error) {
	source, err := sourceDir(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := cacheRoot()
	if err != nil {
		return nil, err
	}
	b := &builder{source: source, cache: cache, versions: versions, out: out, dirs: map[string]string{}}
	return b, b.provideChosen(ctx)
}

// cacheRoot is the folder of what all fleets of this user share.
func cacheRoot() (string, error) {
	if cache := os.Getenv("LAB_CACHE"); cache != "" {
		return cache, nil
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder (set LAB_CACHE): %w", err)
	}
	return filepath.Join(user, "fleetworkload", "lab"), nil
}

// sourceDir finds this package's folder: go:embed cannot reach into the nested modules under components/.
func sourceDir(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		if dir := filepath.Dir(file); exists(filepath.Join(dir, "components")) {
			return dir, nil
		}
	}
	dir, err := goTool(ctx, "", nil, "list", "-f", "{{.Dir}}", packagePath)
	if err != nil {
		return "", fmt.Errorf("find the sources of %s: %w", packagePath, err)
	}
	return dir, nil
}

// goTool runs the go command in dir and returns what it prints. Checksum verification is never touched.
func goTool(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off"), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}

// moduleDir returns the folder of a component's module in the module cache, downloading it if need be.
func (b *builder) moduleDir(ctx context.Context, family, module string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if dir, ok := b.dirs[module]; ok {
		return dir, nil
	}
	if version, ok := b.versions[module]; ok {
		family = familyOf(module, version)
	}
	at := b.familyDir(family)
	dir, err := goTool(ctx, at, nil, "list", "-m", "-f", "{{.Dir}}", module)
	if err == nil && dir == "" {
		if _, err = goTool(ctx, at, nil, "mod", "download", module); err == nil {
			dir, err = goTool(ctx, at, nil, "list", "-m", "-f", "{{.Dir}}", module)
		}
	}
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", module, err)
	}
	b.dirs[module] = dir
	return dir, nil
}

// familyDir is the folder of a family's module files: in components/, or in the cache for one of a chosen version.
func (b *builder) familyDir(family string) string {
	if strings.Contains(family, "@") {
		return filepath.Join(b.cache, "modules", family)
	}
	return filepath.Join(b.source, "components", family)
}

// cacheDir returns the folder of a family's binaries. Whatever could change them is in its name.
func (b *builder) cacheDir(ctx context.Context, family string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if dir, ok := b.dirs[family]; ok {
		return dir, nil
	}
	version, err := goTool(ctx, b.familyDir(family), nil, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintln(hash, version)
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(b.familyDir(family), name))
		if err != nil {
			return "", fmt.Errorf("components of %s: %w", family, err)
		}
		hash.Write(data)
	}
	for _, bin := range binaries {
		if chosen := b.chosen(bin); chosen.family == family {
			bin = chosen
		}
		if bin.family == family {
			fmt.Fprintln(hash, buildArgs(bin, ""), bin.patch)
		}
	}
	dir := filepath.Join(b.cache, family+"-"+hex.EncodeToString(hash.Sum(nil))[:16])
	b.dirs[family] = dir
	return dir, nil
}

func buildArgs(bin binary, out string) []string {
	return []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", strings.TrimSpace("-s -w " + bin.ldflags), "-o", out, bin.pkg}
}

// build returns the paths of the named binaries (all when none is named), building those that the cache lacks.
func (b *builder) build(ctx context.Context, names ...string) (map[string]string, error) {
	paths := map[string]string{}
	for _, bin := range binaries {
		if len(names) > 0 && !slices.Contains(names, bin.name) {
			continue
		}
		bin = b.chosen(bin)
		dir, err := b.cacheDir(ctx, bin.family)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", bin.name, err)
		}
		path := filepath.Join(dir, bin.name)
		if !exists(path) {
			if err := b.buildOne(ctx, bin, path); err != nil {
				return nil, fmt.Errorf("build %s: %w", bin.name, err)
			}
		}
		paths[bin.name] = path
	}
	return paths, nil
}

// buildOne builds under the family's lock, so that two fleets starting at once do not build the same thing twice.
func (b *builder) buildOne(ctx context.Context, bin binary, path string) error {
	unlock, err := lockDir(ctx, filepath.Dir(path))
	if err != nil {
		return err
	}
	defer unlock()
	if exists(path) {
		return nil
	}
	start := time.Now()
	stop := every(20*time.Second, func() {
		fmt.Fprintf(b.out, "  building %s, %s\n", bin.name, time.Since(start).Round(time.Second))
	})
	defer stop()
	fmt.Fprintf(b.out, "building %s\n", bin.name)
	args := buildArgs(bin, path+".new")
	if bin.patch != nil {
		if args, err = b.patched(ctx, bin, path+".new"); err != nil {
			return err
		}
	}
	if _, err := goTool(ctx, b.familyDir(bin.family), []string{"CGO_ENABLED=0"}, args...); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "built %s in %s\n", bin.name, time.Since(start).Round(time.Second))
	return nil
}

// patched returns the arguments of a build with the binary's patch. Go builds no changed file of the module cache, so
// the changed main.go is laid over a folder of the family's own module, which does not exist.
func (b *builder) patched(ctx context.Context, bin binary, out string) ([]string, error) {
	dir, err := b.moduleDir(ctx, bin.family, bin.patch.module)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, bin.patch.dir, "main.go"))
	if err != nil {
		return nil, err
	}
	patched, err := bin.patch.apply(text)
	if err != nil {
		return nil, err
	}
	changed := filepath.Join(filepath.Dir(out), bin.name+".go")
	if err := os.WriteFile(changed, patched, 0o644); err != nil {
		return nil, err
	}
	overlay, err := json.Marshal(object{"Replace": object{filepath.Join(b.familyDir(bin.family), bin.name, "main.go"): changed}})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(changed+".json", overlay, 0o644); err != nil {
		return nil, err
	}
	bin.pkg = "./" + bin.name
	args := buildArgs(bin, out)
	return append([]string{args[0], "-overlay", changed + ".json"}, args[1:]...), nil
}

// buildSelf builds the lab command for the processes of our own (the heartbeat): the caller may be a test binary, and
// that of "go run" is gone soon. With the flags of the Makefile nearly everything is in Go's cache already; where nothing has changed
// since the last time it is not even linked.
func (b *builder) buildSelf(ctx context.Context, path string) error {
	if _, err := goTool(ctx, b.source, []string{"CGO_ENABLED=0"}, "build", "-trimpath", "-buildvcs=false", "-o", path, "./cmd/lab"); err != nil {
		return fmt.Errorf("build the lab command: %w", err)
	}
	return nil
}

// every calls do at each interval until stopped.
func every(interval time.Duration, do func()) (stop func()) {
	done := make(chan struct{})
	var once sync.Once
	go func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				do()
			}
		}
	}()
	return func() { once.Do(func() { close(done) }) }
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
