package ocm

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/backends/internal/interned"
)

// reports keep what was worked out from ManifestWorks as long as they do not change: between two passes, few of a
// thousand do. They are a help and no position; without them everything is read again.
type reports struct {
	mu sync.Mutex
	by map[types.UID]*remembered
	// values are what clusters have reported; many report the same.
	values interned.Values
}

// remembered is about one version of a ManifestWork.
type remembered struct {
	version string
	report  *report
	// served is what servedVersions reads; nil until it was asked for.
	served *[]string
	// wanted are the marks of a ManifestWork that this version was found to be equal to.
	wanted marks
}

// marks identify what was rendered, together with the ManifestWork's name.
type marks struct{ hash, removing, held, observe string }

func marksOf(obj *unstructured.Unstructured) marks {
	of := func(annotation string) string {
		value, _, _ := unstructured.NestedString(obj.Object, "metadata", "annotations", annotation)
		return value
	}
	return marks{hash: of(annotationHash), removing: of(annotationRemoving), held: of(annotationHeld), observe: of(annotationObserved)}
}

// of returns what is remembered of exactly this version. It is called with the lock held.
func (r *reports) of(obj *unstructured.Unstructured) *remembered {
	if obj.GetUID() == "" || obj.GetResourceVersion() == "" {
		return &remembered{}
	}
	if r.by == nil {
		r.by = map[types.UID]*remembered{}
	}
	m := r.by[obj.GetUID()]
	if m == nil || m.version != obj.GetResourceVersion() {
		m = &remembered{version: obj.GetResourceVersion()}
		r.by[obj.GetUID()] = m
	}
	return m
}

// servedVersions is the function of that name. What it returns must not be changed.
func (r *reports) servedVersions(obj *unstructured.Unstructured) []string {
	r.mu.Lock()
	known := r.of(obj).served
	r.mu.Unlock()
	if known != nil {
		return *known
	}
	served := servedVersions(obj)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(obj).served = &served
	return served
}

// read is readWork. The report must not be changed.
func (r *reports) read(obj *unstructured.Unstructured) (report, error) {
	r.mu.Lock()
	known := r.of(obj).report
	r.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	read, err := readWork(obj)
	if err != nil {
		return report{}, err
	}
	if same, is := r.values.Of(read.values).(map[string]any); is {
		read.values = same
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(obj).report = &read
	return read, nil
}

// equal is equal, which is one and the same function for all calls with one ManifestWork, and which need not be asked again
// about what it has called equal.
func (r *reports) equal(live, wanted *unstructured.Unstructured, equal func(live, wanted *unstructured.Unstructured) bool) bool {
	marks := marksOf(wanted)
	if live == nil || marks.hash == "" {
		return equal(live, wanted)
	}
	r.mu.Lock()
	known := r.of(live).wanted == marks
	r.mu.Unlock()
	if known {
		return true
	}
	if !equal(live, wanted) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(live).wanted = marks
	return true
}

func (r *reports) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, uid)
}

// sweep forgets the values that no report has any more.
func (r *reports) sweep() {
	r.values.Keep(func(used func(any)) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, m := range r.by {
			if m.report != nil {
				used(m.report.values)
			}
		}
	})
}
