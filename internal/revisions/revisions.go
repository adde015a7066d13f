// Package revisions says what of a FleetWorkload is kept so that a person can go back to it, and which versions are. It is pure: the
// operator keeps them, and kubectl-fw reads them.
package revisions

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	pointer "k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// DefaultLimit is how many older versions are kept where the spec does not say.
const DefaultLimit = 10

// Shipped is what of a spec goes to clusters, as it was written. Where it goes, and how many replicas of it, is no part of it.
type Shipped struct {
	Template     runtime.RawExtension      `json:"template"`
	Companions   []runtime.RawExtension    `json:"companions,omitempty"`
	Dependencies v1alpha1.DependencyPolicy `json:"dependencies,omitempty"`
	Overrides    []v1alpha1.Override       `json:"overrides,omitempty"`
}

// Of is what a spec ships. It shares its parts.
func Of(spec *v1alpha1.FleetWorkloadSpec) Shipped {
	return Shipped{Template: spec.Template, Companions: spec.Companions, Dependencies: spec.Dependencies, Overrides: spec.Overrides}
}

// Limit is spec.revisionHistoryLimit with its default.
func Limit(spec *v1alpha1.FleetWorkloadSpec) int32 {
	return pointer.Deref(spec.RevisionHistoryLimit, DefaultLimit)
}

// Version is what is shipped with the name under which it is kept.
type Version struct {
	Name string
	// Raw is Shipped as JSON.
	Raw []byte
}

// VersionOf names what is shipped. What it holds, and whose it is, is part of the name, so that nothing else is taken for it. The order of
// keys is that of API servers, which sort them.
func VersionOf(fw *v1alpha1.FleetWorkload, shipped Shipped) (Version, error) {
	raw, err := json.Marshal(shipped)
	if err != nil {
		return Version{}, fmt.Errorf("encode what is shipped: %w", err)
	}
	sum := sha256.New()
	sum.Write([]byte(fw.UID))
	sum.Write(raw)
	return Version{Name: fw.Name + "-revision-" + hex.EncodeToString(sum.Sum(nil))[:16], Raw: raw}, nil
}

// Object keeps a version under a number. It goes with its FleetWorkload.
func (v Version) Object(fw *v1alpha1.FleetWorkload, number int64) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fw.Namespace, Name: v.Name,
			Labels:          map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelHistoryOf: string(fw.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(fw, v1alpha1.GroupVersion.WithKind("FleetWorkload"))},
		},
		Data: runtime.RawExtension{Raw: v.Raw}, Revision: number,
	}
}

// Read is what an object keeps of the FleetWorkload; false when it is not its own, or does not hold what its name says.
func Read(fw *v1alpha1.FleetWorkload, kept *appsv1.ControllerRevision) (shipped Shipped, ok bool) {
	if !metav1.IsControlledBy(kept, fw) || utiljson.Unmarshal(kept.Data.Raw, &shipped) != nil {
		return Shipped{}, false
	}
	v, err := VersionOf(fw, shipped)
	return shipped, err == nil && v.Name == kept.Name
}

// Kept is a version that there is.
type Kept struct {
	Name   string
	Number int64
}

// Next is what is to be done so that a version is the newest, and no more than so many older ones are left.
type Next struct {
	// Number is the version's.
	Number int64
	// Write is true when it is not there under this number.
	Write bool
	// Delete are those that are too many, the oldest first.
	Delete []string
	// Older is how many are left beside it.
	Older int32
}

// Decide says what becomes of the versions that there are once one is shipped. One that is returned to gets another number.
func Decide(kept []Kept, name string, limit int32) Next {
	var own, newest int64
	var older []Kept
	for _, k := range kept {
		if k.Name == name {
			own = k.Number
			continue
		}
		older = append(older, k)
		newest = max(newest, k.Number)
	}
	next := Next{Number: own}
	if own <= newest {
		next.Number, next.Write = newest+1, true
	}
	slices.SortFunc(older, func(a, b Kept) int { return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name)) })
	for _, k := range older[:max(0, len(older)-int(limit))] {
		next.Delete = append(next.Delete, k.Name)
	}
	next.Older = int32(len(older) - len(next.Delete))
	return next
}
