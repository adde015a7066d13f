// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/soak/choice"
	"github.com/fleetworkload/fleetworkload/e2e/soak/manifest"
	"github.com/fleetworkload/fleetworkload/hack/install"
)

// cluster is one API server.
type cluster struct {
	client.WithWatch
	name      string
	rest      *rest.Config
	discovery discovery.DiscoveryInterface
	metadata  metadata.Interface
}

// theFleet is the fleet of the environment variable, or a new one that ends with the soak.
func theFleet(ctx context.Context, dir string, out *report) (*lab.Fleet, func() error, error) {
	if running := os.Getenv(envLabDir); running != "" {
		fleet, err := lab.Open(running)
		if err != nil {
			return nil, nil, fmt.Errorf("open the fleet of %s: %w", envLabDir, err)
		}
		return fleet, func() error { return nil }, joined(ctx, fleet)
	}
	dir = filepath.Join(dir, "fleet")
	down := func() error {
		fleet, err := lab.Open(dir)
		if err != nil {
			return nil //nolint:nilerr // it never came so far
		}
		return fleet.Down(context.WithoutCancel(ctx))
	}
	out.say("starting a fleet with %d members", len(choice.Members())+1)
	fleet, err := lab.Up(ctx, lab.Options{Dir: dir, Members: len(choice.Members()) + 1, Out: io.Discard})
	if err != nil {
		_ = down() // the first error tells more
		return nil, nil, fmt.Errorf("start a fleet: %w", err)
	}
	return fleet, down, nil
}

// joined adds the visitor to a fleet that does not have it.
func joined(ctx context.Context, fleet *lab.Fleet) error {
	if slices.ContainsFunc(fleet.Members(), func(m lab.Member) bool { return m.Name == choice.Visitor }) {
		return nil
	}
	_, err := fleet.AddMember(ctx, choice.Visitor)
	return err
}

// stage prepares everything that the actions need.
func (s *soak) stage(ctx context.Context, dir string) error {
	s.clusters = map[string]*cluster{}
	for _, name := range append(choice.Facts().Names(), lab.Hub, lab.Karmada) {
		c, err := newCluster(s.fleet, name)
		if err != nil {
			return err
		}
		s.clusters[name] = c
	}
	if err := install.Bases(ctx, s.fleet, io.Discard); err != nil {
		return fmt.Errorf("install the operator's kinds and rights: %w", err)
	}
	manager, err := theManager(ctx, dir, s.out)
	if err != nil {
		return err
	}
	if s.operators, err = newOperators(ctx, s, dir, manager); err != nil {
		return err
	}
	if s.processes, err = newProcesses(s.fleet, s.out); err != nil {
		return err
	}
	s.judge = newJudge(s.out)
	if err := s.namespaces(ctx); err != nil {
		return err
	}
	facts := choice.Facts()
	for _, name := range facts.Names() {
		for _, k := range choice.Keys() {
			if err := s.setLabel(ctx, name, k, facts[name].Labels[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// theManager is the binary that is judged.
func theManager(ctx context.Context, dir string, out *report) (string, error) {
	if binary := os.Getenv(envManager); binary != "" {
		return filepath.Abs(binary)
	}
	out.say("building the operator")
	binary := filepath.Join(dir, "manager")
	err := install.Command(ctx, io.Discard, nil, "go", "build", "-o", binary, "github.com/fleetworkload/fleetworkload/cmd/manager")
	if err != nil {
		return "", fmt.Errorf("build the operator: %w", err)
	}
	return binary, nil
}

func newCluster(fleet *lab.Fleet, name string) (*cluster, error) {
	cfg, err := fleet.RESTConfig(name)
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst = 500, 1000
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	// The types are fixed: to ask for them would fail while a server is down.
	c := &cluster{name: name, rest: cfg}
	if c.WithWatch, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme, Mapper: mapper()}); err != nil {
		return nil, fmt.Errorf("client of %s: %w", name, err)
	}
	if c.discovery, err = discovery.NewDiscoveryClientForConfig(cfg); err != nil {
		return nil, fmt.Errorf("discovery of %s: %w", name, err)
	}
	if c.metadata, err = metadata.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", name, err)
	}
	return c, nil
}

// mapper knows the types that a soak uses.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range manifest.GVKs {
		m.Add(gvk, meta.RESTScopeNamespace)
	}
	m.Add(v1alpha1.GroupVersion.WithKind("FleetWorkload"), meta.RESTScopeNamespace)
	for _, kind := range []string{"Pod", "ConfigMap", "Service"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(leaseGVK, meta.RESTScopeNamespace)
	for _, gvk := range clusterGVKs {
		m.Add(gvk, meta.RESTScopeRoot)
	}
	m.Add(workGVK, meta.RESTScopeNamespace)
	return m
}

// namespaces makes those of the workloads on the management cluster, with the settings that pods refer to.
func (s *soak) namespaces(ctx context.Context) error {
	for _, name := range namespaces() {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreAlreadyExists(s.hub().Create(ctx, ns)); err != nil {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: manifest.Settings}}
		if err := client.IgnoreAlreadyExists(s.hub().Create(ctx, settings)); err != nil {
			return fmt.Errorf("create the settings of %s: %w", name, err)
		}
	}
	return nil
}

// namespaces are those of the workloads.
func namespaces() []string {
	var all []string
	for _, k := range choice.Keys() {
		if !slices.Contains(all, k.Namespace) {
			all = append(all, k.Namespace)
		}
	}
	return all
}

func (s *soak) hub() *cluster { return s.clusters[lab.Hub] }

// stamp makes a value that was never written before.
func stamp() string { return time.Now().UTC().Format(time.RFC3339Nano) }
