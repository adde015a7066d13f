package main

import (
	"fmt"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// aggregate is what all objects come to. Health is the worst. The rest is for objects of one workload only: what
// different workloads add up to means nothing.
type aggregate struct {
	// Objects is how many were given, Healthy how many of them are, Workloads how many different ones they are of.
	Objects   int                `json:"objects"`
	Healthy   int                `json:"healthy"`
	Workloads int                `json:"workloads"`
	Health    v1alpha1.Health    `json:"health"`
	Reason    interpreter.Reason `json:"reason"`
	Message   string             `json:"message"`
	Replicas  *replicas          `json:"replicas,omitempty"`
	// Behind is how many objects told the number of Replicas.
	Behind *behind `json:"behind,omitempty"`
	// UpToDate is false when it is of any object, and null when that is not known of some.
	UpToDate *bool        `json:"upToDate"`
	Fields   []fleetField `json:"fields"`
}

// behind counts the objects behind each number of replicas.
type behind struct {
	Desired   int `json:"desired"`
	Current   int `json:"current"`
	Ready     int `json:"ready"`
	Updated   int `json:"updated"`
	Available int `json:"available"`
}

// fleetField is one status field over all objects.
type fleetField struct {
	field
	Combine interpreter.Combine `json:"combine"`
	// Objects is how many are behind the value.
	Objects int `json:"objects"`
}

// aggregateOf combines the objects; items are what was made of each, in the same order.
func aggregateOf(kinds *interpreter.Registry, objects []sourced, items []item) aggregate {
	a := aggregate{Objects: len(items), UpToDate: allUpToDate(items), Fields: []fleetField{}}
	workloads := map[string]bool{}
	healths := make([]v1alpha1.Health, 0, len(items))
	for _, i := range items {
		workloads[i.APIVersion+" "+i.title()] = true
		healths = append(healths, i.Health)
		if i.Health == v1alpha1.HealthHealthy {
			a.Healthy++
		}
	}
	a.Workloads = len(workloads)
	a.Health = interpreter.WorstHealth(healths...)
	a.explain(items)
	if a.Workloads == 1 {
		a.add(items)
		a.combine(kinds.For(objects[0].object.GroupVersionKind()), objects)
	}
	return a
}

// allUpToDate is true or false as far as the objects decide it, and nil else.
func allUpToDate(items []item) *bool {
	all := true
	known := len(items) > 0
	for _, i := range items {
		known = known && i.UpToDate != nil
		all = all && (i.UpToDate == nil || *i.UpToDate)
	}
	if all && !known {
		return nil
	}
	return &all
}

// explain gives the reason of the first object that is as bad as the whole.
func (a *aggregate) explain(items []item) {
	for _, i := range items {
		if i.Health != a.Health {
			continue
		}
		a.Reason, a.Message = i.Reason, i.Message
		if a.Objects > 1 {
			a.Message = fmt.Sprintf("%d of %d healthy", a.Healthy, a.Objects)
		}
		if a.Objects > 1 && i.Message != "" && a.Health != v1alpha1.HealthHealthy {
			a.Message += "; " + i.Source + ": " + i.Message
		}
		return
	}
}

// unread says that there was more than could be read: who knows how that is.
func (a *aggregate) unread() {
	if a.UpToDate != nil && *a.UpToDate {
		a.UpToDate = nil
	}
	if worst := interpreter.WorstHealth(a.Health, v1alpha1.HealthUnknown); worst != a.Health {
		a.Health, a.Reason = worst, interpreter.ReasonMalformed
		a.Message = fmt.Sprintf("%d of %d healthy, and there is more that could not be read", a.Healthy, a.Objects)
	}
}

// add sums the numbers that are known, and counts them.
func (a *aggregate) add(items []item) {
	total := func(number func(replicas) *int32) (*int32, int) {
		numbers := make([]*int32, 0, len(items))
		for _, i := range items {
			numbers = append(numbers, number(i.Replicas))
		}
		return interpreter.Total(numbers...)
	}
	a.Replicas, a.Behind = &replicas{}, &behind{}
	a.Replicas.Desired, a.Behind.Desired = total(func(r replicas) *int32 { return r.Desired })
	a.Replicas.Current, a.Behind.Current = total(func(r replicas) *int32 { return r.Current })
	a.Replicas.Ready, a.Behind.Ready = total(func(r replicas) *int32 { return r.Ready })
	a.Replicas.Updated, a.Behind.Updated = total(func(r replicas) *int32 { return r.Updated })
	a.Replicas.Available, a.Behind.Available = total(func(r replicas) *int32 { return r.Available })
}

// combine combines the status fields, each in its kind's way.
func (a *aggregate) combine(kind *interpreter.Kind, objects []sourced) {
	statuses := make([]map[string]any, 0, len(objects))
	for _, o := range objects {
		// One that cannot be read counts as not reported; interpret has told it already.
		statuses = append(statuses, interpreter.ReportOf(o.object).Status)
	}
	for _, f := range kind.Aggregate(statuses).Fields {
		a.Fields = append(a.Fields, fleetField{field: field{Name: f.Name, Value: f.Value()}, Combine: f.Combine, Objects: f.Clusters})
	}
}
