// Package guard decides whether clusters may lose replicas (law 2): what the spec asks for may go at once, and of what it does not
// ask for a part only, over any number of passes. It is pure; what it has to know of earlier passes is in the status.
package guard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// Asked is what a spec says about where replicas run.
type Asked struct {
	// Clusters is a hash of what decides which clusters are chosen.
	Clusters string
	// Division is a hash of how replicas are divided over them.
	Division string
	// Replicas is the number asked for: of each cluster, or of all together when it is divided. Kinds without replicas have 1.
	Replicas int32
	// Divided tells which.
	Divided bool
	// Own are the numbers of clusters that have one of their own instead.
	Own map[string]int32
	// OnlyApproved is true when a person has approved the spec: it takes out the clusters of which they were told, and no others.
	OnlyApproved bool
}

// FellOut tells whether it is no edit that takes a cluster out: it fell out of the placement before that, or after somebody was told what the
// edit takes out.
func (a Asked) FellOut(row v1alpha1.ClusterShare) bool {
	return row.DeselectedAt != nil || a.OnlyApproved && row.RemovalApprovedAt == nil
}

// of is the number asked for of a cluster when it is not divided.
func (a Asked) of(cluster string) int32 {
	if n, own := a.Own[cluster]; own {
		return n
	}
	return a.Replicas
}

// In is what a pass wants to do.
type In struct {
	// Record is what is remembered; nil before anything was carried out.
	Record *v1alpha1.PlacementRecord
	Asked  Asked
	// Runs are the clusters that have the workload, with what they are to run now. It counts while there is no record.
	Runs map[string]int32
	// Reports are how many replicas clusters say that they run; 1 of kinds without. No more than that counts as staying.
	Reports map[string]int32
	// Chosen are the clusters of the placement. Excluded are those that it does not choose whatever labels they have.
	Chosen, Excluded []string
	// Next is what each cluster is to run. A chosen one that is not in it is to run nothing.
	Next map[string]int32
	// FailedOver are clusters that spec.placement.failover gives up: others take their place.
	FailedOver []string
	// Confirmation is what a person has confirmed: a removal's token.
	Confirmation string
	// MaxPercent is the share of what counts that may go without being asked for.
	MaxPercent int32

	// before is what each cluster was to run until now.
	before map[string]int32
}

// Removal is what is held.
type Removal struct {
	// Clusters are those that would lose replicas, such as "m1 (98 to 34)", sorted.
	Clusters []string
	// Lost is how many of the Total that counts would go, or have gone.
	Lost, Total int64
	// Token names the removal, for a person who confirms it. Each confirmation is good for one removal.
	Token string
}

// count is what of a cluster counts: what it ran when the spec was last carried out. While it is joining that is what it has come to run so
// far, or what it ran before it left; pending is what counts once it runs what it is to.
type count struct {
	replicas int32
	joining  bool
	pending  int32
}

// Check returns what is to be remembered, and the removal that must be held; nil when everything may be carried out. What is held
// leaves the record as it is.
func Check(in In) (v1alpha1.PlacementRecord, *Removal) {
	record := v1alpha1.PlacementRecord{}
	if in.Record != nil {
		record = *in.Record.DeepCopy()
	}
	if in.before = in.Runs; in.Record != nil {
		in.before = Decided(in.Record)
	}
	counts, confirmations := in.excuse(in.counts()), ptr.Deref(record.ConfirmedRemovals, 0)
	removal := in.removal(counts, confirmations)
	if in.Record == nil {
		in.MaxPercent = 0 // nobody knows what the spec asked for before, so that nothing that runs goes unasked
	}
	confirmed := removal.Lost > 0 && removal.Token == in.Confirmation
	if in.takesAway(counts) && removal.Lost*100 > removal.Total*int64(in.MaxPercent) && !confirmed {
		return record, &removal
	}
	if confirmed {
		record.ConfirmedRemovals = ptr.To(confirmations + 1)
	}
	record.Clusters = rows(in.follow(counts, confirmed), in.Next, record.Clusters)
	record.ClustersHash, record.DivisionHash, record.Replicas = in.Asked.Clusters, in.Asked.Division, ptr.To(in.Asked.Replicas)
	return record, nil
}

// asksForClusters tells whether the spec asks for other clusters than before.
func (in In) asksForClusters() bool {
	return in.Record == nil || in.Record.ClustersHash != in.Asked.Clusters
}

func (in In) asksForDivision() bool {
	return in.Record != nil && in.Record.DivisionHash != in.Asked.Division
}

// edited tells whether the spec asks for something else than when it was last carried out.
func (in In) edited() bool {
	return in.asksForClusters() || in.asksForDivision() || ptr.Deref(in.Record.Replicas, in.Asked.Replicas) != in.Asked.Replicas
}

// counts are what is remembered; what runs, when nothing is.
func (in In) counts() map[string]count {
	counts := map[string]count{}
	if in.Record == nil {
		for name, n := range in.Runs {
			counts[name] = count{replicas: n, pending: n}
		}
		return counts
	}
	for _, row := range in.Record.Clusters {
		if row.Baseline != nil {
			c := count{replicas: *row.Baseline, joining: row.State == v1alpha1.ClusterShareJoining, pending: *row.Baseline}
			if c.joining {
				c.pending = ptr.Deref(row.PendingBaseline, math.MaxInt32)
				// It may have come to run more since then: nothing is remembered of a pass that is held.
				c.replicas = max(c.replicas, min(c.pending, in.before[row.Name], in.Reports[row.Name]))
			}
			counts[row.Name] = c
		}
	}
	return counts
}

// excuse takes out of what counts what the spec asks for since it was last carried out. A change of replicas or of their division asks for
// no cluster to be left. Replicas that go from a divided number are seen in the total.
func (in In) excuse(counts map[string]count) map[string]count {
	if in.Record != nil {
		deselected := in.deselected()
		for name, c := range counts {
			chosen := slices.Contains(in.Chosen, name)
			switch {
			case in.asksForClusters() && !chosen && !deselected[name]:
				delete(counts, name)
				continue
			case chosen && (in.asksForClusters() || in.asksForDivision()):
				c.replicas = min(c.replicas, in.Next[name])
			case !in.Asked.Divided:
				c.replicas = min(c.replicas, in.Asked.of(name))
			}
			counts[name] = c
		}
	}
	excluded := in.Excluded
	if in.Record == nil {
		excluded = nil // the spec may be an old one
	}
	for _, name := range slices.Concat(in.FailedOver, excluded) {
		if c := counts[name]; min(c.replicas, in.Next[name]) > 0 { // what stays there for now counts as before
			c.replicas = min(c.replicas, in.Next[name])
			counts[name] = c
		} else {
			delete(counts, name)
		}
	}
	return counts
}

// deselected are the clusters that an edit does not take out: they do not go by it, unless it takes them out whatever labels they have.
func (in In) deselected() map[string]bool {
	deselected := map[string]bool{}
	for _, row := range in.Record.Clusters {
		leaves := row.Replicas != nil || row.Removal != ""
		deselected[row.Name] = in.Asked.FellOut(row) && leaves && !slices.Contains(in.Excluded, row.Name)
	}
	return deselected
}

// takesAway tells whether a cluster that counts is to run less than until now.
func (in In) takesAway(counts map[string]count) bool {
	for name, c := range counts {
		if in.Next[name] < min(c.replicas, in.before[name]) {
			return true
		}
	}
	return false
}

// runs is how many replicas run on a cluster that counts, as far as that is known: no more than it was to run, nor than it reports. One that
// was to be left may not have been.
func (in In) runs(name string, c count) int32 {
	runs, reported := in.Reports[name]
	switch before := in.before[name]; {
	case before == 0:
		return runs
	case reported || c.joining:
		return min(runs, before)
	default:
		return before
	}
}

// removal compares what counts with what of it goes on running where it runs. Of a divided number no more than that number counts, whatever
// has joined; what clusters take over from others does not.
func (in In) removal(counts map[string]count, confirmed int32) Removal {
	r := Removal{}
	sum := sha256.New()
	fmt.Fprintln(sum, confirmed)
	var stays int64
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c, next := counts[name], in.Next[name]
		r.Total += int64(c.replicas)
		stays += int64(min(c.replicas, next, in.runs(name, c)))
		if c.replicas > next {
			what := fmt.Sprintf("%s (%d to %d)", name, c.replicas, next)
			r.Clusters = append(r.Clusters, what)
			fmt.Fprintln(sum, what)
		}
	}
	if in.Asked.Divided && in.Record != nil {
		r.Total = min(r.Total, int64(in.Asked.Replicas))
	}
	r.Lost = max(0, r.Total-stays)
	r.Token = hex.EncodeToString(sum.Sum(nil))[:12]
	return r
}

// follow is what counts from now on. An edit that is carried out, or a removal that was confirmed, begins anew with what clusters are to run,
// of each as soon as it runs that; only what has gone without being asked for goes on counting after an edit.
func (in In) follow(counts map[string]count, confirmed bool) map[string]count {
	anew, next := confirmed || in.edited(), map[string]count{}
	var gone int64
	for name, c := range counts {
		_, stays := in.Next[name]
		if asked := anew && slices.Contains(in.Chosen, name); !stays && !asked && !confirmed && in.Record != nil {
			next[name] = count{replicas: c.replicas}
			gone += int64(c.replicas)
		}
	}
	pending := in.pending(counts, anew, gone)
	for name, n := range in.Next {
		c, runs := counts[name], in.Reports[name]
		still := in.before[name] > 0 || runs > 0 && runs >= min(c.replicas, n) // what was to be left may not have been
		switch {
		case c.replicas > 0 && !c.joining && !anew && still:
			next[name] = c
		case n > 0 && runs >= n:
			next[name] = count{replicas: pending[name]}
		default:
			next[name] = count{replicas: max(c.replicas, min(pending[name], runs)), joining: true, pending: pending[name]}
		}
	}
	return next
}

// pending is what counts of each cluster once it runs what it is to. After an edit that is all of it, without what it had taken over of
// replicas that are gone: those go on counting where they were lost, and must not count once more as replicas that stay.
func (in In) pending(counts map[string]count, anew bool, gone int64) map[string]int32 {
	pending, over, sum := maps.Clone(in.Next), map[string]int32{}, int64(0)
	for name, n := range in.Next {
		c, before := counts[name], in.before[name]
		if c.joining && !anew {
			pending[name] = min(n, c.pending)
		}
		if c.replicas > 0 && anew && in.Asked.Divided && before > c.pending {
			over[name], sum = before-c.pending, sum+int64(before-c.pending)
		}
	}
	for name, n := range over {
		n = int32((int64(n)*min(gone, sum) + sum - 1) / sum)
		if next := in.Next[name]; next < in.before[name] {
			n = int32(int64(n) * int64(next) / int64(in.before[name]))
		}
		pending[name] -= n
	}
	return pending
}

// Decided is what each cluster is to run, as it was decided last.
func Decided(record *v1alpha1.PlacementRecord) map[string]int32 {
	all := map[string]int32{}
	if record == nil {
		return all
	}
	for _, c := range record.Clusters {
		if c.Replicas != nil {
			all[c.Name] = *c.Replicas
		}
	}
	return all
}

// Removals are why clusters are left, as it was decided last.
func Removals(record *v1alpha1.PlacementRecord) map[string]v1alpha1.RemovalReason {
	all := map[string]v1alpha1.RemovalReason{}
	if record == nil {
		return all
	}
	for _, c := range record.Clusters {
		if c.Removal != "" {
			all[c.Name] = c.Removal
		}
	}
	return all
}

// WithRemovals is a record that says of each cluster that is left why, and of no others.
func WithRemovals(record v1alpha1.PlacementRecord, removals map[string]v1alpha1.RemovalReason) v1alpha1.PlacementRecord {
	out := *record.DeepCopy()
	for i := range out.Clusters {
		out.Clusters[i].Removal = removals[out.Clusters[i].Name]
	}
	for _, name := range slices.Sorted(maps.Keys(removals)) {
		if !slices.ContainsFunc(out.Clusters, func(c v1alpha1.ClusterShare) bool { return c.Name == name }) {
			out.Clusters = append(out.Clusters, v1alpha1.ClusterShare{Name: name, Removal: removals[name]})
		}
	}
	slices.SortFunc(out.Clusters, func(a, b v1alpha1.ClusterShare) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// WithApproved is a record that says of which clusters a person has approved now that an edit takes them out; nil when there is none.
func WithApproved(record *v1alpha1.PlacementRecord, out func(cluster string) bool, now metav1.Time) *v1alpha1.PlacementRecord {
	next := record.DeepCopy()
	if next == nil {
		return nil
	}
	for i := range next.Clusters {
		row := &next.Clusters[i]
		if row.RemovalApprovedAt = nil; out(row.Name) {
			row.RemovalApprovedAt = &now
		}
	}
	return next
}

// Renamed is a record with the names that another backend has for the clusters.
func Renamed(record *v1alpha1.PlacementRecord, name func(string) string) *v1alpha1.PlacementRecord {
	out := record.DeepCopy()
	if out == nil {
		return nil
	}
	for i := range out.Clusters {
		out.Clusters[i].Name = name(out.Clusters[i].Name)
	}
	slices.SortFunc(out.Clusters, func(a, b v1alpha1.ClusterShare) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// rows are what the status remembers of clusters.
func rows(counts map[string]count, decided map[string]int32, before []v1alpha1.ClusterShare) []v1alpha1.ClusterShare {
	out := make([]v1alpha1.ClusterShare, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c := counts[name]
		row := v1alpha1.ClusterShare{Name: name, Baseline: &c.replicas}
		if c.joining {
			row.State = v1alpha1.ClusterShareJoining
		}
		if n, is := decided[name]; is {
			row.Replicas = &n
			if c.joining && c.pending < n {
				row.PendingBaseline = &c.pending
			}
		}
		if i := slices.IndexFunc(before, func(b v1alpha1.ClusterShare) bool { return b.Name == name }); i >= 0 {
			row.DeselectedAt, row.ConflictPolicy = before[i].DeselectedAt, before[i].ConflictPolicy
		}
		out = append(out, row)
	}
	return out
}

// String lists the first clusters of a removal.
func (r Removal) String() string { return brief.List(r.Clusters) }
