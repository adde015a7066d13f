// Package interpreter gives one meaning to every workload kind: where replicas and the pod template are, which status
// fields matter, and what they say about health. Kinds are data (Definition); kinds of the operator's configuration are
// data too (Description). It is pure: no client, no clock.
package interpreter

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// nameDesired is the input that Report.Desired overrules.
const nameDesired = "desired"

// Kind is what we know about one workload kind, ready for use. It is immutable and safe for concurrent use.
type Kind struct {
	Definition

	vars     variables
	observes bool
	counts   [7]*Expr

	// described is set for kinds of the configuration, generic for kinds nobody described.
	described *described
	generic   genericMode
	// extras are read outside the fields of the status.
	extras []Extra
	// evidence and knownToKstatus are a generic kind's.
	evidence       [][]Path
	knownToKstatus bool
}

// Report is what one cluster says about the workload.
type Report struct {
	// Manifest is the target manifest, or the live object; nil when it is not known.
	Manifest *unstructured.Unstructured
	// Desired is how many replicas were asked of the cluster; nil when not known.
	Desired *int32
	// Status is the object's status, or as much of it as was fed back: nested as the object has it, or flat under the
	// names of Feedback. metadata.generation is in it as generation. nil when nothing was reported.
	Status map[string]any
	// Budget is what rules on all clusters may cost together; nil when this is the only one.
	Budget *Budget
}

// State is a workload's state on one cluster, the same for every kind. Numbers are nil when the kind has none, or the
// cluster has not reported them.
type State struct {
	Desired, Replicas, Ready, Updated, Available *int32
	// Progress is how far the workload has come; nil when its kind does not tell.
	Progress *Progress
	// UpToDate is true when every pod that is wanted is of the newest revision. It is false under a partition, and nil when
	// the kind does not count such pods, or has not reported them.
	UpToDate *bool

	Health v1alpha1.Health
	Reason Reason
	// Message says why, for a person. It does not change while the report does not.
	Message string
}

// Progress is how far a workload has come.
type Progress struct{ Done, Total int32 }

// GVK is the kind's name.
func (k *Kind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Definition.Kind}
}

// Known is true for kinds with rules: built in, or described in the configuration.
func (k *Kind) Known() bool { return k.generic == genericNone }

// BuiltIn is true for kinds whose rules are data here: neither CEL of the configuration nor kstatus.
func (k *Kind) BuiltIn() bool { return k.described == nil && k.generic == genericNone }

// Extra is a scalar that the rules of a described kind, or kstatus, read outside the fields of the status.
type Extra struct {
	// Name under which a report has it.
	Name string
	Path Path
}

// Extras are those of the kind; built-in ones have none.
func (k *Kind) Extras() []Extra { return k.extras }

// ReplicasPath leads to the number of replicas; empty for kinds without.
func (k *Kind) ReplicasPath() []string { return split(k.Replicas) }

// SelectorPath leads to the pods' label selector; empty for kinds without.
func (k *Kind) SelectorPath() []string { return split(k.Selector) }

// SelfRemovalPaths lead to the fields by which an object has its cluster remove it once it has finished; nil for kinds without.
func (k *Kind) SelfRemovalPaths() [][]string {
	var paths [][]string
	for _, text := range k.SelfRemovals {
		paths = append(paths, split(text))
	}
	return paths
}

// PodTemplatePath leads to the pod template of the manifest; nil for kinds without, and for manifests without. A
// UnitedDeployment has one of four, a cron job's is nested.
func (k *Kind) PodTemplatePath(manifest *unstructured.Unstructured) []string {
	for _, text := range k.PodTemplates {
		path := split(text)
		if v, found, err := unstructured.NestedFieldNoCopy(manifest.Object, path...); err == nil && found && v != nil {
			return path
		}
	}
	if len(k.PodTemplates) == 1 {
		return split(k.PodTemplates[0])
	}
	return nil
}

// RestartPath leads to the pod template of a manifest by an annotation of which its pods are made anew. The error says why they are not.
func (k *Kind) RestartPath(manifest *unstructured.Unstructured) ([]string, error) {
	name := k.GVK().GroupVersion().String() + " " + k.Definition.Kind
	path := k.PodTemplatePath(manifest)
	switch {
	case k.NoRestart != "":
		return nil, fmt.Errorf("%s cannot be restarted: %s", k.Definition.Kind, k.NoRestart)
	case path != nil:
		return path, k.inPlace(manifest)
	case len(k.PodTemplates) > 0:
		return nil, fmt.Errorf("the %s has no pod template: none of %s is there", k.Definition.Kind, strings.Join(k.PodTemplates, ", "))
	case k.described != nil:
		return nil, fmt.Errorf("where %s has its pod template is not said: its description in the operator's configuration lacks podTemplatePath", name)
	default:
		return nil, fmt.Errorf("where %s has its pod template is not known: it is not built in, nor described under kinds in the operator's configuration", name)
	}
}

// inPlace refuses what would only write an annotation into running pods (OpenKruise, pkg/util/inplaceupdate/inplace_update_defaults.go).
func (k *Kind) inPlace(manifest *unstructured.Unstructured) error {
	for _, field := range k.InPlace {
		value, _, err := unstructured.NestedString(manifest.Object, split(field.Path)...)
		if err == nil && strings.HasPrefix(value, "InPlace") {
			return fmt.Errorf("%s %q: running pods would get the annotation, and none would be made anew; set it to %s, which by itself changes no pod",
				field.Path, value, field.Instead)
		}
	}
	return nil
}

func split(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, ".")
}

// Feedback are the fields of the object that State reads, all of them scalars.
func (k *Kind) Feedback() []backends.FeedbackField {
	fields := make([]backends.FeedbackField, 0, len(k.Status))
	for _, f := range k.Status {
		if f.Name != fieldTemplateGeneration && f.Type != TypeCount {
			fields = append(fields, feedback(f))
		}
	}
	for _, e := range k.extras {
		fields = append(fields, backends.FeedbackField{Name: e.Name, Path: e.Path.JSONPath()})
	}
	return fields
}

// ReportOf makes the report that a live object is of itself.
func ReportOf(object *unstructured.Unstructured) Report {
	report := Report{Manifest: object}
	status, ok := object.Object["status"].(map[string]any)
	if !ok && object.Object["status"] != nil {
		// Not absence: reading it will say what is wrong.
		return Report{Manifest: object, Status: map[string]any{malformedStatus: shape(object.Object["status"])}}
	}
	report.Status = make(map[string]any, len(status)+1)
	for name, v := range status {
		report.Status[name] = v
	}
	if g, found, err := unstructured.NestedFieldNoCopy(object.Object, "metadata", "generation"); err == nil && found {
		report.Status[fieldGeneration] = g
	}
	return report
}

// malformedStatus marks a status that is no object. No API has a field of this name.
const malformedStatus = "fleetworkload.io/malformed"

// State interprets a report. It never fails to give a State: what cannot be read is Unknown, says why, and comes with
// the error.
func (k *Kind) State(report Report) (State, error) {
	var env [maxSlots]value
	if report.Status == nil {
		s := State{Health: v1alpha1.HealthUnknown, Reason: ReasonWaitingForStatus, Message: "no report from the cluster yet"}
		var err error
		if k.readSpec(report, &env) == nil { // what is wrong with the manifest is told once there is a report
			err = k.count(&s, &env)
		}
		return s, err
	}
	if err := k.read(report, &env); err != nil {
		return malformed(err)
	}
	switch {
	case k.described != nil:
		return k.described.state(k, report, &env)
	case k.generic != genericNone:
		return k.genericState(report, &env)
	default:
		return k.evaluate(&env)
	}
}

func malformed(err error) (State, error) {
	return State{Health: v1alpha1.HealthUnknown, Reason: ReasonMalformed, Message: err.Error()}, err
}

// read fills the variables from a report.
func (k *Kind) read(report Report, env *[maxSlots]value) error {
	if err := k.readStatus(report.Status, env[:len(k.Status)]); err != nil {
		return err
	}
	if err := k.readSpec(report, env); err != nil {
		return err
	}
	seen := k.seen(env[:len(k.Status)])
	env[k.vars["seen"].slot] = truth(seen)
	for i := range k.Status {
		if seen && k.Status[i].Absent == Zero && !env[i].set {
			env[i] = value{set: true}
		}
	}
	return nil
}

// seen is true when the report has any field of the status that we know: its controller has looked at the object. The
// generations, which come first, are no evidence of that, unless the kind does without a status; nor are lists, which not
// every backend returns.
func (k *Kind) seen(status []value) bool {
	for i, v := range status {
		if v.set && k.Status[i].Type != TypeCount && (k.StatusOptional || i >= generations) {
			return true
		}
	}
	return false
}

// readStatus reads a status that is nested as the object has it, or flat under the names of fields; a flat value counts
// before a nested one.
func (k *Kind) readStatus(status map[string]any, into []value) error {
	if wrong, found := status[malformedStatus]; found {
		return fmt.Errorf("status: want an object, got %v", wrong)
	}
	for i, f := range k.Status {
		var v value
		if f.At != f.Name {
			raw, err := f.Path[1:].lookup(status)
			if err != nil {
				return fmt.Errorf("status.%w", err)
			}
			if v, err = convert(raw, f.Type); err != nil {
				return fmt.Errorf("status.%s: %w", f.At, err)
			}
		}
		if raw := status[f.Name]; raw != nil {
			var err error
			if v, err = convert(raw, f.Type); err != nil {
				return fmt.Errorf("status.%s: %w", f.Name, err)
			}
		}
		into[i] = v
	}
	return nil
}

func (k *Kind) readSpec(report Report, env *[maxSlots]value) error {
	desired := report.Desired
	for i, in := range k.Spec {
		slot := len(k.Status) + i
		if in.Name == nameDesired && desired != nil {
			if *desired < 0 {
				return fmt.Errorf("%d replicas were asked for", *desired)
			}
			env[slot] = value{i: int64(*desired), set: true}
			continue
		}
		if report.Manifest == nil {
			continue
		}
		var known value
		if d, declared := k.vars[nameDesired]; declared {
			known = env[d.slot]
		}
		v, err := in.read(report.Manifest.Object, known)
		if err != nil {
			return err
		}
		env[slot] = v
	}
	return nil
}

func (in *Input) read(manifest map[string]any, desired value) (value, error) {
	if in.At != "" {
		raw, err := in.Path.lookup(manifest)
		if err != nil {
			return value{}, err
		}
		v, err := convert(raw, in.Type)
		if err != nil {
			return value{}, fmt.Errorf("%s: %w", in.At, err)
		}
		if v.set {
			return v, nil
		}
	}
	if in.Derive != "" {
		return derivations[in.Derive](manifest, desired)
	}
	if in.Default != nil {
		return value{i: *in.Default, set: true}, nil
	}
	return value{}, nil
}

// convert types a JSON value. null is absence.
func convert(raw any, t Type) (value, error) {
	if raw == nil {
		return value{}, nil
	}
	switch t {
	case TypeBool:
		if b, ok := raw.(bool); ok {
			return truth(b), nil
		}
		return value{}, fmt.Errorf("want a boolean, got %s", shape(raw))
	case TypeString:
		if s, ok := raw.(string); ok {
			return value{s: s, set: true}, nil
		}
		return value{}, fmt.Errorf("want a string, got %s", shape(raw))
	case TypeObject:
		if o, ok := raw.(map[string]any); ok {
			return value{set: len(o) > 0}, nil
		}
		return value{}, fmt.Errorf("want an object, got %s", shape(raw))
	case TypePartition:
		if s, ok := raw.(string); ok {
			if s == "" {
				return value{}, errors.New("want a number or a percentage, got an empty string")
			}
			return value{s: s, set: true}, nil
		}
		n, err := whole(raw, -maxInt, maxInt)
		return value{i: n, set: err == nil}, err
	case TypeCount:
		if list, isList := raw.([]any); isList {
			return value{i: int64(len(list)), set: true}, nil
		}
		n, err := whole(raw, 0, maxInt)
		return value{i: n, set: err == nil}, err
	case TypeLong:
		n, err := whole(raw, 0, maxLong)
		return value{i: n, set: err == nil}, err
	default:
		n, err := whole(raw, 0, maxInt)
		return value{i: n, set: err == nil}, err
	}
}

// whole reads a whole number. Decoders give int64 or float64, for the same JSON.
func whole(raw any, least, most int64) (int64, error) {
	var n int64
	switch v := raw.(type) {
	case int64:
		n = v
	case int32:
		n = int64(v)
	case int:
		n = int64(v)
	case float64:
		if v != math.Trunc(v) || v < float64(least) || v > float64(most) {
			return 0, fmt.Errorf("%v is not a whole number from %d to %d", v, least, most)
		}
		n = int64(v)
	default:
		return 0, fmt.Errorf("want a number, got %s", shape(raw))
	}
	if n < least || n > most {
		return 0, fmt.Errorf("%d is not from %d to %d", n, least, most)
	}
	return n, nil
}

// evaluate computes the lets, then takes the first rule that holds.
func (k *Kind) evaluate(env *[maxSlots]value) (State, error) {
	base := len(k.Status) + len(k.Spec) + 1
	for i := range k.Lets {
		v, err := k.Lets[i].Compiled.eval(env[:])
		if err != nil {
			return malformed(err)
		}
		env[base+i] = v
	}
	for i := range k.Rules {
		r := &k.Rules[i]
		if r.Compiled != nil {
			holds, err := r.Compiled.holds(env[:])
			if err != nil {
				return malformed(err)
			}
			if !holds {
				continue
			}
		}
		s := State{Health: r.Health, Reason: r.Reason, Message: render(r.message, env[:])}
		return s, k.count(&s, env)
	}
	return malformed(errors.New("no rule holds"))
}

// count fills in the numbers. What rests on a number that is not known stays absent.
func (k *Kind) count(s *State, env *[maxSlots]value) error {
	numbers := [len(k.counts)]*int32{}
	for i, e := range k.counts {
		if e == nil {
			continue
		}
		v, err := e.eval(env[:])
		if err != nil {
			return err
		}
		if v.set {
			numbers[i] = clamped(v.i)
		}
	}
	s.Desired, s.Replicas, s.Ready, s.Updated, s.Available = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
	if done, total := numbers[5], numbers[6]; done != nil && total != nil {
		s.Progress = &Progress{Done: min(*done, *total), Total: *total}
	}
	if s.Updated != nil && s.Desired != nil {
		s.UpToDate = ptr(*s.Updated >= *s.Desired && s.Reason != ReasonNotObserved && s.Reason != ReasonWaitingForStatus)
	}
	return nil
}

func clamped(n int64) *int32 {
	c := int32(min(max(n, 0), maxInt))
	return &c
}

func render(parts []part, env []value) string {
	switch len(parts) {
	case 0:
		return ""
	case 1:
		if parts[0].slot < 0 {
			return parts[0].text
		}
	}
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.slot < 0:
			b.WriteString(p.text)
		case !env[p.slot].set:
			b.WriteString("?")
		case p.text == string(TypeString):
			b.WriteString(shorten(env[p.slot].s))
		default:
			b.WriteString(strconv.FormatInt(env[p.slot].i, 10))
		}
	}
	return b.String()
}

// FieldValue is one status field of one cluster.
type FieldValue struct {
	Field
	// Value is int64, string or bool; nil when it was not reported.
	Value any
}

// Fields reads the status fields of a report, in the order of the definition. A counter that a status leaves out is 0.
func (k *Kind) Fields(report Report) ([]FieldValue, error) {
	values := make([]value, len(k.Status))
	if err := k.readStatus(report.Status, values); err != nil {
		return nil, err
	}
	looked := k.seen(values)
	fields := make([]FieldValue, 0, len(values))
	for i, f := range k.Status {
		v := FieldValue{Field: f}
		if values[i].set || (looked && f.Absent == Zero) {
			v.Value = plain(values[i], f.Type)
		}
		fields = append(fields, v)
	}
	return fields, nil
}

// Replicas reads the number of replicas; ok is false when the manifest does not say.
func Replicas(kind *Kind, manifest *unstructured.Unstructured) (n int32, ok bool, err error) {
	path := kind.ReplicasPath()
	if len(path) == 0 {
		return 0, false, nil
	}
	v, found, err := unstructured.NestedFieldNoCopy(manifest.Object, path...)
	if err != nil || !found {
		return 0, false, err
	}
	i, isInt := v.(int64)
	if !isInt || i < 0 || i > 1_000_000 {
		return 0, false, fmt.Errorf("replicas must be a whole number from 0 to 1000000, not %s", text(v))
	}
	return int32(i), true, nil
}

// text shows a value in a message, bounded.
func text(v any) string { return shorten(fmt.Sprint(v)) }

// DefaultReplicas is what a manifest means that does not say how many replicas. A UnitedDeployment has no default; when
// all its subsets have numbers, it means their sum.
func DefaultReplicas(kind *Kind, manifest *unstructured.Unstructured) (int32, error) {
	for _, in := range kind.Spec {
		if in.Name == nameDesired && in.Default != nil {
			return int32(*in.Default), nil
		}
	}
	if n, err := unitedReplicas(manifest.Object, value{}); err == nil && n.set {
		return int32(n.i), nil
	}
	return 0, fmt.Errorf("%s has no default number of replicas", kind.Definition.Kind)
}

// SetReplicas writes the number of replicas into the manifest. Kinds without replicas are left alone.
func SetReplicas(kind *Kind, manifest *unstructured.Unstructured, n int32) error {
	if len(kind.ReplicasPath()) == 0 {
		return nil
	}
	if kind.CheckReplicas != nil {
		if err := kind.CheckReplicas(manifest.Object, n); err != nil {
			return err
		}
	}
	return unstructured.SetNestedField(manifest.Object, int64(n), kind.ReplicasPath()...)
}

// Selector returns the pods' label selector as a string, or "" when the manifest has none.
func Selector(kind *Kind, manifest *unstructured.Unstructured) string {
	if len(kind.SelectorPath()) == 0 {
		return ""
	}
	raw, found, err := unstructured.NestedMap(manifest.Object, kind.SelectorPath()...)
	if err != nil || !found {
		return ""
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return ""
	}
	return metav1.FormatLabelSelector(&selector)
}
