// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/rest"
)

const soleCluster = "api"

// APIServer is one kube-apiserver with its etcd, for tests that need an API, and no controllers or few.
type APIServer struct {
	fleet *Fleet
}

// StartAPIServer starts an API server with its state in dir, which must be empty or new. It builds only etcd and
// kube-apiserver. The processes run until Stop.
func StartAPIServer(ctx context.Context, dir string, out io.Writer) (*APIServer, error) {
	f, unlock, err := openLocked(ctx, dir, out)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := f.claim(Options{}); err != nil {
		return nil, err
	}
	if err := f.provide(ctx, "etcd", "kube-apiserver"); err != nil {
		return nil, err
	}
	units, err := f.etcdUnits()
	if err != nil {
		return nil, err
	}
	units, err = collect(units, func() (unit, error) { return f.apiServerUnit(apiServer{cluster: soleCluster}) })
	if err != nil {
		return nil, err
	}
	if err := f.run(ctx, units); err != nil {
		return nil, fmt.Errorf("start an API server: %w", err)
	}
	return &APIServer{fleet: f}, nil
}

// RunControllers starts the controllers that any control plane has: they give a namespace its account, and take away what is in one that is
// deleted, and what has lost its owner. It builds kubectl, too.
func (a *APIServer) RunControllers(ctx context.Context) error {
	unlock, err := a.fleet.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := a.fleet.provide(ctx, "kube-controller-manager", "kubectl"); err != nil {
		return err
	}
	controllers, err := a.fleet.controllerManagerUnit(controllerManager{cluster: soleCluster, controllers: controlPlaneControllers})
	if err != nil {
		return err
	}
	if err := a.fleet.run(ctx, []unit{controllers}); err != nil {
		return fmt.Errorf("start the controllers: %w", err)
	}
	return nil
}

// Kubectl is the path of kubectl, once RunControllers has returned.
func (a *APIServer) Kubectl() string { return a.fleet.Kubectl() }

// RESTConfig is the administrator's client configuration.
func (a *APIServer) RESTConfig() (*rest.Config, error) { return a.fleet.RESTConfig(soleCluster) }

// Kubeconfig is the path of the administrator's kubeconfig.
func (a *APIServer) Kubeconfig() string { return a.fleet.Kubeconfig(soleCluster) }

// Stop ends the processes and deletes the folder.
func (a *APIServer) Stop() error { return a.fleet.Down(context.Background()) }
