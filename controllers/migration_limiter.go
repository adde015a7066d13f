package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/pass"
)

// MigrationLimiter bounds how many FleetWorkloads are handed over at once. It is no position: who is being handed over stands in
// the FleetWorkloads, and is read from them at the first turn.
type MigrationLimiter struct {
	limit int
	wake  chan event.TypedGenericEvent[BackendEvent]

	mu sync.Mutex
	// begun is nil until the FleetWorkloads were read.
	begun   map[types.NamespacedName]bool
	waiting []types.NamespacedName
}

// NewMigrationLimiter lets that many have their turn at once, 1 or more.
func NewMigrationLimiter(limit int) *MigrationLimiter {
	return &MigrationLimiter{limit: limit, wake: make(chan event.TypedGenericEvent[BackendEvent], 1024)}
}

// take tells whether it is that FleetWorkload's turn, until it is ended. One whose turn it is not is woken for it.
func (t *MigrationLimiter) take(ctx context.Context, c client.Reader, key types.NamespacedName) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun == nil {
		begun, err := migrating(ctx, c)
		if err != nil {
			return false, err
		}
		t.begun = begun
	}
	if t.begun[key] {
		return true, nil
	}
	if len(t.begun) >= t.limit {
		if !slices.Contains(t.waiting, key) {
			t.waiting = append(t.waiting, key)
		}
		return false, nil
	}
	t.begun[key] = true
	t.waiting = slices.DeleteFunc(t.waiting, func(k types.NamespacedName) bool { return k == key })
	return true, nil
}

// goesOn counts a FleetWorkload whose hand-over goes on after a person has let it: its turn was another's meanwhile, and it does not wait
// for one again, so that for a while there may be more than the limit.
func (t *MigrationLimiter) goesOn(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun != nil {
		t.begun[key] = true
	}
}

// end gives the turn, or the wait for it, up. Who waits is woken for a turn that is free.
func (t *MigrationLimiter) end(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	had := t.begun[key] || slices.Contains(t.waiting, key) // it may have been woken, and not have taken its turn
	t.waiting = slices.DeleteFunc(t.waiting, func(k types.NamespacedName) bool { return k == key })
	delete(t.begun, key)
	if !had || len(t.waiting) == 0 || len(t.begun) >= t.limit {
		return
	}
	next := t.next()
	select {
	case t.wake <- event.TypedGenericEvent[BackendEvent]{Object: BackendEvent{Name: next}}:
		// The next end wakes the next one, also when this one does not take its turn.
		t.waiting = append(slices.DeleteFunc(t.waiting, func(k types.NamespacedName) bool { return k == next }), next)
	default: // those who wait look again by themselves after a while
	}
}

// next is the first who waits of the namespace that has the fewest turns, so that one with hundreds holds up nobody's only one.
func (t *MigrationLimiter) next() types.NamespacedName {
	turns := map[string]int{}
	for key := range t.begun {
		turns[key.Namespace]++
	}
	return slices.MinFunc(t.waiting, func(a, b types.NamespacedName) int { return cmp.Compare(turns[a.Namespace], turns[b.Namespace]) })
}

// migrating are the FleetWorkloads that are being handed over, and neither wait for a person nor are suspended.
func migrating(ctx context.Context, c client.Reader) (map[types.NamespacedName]bool, error) {
	var all v1alpha1.FleetWorkloadList
	if err := c.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list FleetWorkloads to see which are being handed over: %w", err)
	}
	begun := map[types.NamespacedName]bool{}
	for i := range all.Items {
		if fw := &all.Items[i]; pass.TakesTurn(fw) {
			begun[client.ObjectKeyFromObject(fw)] = true
		}
	}
	return begun, nil
}
