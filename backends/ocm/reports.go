package ocm

import (
	"maps"
	"reflect"
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// reports keep what was worked out from ManifestWorks as long as they do not change: between two passes, few of a
// thousand do. They are a help and no position; without them everything is read again.
type reports struct {
	mu sync.Mutex
	by map[types.UID]*remembered
	// statuses are what was read of those that the cache has once for all clusters that report the same, by their address.
	statuses map[uintptr]*status
}

// status is one that the cache has, and what it says. While it is kept, nothing else has its address.
type status struct {
	content map[string]any
	says    reported
}

// remembered is about one version of a ManifestWork.
type remembered struct {
	version string
	report  *report
	// served is what servedVersions reads; nil until it was asked for.
	served *[]string
	// wanted are the marks of a ManifestWork that this version was found to be equal to.
	wanted unique.Handle[marks]
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
	says, err := r.status(obj)
	if err != nil {
		return report{}, err
	}
	read := reportOf(obj, says)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(obj).report = &read
	return read, nil
}

// status reads a status, once for all that share it.
func (r *reports) status(obj *unstructured.Unstructured) (reported, error) {
	shared, uid := sharedStatus(obj)
	at := reflect.ValueOf(shared).Pointer()
	r.mu.Lock()
	known := r.statuses[at]
	r.mu.Unlock()
	if known == nil {
		all, err := statusOf(obj)
		if err != nil || shared == nil {
			return readStatus(all), err
		}
		known = &status{content: shared, says: readStatus(all)}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.statuses == nil {
			r.statuses = map[uintptr]*status{}
		}
		r.statuses[at] = known
	}
	says := known.says
	says.uid = types.UID(uid)
	return says, nil
}

// equal is equal, which is one and the same function for all calls with one ManifestWork, and which need not be asked again
// about what it has called equal.
func (r *reports) equal(live, wanted *unstructured.Unstructured, equal func(live, wanted *unstructured.Unstructured) bool) bool {
	if live == nil || marksOf(wanted).hash == "" {
		return equal(live, wanted)
	}
	marks := unique.Make(marksOf(wanted))
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

// sweep forgets the statuses that none of the cached ManifestWorks has any more.
func (r *reports) sweep(works []*unstructured.Unstructured) {
	used := map[uintptr]bool{}
	for _, work := range works {
		shared, _ := sharedStatus(work)
		used[reflect.ValueOf(shared).Pointer()] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.statuses, func(at uintptr, _ *status) bool { return !used[at] })
}
