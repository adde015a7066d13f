package interpreter

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Fold combines the status of one kind over clusters, each field in its declared way. It keeps every cluster's part, so
// that a change on one cluster costs what that cluster costs. The order of calls never matters. It is not safe for
// concurrent use.
type Fold struct {
	kind     *Kind
	rows     map[string]*foldRow
	reported int
	totals   []total
	// observed has the template's generation that each cluster has observed; see Observed.
	observed bag
	intern   map[string]string
	scratch  []value
	// free are rows not in use yet: they are made in chunks.
	free []foldRow
}

type foldRow struct {
	values   []value
	reported bool
}

// total is one field over all clusters.
type total struct {
	sum   int64
	count int
	yes   int
	bag   bag
}

// NewFold returns a Fold without clusters.
func NewFold(kind *Kind) *Fold {
	return &Fold{
		kind: kind, rows: map[string]*foldRow{}, totals: make([]total, len(kind.Status)),
		intern: map[string]string{"True": "True", "False": "False"}, scratch: make([]value, len(kind.Status)),
	}
}

// PutRaw takes the status of a cluster as raw JSON, in place of what it said before. A status that cannot be read makes
// the cluster one that has not reported, and is an error.
func (f *Fold) PutRaw(cluster string, raw []byte) error {
	if len(raw) == 0 || string(raw) == "null" {
		f.Miss(cluster)
		return nil
	}
	clear(f.scratch)
	if err := f.kind.scan.scan(raw, f.scratch, f.intern); err != nil {
		f.Miss(cluster)
		return fmt.Errorf("cluster %s: %w", cluster, err)
	}
	f.put(cluster, f.scratch)
	return nil
}

// Put is PutRaw for a status that is decoded, nested or flat.
func (f *Fold) Put(cluster string, status map[string]any) error {
	if status == nil {
		f.Miss(cluster)
		return nil
	}
	clear(f.scratch)
	if err := f.kind.readStatus(status, f.scratch); err != nil {
		f.Miss(cluster)
		return fmt.Errorf("cluster %s: %w", cluster, err)
	}
	f.put(cluster, f.scratch)
	return nil
}

// Miss says that a cluster is to report and has not.
func (f *Fold) Miss(cluster string) { f.replace(f.row(cluster), nil) }

// Remove forgets a cluster.
func (f *Fold) Remove(cluster string) {
	if row, known := f.rows[cluster]; known {
		f.replace(row, nil)
		delete(f.rows, cluster)
	}
}

func (f *Fold) row(cluster string) *foldRow {
	row, known := f.rows[cluster]
	if !known {
		if len(f.free) == 0 {
			f.grow()
		}
		row, f.free = &f.free[0], f.free[1:]
		f.rows[cluster] = row
	}
	return row
}

// grow makes rows, twice as many as there are.
func (f *Fold) grow() {
	n, fields := min(max(8, len(f.rows)), 512), len(f.kind.Status)
	values := make([]value, n*fields)
	f.free = make([]foldRow, n)
	for i := range f.free {
		f.free[i].values = values[i*fields : (i+1)*fields : (i+1)*fields]
	}
}

func (f *Fold) put(cluster string, values []value) {
	row := f.row(cluster)
	if !f.kind.seen(values) {
		f.replace(row, nil)
		return
	}
	for i := range values {
		if !values[i].set && f.kind.Status[i].Absent == Zero {
			values[i] = value{set: true}
		}
	}
	f.replace(row, values)
}

// replace exchanges what a cluster contributes. nil is nothing.
func (f *Fold) replace(row *foldRow, values []value) {
	if row.reported {
		f.observed.remove(f.observedBy(row.values))
		f.reported--
	}
	for i := range f.totals {
		var after value
		if values != nil {
			after = values[i]
		}
		if before := row.values[i]; before != after {
			field, t := &f.kind.Status[i], &f.totals[i]
			if before.set {
				t.take(field, before)
			}
			if after.set {
				t.give(field, after)
			}
			row.values[i] = after
		}
	}
	row.reported = values != nil
	if row.reported {
		f.observed.add(f.observedBy(row.values))
		f.reported++
	}
}

// observedBy is the template's generation that a cluster has observed: the one that the member object was made from,
// when its controller has taken note of the member object's newest generation; -1 otherwise.
func (f *Fold) observedBy(values []value) value {
	generation, template := values[0], values[1]
	if v, declared := f.kind.vars[fieldObservedGeneration]; declared {
		if observed := values[v.slot]; !observed.set || !generation.set || observed.i < generation.i {
			return value{i: -1, set: true}
		}
	}
	return value{i: template.i, set: true}
}

// Observed tells whether every cluster has observed that generation of the template, as Karmada's interpreters report
// it. Without clusters it is false: nothing was observed.
func (f *Fold) Observed(generation int64) bool {
	return len(f.rows) > 0 && f.reported == len(f.rows) && f.observed.entries[0].v.i >= generation
}

func (t *total) give(field *Field, v value) {
	t.count++
	switch field.Combine {
	case Sum:
		t.sum += v.i
	case Any, All:
		if isTrue(v) {
			t.yes++
		}
	case Worst:
		t.bag.add(ranked(field, v))
	case Min, Max, MaxAll, Equal:
		t.bag.add(v)
	case PerCluster:
	}
}

func (t *total) take(field *Field, v value) {
	t.count--
	switch field.Combine {
	case Sum:
		t.sum -= v.i
	case Any, All:
		if isTrue(v) {
			t.yes--
		}
	case Worst:
		t.bag.remove(ranked(field, v))
	case Min, Max, MaxAll, Equal:
		t.bag.remove(v)
	case PerCluster:
	}
}

// isTrue of a condition's status, or a boolean.
func isTrue(v value) bool { return v.s == "True" || v.i == 1 }

// ranked puts the rank of a value into its number.
func ranked(field *Field, v value) value {
	v.i = int64(slices.Index(field.Order, v.s) + 1)
	return v
}

// Fleet is the status of one kind over all clusters.
type Fleet struct {
	// Clusters are those that are to report, Reported those that have.
	Clusters, Reported int
	// Fields in the order of the definition; those that do not combine are left out.
	Fields []FleetField
}

// FleetField is one field over all clusters.
type FleetField struct {
	*Field
	// Clusters is how many clusters are behind the value.
	Clusters int
	// Known is false when no cluster has reported the field, or those that have do not agree (Equal).
	Known bool
	// Number is the value of numbers, Text of all else.
	Number int64
	Text   string
}

// Value is int64, string or bool; nil when it is not known.
func (v FleetField) Value() any {
	switch {
	case !v.Known:
		return nil
	case v.Type == TypeInt || v.Type == TypeLong:
		return v.Number
	case v.Type == TypeBool:
		return v.Number == 1
	default:
		return v.Text
	}
}

// Fleet returns the status as it is now.
func (f *Fold) Fleet() Fleet {
	fleet := Fleet{Clusters: len(f.rows), Reported: f.reported, Fields: make([]FleetField, 0, len(f.totals))}
	for i := range f.totals {
		field, t := &f.kind.Status[i], &f.totals[i]
		if field.Combine == PerCluster {
			continue
		}
		out := FleetField{Field: field, Clusters: t.count, Known: t.count > 0}
		var v value
		switch field.Combine {
		case Sum:
			v.i = t.sum
		case Any, All:
			v, out.Known = t.verdict(field, fleet)
			out.Clusters = fleet.Reported
		case Min, Worst:
			v = t.bag.first()
		case Max:
			v = t.bag.last()
		case MaxAll:
			v, out.Known = t.bag.last(), t.count > 0 && t.count == fleet.Clusters
		case Equal:
			v, out.Known = t.bag.first(), len(t.bag.entries) == 1
		case PerCluster:
		}
		if out.Known {
			out.Number, out.Text = v.i, v.s
		}
		fleet.Fields = append(fleet.Fields, out)
	}
	return fleet
}

// verdict of Any and All. A cluster that has reported without the condition has it not; one that has not reported
// leaves open what the others do not decide.
func (t *total) verdict(field *Field, fleet Fleet) (value, bool) {
	complete := fleet.Clusters > 0 && fleet.Reported == fleet.Clusters
	switch {
	case field.Combine == Any && t.yes > 0, field.Combine == All && complete && t.yes == fleet.Clusters:
		return value{s: "True", i: 1}, true
	case field.Combine == Any && complete, field.Combine == All && t.yes < fleet.Reported:
		return value{s: "False"}, true
	default:
		return value{}, false
	}
}

// Status writes the fleet's status in the shape that the kind's own has. What is not known is left out, but for strings
// that the CRD requires, which are empty then; so are conditions that do not hold, as job controllers do. It is nil when
// no cluster has reported.
func (f Fleet) Status() map[string]any {
	if f.Reported == 0 {
		return nil
	}
	object := map[string]any{}
	for _, field := range f.Fields {
		switch v := field.Value(); {
		case v == nil && field.Required:
			field.Path.put(object, "")
		case v == nil || (v == "False" && (field.Combine == Any || field.Combine == All)):
		default:
			field.Path.put(object, v)
		}
	}
	status, _ := object["status"].(map[string]any)
	return status
}

// bag is a sorted multiset. Distinct values are few: revisions, phases, generations.
type bag struct{ entries []bagEntry }

type bagEntry struct {
	v value
	n int
}

func compareValues(e bagEntry, v value) int {
	return cmp.Or(cmp.Compare(e.v.i, v.i), cmp.Compare(e.v.s, v.s))
}

func (b *bag) add(v value) {
	i, found := slices.BinarySearchFunc(b.entries, v, compareValues)
	if found {
		b.entries[i].n++
		return
	}
	b.entries = slices.Insert(b.entries, i, bagEntry{v, 1})
}

func (b *bag) remove(v value) {
	i, found := slices.BinarySearchFunc(b.entries, v, compareValues)
	if !found {
		return
	}
	if b.entries[i].n--; b.entries[i].n == 0 {
		b.entries = slices.Delete(b.entries, i, i+1)
	}
}

func (b *bag) first() value {
	if len(b.entries) == 0 {
		return value{}
	}
	return b.entries[0].v
}

func (b *bag) last() value {
	if len(b.entries) == 0 {
		return value{}
	}
	return b.entries[len(b.entries)-1].v
}

// worstFirst orders health: what is decided badly, then what is not known, then what is on its way.
var worstFirst = []v1alpha1.Health{
	v1alpha1.HealthDegraded, v1alpha1.HealthUnknown, v1alpha1.HealthProgressing, v1alpha1.HealthSuspended, v1alpha1.HealthHealthy,
}

// WorstHealth is the health of a fleet. Without clusters it is Unknown: nothing says that all is well.
func WorstHealth(healths ...v1alpha1.Health) v1alpha1.Health {
	if len(healths) == 0 {
		return v1alpha1.HealthUnknown
	}
	worst := len(worstFirst) - 1
	for _, h := range healths {
		rank := slices.Index(worstFirst, h)
		if rank < 0 {
			rank = slices.Index(worstFirst, v1alpha1.HealthUnknown)
		}
		worst = min(worst, rank)
	}
	return worstFirst[worst]
}
