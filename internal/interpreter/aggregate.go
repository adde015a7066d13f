package interpreter

import (
	"cmp"
	"slices"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Aggregate combines the status of one kind over clusters, each field in its declared way. Every cluster that is to report
// has one status: decoded, nested or flat, and nil when it has not reported. One that cannot be read counts as not
// reported. The order of clusters never matters.
func (k *Kind) Aggregate(statuses []map[string]any) Fleet {
	fleet := Fleet{Clusters: len(statuses), Fields: make([]FleetField, 0, len(k.Status))}
	totals := make([]total, len(k.Status))
	for _, status := range statuses {
		values := k.reported(status)
		if values == nil {
			continue
		}
		if observed := k.observedBy(values); fleet.Reported == 0 || observed < fleet.observed {
			fleet.observed = observed
		}
		fleet.Reported++
		for i, v := range values {
			if v.set {
				totals[i].add(&k.Status[i], v)
			}
		}
	}
	for i := range totals {
		if field := &k.Status[i]; field.Combine != PerCluster {
			fleet.Fields = append(fleet.Fields, totals[i].result(field, fleet))
		}
	}
	return fleet
}

// reported are the values of one cluster's fields, with 0 for the counters that its status leaves out; nil when it has
// not reported.
func (k *Kind) reported(status map[string]any) []value {
	values := make([]value, len(k.Status))
	if status == nil || k.readStatus(status, values) != nil || !k.seen(values) {
		return nil
	}
	for i := range values {
		if !values[i].set && k.Status[i].Absent == Zero {
			values[i] = value{set: true}
		}
	}
	return values
}

// observedBy is the template's generation that a cluster has observed: the one that the member object was made from,
// when its controller has taken note of the member object's newest generation; -1 otherwise.
func (k *Kind) observedBy(values []value) int64 {
	generation, template := values[0], values[1]
	if v, declared := k.vars[fieldObservedGeneration]; declared {
		if observed := values[v.slot]; !observed.set || !generation.set || observed.i < generation.i {
			return -1
		}
	}
	return template.i
}

// total is one field over all clusters.
type total struct {
	// count is how many clusters have reported the field, yes on how many of them it holds.
	count, yes int
	sum        int64
	// least and most of the values.
	least, most value
}

func (t *total) add(field *Field, v value) {
	if isTrue(v) {
		t.yes++
	}
	t.sum += v.i
	if t.count == 0 || field.compare(v, t.least) < 0 {
		t.least = v
	}
	if t.count == 0 || field.compare(v, t.most) > 0 {
		t.most = v
	}
	t.count++
}

// isTrue of a condition's status, or a boolean.
func isTrue(v value) bool { return v.s == "True" || v.i == 1 }

// compare orders values of a field: those of Worst by its Order, what is not listed first.
func (f *Field) compare(a, b value) int {
	if f.Combine == Worst {
		if rank := cmp.Compare(slices.Index(f.Order, a.s), slices.Index(f.Order, b.s)); rank != 0 {
			return rank
		}
	}
	return cmp.Or(cmp.Compare(a.i, b.i), cmp.Compare(a.s, b.s))
}

// result is what the field comes to. The fleet's numbers of clusters are complete by then.
func (t *total) result(field *Field, fleet Fleet) FleetField {
	out := FleetField{Field: field, Clusters: t.count, Known: t.count > 0}
	var v value
	switch field.Combine {
	case Sum:
		v.i = t.sum
		out.Known = out.Known && t.sum <= maxInt
	case Any, All:
		v, out.Known = t.verdict(field, fleet)
		out.Clusters = fleet.Reported
	case Max:
		v = t.most
	case MaxAll:
		v, out.Known = t.most, t.count > 0 && t.count == fleet.Clusters
	case Equal:
		v, out.Known = t.least, t.count > 0 && t.least == t.most
	default: // Min and Worst; what is PerCluster has no result
		v = t.least
	}
	if out.Known {
		out.Number, out.Text = v.i, v.s
	}
	return out
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

// Fleet is the status of one kind over all clusters.
type Fleet struct {
	// Clusters are those that are to report, Reported those that have.
	Clusters, Reported int
	// Fields in the order of the definition; those that do not combine are left out.
	Fields []FleetField
	// observed is the oldest generation of the template among those that the clusters have observed; see Observed.
	observed int64
}

// Observed tells whether every cluster has observed that generation of the template, as Karmada's interpreters report
// it. Without clusters it is false: nothing was observed.
func (f Fleet) Observed(generation int64) bool {
	return f.Clusters > 0 && f.Reported == f.Clusters && f.observed >= generation
}

// FleetField is one field over all clusters.
type FleetField struct {
	*Field
	// Clusters is how many clusters are behind the value.
	Clusters int
	// Known is false when no cluster has reported the field, those that have do not agree (Equal), or they add up to more than
	// the field's type holds (Sum).
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
	case v.Type == TypeInt || v.Type == TypeLong || v.Type == TypeCount:
		return v.Number
	case v.Type == TypeBool:
		return v.Number == 1
	default:
		return v.Text
	}
}

// Status writes the fleet's status in the shape that the kind's own has. What is not known is left out, but for what the
// API requires (Field.Required); so are conditions that do not hold, as job controllers do, and the lengths of lists. It is
// nil when no cluster has reported.
func (f Fleet) Status() map[string]any {
	if f.Reported == 0 {
		return nil
	}
	object := map[string]any{}
	for _, field := range f.Fields {
		switch v := field.Value(); {
		case field.Type == TypeCount:
		case v == nil && field.Required && field.Type == TypeInt:
			field.Path.put(object, int64(0))
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

// Total adds up the numbers that are known, and says how many those are. The sum is nil when there are none, and when it is
// more than an int32 holds: then one of the clusters is wrong, and nobody knows which.
func Total(numbers ...*int32) (sum *int32, known int) {
	total := int64(0)
	for _, n := range numbers {
		if n != nil {
			total += int64(*n)
			known++
		}
	}
	if known == 0 || total > maxInt {
		return nil, known
	}
	return ptr(int32(total)), known
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
