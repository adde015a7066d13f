package division_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/karmada-io/karmada/pkg/util/helper"

	"github.com/fleetworkload/fleetworkload/internal/division"
)

// TestApportionAgreesWithKarmada compares Apportion with Karmada's own function on random inputs. Inputs with a tie that
// Karmada breaks by the object's UID are left out there: they are the ones on which its two orders of names disagree.
// Apportion must then agree with both of them; on the others it must agree with the ascending one.
func TestApportionAgreesWithKarmada(t *testing.T) {
	const wanted = 12_000
	rng := rand.New(rand.NewSource(20240607))
	var compared, ties int
	for compared < wanted {
		total, shares := randomDivision(rng)
		ascending := karmadaDivide(total, shares, func(a, b string) bool { return a < b })
		descending := karmadaDivide(total, shares, func(a, b string) bool { return a > b })
		if cmp.Equal(ascending, descending) {
			compared++
		} else {
			ties++
		}
		got, err := division.Apportion(total, shares)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ascending, got); diff != "" {
			t.Fatalf("%d over %v (-karmada +got):\n%s", total, shares, diff)
		}
		checkMinimum(t, total, shares, got)
	}
	t.Logf("compared %d inputs without ties and %d with", compared, ties)
	if ties == 0 {
		t.Error("no input had a tie: the generator is too tame")
	}
}

// checkMinimum: with the minimum, every cluster of some weight gets a replica if there are enough, nothing else changes if
// all have one anyway, and Karmada, told the result as weights, gives the result.
func checkMinimum(t *testing.T, total int32, shares []division.Share, plain map[string]int32) {
	t.Helper()
	got, err := division.Divide(total, shares)
	if err != nil {
		t.Fatal(err)
	}
	var weighty, plainly, none int32
	pinned := make([]division.Share, 0, len(shares))
	for _, s := range shares {
		pinned = append(pinned, division.Share{Cluster: s.Cluster, Weight: int64(got[s.Cluster])})
		if s.Weight == 0 {
			continue
		}
		weighty++
		if plain[s.Cluster] > 0 {
			plainly++
		}
		if got[s.Cluster] == 0 {
			none++
		}
	}
	if none != max(0, weighty-total) || plainly == weighty && !cmp.Equal(plain, got) {
		t.Fatalf("%d over %v: %v, and %v without the minimum", total, shares, got, plain)
	}
	for _, before := range []func(a, b string) bool{func(a, b string) bool { return a < b }, func(a, b string) bool { return a > b }} {
		if diff := cmp.Diff(got, karmadaDivide(total, pinned, before)); total > 0 && diff != "" {
			t.Fatalf("%d over %v is no fixed point: %s", total, shares, diff)
		}
	}
}

// randomDivision returns a division in one of several sizes, from a handful of small weights to the API's greatest.
func randomDivision(rng *rand.Rand) (int32, []division.Share) {
	bounds := []int64{3, 10, 100, 1_000_000}
	bound := bounds[rng.Intn(len(bounds))]
	shares := make([]division.Share, 1+rng.Intn(20))
	for i := range shares {
		shares[i] = division.Share{Cluster: fmt.Sprintf("c%02d", i), Weight: rng.Int63n(bound + 1)}
	}
	shares[0].Weight++ // Karmada never gets here with all weights zero
	return rng.Int31n(1 + []int32{10, 100, 1000}[rng.Intn(3)]), shares
}

// karmadaDivide is Dispenser.AllocateByWeight with the tie-breaker of tieBreakerByUID, whose order of names the caller
// chooses instead of a UID.
func karmadaDivide(total int32, shares []division.Share, before func(a, b string) bool) map[string]int32 {
	votes := map[string]int64{}
	result := map[string]int32{}
	for _, s := range shares {
		result[s.Cluster] = 0
		if s.Weight > 0 { // getStaticWeightInfoList leaves the others out
			votes[s.Cluster] = s.Weight
		}
	}
	parties := helper.AllocateWebsterSeats(total, votes, nil, func(a, b helper.Party) bool {
		if a.Seats != b.Seats {
			return a.Seats < b.Seats
		}
		return before(a.Name, b.Name)
	})
	for _, p := range parties {
		result[p.Name] = p.Seats
	}
	return result
}
