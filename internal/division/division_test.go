package division_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/division"
)

func TestDivide(t *testing.T) {
	cases := map[string]struct {
		total  int32
		shares []division.Share
		want   map[string]int32
	}{
		"equal weights divide evenly": {
			total:  9,
			shares: []division.Share{{"m1", 1}, {"m2", 1}, {"m3", 1}},
			want:   map[string]int32{"m1": 3, "m2": 3, "m3": 3},
		},
		"what is left over goes to the smallest names": {
			total:  11,
			shares: []division.Share{{"m3", 7}, {"m2", 7}, {"m1", 7}},
			want:   map[string]int32{"m1": 4, "m2": 4, "m3": 3},
		},
		"a tie between unequal weights goes to the cluster with fewer replicas": {
			// The second seat: 3/3 against 1/1.
			total:  2,
			shares: []division.Share{{"big", 3}, {"small", 1}},
			want:   map[string]int32{"big": 1, "small": 1},
		},
		"two to one": {
			total:  12,
			shares: []division.Share{{"m1", 2}, {"m2", 1}, {"m3", 1}},
			want:   map[string]int32{"m1": 6, "m2": 3, "m3": 3},
		},
		"the textbook's Sainte-Laguë election": {
			// https://en.wikipedia.org/wiki/Sainte-Lagu%C3%AB_method: 53,000, 24,000 and 23,000 votes for 7 seats.
			total:  7,
			shares: []division.Share{{"a", 53000}, {"b", 24000}, {"c", 23000}},
			want:   map[string]int32{"a": 3, "b": 2, "c": 2},
		},
		"fewer replicas than clusters": {
			total:  2,
			shares: []division.Share{{"m1", 1}, {"m2", 5}, {"m3", 1}, {"m4", 4}},
			want:   map[string]int32{"m1": 0, "m2": 1, "m3": 0, "m4": 1},
		},
		"a weight of zero gets nothing": {
			total:  5,
			shares: []division.Share{{"m1", 0}, {"m2", 1}},
			want:   map[string]int32{"m1": 0, "m2": 5},
		},
		"nothing to divide needs no weights": {
			total:  0,
			shares: []division.Share{{"m1", 0}},
			want:   map[string]int32{"m1": 0},
		},
		"weights far beyond the API's bounds do not overflow": {
			total:  1 << 30,
			shares: []division.Share{{"m1", 1 << 61}, {"m2", 1 << 61}},
			want:   map[string]int32{"m1": 1 << 29, "m2": 1 << 29},
		},
		"products of weights may be multiples of what 64 bits hold": {
			total:  26,
			shares: []division.Share{{"m1", 3 << 60}, {"m2", 3 << 60}, {"m3", 2 << 60}, {"m4", 4 << 60}},
			want:   map[string]int32{"m1": 7, "m2": 6, "m3": 4, "m4": 9},
		},
		"those that weigh next to nothing get one each, from the one that weighs most": {
			total: 100,
			shares: []division.Share{
				{"big", 1_000_000}, {"m1", 1}, {"m2", 1}, {"m3", 1}, {"m4", 1}, {"m5", 1}, {"m6", 1}, {"m7", 1}, {"m8", 1}, {"m9", 1},
			},
			want: map[string]int32{"big": 91, "m1": 1, "m2": 1, "m3": 1, "m4": 1, "m5": 1, "m6": 1, "m7": 1, "m8": 1, "m9": 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := division.Divide(tc.total, tc.shares)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Divide (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDivideRefuses(t *testing.T) {
	cases := map[string]struct {
		total  int32
		shares []division.Share
		code   backends.Code
		want   string
	}{
		"replicas and only zero weights": {
			total: 3, shares: []division.Share{{"m1", 0}, {"m2", 0}},
			code: backends.CodeInvalidPlacement,
			want: "spec.placement.division.weights: none of the 2 chosen clusters has a weight, so 3 replicas have nowhere " +
				"to go; add an entry that selects them, or leave weights out to weigh all clusters the same",
		},
		"replicas and no clusters": {
			total: 1, code: backends.CodeInvalidPlacement, want: "none of the 0 chosen clusters has a weight",
		},
		"a negative total": {
			total: -1, shares: []division.Share{{"m1", 1}}, want: "the number is negative",
		},
		"a negative weight": {
			total: 1, shares: []division.Share{{"m1", -1}}, want: `cluster "m1" has the negative weight -1`,
		},
		"a cluster listed twice": {
			total: 1, shares: []division.Share{{"m1", 1}, {"m1", 1}}, want: `cluster "m1" is listed twice`,
		},
		"weights that overflow": {
			total: 1, shares: []division.Share{{"a", 1 << 62}, {"b", 1 << 62}, {"c", 1 << 62}, {"d", 1 << 62}},
			want: "the weights add up to more than 64 bits hold",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := division.Divide(tc.total, tc.shares)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Divide: got error %v, want one with %q", err, tc.want)
			}
			if got := backends.CodeOf(err); got != tc.code {
				t.Errorf("code: got %q, want %q", got, tc.code)
			}
		})
	}
}

func TestWeights(t *testing.T) {
	clusters := []backends.Cluster{
		{Name: "m1", Labels: map[string]string{"tier": "gold"}},
		{Name: "m2", Labels: map[string]string{"tier": "gold"}},
		{Name: "m3"},
	}
	weight := func(n int32) *int32 { return &n }
	gold := &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	cases := map[string]struct {
		weights []v1alpha1.ClusterWeight
		want    []division.Share
	}{
		"no entries weigh all clusters the same": {
			want: []division.Share{{"m1", 1}, {"m2", 1}, {"m3", 1}},
		},
		"the first entry that selects a cluster counts, also when a later one is greater": {
			weights: []v1alpha1.ClusterWeight{
				{Clusters: &v1alpha1.ClusterSelector{Names: []string{"m2"}}, Weight: weight(2)},
				{Clusters: gold, Weight: weight(5)},
				{Clusters: &v1alpha1.ClusterSelector{}, Weight: weight(9)},
			},
			want: []division.Share{{"m1", 5}, {"m2", 2}, {"m3", 9}},
		},
		"a cluster that no entry selects weighs nothing": {
			weights: []v1alpha1.ClusterWeight{{Clusters: gold, Weight: weight(3)}},
			want:    []division.Share{{"m1", 3}, {"m2", 3}, {"m3", 0}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := division.Weights(tc.weights, clusters)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Weights (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWeightsNameTheEntryThatIsWrong(t *testing.T) {
	bad := &v1alpha1.ClusterSelector{Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}},
	}}
	_, err := division.Weights([]v1alpha1.ClusterWeight{{Clusters: &v1alpha1.ClusterSelector{}}, {Clusters: bad}}, nil)
	var refusal *backends.Error
	if !errors.As(err, &refusal) || refusal.Code != backends.CodeInvalidPlacement ||
		refusal.Field != "spec.placement.division.weights[1]" {
		t.Errorf("Weights: got error %v, want InvalidPlacement for weights[1]", err)
	}
}

// sharesOf reads weights from fuzz data, two bytes each: small ones, so that ties are common, with a few great ones.
func sharesOf(data []byte) []division.Share {
	var shares []division.Share
	for len(data) >= 2 && len(shares) < 300 {
		n := int64(binary.LittleEndian.Uint16(data))
		data = data[2:]
		switch n % 4 {
		case 0:
			n = n / 4 % 4
		case 1:
			n = n / 4 % 64
		case 2:
			n /= 4
		case 3:
			n = n * 15 // up to 983,025
		}
		shares = append(shares, division.Share{Cluster: fmt.Sprintf("c%03d", len(shares)), Weight: n})
	}
	return shares
}

func FuzzDivide(f *testing.F) {
	f.Add(int32(0), []byte{})
	f.Add(int32(7), []byte{1, 0, 2, 0, 3, 0})
	f.Add(int32(1_000_000), []byte("the quick brown fox jumps over the lazy dog"))
	f.Add(int32(13), []byte{4, 0, 4, 0, 4, 0, 12, 0, 0, 0})
	f.Fuzz(func(t *testing.T, total int32, data []byte) {
		total &= 1<<21 - 1
		shares := sharesOf(data)
		got, err := division.Divide(total, shares)
		if !slices.ContainsFunc(shares, func(s division.Share) bool { return s.Weight > 0 }) {
			if (err != nil) != (total > 0) {
				t.Fatalf("no weights and total %d: got error %v", total, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		checkSum(t, total, shares, got)
		checkOrder(t, total, shares, got)
		checkMonotone(t, total, shares, got)
		checkFixedPoint(t, total, shares, got)
	})
}

func checkSum(t *testing.T, total int32, shares []division.Share, got map[string]int32) {
	t.Helper()
	var sum int32
	for _, s := range shares {
		n, ok := got[s.Cluster]
		if !ok || n < 0 || (s.Weight == 0 && n != 0) {
			t.Errorf("cluster %s of weight %d: got %d, present=%v", s.Cluster, s.Weight, n, ok)
		}
		sum += n
	}
	if sum != total || len(got) != len(shares) {
		t.Errorf("got %d replicas on %d clusters, want %d on %d", sum, len(got), total, len(shares))
	}
}

func checkOrder(t *testing.T, total int32, shares []division.Share, want map[string]int32) {
	t.Helper()
	shuffled := slices.Clone(shares)
	rand.New(rand.NewSource(int64(total))).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	got, err := division.Divide(total, shuffled)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("another order of shares (-want +got):\n%s", diff)
	}
}

func checkMonotone(t *testing.T, total int32, shares []division.Share, before map[string]int32) {
	t.Helper()
	after, err := division.Divide(total+1, shares)
	if err != nil {
		t.Fatal(err)
	}
	for cluster, n := range before {
		if after[cluster] < n {
			t.Errorf("cluster %s falls from %d to %d when the total rises from %d", cluster, n, after[cluster], total)
		}
	}
}

func checkFixedPoint(t *testing.T, total int32, shares []division.Share, want map[string]int32) {
	t.Helper()
	pinned := make([]division.Share, len(shares))
	for i, s := range shares {
		pinned[i] = division.Share{Cluster: s.Cluster, Weight: int64(want[s.Cluster])}
	}
	got, err := division.Divide(total, pinned)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dividing by the result (-want +got):\n%s", diff)
	}
}

func BenchmarkDivide(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	shares := make([]division.Share, 1000)
	for i := range shares {
		shares[i] = division.Share{Cluster: fmt.Sprintf("cluster-%04d", i), Weight: 1 + rng.Int63n(1_000_000)}
	}
	for b.Loop() {
		if _, err := division.Divide(1_000_000, shares); err != nil {
			b.Fatal(err)
		}
	}
}
