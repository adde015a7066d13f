package pass

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/tenancy"
)

// onlyOne lets namespaces with the label use backend one.
func onlyOne() tenancy.Tenancy {
	return tenancy.Tenancy{Rules: []tenancy.Rule{{
		Name: "bound", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"bound": "yes"}}, Backends: []string{"one"},
	}}}
}

// decideWith decides with everything that a pass asks, and labels of the namespace.
func decideWith(d *Decision, change func(*v1alpha1.FleetWorkload), labels map[string]string) *Decision {
	fw := d.in.FleetWorkload.DeepCopy()
	fw.Status.Migration, d.in.Tenancy = nil, onlyOne()
	change(fw)
	side := &Side{Features: backends.Features{}, Fleet: d.fleet, Observed: &backends.Observation{Selection: backends.Selection{Settled: true, Clusters: []string{"m1", "m2"}}}}
	in := In{
		Settings: d.in.Settings, FleetWorkload: fw, Now: d.now.Time, Rivals: &[]Rival{}, Objects: map[string]Object{},
		Sides: map[string]*Side{"one": side, "two": side}, Turn: new(bool), Namespace: &Namespace{Labels: labels},
	}
	*in.Turn = true
	return Decide(in)
}

// What an administrator does not allow is not sent; what runs is left as it is.
func TestAdmit(t *testing.T) {
	bound := map[string]string{"bound": "yes"}
	runsOn := func(backend string) func(*v1alpha1.FleetWorkload) {
		return func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Backend, fw.Status.Backend = backend, backend
			fw.Status.Workload = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
		}
	}
	for name, test := range map[string]struct {
		change  func(*v1alpha1.FleetWorkload)
		labels  map[string]string
		refused bool
		claims  bool
	}{
		"a new one on a backend that is allowed":   {func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend, fw.Status = "one", v1alpha1.FleetWorkloadStatus{} }, bound, false, true},
		"a new one on another is not even claimed": {func(fw *v1alpha1.FleetWorkload) { fw.Status = v1alpha1.FleetWorkloadStatus{} }, bound, true, false},
		"one that runs, without the label":         {runsOn("two"), nil, false, true},
		"one that runs is held":                    {runsOn("two"), bound, true, true},
		"one that runs where it may":               {runsOn("one"), bound, false, true},
	} {
		d := decideWith(moving(t), test.change, test.labels)
		var stalled *stalled
		refused := errors.As(d.err, &stalled) && stalled.reason == v1alpha1.ReasonNotAllowed
		if refused != test.refused || refused && len(d.Orders) > 0 {
			t.Errorf("%s: %v, %d orders", name, d.err, len(d.Orders))
		}
		if d.err != nil && !refused {
			t.Errorf("%s: %v", name, d.err)
		}
		if claims := d.record.backend != ""; claims != test.claims {
			t.Errorf("%s: it claims backend %q", name, d.record.backend)
		}
		if refused && d.record.backend != "" && d.observed == nil {
			t.Errorf("%s: what runs is not even shown", name)
		}
	}
}

// What cannot be read holds everything back.
func TestANamespaceIsRead(t *testing.T) {
	d := moving(t)
	in := In{Settings: d.in.Settings, FleetWorkload: d.in.FleetWorkload.DeepCopy(), Now: d.now.Time}
	in.FleetWorkload.Status = v1alpha1.FleetWorkloadStatus{}
	if !Decide(in).Reads.Namespace {
		t.Error("it is not read")
	}
	in.Namespace = &Namespace{Err: errors.New("no right")}
	if d := Decide(in); d.err == nil || !strings.Contains(d.err.Error(), "no right") {
		t.Errorf("an error is swallowed: %v", d.err)
	}
}

// A namespace that is missing on a member is made with its Pod Security levels, and with no other label.
func TestPodSecurityTravels(t *testing.T) {
	d := decideWith(moving(t), func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Backend, fw.Status = "one", v1alpha1.FleetWorkloadStatus{Backend: "one",
			Workload: &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	},
		map[string]string{"team": "shop", "pod-security.kubernetes.io/enforce": "baseline"})
	if d.err != nil {
		t.Fatal(d.err)
	}
	got := d.work.plan.Desired(nil).Workload.NamespaceLabels
	if len(got) != 1 || got["pod-security.kubernetes.io/enforce"] != "baseline" {
		t.Errorf("it is made with %v", got)
	}
	if podSecurity(map[string]string{"team": "shop"}) != nil {
		t.Error("no level is no label")
	}
}

// What a cluster is to lose must not be left on it for good by the release at the end of a hand-over.
func TestAHandOverWaitsForClustersThatAreLeft(t *testing.T) {
	for name, test := range map[string]struct {
		ready    metav1.ConditionStatus
		problems int
	}{
		"one that can be reached is waited for": {metav1.ConditionTrue, 0},
		"one that cannot is a problem":          {metav1.ConditionFalse, 1},
	} {
		d := moving(t)
		d.handOver = nil
		d.fleet.Clusters[1].Ready = test.ready
		d.placed.targets = []backends.Target{{Cluster: "m1"}, {Cluster: "m2", Mode: backends.ModeRemove}}
		d.observed.Clusters = []backends.ClusterObservation{
			{Cluster: "m1", Applied: metav1.ConditionTrue, Revision: d.work.plan.Revision}, {Cluster: "m2", Presence: backends.PresenceRemoving},
		}
		d.begins = &beginning{next: d.thoughtOf()}
		d.record.migration = nil
		if err := d.begin(); err != nil || d.end.Keep != nil || !strings.Contains(d.waiting, "m2 to let go of the workload") {
			t.Errorf("%s: the hand-over begins, or waits for %q, %v", name, d.waiting, err)
		}
		d.in.Sides = map[string]*Side{"two": {Err: errors.New("away")}}
		if err := d.examine(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(strings.Join(d.begins.next.Problems, "\n"), "cluster m2: it is left"); got != test.problems || len(d.Reads.Sides) > 0 {
			t.Errorf("%s: %d problems: %q", name, got, d.begins.next.Problems)
		}
	}
}

// A hand-over to a backend that is no longer allowed stands still, its clock too; turned round, it goes on.
func TestAHandOverThatIsNoLongerAllowedStandsStill(t *testing.T) {
	for backend, held := range map[string]bool{"two": true, "one": false} {
		d := moving(t)
		d.in.Tenancy, d.in.Namespace = onlyOne(), &Namespace{Labels: map[string]string{"bound": "yes"}}
		d.spec = d.spec.DeepCopy()
		d.spec.Spec.Backend = backend
		d.in.FleetWorkload = d.spec
		if err := d.identify(); err != nil {
			t.Fatal(err)
		}
		err := d.admit()
		if (err != nil) != held || (d.record.migration.FrozenSince != nil) != held {
			t.Errorf("to %s: %v, frozen since %v", backend, err, d.record.migration.FrozenSince)
		}
	}
}

// Before a hand-over begins, a backend that is not allowed is a problem like any other: the present one goes on to serve.
func TestAMoveThatIsNotAllowedIsAProblem(t *testing.T) {
	d := moving(t)
	d.in.Tenancy, d.in.Namespace = onlyOne(), &Namespace{Labels: map[string]string{"bound": "yes"}}
	d.handOver = nil
	if err := d.identify(); err != nil {
		t.Fatal(err)
	}
	if err := d.admit(); err != nil {
		t.Fatal(err)
	}
	d.begins = &beginning{next: d.thoughtOf()}
	if err := d.examine(); err != nil {
		t.Fatal(err)
	}
	if got := d.begins.next.Problems; len(got) != 1 || !strings.Contains(got[0], `spec.backend "two" is not allowed`) {
		t.Errorf("the problems are %q", got)
	}
}

// Each term of an administrator is looked at, and names the field that is to be changed.
func TestTerms(t *testing.T) {
	deployments, sets := tenancy.Kind{Group: "apps", Kind: "Deployment"}, tenancy.Kind{Group: "apps", Kind: "StatefulSet"}
	for name, test := range map[string]struct {
		rule    tenancy.Rule
		change  func(*v1alpha1.FleetWorkloadSpec)
		refused string
	}{
		"a kind that is allowed":           {tenancy.Rule{Kinds: []tenancy.Kind{deployments}}, func(*v1alpha1.FleetWorkloadSpec) {}, ""},
		"a kind that is not":               {tenancy.Rule{Kinds: []tenancy.Kind{sets}}, func(*v1alpha1.FleetWorkloadSpec) {}, "spec.template"},
		"approval that nobody has to give": {tenancy.Rule{Approval: tenancy.Required}, func(*v1alpha1.FleetWorkloadSpec) {}, "spec.approval"},
		"approval that somebody has to give": {tenancy.Rule{Approval: tenancy.Required},
			func(s *v1alpha1.FleetWorkloadSpec) { s.Approval = v1alpha1.ApprovalPolicyManual }, ""},
		"an account that is missing": {tenancy.Rule{ServiceAccountName: tenancy.Required}, func(*v1alpha1.FleetWorkloadSpec) {}, "spec.serviceAccountName"},
		"an account that is named": {tenancy.Rule{ServiceAccountName: tenancy.Required},
			func(s *v1alpha1.FleetWorkloadSpec) { s.ServiceAccountName = "deployer" }, ""},
		"dependencies that may not travel": {tenancy.Rule{Dependencies: tenancy.DependenciesRefused},
			func(s *v1alpha1.FleetWorkloadSpec) { s.Dependencies = v1alpha1.DependencyPolicyPropagate }, "spec.dependencies"},
		"dependencies that stay": {tenancy.Rule{Dependencies: tenancy.DependenciesRefused},
			func(s *v1alpha1.FleetWorkloadSpec) { s.Dependencies = v1alpha1.DependencyPolicyIgnore }, ""},
	} {
		d := moving(t)
		test.change(&d.in.FleetWorkload.Spec)
		d.in.Tenancy, d.in.Namespace = tenancy.Tenancy{Rules: []tenancy.Rule{test.rule}}, &Namespace{}
		if err := d.identify(); err != nil {
			t.Fatal(err)
		}
		err := d.admit()
		var why *stalled
		switch refused := errors.As(err, &why) && why.reason == v1alpha1.ReasonNotAllowed; {
		case refused != (test.refused != ""), err != nil && !refused:
			t.Errorf("%s: %v", name, err)
		case refused && !strings.HasPrefix(why.message, test.refused):
			t.Errorf("%s: %q does not name %s", name, why.message, test.refused)
		}
	}
}

// A namespace of a system ships nothing unless a rule names it.
func TestANamespaceOfASystemShipsNothing(t *testing.T) {
	for rule, refused := range map[string]bool{"shop": false, "other": true} {
		d := moving(t)
		d.in.Namespace, d.in.Tenancy = &Namespace{}, tenancy.Tenancy{SystemNamespaces: []string{"shop"}, Rules: []tenancy.Rule{{Name: "r", Namespaces: []string{rule}}}}
		if err := d.identify(); err != nil {
			t.Fatal(err)
		}
		if err := d.admit(); (err != nil) != refused || refused && !strings.HasPrefix(err.Error(), `metadata.namespace "shop" is not allowed`) {
			t.Errorf("a rule for %s: %v", rule, err)
		}
	}
}
