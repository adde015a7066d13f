// Package interned lets equal values be one in memory. A cache has a ManifestWork for each cluster of a workload, and most of each is equal to
// that of all the others.
package interned

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"sync"
)

// Values are maps and slices that equal ones are replaced by. The zero value has none.
type Values struct {
	mu sync.Mutex
	by map[[sha256.Size]byte]*known
}

type known struct {
	value any
	// young was looked up since the last Keep: who did may not have stored it yet.
	young bool
}

// Of is a value that is equal, as JSON, and the same for all that are. Neither may be changed any more. What is no JSON, or neither a map nor
// a slice with something in it, stays as it is.
func (v *Values) Of(value any) any {
	if address(value) == 0 {
		return value
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return value
	}
	sum := sha256.Sum256(raw)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by == nil {
		v.by = map[[sha256.Size]byte]*known{}
	}
	if v.by[sum] == nil {
		v.by[sum] = &known{value: value}
	}
	v.by[sum].young = true
	return v.by[sum].value
}

// Keep forgets the values that are not in use. used is told each that is; what was looked up since the last Keep is kept as well.
func (v *Values) Keep(inUse func(used func(value any))) {
	addresses := map[uintptr]bool{}
	inUse(func(value any) { addresses[address(value)] = true })
	v.mu.Lock()
	defer v.mu.Unlock()
	for sum, k := range v.by {
		if !k.young && !addresses[address(k.value)] {
			delete(v.by, sum)
		}
		k.young = false
	}
}

// address tells one map or slice from another one; 0 for anything else.
func address(value any) uintptr {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Map, reflect.Slice:
		if v.Len() > 0 {
			return v.Pointer()
		}
		return 0
	default:
		return 0
	}
}
