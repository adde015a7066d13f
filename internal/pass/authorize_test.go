package pass

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// shippedFor is a FleetWorkload with a companion and a dependency that ships for an account, with what the account is allowed.
func shippedFor(t *testing.T, allowed func(Access) Answer) (d *Decision, asked []string) {
	t.Helper()
	setting := moving(t)
	fw := setting.in.FleetWorkload.DeepCopy()
	fw.Status, fw.Spec.Backend, fw.Spec.ServiceAccountName = v1alpha1.FleetWorkloadStatus{}, "one", "deployer"
	fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
	fw.Spec.Template.Raw = []byte(strings.Replace(string(fw.Spec.Template.Raw), `"image":"nginx:1"`,
		`"image":"nginx:1","envFrom":[{"secretRef":{"name":"key"}}]`, 1))
	fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"}}`)}}
	d, _ = Rehearse(In{Settings: setting.in.Settings, FleetWorkload: fw, Now: setting.now.Time, Rivals: &[]Rival{}, Namespace: &Namespace{}}, func(in *In, reads Reads) {
		for _, read := range reads.Sides {
			in.Sides[read.Backend] = &Side{Features: backends.Features{}, Fleet: setting.fleet, Observed: &backends.Observation{
				Selection: backends.Selection{Settled: true, Clusters: []string{"m1", "m2"}},
			}}
		}
		for _, need := range reads.Objects {
			asked = append(asked, "reads "+need.String())
			in.Objects[need.String()] = Object{}
		}
		for _, access := range reads.Access {
			asked = append(asked, access.ServiceAccount+" "+access.Right.String()+" in "+access.Namespace)
			in.Access[access] = allowed(access)
		}
	})
	return d, asked
}

// Everything that is shipped is asked for, once, and before a Secret is read.
func TestAuthorize(t *testing.T) {
	d, asked := shippedFor(t, func(Access) Answer { return Answer{Allowed: true} })
	want := []string{
		"deployer create deployments.apps in shop", "deployer create services in shop", "deployer get secrets key in shop", "reads Secret key",
	}
	slices.Sort(asked[:len(asked)-1])
	if !slices.Equal(slices.Compact(asked), want) || len(d.Orders) == 0 {
		t.Errorf("it asks %q, %v", asked, d.err)
	}
	for name, refused := range map[string]string{
		"create deployments.apps": "create deployments.apps", "create services": "create services", "get secrets key": "get secrets key",
	} {
		d, asked := shippedFor(t, func(a Access) Answer { return Answer{Allowed: a.Right.String() != refused} })
		var why *stalled
		if !errors.As(d.err, &why) || why.reason != v1alpha1.ReasonServiceAccountForbidden || !why.again || len(d.Orders) > 0 ||
			!strings.Contains(why.message, `"deployer": this ServiceAccount may not `+refused+". Nothing is changed") {
			t.Errorf("without the right to %s: %v, %d orders", name, d.err, len(d.Orders))
		}
		if slices.Contains(asked, "reads Secret key") {
			t.Errorf("without the right to %s a Secret is read all the same", name)
		}
	}
}

// When nobody can tell, nothing is sent.
func TestWhatNobodyCanTellIsNotAllowed(t *testing.T) {
	d, _ := shippedFor(t, func(Access) Answer { return Answer{Err: errors.New("the API server is away")} })
	if d.err == nil || !strings.Contains(d.err.Error(), "the API server is away") || len(d.Orders) > 0 {
		t.Errorf("it ends with %v and %d orders", d.err, len(d.Orders))
	}
}

// A hand-over stands still while the account lacks a right, and so does its clock.
func TestAHandOverStandsStillWithoutARight(t *testing.T) {
	d := moving(t)
	d.spec = d.spec.DeepCopy()
	d.spec.Spec.ServiceAccountName = "deployer"
	if err := d.identify(); err != nil {
		t.Fatal(err)
	}
	d.in.Access = map[Access]Answer{}
	if err := d.authorize(nil); !errors.Is(err, errEnough) || len(d.Reads.Access) != 1 {
		t.Fatalf("%v, it asks %v", err, d.Reads.Access)
	}
	access := d.Reads.Access[0]
	d.in.Access[access], d.Reads.Access = Answer{}, nil
	if err := d.authorize(nil); err == nil || d.record.migration.FrozenSince == nil {
		t.Errorf("%v, frozen since %v", err, d.record.migration.FrozenSince)
	}
}

// A pass that nobody answers ends with an error, and does not ask more often than all passes together may.
func TestWhatIsNotAnsweredEndsARehearsal(t *testing.T) {
	d := moving(t)
	fw := d.in.FleetWorkload.DeepCopy()
	fw.Status = v1alpha1.FleetWorkloadStatus{}
	asked := 0
	_, problem := Rehearse(In{Settings: d.in.Settings, FleetWorkload: fw, Now: d.now.Time}, func(*In, Reads) { asked++ })
	if problem == nil || problem.Reason != v1alpha1.ReasonInternalError || asked != mostRehearsed*MostReads {
		t.Errorf("after %d questions: %+v", asked, problem)
	}
}
