// Package rbac has the roles of the operator on its backends, as they are shipped in this folder.
package rbac

import (
	"embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

//go:embed karmada/cluster_role.yaml ocm/cluster_role.yaml tokens/role.yaml
var files embed.FS

// Rules are what config/backends grants the operator on a backend: "karmada" or "ocm".
func Rules(backend string) ([]rbacv1.PolicyRule, error) {
	return rulesOf(backend + "/cluster_role.yaml")
}

// TokenRules are what config/backends grants the operator's account on a backend in its own namespace, for its own name: to renew its token.
func TokenRules() ([]rbacv1.PolicyRule, error) { return rulesOf("tokens/role.yaml") }

func rulesOf(path string) ([]rbacv1.PolicyRule, error) {
	raw, err := files.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the operator's role: %w", err)
	}
	var role struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Rules             []rbacv1.PolicyRule `json:"rules"`
	}
	if err := yaml.UnmarshalStrict(raw, &role); err != nil {
		return nil, fmt.Errorf("read config/rbac/%s: %w", path, err)
	}
	return role.Rules, nil
}
