// SPDX-License-Identifier: Apache-2.0

// Program chartsync copies what the Helm chart shares with config/ into the chart's files folder, where its templates
// read it: the CRD, the rules of each role, the backends' admission policies, and
// what is for Prometheus and Grafana. config/ is the source; `make verify` fails when a copy differs.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// header goes before each copy that may have comments.
const header = "# Copied from %s by `make manifests`. Do not edit.\n"

// copies lead from config/ to the chart's files/.
var copies = map[string]string{
	"crd/bases/apps.fleetworkload.io_fleetworkloads.yaml": "crd.yaml",
	"rbac/management/cluster_role.yaml":                   "management-cluster-role.yaml",
	"rbac/management/role.yaml":                           "management-role.yaml",
	"rbac/karmada/cluster_role.yaml":                      "karmada-cluster-role.yaml",
	"rbac/ocm/cluster_role.yaml":                          "ocm-cluster-role.yaml",
	"rbac/tokens/role.yaml":                               "tokens-role.yaml",
	"rbac/users/viewer.yaml":                              "users-viewer.yaml",
	"rbac/users/editor.yaml":                              "users-editor.yaml",
	"rbac/users/approver.yaml":                            "users-approver.yaml",
	"admission/authors_policy.yaml":                       "authors-policy.yaml",
	"monitoring/prometheus-rules.yaml":                    "prometheus-rules.yaml",
	"monitoring/service-monitor.yaml":                     "service-monitor.yaml",
	"monitoring/dashboard.json":                           "dashboard.json",
	"flowcontrol/priority_level.yaml":                     "flow-control-level.yaml",
	"flowcontrol/flow_schema.yaml":                        "flow-schema.yaml",
	"flowcontrol/flow_schema_lease.yaml":                  "flow-schema-lease.yaml",
	"webhook/cluster_role.yaml":                           "webhook-cluster-role.yaml",
	"webhook/role.yaml":                                   "webhook-role.yaml",
	"webhook/configuration.yaml":                          "webhook-configuration.yaml",
	"backends/karmada/companions_policy.yaml":             "karmada-companions-policy.yaml",
	"backends/karmada/protection_policy.yaml":             "karmada-protection-policy.yaml",
	"backends/ocm/protection_policy.yaml":                 "ocm-protection-policy.yaml",
}

func main() {
	config := flag.String("config", "config", "folder of the kustomize bases")
	chart := flag.String("chart", "charts/fleetworkload", "folder of the chart")
	flag.Parse()
	if err := run(*config, filepath.Join(*chart, "files")); err != nil {
		fmt.Fprintln(os.Stderr, "chartsync:", err)
		os.Exit(1)
	}
}

// run makes the folder hold the copies and nothing else.
func run(config, files string) error {
	if err := os.MkdirAll(files, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", files, err)
	}
	wanted := map[string]bool{}
	for from, to := range copies {
		raw, err := os.ReadFile(filepath.Join(config, from))
		if err != nil {
			return fmt.Errorf("read source: %w", err)
		}
		wanted[to] = true
		if filepath.Ext(to) == ".yaml" {
			raw = append(fmt.Appendf(nil, header, "config/"+from), raw...)
		}
		if err := write(filepath.Join(files, to), raw); err != nil {
			return err
		}
	}
	return removeOthers(files, wanted)
}

// write leaves a file that is right alone, so that its time stays what it was.
func write(path string, content []byte) error {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write copy: %w", err)
	}
	return nil
}

func removeOthers(dir string, wanted map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	for _, e := range entries {
		if wanted[e.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove stale copy: %w", err)
		}
	}
	return nil
}
