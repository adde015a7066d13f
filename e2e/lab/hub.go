// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	ocmNamespace = "open-cluster-management-hub"
	workManager  = "ocm-work-manager"
)

// hubUnits is the management cluster with the hub side of Open Cluster Management.
func (f *Fleet) hubUnits() ([]unit, error) {
	units, err := collect(nil,
		func() (unit, error) { return f.apiServerUnit(apiServer{cluster: Hub}) },
		func() (unit, error) {
			return f.controllerManagerUnit(controllerManager{
				cluster: Hub, controllers: controlPlaneControllers + ",horizontal-pod-autoscaler-controller",
				args: []string{"--horizontal-pod-autoscaler-sync-period=2s"},
			})
		})
	if err != nil {
		return nil, err
	}
	units = append(units, unit{name: "hub-manifests", needs: []string{apiServerName(Hub)}, prepare: f.prepareHub})
	controllers, err := f.ocmUnits(
		ocmController{name: "ocm-registration", binary: "ocm-registration", command: "controller"},
		ocmController{name: "ocm-placement", binary: "ocm-placement", command: "controller"},
		// OCM's own installation runs the work manager only for the sake of these.
		ocmController{
			name: workManager, binary: "ocm-work", command: "manager",
			args: []string{"--feature-gates=ManifestWorkReplicaSet=true,CleanUpCompletedManifestWork=true"},
		})
	if err != nil {
		return nil, err
	}
	units = append(append(units, controllers...), f.heartbeatUnit())
	if !f.state.WorkWebhook {
		return units, nil
	}
	webhook, err := f.workWebhookUnits()
	return append(units, webhook...), err
}

// ocmController is one of OCM's controllers on the hub.
type ocmController struct {
	name, binary, command string
	args                  []string
}

func (f *Fleet) ocmUnits(controllers ...ocmController) ([]unit, error) {
	var units []unit
	for _, c := range controllers {
		p, err := f.ports(c.name)
		if err != nil {
			return nil, err
		}
		args := append([]string{c.command}, ocmArgs(f.Kubeconfig(Hub), ocmNamespace, p[c.name])...)
		units = append(units, unit{
			name: c.name, needs: []string{"hub-manifests"}, command: f.command(c.binary, append(args, c.args...)...),
			ready: answers(httpsURL(p[c.name], "/healthz")),
		})
	}
	return units, nil
}

// ocmArgs are the flags that all OCM components share. Without --listen they would all want port 8443 of every
// interface; with leader election a restart would wait two minutes for the lease.
func ocmArgs(kubeconfig, namespace string, port int) []string {
	return []string{
		"--kubeconfig=" + kubeconfig, "--namespace=" + namespace, "--disable-leader-election", "--listen=" + address(port),
		"--kube-api-qps=200", "--kube-api-burst=400",
	}
}

func (f *Fleet) prepareHub(ctx context.Context) error {
	dir, err := f.builder.moduleDir(ctx, "ocm", ocmModule)
	if err != nil {
		return err
	}
	crds, err := loadObjects(filepath.Join(dir, "manifests/cluster-manager/hub/crds/*.crd.yaml"),
		rendered(object{"AddonAPIServiceCABundle": "", "ClusterManagerNamespace": ocmNamespace}))
	if err != nil {
		return err
	}
	for _, crd := range crds {
		// The add-on kinds have a conversion webhook in the add-on manager, which the fleet does not run.
		unstructured.RemoveNestedField(crd.Object, "spec", "conversion")
	}
	c, err := f.client(Hub)
	if err != nil {
		return err
	}
	if err := c.ensureMaps(ctx, namespaceObject(ocmNamespace)); err != nil {
		return err
	}
	return c.ensureCRDs(ctx, crds)
}

// heartbeatUnit is the one process of our own: it does for the ManagedClusters what the registration agent of each
// member would do.
func (f *Fleet) heartbeatUnit() unit {
	const heartbeat = "ocm-heartbeat"
	self := f.path("bin", "lab")
	return unit{
		name:  heartbeat,
		needs: []string{"ocm-registration"},
		prepare: func(ctx context.Context) error {
			if f.state.process(heartbeat).alive() {
				return nil
			}
			return f.builder.buildSelf(ctx, self)
		},
		command: func() (command, error) {
			return command{path: self, args: []string{"heartbeat", fmt.Sprintf("--dir=%s", f.dir)}}, nil
		},
	}
}
