// Package rbac has the roles of the operator on its backends, as they are shipped in this folder.
package rbac

import (
	"embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

//go:embed karmada/cluster_role.yaml ocm/cluster_role.yaml
var files embed.FS

// Rules are what config/backends grants the operator on a backend: "karmada" or "ocm".
func Rules(backend string) ([]rbacv1.PolicyRule, error) {
	path := backend + "/cluster_role.yaml"
	raw, err := files.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the operator's role: %w", err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(raw, &role); err != nil {
		return nil, fmt.Errorf("read config/rbac/%s: %w", path, err)
	}
	return role.Rules, nil
}
