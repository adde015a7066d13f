// Package division divides replicas over clusters. It is pure.
//
// The method is Webster's (Sainte-Laguë), as Karmada v1.17.1 uses it for static weights: the scheduler's
// assignByStaticWeightStrategy (pkg/scheduler/core/assignment.go) hands the weights to Dispenser.AllocateByWeight
// (pkg/util/helper/binding.go), which calls AllocateWebsterSeats (pkg/util/helper/webstermethod.go). So a backend
// without an engine for it gives every cluster what Karmada would give it. Where the two differ, on purpose:
//
//   - Ties between clusters of equal weight and equal replicas go to the smaller name. Karmada takes the smaller or the
//     greater name, by the parity of a hash of the object's UID, so that the same spec could mean two splits.
//   - Quotients are compared exactly and not as float64. Within the API's bounds (weights and totals up to 1,000,000)
//     the outcome is the same: different quotients differ by more than a float64's rounding.
//   - A cluster that has a weight gets at least one replica, as long as there are enough. Karmada may give it none, and then
//     drops it (removeZeroReplicasCluster in pkg/scheduler/core/common.go). Without it the method is Apportion.
//   - When every weight is zero Karmada weighs all clusters the same; here it is an error (design law 2).
//
// The result is a fixed point, with or without the minimum: dividing the same total by the result gives the result again, without any tie. That is
// how a division is pinned on Karmada: weights equal to the wanted replicas.
package division

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// weightsField is the field that errors of this package blame.
const weightsField = "spec.placement.division.weights"

// Share is one cluster's weight in a division.
type Share struct {
	Cluster string
	// Weight relative to the other shares; a cluster of weight 0 gets nothing.
	Weight int64
}

// Weights returns one share for each cluster, in the order of clusters. The first entry that selects a cluster gives
// its weight; a cluster that none selects weighs 0. Without entries all clusters weigh 1. (Karmada would take the
// greatest matching weight: getStaticWeightInfoList in pkg/scheduler/core/division_algorithm.go. Drivers hand it one
// entry a cluster, so that this never shows.)
func Weights(weights []v1alpha1.ClusterWeight, clusters []backends.Cluster) ([]Share, error) {
	matchers := make([]backends.Matcher, len(weights))
	for i, w := range weights {
		m, err := backends.NewMatcher(w.Clusters)
		if err != nil {
			return nil, &backends.Error{
				Code:    backends.CodeInvalidPlacement,
				Field:   fmt.Sprintf("%s[%d]", weightsField, i),
				Message: "the entry cannot be compiled",
				Remedy:  "correct the selector",
				Err:     err,
			}
		}
		matchers[i] = m
	}
	shares := make([]Share, len(clusters))
	for i, c := range clusters {
		shares[i] = Share{Cluster: c.Name, Weight: weightOf(c, weights, matchers)}
	}
	return shares, nil
}

func weightOf(c backends.Cluster, weights []v1alpha1.ClusterWeight, matchers []backends.Matcher) int64 {
	if len(weights) == 0 {
		return 1
	}
	for i, m := range matchers {
		if !m.Matches(c) {
			continue
		}
		if weights[i].Weight == nil {
			return 0 // the schema requires it
		}
		return int64(*weights[i].Weight)
	}
	return 0
}

// Divide gives total replicas to the clusters in proportion to their weights, and at least one to each cluster that has a
// weight, as far as there are so many: a backend takes a cluster that gets none for one that is not wanted. The result has
// an entry for every share, also where it is 0, and adds up to total exactly. The order of shares does not matter. One
// replica more never lowers a cluster's number.
//
// A positive total and no weight to divide it by is an error and not an empty fleet. So are negative numbers and a
// cluster that is listed twice, which are mistakes of the caller.
func Divide(total int32, shares []Share) (map[string]int32, error) {
	return divide(total, shares, 1)
}

// Apportion is Divide without the minimum of one: Karmada's division by static weights.
func Apportion(total int32, shares []Share) (map[string]int32, error) {
	return divide(total, shares, 0)
}

func divide(total int32, shares []Share, least uint64) (map[string]int32, error) {
	sum, err := check(total, shares)
	if err != nil {
		return nil, err
	}
	result := make(map[string]int32, len(shares))
	seats := make(seatQueue, 0, len(shares))
	for _, s := range shares {
		result[s.Cluster] = 0
		if s.Weight > 0 {
			seats = append(seats, seat{cluster: s.Cluster, weight: uint64(s.Weight), first: least > 0})
		}
	}
	if total == 0 {
		return result, nil
	}

	remaining := uint64(total)
	// Those who surely get their seats get them at once: see certain. With a minimum, n clusters take up to n seats from the
	// others, who surely get what they would of n seats less; this adds up to total at most.
	n := int64(len(seats))
	if base := int64(total) - int64(least)*n; 2*base > n {
		for i := range seats {
			seats[i].taken = max(least, certain(seats[i].weight, uint64(2*base-n), sum))
			remaining -= seats[i].taken
		}
	}
	heap.Init(&seats)
	for ; remaining > 0; remaining-- {
		seats[0].taken++
		heap.Fix(&seats, 0)
	}
	for _, s := range seats {
		result[s.cluster] = int32(s.taken) // at most total
	}
	return result, nil
}

// check validates the input of Divide and returns the sum of the weights.
func check(total int32, shares []Share) (uint64, error) {
	if total < 0 {
		return 0, fmt.Errorf("dividing %d replicas: the number is negative", total)
	}
	var sum uint64
	seen := make(map[string]struct{}, len(shares))
	for _, s := range shares {
		if s.Weight < 0 {
			return 0, fmt.Errorf("dividing replicas: cluster %q has the negative weight %d", s.Cluster, s.Weight)
		}
		if _, twice := seen[s.Cluster]; twice {
			return 0, fmt.Errorf("dividing replicas: cluster %q is listed twice", s.Cluster)
		}
		seen[s.Cluster] = struct{}{}
		var carry uint64
		if sum, carry = bits.Add64(sum, uint64(s.Weight), 0); carry != 0 {
			return 0, errors.New("dividing replicas: the weights add up to more than 64 bits hold")
		}
	}
	if sum == 0 && total > 0 {
		return 0, &backends.Error{
			Code:    backends.CodeInvalidPlacement,
			Field:   weightsField,
			Message: fmt.Sprintf("none of the %d chosen clusters has a weight, so %d replicas have nowhere to go", len(shares), total),
			Remedy:  "add an entry that selects them, or leave weights out to weigh all clusters the same",
		}
	}
	return sum, nil
}

// certain returns how many seats a cluster surely gets, so that the queue has fewer seats left to give than there are
// clusters, whatever the total.
//
// The seats given are those with the greatest quotients weight/(2k+1). All with a quotient above a threshold are among
// them if there are no more than total of those. Above sum/scaled, with scaled = 2*total-n, a cluster of quota
// q = weight*scaled/(2*sum) has fewer than q+1/2 seats, and the quotas of n clusters add up to total-n/2: at most total
// together, and more than total-n.
func certain(weight, scaled, sum uint64) uint64 {
	// The number of odd numbers below weight*scaled/sum. The quotient fits: weight is at most sum.
	hi, lo := bits.Mul64(weight, scaled)
	lo, borrow := bits.Sub64(lo, 1, 0)
	below, _ := bits.Div64(hi-borrow, lo, sum)
	return (below + 1) / 2
}

// seat is a cluster's claim to its next replica.
type seat struct {
	cluster string
	weight  uint64
	taken   uint64
	// first is true when the first seat comes before every second one.
	first bool
}

// compare orders claims, the strongest first: by the greater quotient weight/(2*taken+1), then by fewer replicas as in
// Karmada's tieBreakerByUID, then by name.
func (s seat) compare(o seat) int {
	if s.first && (s.taken == 0) != (o.taken == 0) {
		return cmp.Compare(s.taken, o.taken)
	}
	hi, lo := bits.Mul64(s.weight, 2*o.taken+1)
	ohi, olo := bits.Mul64(o.weight, 2*s.taken+1)
	return cmp.Or(
		cmp.Compare(ohi, hi),
		cmp.Compare(olo, lo),
		cmp.Compare(s.taken, o.taken),
		cmp.Compare(s.cluster, o.cluster),
	)
}

// seatQueue is a heap with the strongest claim on top.
type seatQueue []seat

func (q seatQueue) Len() int           { return len(q) }
func (q seatQueue) Less(i, j int) bool { return q[i].compare(q[j]) < 0 }
func (q seatQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface; the queue never grows.
func (q *seatQueue) Push(x any) { *q = append(*q, x.(seat)) }

// Pop implements heap.Interface; the queue never shrinks.
func (q *seatQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = slices.Delete(*q, len(*q)-1, len(*q))
	return last
}
