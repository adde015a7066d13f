package companions

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

func keyOf(name string) backends.Key {
	return backends.Key{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}, UID: types.UID("uid-" + name)}
}

// TestNeed: who needs a companion survives being written down, and everybody is in one place only.
func TestNeed(t *testing.T) {
	web, api, far := keyOf("web"), keyOf("api"), keyOf("far")
	reread := func(n Need) Need {
		annotations := map[string]string{}
		n.Write(annotations)
		return ReadNeed(annotations)
	}
	need := reread(ReadNeed(nil).Owning(web, nil))
	if need = reread(need.Observing(api)); !need.Observes(api.UID) || !slices.Equal(need.Owners(""), []types.UID{web.UID}) {
		t.Fatalf("%+v", need)
	}
	if need = reread(need.Observing(web)); need.Owned() {
		t.Fatalf("owned by one that observes: %+v", need)
	}
	need = reread(need.Owning(web, []types.UID{far.UID, api.UID}))
	if !slices.Equal(need.elsewhere, []types.UID{far.UID}) || need.Observes(web.UID) {
		t.Fatalf("a user is elsewhere: %+v", need)
	}
	if need = reread(need.Owning(far, nil)); need.Elsewhere() {
		t.Fatalf("it is a user and elsewhere: %+v", need)
	}
	if left := reread(need.Leaving(far, v1alpha1.DeletionPolicyDelete)); left.Elsewhere() {
		t.Errorf("what is deleted needs nothing: %+v", left)
	}
	if left := reread(need.Leaving(far, v1alpha1.DeletionPolicyOrphan)); !slices.Equal(left.elsewhere, []types.UID{far.UID}) {
		t.Errorf("what was given up may need it: %+v", left)
	}
}
