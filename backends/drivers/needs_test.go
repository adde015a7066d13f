package drivers_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/backends/drivers"
	"github.com/fleetworkload/fleetworkload/config/rbac"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

// TestNeedsAreWhatRolesGrant: the kinds of a backend that its driver says it needs are those on which the shipped role gives rights.
func TestNeedsAreWhatRolesGrant(t *testing.T) {
	for folder, b := range map[string]struct {
		config.Backend
		groups string
	}{
		"karmada": {config.Backend{Type: config.TypeKarmada}, ".karmada.io"},
		"ocm":     {config.Backend{Type: config.TypeOCM}, ".open-cluster-management.io"},
	} {
		rules, err := rbac.Rules(folder)
		if err != nil {
			t.Fatal(err)
		}
		var granted, needed []string
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				if strings.HasSuffix(rule.APIGroups[0], b.groups) && !strings.Contains(resource, "/") {
					granted = append(granted, resource+"."+rule.APIGroups[0])
				}
			}
		}
		for _, kind := range drivers.Needs(b.Backend) {
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			needed = append(needed, plural.GroupResource().String())
		}
		slices.Sort(granted)
		slices.Sort(needed)
		if granted = slices.Compact(granted); !slices.Equal(granted, needed) {
			t.Errorf("%s: the role grants rights on %q, the driver needs %q", folder, granted, needed)
		}
	}
	untaught := config.Backend{Type: config.TypeKarmada, Karmada: &config.Karmada{Interpreters: config.InterpretersNone}}
	if slices.ContainsFunc(drivers.Needs(untaught), func(kind schema.GroupVersionKind) bool { return kind.Group == "config.karmada.io" }) {
		t.Error("an operator that teaches Karmada nothing needs no customizations")
	}
}
