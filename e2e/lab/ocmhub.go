// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// OCMHub is an API server with Open Cluster Management's kinds and its controllers for Placements and
// ManifestWorkReplicaSets, for whoever brings clusters of their own. Nothing on it looks after ManagedClusters.
type OCMHub struct {
	fleet *Fleet
}

// StartOCMHub starts a hub with its state in dir, which must be empty or new. The limits of OCM's clients are raised until
// they limit nothing. The processes run until Stop; when the start fails they are ended.
func StartOCMHub(ctx context.Context, dir string, out io.Writer) (*OCMHub, error) {
	f, unlock, err := openLocked(ctx, dir, out)
	if err != nil {
		return nil, err
	}
	err = f.startOCMHub(ctx)
	unlock()
	if err == nil {
		return &OCMHub{fleet: f}, nil
	}
	err = fmt.Errorf("start a hub of Open Cluster Management: %w", err)
	if exists(f.state.path) {
		// The caller's time may be over, which must not leave processes behind.
		err = errors.Join(err, f.Down(context.WithoutCancel(ctx)))
	}
	return nil, err
}

func (f *Fleet) startOCMHub(ctx context.Context) error {
	if err := f.claim(Options{}); err != nil {
		return err
	}
	if err := f.provide(ctx, "etcd", "kube-apiserver", "kube-controller-manager", "ocm-placement", "ocm-work"); err != nil {
		return err
	}
	units, err := f.ocmHubUnits()
	if err != nil {
		return err
	}
	return f.run(ctx, units)
}

func (f *Fleet) ocmHubUnits() ([]unit, error) {
	units, err := f.etcdUnits()
	if err != nil {
		return nil, err
	}
	units, err = collect(units,
		func() (unit, error) {
			// Every five minutes an API server reads all that is in etcd, to check its caches. With 100,000 objects that takes one of two cores for a
			// minute, from whoever is measured just then.
			return f.apiServerUnit(apiServer{cluster: Hub, args: []string{"--feature-gates=DetectCacheInconsistency=false"}})
		},
		func() (unit, error) {
			// What goes with its owner, such as a Placement's decisions, is collected. Namespaces stay bare.
			return f.controllerManagerUnit(controllerManager{cluster: Hub, controllers: "garbage-collector-controller"})
		})
	if err != nil {
		return nil, err
	}
	units = append(units, unit{name: "hub-manifests", needs: []string{apiServerName(Hub)}, prepare: f.prepareHub})
	// The last of two flags of one name counts.
	unlimited := []string{"--kube-api-qps=100000", "--kube-api-burst=100000"}
	controllers, err := f.ocmUnits(
		ocmController{name: "ocm-placement", binary: "ocm-placement", command: "controller", args: unlimited},
		ocmController{
			name: workManager, binary: "ocm-work", command: "manager",
			args: append(unlimited, "--feature-gates=ManifestWorkReplicaSet=true"),
		})
	return append(units, controllers...), err
}

// Stored is what the hub's API server has in etcd of a resource in a namespace.
func (h *OCMHub) Stored(ctx context.Context, resource schema.GroupResource, namespace string) ([]Stored, error) {
	found, err := h.fleet.stored(ctx, storedUnder(resource, namespace))
	if err != nil {
		return nil, fmt.Errorf("read %s of namespace %s from etcd: %w", resource, namespace, err)
	}
	return found, nil
}

// Store puts objects of custom resources into etcd, by name, past the hub's API server, which sees them all the same: it watches etcd. They
// must be as it would have stored them. A hundred thousand take five minutes this way.
func (h *OCMHub) Store(ctx context.Context, resource schema.GroupResource, namespace string, objects map[string][]byte) error {
	for name, value := range objects {
		// One by one: what one transaction stores has one resource version, and a watch that is made anew between them lacks the rest.
		if err := h.fleet.etcd(ctx, "put", Stored{Key: []byte(storedUnder(resource, namespace) + name), Value: value}, nil); err != nil {
			return fmt.Errorf("put %s %s/%s into etcd: %w", resource, namespace, name, err)
		}
	}
	return nil
}

func storedUnder(resource schema.GroupResource, namespace string) string {
	return "/" + Hub + "/" + resource.Group + "/" + resource.Resource + "/" + namespace + "/"
}

// RESTConfig is the administrator's client configuration.
func (h *OCMHub) RESTConfig() (*rest.Config, error) { return h.fleet.RESTConfig(Hub) }

// Kubeconfig is the path of the administrator's kubeconfig.
func (h *OCMHub) Kubeconfig() string { return h.fleet.Kubeconfig(Hub) }

// Check returns an error that names each process that has died.
func (h *OCMHub) Check(ctx context.Context) error { return h.fleet.Check(ctx) }

// Processes are the ids of the hub's processes.
func (h *OCMHub) Processes() []int {
	h.fleet.state.mu.Lock()
	defer h.fleet.state.mu.Unlock()
	var ids []int
	for _, p := range h.fleet.state.Processes {
		ids = append(ids, p.PID)
	}
	return ids
}

// Stop ends the processes and deletes the folder.
func (h *OCMHub) Stop() error { return h.fleet.Down(context.Background()) }
