// Package guard decides whether clusters may lose replicas (law 2): what the spec asks for may go at once, and of what it does not
// ask for a part only, over any number of passes. It is pure; what it has to know of earlier passes is in the status.
package guard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
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
}

// In is what a pass wants to do.
type In struct {
	// Record is what is remembered; nil before anything was carried out.
	Record *v1alpha1.PlacementRecord
	Asked  Asked
	// Runs are the clusters that have the workload, with what they are to run now. It counts while there is no record.
	Runs map[string]int32
	// Chosen are the clusters of the placement. Excluded are those that it does not choose whatever labels they have.
	Chosen, Excluded []string
	// Next is what each cluster is to run. A chosen one that is not in it is to run nothing.
	Next map[string]int32
	// FailedOver are clusters that spec.placement.failover gives up: others take their place.
	FailedOver []string
	// Confirmation is what a person has confirmed: a removal's token.
	Confirmation string
	// MaxPercent is the share of the baseline that may go without being asked for.
	MaxPercent int32
}

// Removal is what is held.
type Removal struct {
	// Clusters are those that would lose replicas, such as "m1 (98 to 34)", sorted.
	Clusters []string
	// Lost is how many of the baseline's Total would go.
	Lost, Total int64
	// Token names the removal, for a person who confirms it. Each confirmation is good for one removal.
	Token string
}

// Check returns what is to be remembered, and the removal that must be held; nil when everything may be carried out. What is held
// leaves the record as it is.
func Check(in In) (v1alpha1.PlacementRecord, *Removal) {
	record := v1alpha1.PlacementRecord{}
	if in.Record != nil {
		record = *in.Record.DeepCopy()
	}
	base, confirmations := in.baseline(Baseline(in.Record)), ptr.Deref(record.ConfirmedRemovals, 0)
	all, leaving := in.removal(base, in.Next, confirmations), in.leaving(base, confirmations)
	// Who confirms what leaves has not seen the shares that fall; who confirms all has seen both.
	confirmed := in.confirms(all) || in.confirms(leaving)
	switch {
	case in.exceeds(all) && !in.confirms(all):
		return record, &all
	case in.exceeds(leaving) && !confirmed:
		return record, &leaving
	}
	if confirmed {
		record.ConfirmedRemovals = ptr.To(confirmations + 1)
	}
	switch {
	case confirmed:
		base = maps.Clone(in.Next)
	case in.asksForClusters():
		base = in.renew(base)
	default:
		in.carryOver(base)
	}
	record.ClustersHash, record.DivisionHash, record.Replicas = in.Asked.Clusters, in.Asked.Division, ptr.To(in.Asked.Replicas)
	record.Clusters = rows(base, in.Next, record.Clusters)
	return record, nil
}

// exceeds tells whether a removal is more than may go without being asked for.
func (in In) exceeds(r Removal) bool { return r.Lost*100 > r.Total*int64(in.MaxPercent) }

// confirms tells whether a person has confirmed just that removal.
func (in In) confirms(r Removal) bool { return r.Token == in.Confirmation && r.Lost > 0 }

// asksForClusters tells whether the spec asks for other clusters than before.
func (in In) asksForClusters() bool {
	return in.Record == nil || in.Record.ClustersHash != in.Asked.Clusters
}

func (in In) asksForDivision() bool {
	return in.Record != nil && in.Record.DivisionHash != in.Asked.Division
}

// before is the number of replicas that was asked for when the spec was last carried out.
func (in In) before() int32 {
	if in.Record == nil {
		return in.Asked.Replicas
	}
	return ptr.Deref(in.Record.Replicas, in.Asked.Replicas)
}

// baseline is what a removal is measured by, such as what ran when the spec was last carried out, less what an edit since then asks for.
func (in In) baseline(base map[string]int32) map[string]int32 {
	switch {
	case in.Record == nil:
		maps.Copy(base, in.Runs)
	case in.asksForClusters():
		in.excuseEdit(base)
	}
	for _, name := range slices.Concat(in.FailedOver, in.Excluded) {
		delete(base, name)
	}
	if !in.asksForClusters() {
		in.excuse(base)
	}
	return base
}

// excuseEdit takes out of the baseline what a change of the placement asks for: clusters that it does not choose, and what it takes from
// those that it does. A cluster that was deselected before has not gone by the edit.
func (in In) excuseEdit(base map[string]int32) {
	deselected := map[string]bool{}
	for _, row := range in.Record.Clusters {
		leaves := row.Replicas != nil || row.Removal != ""
		deselected[row.Name] = row.DeselectedAt != nil && leaves && !slices.Contains(in.Excluded, row.Name)
	}
	for name, n := range base {
		switch {
		case slices.Contains(in.Chosen, name):
			base[name] = min(n, in.Next[name])
		case !deselected[name]:
			delete(base, name)
		}
	}
}

// renew begins a new baseline after a change of the placement. What has gone without being asked for goes on counting.
func (in In) renew(base map[string]int32) map[string]int32 {
	next := maps.Clone(in.Next)
	if next == nil {
		next = map[string]int32{}
	}
	for name, n := range base {
		if _, is := next[name]; !is && in.Record != nil {
			next[name] = n
		}
	}
	return next
}

// Baseline is what each cluster was to run when the spec was last carried out.
func Baseline(record *v1alpha1.PlacementRecord) map[string]int32 {
	return read(record, func(c v1alpha1.ClusterShare) *int32 { return c.Baseline })
}

// Decided is what each cluster is to run, as it was decided last.
func Decided(record *v1alpha1.PlacementRecord) map[string]int32 {
	return read(record, func(c v1alpha1.ClusterShare) *int32 { return c.Replicas })
}

func read(record *v1alpha1.PlacementRecord, of func(v1alpha1.ClusterShare) *int32) map[string]int32 {
	all := map[string]int32{}
	if record == nil {
		return all
	}
	for _, c := range record.Clusters {
		if n := of(c); n != nil {
			all[c.Name] = *n
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

// excuse takes out of the baseline what a change of replicas or of their division asks for. A cluster that is not chosen any more
// keeps its part: no such change asks for that.
func (in In) excuse(base map[string]int32) {
	before, now := in.before(), in.Asked.Replicas
	var falls, fewer int64
	for name, n := range base {
		switch {
		case now == 0: // nothing is asked for, of whatever clusters have joined too
			base[name] = 0
		case !slices.Contains(in.Chosen, name):
			base[name] = scaled(n, before, now)
		case in.asksForDivision():
			base[name] = min(n, in.Next[name])
		default:
			falls += int64(max(0, n-in.Next[name]))
		}
	}
	if now >= before || falls == 0 || in.asksForDivision() {
		return
	}
	fewer = int64(before - now)
	for name, n := range base {
		fall := int64(max(0, n-in.Next[name]))
		switch {
		case !slices.Contains(in.Chosen, name):
		case !in.Asked.Divided:
			base[name] = n - int32(min(fall, fewer))
		default:
			base[name] = n - int32(min(fall, fall*fewer/falls))
		}
	}
}

// scaled is the part of another number of replicas, at least 1 of any.
func scaled(n, before, now int32) int32 {
	switch {
	case before == now || n == 0:
		return n
	case now == 0 || before == 0:
		return now
	default:
		return int32(max(1, (int64(n)*int64(now)+int64(before)/2)/int64(before)))
	}
}

// leaving is what goes with whole clusters, measured by no more than what is asked for: clusters that have joined add to the baseline and
// take nothing from that of others, so that the same share of it may be most of what runs. That shares fall when lost clusters are back
// is no removal here.
func (in In) leaving(base map[string]int32, confirmed int32) Removal {
	runs, decided := maps.Clone(base), in.baseline(Decided(in.Record))
	next := map[string]int32{}
	for name, n := range runs {
		if now, is := decided[name]; is {
			n = min(n, now)
		}
		if runs[name] = n; in.Next[name] > 0 {
			next[name] = n
		}
	}
	r := in.removal(runs, next, confirmed)
	if in.Asked.Divided {
		r.Total = min(r.Total, int64(max(in.before(), in.Asked.Replicas)))
	}
	return r
}

func (in In) removal(base, after map[string]int32, confirmed int32) Removal {
	r := Removal{}
	sum := sha256.New()
	fmt.Fprintln(sum, confirmed)
	for _, name := range slices.Sorted(maps.Keys(base)) {
		n, next := base[name], after[name]
		r.Total += int64(n)
		if n <= next {
			continue
		}
		r.Lost += int64(n - next)
		what := fmt.Sprintf("%s (%d to %d)", name, n, next)
		r.Clusters = append(r.Clusters, what)
		fmt.Fprintln(sum, what)
	}
	r.Token = hex.EncodeToString(sum.Sum(nil))[:12]
	return r
}

// carryOver lets the baseline follow what is carried out: after a change of replicas or of their division it is what runs from then
// on, and clusters that joined since count from now on.
func (in In) carryOver(base map[string]int32) {
	changed := in.asksForDivision() || in.before() != in.Asked.Replicas
	for name, n := range in.Next {
		before, known := base[name]
		switch {
		case !known, before == 0: // what ran nothing counts from when it does
			base[name] = n
		case changed:
			base[name] = max(before, n)
		}
	}
}

// rows are what the status remembers of clusters.
func rows(base, decided map[string]int32, before []v1alpha1.ClusterShare) []v1alpha1.ClusterShare {
	names := map[string]bool{}
	for _, of := range []map[string]int32{base, decided} {
		for name := range of {
			names[name] = true
		}
	}
	out := make([]v1alpha1.ClusterShare, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row := v1alpha1.ClusterShare{Name: name}
		if n, is := base[name]; is {
			row.Baseline = &n
		}
		if n, is := decided[name]; is {
			row.Replicas = &n
		}
		if i := slices.IndexFunc(before, func(b v1alpha1.ClusterShare) bool { return b.Name == name }); i >= 0 {
			row.DeselectedAt = before[i].DeselectedAt
		}
		out = append(out, row)
	}
	return out
}

// String lists the first clusters of a removal.
func (r Removal) String() string {
	const most = 5
	if n := len(r.Clusters) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(r.Clusters[:most], ", "), n)
	}
	return strings.Join(r.Clusters, ", ")
}
