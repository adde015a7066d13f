package rights

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func TestARoleWithoutEachOfItsRights(t *testing.T) {
	roles, err := Roles("../../config")
	if err != nil {
		t.Fatal(err)
	}
	if len(roles) < 6 {
		t.Fatalf("only %d roles", len(roles))
	}
	seen := map[string]bool{}
	for _, role := range roles {
		for _, right := range role.Rights() {
			seen[right.String()] = true
			less, err := role.Without(right)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := less.Manifest()
			if err != nil {
				t.Fatal(err)
			}
			less.role = rbacv1.Role{}
			if err := yaml.UnmarshalStrict(raw, &less.role); err != nil {
				t.Fatal(err)
			}
			want := slices.DeleteFunc(role.Rights(), func(r Right) bool { return r == right })
			if got := less.Rights(); !slices.Equal(sorted(got), sorted(want)) || less.role.Name != role.role.Name {
				t.Errorf("%s less %s: %v", role.role.Name, right, got)
			}
			if named(less.role) > named(role.role) {
				t.Errorf("%s less %s is for more names", role.role.Name, right)
			}
		}
	}
	for right := range Unused {
		if !seen[right] {
			t.Errorf("nobody has %q", right)
		}
	}
}

// named is how many rules are for all names.
func named(role rbacv1.Role) (all int) {
	for _, rule := range role.Rules {
		if len(rule.ResourceNames) == 0 {
			all += len(rule.APIGroups) * len(rule.Resources)
		}
	}
	return all
}

func sorted(rights []Right) []string {
	var all []string
	for _, r := range rights {
		all = append(all, r.String())
	}
	slices.Sort(all)
	return all
}

func TestWorkloadKindsOfKarmadaAreAlike(t *testing.T) {
	deployments, sets := Right{"karmada", "apps", "deployments", "get", false}, Right{"karmada", "apps.kruise.io", "clonesets", "get", false}
	if deployments.Alike() != sets.Alike() {
		t.Error("a Deployment is another thing than a CloneSet")
	}
	if works := (Right{"karmada", "work.karmada.io", "works", "get", false}); works.Alike() != works {
		t.Error("a Work is a workload")
	}
}
