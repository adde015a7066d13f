package marks

import "testing"

func TestWhoseAKeyIs(t *testing.T) {
	for key, want := range map[string]struct{ ours, orchestrator, local bool }{
		"fleetworkload.io/uid":                                 {ours: true},
		"apps.fleetworkload.io/uid":                            {},
		"karmada.io/managed":                                   {orchestrator: true},
		"karmada.io/managed-by-us":                             {orchestrator: true},
		"propagationpolicy.karmada.io/name":                    {orchestrator: true},
		"clusterpropagationpolicy.karmada.io/permanent-id":     {orchestrator: true},
		"resourcetemplate.karmada.io/claimed-by":               {orchestrator: true},
		"work.karmada.io/conflict-resolution":                  {orchestrator: true},
		"policy.karmada.io/applied-overrides":                  {orchestrator: true},
		"apps.open-cluster-management.io/hosting-subscription": {orchestrator: true},
		"open-cluster-management.io/anything":                  {orchestrator: true},
		"kubectl.kubernetes.io/last-applied-configuration":     {local: true},
		"deployment.kubernetes.io/revision":                    {local: true},
		"kubectl.kubernetes.io/restartedAt":                    {},
		"karmada.io":                                           {},
		"notkarmada.io/managed":                                {},
		"karmada.io.example.com/managed":                       {},
		"example.com/karmada.io":                               {},
		"app":                                                  {},
		"app.kubernetes.io/managed-by":                         {},
		"":                                                     {},
	} {
		if Ours(key) != want.ours || Orchestrator(key) != want.orchestrator || Local(key) != want.local ||
			Foreign(key) != (want.orchestrator || want.local) {
			t.Errorf("%q: ours %v, orchestrator %v, local %v", key, Ours(key), Orchestrator(key), Local(key))
		}
	}
}
