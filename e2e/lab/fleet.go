// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// DefaultDir is the folder of the fleet's state, below the working directory.
	DefaultDir = ".lab"
	// DefaultMembers is how many member clusters a fleet has.
	DefaultMembers = 3

	// Hub names the management cluster, which is the OCM hub too, as in Fleet.Kubeconfig.
	Hub = "hub"
	// Karmada names the Karmada control plane.
	Karmada = "karmada"

	loopback  = "127.0.0.1"
	readyFile = "ready"
)

// Options say which fleet Up brings up.
type Options struct {
	// Dir holds the fleet's whole state. Default: DefaultDir.
	Dir string
	// Members is the number of member clusters, named member1, member2, and so on. Default: DefaultMembers. A fleet
	// that runs keeps the members it has beyond that number.
	Members int
	// DifferentNames makes OCM know each member under another name than Karmada does.
	DifferentNames bool
	// Pull names the members whose Works an agent in the member carries out. A fleet that exists keeps the mode of its members.
	Pull []string
	// WorkWebhook runs OCM's webhook for ManifestWorks. A fleet that has it keeps it.
	WorkWebhook bool
	// WithoutWorkflows leaves Argo Workflows out, which takes long to build. A fleet that has it keeps it.
	WithoutWorkflows bool
	// Out takes progress lines. Default: none are written.
	Out io.Writer
}

// Fleet is a fleet of control planes. Its processes do not depend on the process that holds it.
type Fleet struct {
	dir     string
	out     io.Writer
	begin   time.Time
	state   *state
	pki     *pki
	builder *builder
	paths   map[string]string // of the binaries

	mu      sync.Mutex
	clients map[string]*client
}

// Up brings up the fleet of opts.Dir, or what of it does not run, and returns when everything is ready. After an error
// the processes stay for inspection: call Up again, or Down.
func Up(ctx context.Context, opts Options) (*Fleet, error) {
	if opts.Members == 0 {
		opts.Members = DefaultMembers
	}
	f, unlock, err := openLocked(ctx, opts.Dir, opts.Out)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := f.claim(opts); err != nil {
		return nil, err
	}
	if err := f.provide(ctx); err != nil {
		return nil, err
	}
	// Only now: building may take long, and a caller that waits for the file must not see one of an earlier run.
	if err := os.Remove(filepath.Join(f.dir, readyFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	next, err := turn(ctx)
	if err != nil {
		return nil, err
	}
	defer next()
	units, err := f.fleetUnits()
	if err != nil {
		return nil, err
	}
	f.printf("starting %d members with Karmada and OCM", len(f.Members()))
	if err := f.run(ctx, units); err != nil {
		return nil, err
	}
	if err := f.Check(ctx); err != nil {
		return nil, err
	}
	f.printf("the fleet is ready")
	stamp := time.Now().UTC().Format(time.RFC3339) + "\n"
	return f, os.WriteFile(filepath.Join(f.dir, readyFile), []byte(stamp), 0o644)
}

// Open returns the fleet that Up left in dir (DefaultDir if empty).
func Open(dir string) (*Fleet, error) {
	f, err := newFleet(dir, nil)
	if err != nil {
		return nil, err
	}
	if !exists(f.state.path) {
		return nil, fmt.Errorf("no fleet in %s", f.dir)
	}
	return f, nil
}

func newFleet(dir string, out io.Writer) (*Fleet, error) {
	if dir == "" {
		dir = DefaultDir
	}
	if out == nil {
		out = io.Discard
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	f := &Fleet{dir: dir, out: &lockedWriter{w: out}, begin: time.Now(), clients: map[string]*client{}}
	f.state, err = loadState(dir)
	return f, err
}

// openLocked returns the fleet of dir with nobody else changing it.
func openLocked(ctx context.Context, dir string, out io.Writer) (*Fleet, func(), error) {
	f, err := newFleet(dir, out)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := f.lock(ctx)
	return f, unlock, err
}

// lock takes the folder and reads the state again: another process may have changed it.
func (f *Fleet) lock(ctx context.Context) (func(), error) {
	unlock, err := lockDir(ctx, f.dir)
	if err != nil {
		return nil, err
	}
	f.begin = time.Now()
	if err := f.state.reload(); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// claim makes the folder ours and enters the members. A folder with other content is refused: Down deletes it.
func (f *Fleet) claim(opts Options) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 && !exists(f.state.path) {
		return fmt.Errorf("%s holds other things than a fleet", f.dir)
	}
	if len(f.state.Members) > 0 && f.state.DifferentNames != opts.DifferentNames {
		return fmt.Errorf("the fleet in %s was made with other cluster names: take it down first", f.dir)
	}
	chosen, err := chosenVersions()
	if err != nil {
		return err
	}
	versions, err := f.state.agreed(chosen)
	if err != nil {
		return fmt.Errorf("%s: %w", f.dir, err)
	}
	if err := f.state.mayPull(opts); err != nil {
		return fmt.Errorf("%s: %w", f.dir, err)
	}
	return f.state.update(func() {
		f.state.Versions = versions
		f.state.WorkWebhook = f.state.WorkWebhook || opts.WorkWebhook
		f.state.DifferentNames = opts.DifferentNames
		f.state.WithoutWorkflows = opts.WithoutWorkflows && (len(f.state.Members) == 0 || f.state.WithoutWorkflows)
		for _, name := range memberNames(opts.Members) {
			f.state.addMember(name, slices.Contains(opts.Pull, name))
		}
		for i := range f.state.Members {
			f.state.Members[i].Paused = false
		}
	})
}

// memberNames are the names of the first members.
func memberNames(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("member%d", i+1)
	}
	return names
}

// provide makes what all components need: binaries (all that the fleet has, or those named) and certificates.
func (f *Fleet) provide(ctx context.Context, names ...string) error {
	var err error
	if f.builder == nil { // it keeps what the go command has told it
		if f.builder, err = newBuilder(ctx, f.state.Versions, f.out); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		names = f.binaries()
	}
	if f.paths, err = f.builder.build(ctx, names...); err != nil {
		return err
	}
	if f.pki, err = openPKI(filepath.Join(f.dir, "pki")); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(f.dir, "kubeconfigs"), 0o755); err != nil {
		return err
	}
	if kubectl, ok := f.paths["kubectl"]; ok {
		return symlink(kubectl, f.Kubectl())
	}
	return nil
}

// binaries are the names of those that the fleet has.
func (f *Fleet) binaries() (names []string) {
	without := map[string]bool{
		"workflow-controller": f.state.WithoutWorkflows, karmadaAgent: !f.state.pulls(), workWebhook: !f.state.WorkWebhook,
	}
	for _, b := range binaries {
		if !without[b.name] {
			names = append(names, b.name)
		}
	}
	return names
}

// turn waits until no other fleet of this user is being started: a port that is free when it is chosen must be so when its
// component listens, a moment later.
func turn(ctx context.Context) (next func(), err error) {
	cache, err := cacheRoot()
	if err != nil {
		return nil, err
	}
	return lockDir(ctx, filepath.Join(cache, "starting"))
}

func symlink(target, link string) error {
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink(target, link)
}

// fleetUnits are the units of everything.
func (f *Fleet) fleetUnits() ([]unit, error) {
	tables := []func() ([]unit, error){f.etcdUnits, f.hubUnits, f.karmadaUnits}
	for _, m := range f.Members() {
		tables = append(tables, func() ([]unit, error) {
			own, karmada, err := f.memberUnits(m)
			return append(own, karmada...), err
		})
	}
	var units []unit
	for _, table := range tables {
		more, err := table()
		if err != nil {
			return nil, err
		}
		units = append(units, more...)
	}
	return units, nil
}

// Temporary tells whether the fleet goes right after the tests that it is for. Then they leave empty namespaces on it: to delete one, an
// API server is asked about every type that it has. And only the hub keeps events.
func Temporary() bool { return os.Getenv("LAB_TEMPORARY") != "" }

// Dir is the folder of the fleet's state.
func (f *Fleet) Dir() string { return f.dir }

// Kubectl is the path of a kubectl that fits the clusters.
func (f *Fleet) Kubectl() string { return filepath.Join(f.dir, "bin", "kubectl") }

// Kubeconfig is the path of the administrator's kubeconfig of Hub, Karmada or a member.
func (f *Fleet) Kubeconfig(name string) string {
	return filepath.Join(f.dir, "kubeconfigs", name+".kubeconfig")
}

// RESTConfig is the administrator's client configuration of Hub, Karmada or a member.
func (f *Fleet) RESTConfig(name string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig(name))
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", name, err)
	}
	return config, nil
}

// Members are the member clusters in the order in which they were added, as last known to this Fleet.
func (f *Fleet) Members() []Member {
	f.state.mu.Lock()
	defer f.state.mu.Unlock()
	return slices.Clone(f.state.Members)
}

var memberName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$`)

// AddMember starts another member cluster, joins it to Karmada and OCM, and returns when it is ready on both. To a Karmada that is
// stopped it is joined by the next Up.
func (f *Fleet) AddMember(ctx context.Context, name string) (Member, error) {
	if !memberName.MatchString(name) || name == Hub || name == Karmada {
		return Member{}, fmt.Errorf("%q cannot be the name of a member", name)
	}
	unlock, err := f.lock(ctx)
	if err != nil {
		return Member{}, err
	}
	defer unlock()
	if _, ok := f.state.member(name); ok {
		return Member{}, fmt.Errorf("member %s exists", name)
	}
	if err := f.state.update(func() { f.state.addMember(name, false) }); err != nil {
		return Member{}, err
	}
	next, err := turn(ctx)
	if err != nil {
		return Member{}, err
	}
	defer next()
	m, _ := f.state.member(name)
	return m, f.runMember(ctx, m)
}

// PauseMember stops the member's API server: connections to it are refused until ResumeMember. Its other processes
// stay, and so do its objects.
func (f *Fleet) PauseMember(ctx context.Context, name string) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.setPaused(name, true); err != nil {
		return err
	}
	p := f.state.process(apiServerName(name))
	if p == nil {
		return fmt.Errorf("member %s has no API server", name)
	}
	if err := p.kill(); err != nil {
		return fmt.Errorf("pause %s: %w", name, err)
	}
	return awaitDead(ctx, p)
}

// ResumeMember starts the API server of a paused member again, and whatever else of the member has stopped meanwhile. It
// returns when the member is ready on OCM, and on Karmada unless that is stopped. Its ports are its own, so that it does not wait for the
// start of another fleet: the longer a member is away, the longer OCM's agents wait before they try again.
func (f *Fleet) ResumeMember(ctx context.Context, name string) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.setPaused(name, false); err != nil {
		return err
	}
	m, _ := f.state.member(name)
	return f.runMember(ctx, m)
}

// KillAPIServer ends the API server of Hub or Karmada at once: connections to it break and are refused until
// ReviveAPIServer. What it has stored stays.
func (f *Fleet) KillAPIServer(ctx context.Context, name string) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p := f.state.process(apiServerName(name))
	if p == nil {
		return fmt.Errorf("%s has no API server", name)
	}
	if err := p.kill(); err != nil {
		return fmt.Errorf("kill the API server of %s: %w", name, err)
	}
	return awaitDead(ctx, p)
}

// ReviveAPIServer starts the API server of Hub or Karmada again, unless it runs, and returns when it serves all types that it has
// served before.
func (f *Fleet) ReviveAPIServer(ctx context.Context, name string) error {
	if err := f.Revive(ctx, apiServerName(name)); err != nil {
		return err
	}
	err := await(ctx, readyTimeout, func(context.Context) error { return f.servesAll(name) })
	if err != nil {
		return fmt.Errorf("the API server of %s runs again: %w", name, err)
	}
	return nil
}

// servesAll is an error while a type is not served. A new API server is ready before it has asked an aggregated one for its types, of
// which the APIService says Available from the old one's time.
func (f *Fleet) servesAll(cluster string) error {
	c, err := f.client(cluster)
	if err != nil {
		return err
	}
	d, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return err
	}
	_, _, err = d.ServerGroupsAndResources()
	return err
}

func (f *Fleet) setPaused(name string, paused bool) error {
	if _, ok := f.state.member(name); !ok {
		return fmt.Errorf("no member %s in %s", name, f.dir)
	}
	return f.state.update(func() {
		for i := range f.state.Members {
			if f.state.Members[i].Name == name {
				f.state.Members[i].Paused = paused
			}
		}
	})
}

func (f *Fleet) runMember(ctx context.Context, m Member) error {
	if err := f.provide(ctx); err != nil {
		return err
	}
	units, err := f.unitsBeside(m)
	if err != nil {
		return err
	}
	return f.run(ctx, units)
}

// unitsBeside are those of a member in a fleet that runs. None of them waits for a Karmada that has been switched off.
func (f *Fleet) unitsBeside(m Member) ([]unit, error) {
	own, karmada, err := f.memberUnits(m)
	if err != nil {
		return nil, err
	}
	if f.karmadaRuns() {
		return append(own, karmada...), nil
	}
	f.printf("Karmada is stopped: %s is on OCM alone", m.Name)
	return own, nil
}

// karmadaRuns tells whether any part of Karmada does. One whose API server alone is down comes back, and is waited for.
func (f *Fleet) karmadaRuns() bool {
	f.state.mu.Lock()
	defer f.state.mu.Unlock()
	for name, p := range f.state.Processes {
		if strings.HasPrefix(name, Karmada+"-") && p.alive() {
			return true
		}
	}
	return false
}

// Component is what Status tells about one process of the fleet.
type Component struct {
	Name  string
	PID   int
	Alive bool
	// Paused says that the process belongs to a paused member.
	Paused bool
	// CPU is the time that it has computed for.
	CPU time.Duration
	// RSS is the resident memory in bytes; PSS counts what processes share, as their program, in parts.
	RSS, PSS int64
	Log      string
}

// Status lists the fleet's processes by name.
func (f *Fleet) Status() ([]Component, error) {
	s, err := loadState(f.dir)
	if err != nil {
		return nil, err
	}
	var components []Component
	for _, name := range slices.Sorted(maps.Keys(s.Processes)) {
		p := s.Processes[name]
		c := Component{Name: name, PID: p.PID, Alive: p.alive(), Log: p.Log}
		if c.Alive {
			c.RSS, c.PSS = p.memory()
			if stat, err := statOf(p.PID); err == nil {
				c.CPU = stat.cpu
			}
		}
		if m := s.owner(name); m != nil {
			c.Paused = m.Paused
		}
		components = append(components, c)
	}
	return components, nil
}

// Check returns an error that names each component that has died, with the last lines of its log. Components of paused
// members are not looked at.
func (f *Fleet) Check(_ context.Context) error {
	components, err := f.Status()
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range components {
		if !c.Alive && !c.Paused {
			errs = append(errs, fmt.Errorf("%s (process %d) has died; last lines of %s:\n%s", c.Name, c.PID, c.Log, logTail(c.Log, tailLines)))
		}
	}
	return errors.Join(errs...)
}

// Down ends every process of the fleet and deletes its folder. The built binaries stay in the cache.
func (f *Fleet) Down(ctx context.Context) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if !exists(f.state.path) {
		return fmt.Errorf("no fleet in %s", f.dir)
	}
	all := maps.Clone(f.state.Processes)
	maps.Copy(all, f.guests())
	for name, p := range all {
		if err := p.kill(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, p := range all {
		if err := awaitDead(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := os.RemoveAll(f.dir); err != nil {
		return fmt.Errorf("delete %s: %w", f.dir, err)
	}
	return nil
}

// guests are programs that others run on the fleet, such as the demo's operator. They are found by files NAME.pid in
// folders of the fleet's own, with the process's number and when it started, in ticks since boot.
func (f *Fleet) guests() map[string]*process {
	guests := map[string]*process{}
	files, _ := filepath.Glob(filepath.Join(f.dir, "*", "*.pid"))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		p := &process{}
		if n, err := fmt.Sscan(string(raw), &p.PID, &p.Started); err == nil && n == 2 && p.PID > 1 {
			guests[file] = p
		}
	}
	return guests
}

func awaitDead(ctx context.Context, p *process) error {
	return await(ctx, 30*time.Second, func(context.Context) error {
		if p.alive() {
			return fmt.Errorf("process %d still runs", p.PID)
		}
		return nil
	})
}

// client returns the administrator's client of a cluster.
func (f *Fleet) client(name string) (*client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.clients[name]; ok {
		return c, nil
	}
	c, err := newClient(f.Kubeconfig(name))
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", name, err)
	}
	f.clients[name] = c
	return c, nil
}

func (f *Fleet) printf(format string, args ...any) {
	fmt.Fprintf(f.out, "%6.1fs  %s\n", time.Since(f.begin).Seconds(), fmt.Sprintf(format, args...))
}

// SetOutput takes the progress lines of what follows.
func (f *Fleet) SetOutput(out io.Writer) { f.out = &lockedWriter{w: out} }

// lockedWriter lets the goroutines that bring up components share a writer.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
