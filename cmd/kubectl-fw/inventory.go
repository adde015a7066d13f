package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/karmada"
	"github.com/fleetworkload/fleetworkload/backends/ocm"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/pass"
	"github.com/fleetworkload/fleetworkload/internal/tenancy"
)

// inventory is a file that stands in for live backends: which there are, and the clusters that each knows.
type inventory struct {
	Backends []inventoryBackend `json:"backends"`
}

type inventoryBackend struct {
	Name string      `json:"name"`
	Type config.Type `json:"type"`
	// OCM as in the operator's configuration.
	OCM      *config.OCM        `json:"ocm,omitempty"`
	Clusters []inventoryCluster `json:"clusters"`
}

// inventoryCluster is a backends.Cluster whose readiness may be written as a YAML boolean, or left out when it is ready.
type inventoryCluster struct {
	backends.Cluster
	Ready readiness `json:"ready,omitempty"`
}

type readiness metav1.ConditionStatus

// UnmarshalJSON takes true and false, and "True", "False" and "Unknown".
func (r *readiness) UnmarshalJSON(raw []byte) error {
	switch string(raw) {
	case "true", `"True"`:
		*r = readiness(metav1.ConditionTrue)
	case "false", `"False"`:
		*r = readiness(metav1.ConditionFalse)
	case `"Unknown"`:
		*r = readiness(metav1.ConditionUnknown)
	default:
		return fmt.Errorf("ready: %s is none of true, false and Unknown", raw)
	}
	return nil
}

var _ json.Unmarshaler = new(readiness)

// loadInventory reads and checks an inventory file.
func loadInventory(path string) (*inventory, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read inventory: %w", err)
	}
	inv := &inventory{}
	if err := decodeStrict(raw, inv); err != nil {
		return nil, fmt.Errorf("inventory %s: %w", path, err)
	}
	if err := inv.validate(); err != nil {
		return nil, fmt.Errorf("inventory %s: %w", path, err)
	}
	return inv, nil
}

func (inv *inventory) validate() error {
	var errs []error
	seen := map[string]bool{}
	for i, b := range inv.Backends {
		at := fmt.Sprintf("backends[%d]", i)
		if b.Name == "" || seen[b.Name] {
			errs = append(errs, fmt.Errorf("%s.name: %q is empty or there twice", at, b.Name))
		}
		seen[b.Name] = true
		if b.Type != config.TypeKarmada && b.Type != config.TypeOCM {
			errs = append(errs, fmt.Errorf("%s.type: %q is neither %s nor %s", at, b.Type, config.TypeKarmada, config.TypeOCM))
		}
		names := map[string]bool{}
		for j, c := range b.Clusters {
			if c.Name == "" || names[c.Name] {
				errs = append(errs, fmt.Errorf("%s.clusters[%d].name: %q is empty or there twice", at, j, c.Name))
			}
			names[c.Name] = true
		}
	}
	return errors.Join(errs...)
}

// fleet is what the backend's driver would report.
func (b inventoryBackend) fleet() backends.Fleet {
	var fleet backends.Fleet
	for _, c := range b.Clusters {
		cluster := c.Cluster
		cluster.Taints = slices.Clone(c.Taints)
		for i, t := range cluster.Taints {
			cluster.Taints[i].Effect = ocm.TaintEffect(clusterv1.TaintEffect(t.Effect))
		}
		cluster.Ready = metav1.ConditionStatus(cmp.Or(c.Ready, readiness(metav1.ConditionTrue)))
		fleet.Clusters = append(fleet.Clusters, cluster)
	}
	slices.SortFunc(fleet.Clusters, func(a, b backends.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return fleet
}

// backend implements source.
func (inv *inventory) backend(name string) (backend, error) {
	for _, b := range inv.Backends {
		if b.Name == name {
			return backend{name: name, kind: b.Type, ocm: b.OCM, fleet: b.fleet(), features: featuresOf(b.Type), tenancy: tenancy.Everything(),
				namespace: func(string) *pass.Namespace { return &pass.Namespace{} }}, nil
		}
	}
	return backend{}, backends.ErrNotConfigured
}

// featuresOf are those of the type's driver, which are the same whatever it is connected to.
func featuresOf(kind config.Type) backends.Features {
	if kind == config.TypeKarmada {
		return (&karmada.Driver{}).Features()
	}
	return (&ocm.Driver{}).Features()
}

// kinds implements source: an inventory describes none.
func (inv *inventory) kinds() (*interpreter.Registry, error) { return interpreter.New() }

// names implements source.
func (inv *inventory) names() []string {
	var names []string
	for _, b := range inv.Backends {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names
}
