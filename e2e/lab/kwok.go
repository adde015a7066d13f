// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
)

// node is a node that KWOK will make ready.
func node(name, region, zone string) object {
	capacity := object{
		"cpu": fmt.Sprint(nodeCPU), "memory": fmt.Sprintf("%dGi", nodeMemoryGi), "ephemeral-storage": "1Ti", "pods": "500",
	}
	return object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": object{"name": name, "labels": object{
			regionLabel: region, zoneLabel: zone, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		}},
		"status": object{"capacity": capacity, "allocatable": capacity},
	}
}

// stageFiles are KWOK's own.
var stageFiles = []string{
	"node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"pod/fast/pod-ready.yaml", "pod/fast/pod-complete.yaml",
}

// writeStages writes KWOK's configuration: without stages it does not start.
func (f *Fleet) writeStages(ctx context.Context, path string) error {
	dir, err := f.builder.moduleDir(ctx, "kwok", kwokModule)
	if err != nil {
		return err
	}
	var config bytes.Buffer
	for _, pattern := range stageFiles {
		stages, err := loadObjects(filepath.Join(dir, "kustomize/stage", pattern), nil)
		if err != nil {
			return err
		}
		for _, stage := range stages {
			text, err := stage.MarshalJSON()
			if err != nil {
				return err
			}
			fmt.Fprintf(&config, "---\n%s", text)
		}
	}
	fmt.Fprintf(&config, "---\n%s", kubeletStages)
	return replaceFile(path, config.Bytes())
}

// kubeletStages complete KWOK's own; the file says how.
//
//go:embed kubelet-stages.yaml
var kubeletStages string

func (f *Fleet) nodesReady(ctx context.Context, m Member) error {
	c, err := f.client(m.Name)
	if err != nil {
		return err
	}
	for i := range m.nodeZones() {
		n, err := c.get(ctx, "v1", "Node", "", fmt.Sprintf("%s-node%d", m.Name, i+1))
		if err != nil {
			return err
		}
		if err := conditionTrue(n, "Ready"); err != nil {
			return err
		}
	}
	return nil
}
