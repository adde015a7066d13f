package interpreter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Definition is what we know about one workload kind, as data. The Go evaluator here, OCM's feedback rules, the Lua for
// Karmada and docs/health.md all come from it, so that they cannot say different things.
type Definition struct {
	Group, Version, Kind string
	// Resource is the plural of the kind.
	Resource string
	// StatusOptional is true for kinds whose controller may leave the status empty for good: a CronJob that was never due.
	StatusOptional bool
	// ClusterScoped is true for kinds without a namespace.
	ClusterScoped bool
	// GenerationTells is true for kinds whose generation moves only when somebody writes their spec, or their annotations: a status is
	// written apart, and no controller of the cluster writes the spec by itself.
	GenerationTells bool

	// Replicas leads to the number of replicas; empty for kinds without. The parallelism of jobs is not replicas: it is
	// a cap, and dividing it over clusters would run the whole job on each of them, slower.
	Replicas string
	// PodTemplates lead to the pod template: the first one that a manifest has. Empty for kinds without.
	PodTemplates []string
	// NoRestart says why another pod template makes no pods anew; empty for kinds where it does.
	NoRestart string
	// InPlace are fields by which running pods get new labels and annotations, and are not made anew for them; empty for kinds without.
	InPlace []InPlace
	// Selector leads to the pods' label selector; empty for kinds without.
	Selector string
	// SelfRemovals lead to the fields by which an object has its cluster remove it once it has finished; empty for kinds without. They
	// are never sent: a backend makes an object that is missing anew, and it would run again.
	SelfRemovals []string

	// Status are the status fields that we read; their paths start below .status.
	Status []Field
	// Spec are the inputs that we read from the manifest; their paths start at its root.
	Spec []Input
	// Lets are named expressions, in order; each may use those before it.
	Lets []Let
	// Rules decide on health; the first that holds counts. The last one has no condition.
	Rules []Rule
	// Counts are expressions for the numbers of a State; those left out stay unknown.
	Counts Counts
	// Partition is nil for kinds without.
	Partition *Partition
	// CheckReplicas refuses numbers of replicas that the manifest does not allow; nil when it allows all.
	CheckReplicas func(manifest map[string]any, n int32) error
	// Dependencies finds what the kind refers to beside its pod template; nil when nothing.
	Dependencies func(manifest map[string]any, found *references) error
}

// InPlace is a field that keeps pods when its value begins with InPlace.
type InPlace struct {
	Path string
	// Instead is the value by which pods are made anew.
	Instead string
}

// Combine is how a status field combines over clusters.
type Combine string

const (
	// Sum adds up.
	Sum Combine = "sum"
	// Min is the least; of times the earliest.
	Min Combine = "min"
	// Max is the greatest; of times the latest.
	Max Combine = "max"
	// MaxAll is the greatest, once every cluster has one: when all have ended, the last end.
	MaxAll Combine = "maxAll"
	// Equal is the value when all clusters that reported agree, and nothing otherwise.
	Equal Combine = "equal"
	// Any is True when it is True on one cluster at least.
	Any Combine = "any"
	// All is True when it is True on all clusters that are to report.
	All Combine = "all"
	// Worst is the one that stands first in the field's Order.
	Worst Combine = "worst"
	// PerCluster does not combine: the value means something on its own cluster only.
	PerCluster Combine = "perCluster"
)

// Absence is what it means that a field is not there although the status was reported.
type Absence string

const (
	// Zero is for counters that the API type omits when they are 0 (omitempty), and for nothing else: of a status that
	// was reported, their absence is 0.
	Zero Absence = "zero"
	// Unreported is for all else: absence says nothing.
	Unreported Absence = "unreported"
)

// Field is a scalar of .status.
type Field struct {
	// Name is the variable in rules, the name of OCM's feedback value, and the key under which a flat status has it.
	Name string
	// At leads to it below .status. When empty, it is Name.
	At   string
	Type Type
	// Combine is how it combines over clusters. When empty: PerCluster.
	Combine Combine
	// Absent is what absence means. When empty: Zero for TypeInt, Unreported for the rest.
	Absent Absence
	// Order of values for Worst, the worst first. A value that is not listed is worse than all.
	Order []string
	// Required is true for what API types never leave out, so that a status cannot be written without: "" and 0 stand there
	// then. In one that was read, absence is Unreported all the same: it is only a part of a status.
	Required bool

	// Path is from the object's root. It is set when the definition is compiled.
	Path Path
}

// Input is a scalar of the manifest, or one that is derived from it.
type Input struct {
	// Name is the variable in rules. "desired" is special: what the cluster was asked to run overrules the manifest.
	Name string
	// At leads to it from the object's root.
	At   string
	Type Type
	// Default applies when the manifest does not say. With neither, the variable is not set.
	Default *int64
	// Derive is the name of a function in derivations, for what no path leads to. It sees desired, when that stands
	// before it.
	Derive string

	// Path is set when the definition is compiled.
	Path Path
}

// Let is a named expression.
type Let struct {
	Name string
	Type Type
	Expr string

	// Compiled is set when the definition is compiled.
	Compiled *Expr
}

// Rule is one line of a kind's health.
type Rule struct {
	// When is the condition; empty means always.
	When    string
	Health  v1alpha1.Health
	Reason  Reason
	Message string

	// Compiled is set when the definition is compiled; nil means always.
	Compiled *Expr
	message  []part
}

// Counts are expressions for the numbers of a State.
type Counts struct {
	Desired, Replicas, Ready, Updated, Available string
	// Done of Total is how far the workload has come.
	Done, Total string
}

// part of a message: text, or the value of a variable.
type part struct {
	text string
	slot int
}

const (
	// generations is how many fields come before a kind's own.
	generations = 2
	// fieldGeneration is a field that every kind has beside its own: metadata.generation.
	fieldGeneration         = "generation"
	fieldObservedGeneration = "observedGeneration"
	// fieldTemplateGeneration is what Karmada's interpreters add: the template's generation that the member object was
	// made from.
	fieldTemplateGeneration = "resourceTemplateGeneration"
)

// Reason is a machine's word for a health.
type Reason string

// Reasons that a report cannot be interpreted, or says nothing yet.
const (
	// ReasonMalformed surfaces when a field has a type that its kind's API does not give it.
	ReasonMalformed Reason = "Malformed"
	// ReasonIncomplete surfaces when a report lacks a number that its kind's status always has.
	ReasonIncomplete Reason = "Incomplete"
	// ReasonContradictory surfaces when what a report says cannot all be true.
	ReasonContradictory Reason = "Contradictory"
	// ReasonDesiredUnknown surfaces when nobody says how many replicas the cluster is to run.
	ReasonDesiredUnknown Reason = "DesiredUnknown"
	// ReasonPartitionUnknown surfaces when it cannot be told how many pods a partition keeps old.
	ReasonPartitionUnknown Reason = "PartitionUnknown"
	// ReasonWaitingForStatus surfaces when the object has no status yet.
	ReasonWaitingForStatus Reason = "WaitingForStatus"
	// ReasonNotObserved surfaces when the status speaks about an older generation.
	ReasonNotObserved Reason = "NotObserved"
	// ReasonDeleting surfaces when the object is being deleted.
	ReasonDeleting Reason = "Deleting"
	// ReasonNoHealthSignal surfaces for kinds without a description whose status tells nothing.
	ReasonNoHealthSignal Reason = "NoHealthSignal"
	// ReasonUnknownVersion surfaces for a version that is not known of a kind that is.
	ReasonUnknownVersion Reason = "UnknownVersion"
	// ReasonRuleFailed surfaces when a rule of the configuration cannot be evaluated.
	ReasonRuleFailed Reason = "RuleFailed"
	// ReasonNoRule surfaces when no rule of the configuration holds.
	ReasonNoRule Reason = "NoRule"
	// ReasonRule surfaces when a rule of the configuration holds.
	ReasonRule Reason = "Rule"
	// ReasonKstatus surfaces when kstatus decided.
	ReasonKstatus Reason = "Kstatus"
)

// Reasons of a workload on its way.
const (
	// ReasonCreating surfaces while pods are missing.
	ReasonCreating Reason = "Creating"
	// ReasonUpdating surfaces while pods of the old revision are to be updated.
	ReasonUpdating Reason = "Updating"
	// ReasonScalingDown surfaces while there are more pods than wanted, from a smaller number or from surge.
	ReasonScalingDown Reason = "ScalingDown"
	// ReasonUnavailable surfaces while pods are not available.
	ReasonUnavailable Reason = "Unavailable"
	// ReasonPending surfaces when a job has not started.
	ReasonPending Reason = "Pending"
	// ReasonRunning surfaces while a job runs.
	ReasonRunning Reason = "Running"
	// ReasonFinishing surfaces when a job's end is decided and not reached.
	ReasonFinishing Reason = "Finishing"
	// ReasonPaused surfaces when somebody paused the workload and something is left to do.
	ReasonPaused Reason = "Paused"
)

// Reasons of an end, good or bad.
const (
	// ReasonComplete surfaces when all is as asked.
	ReasonComplete Reason = "Complete"
	// ReasonPartitionReached surfaces when an update has gone as far as its partition lets it.
	ReasonPartitionReached Reason = "PartitionReached"
	// ReasonOnDelete surfaces when pods are updated only as they are deleted.
	ReasonOnDelete Reason = "OnDelete"
	// ReasonSelectedOnly surfaces when a selector says which pods are updated, so that how many cannot be told.
	ReasonSelectedOnly Reason = "SelectedOnly"
	// ReasonNothingToRun surfaces when no pod or no node matches.
	ReasonNothingToRun Reason = "NothingToRun"
	// ReasonRunNotSucceeded surfaces for a cron kind whose last run has ended without success.
	ReasonRunNotSucceeded Reason = "RunNotSucceeded"
	// ReasonScheduled surfaces for cron kinds that are not suspended.
	ReasonScheduled Reason = "Scheduled"
	// ReasonSucceeded surfaces when a job has finished well.
	ReasonSucceeded Reason = "Succeeded"
	// ReasonFailed surfaces when a job has failed.
	ReasonFailed Reason = "Failed"
	// ReasonDeadlineExceeded surfaces when an update made no progress for its progressDeadlineSeconds.
	ReasonDeadlineExceeded Reason = "DeadlineExceeded"
	// ReasonReplicaFailure surfaces when pods cannot be created.
	ReasonReplicaFailure Reason = "ReplicaFailure"
)

// preamble are the rules that come before a kind's own.
func preamble(observes, replicated bool) []Rule {
	rules := []Rule{
		{When: "has(deletionTimestamp)", Health: v1alpha1.HealthProgressing, Reason: ReasonDeleting, Message: "being deleted"},
		{When: "!seen", Health: v1alpha1.HealthProgressing, Reason: ReasonWaitingForStatus, Message: "waiting for a status"},
	}
	if observes {
		rules = append(rules,
			Rule{When: "!has(observedGeneration)", Health: v1alpha1.HealthProgressing, Reason: ReasonNotObserved,
				Message: "its controller has not taken note of it yet"},
			Rule{When: "has(generation) && observedGeneration < generation", Health: v1alpha1.HealthProgressing,
				Reason: ReasonNotObserved, Message: "its controller has not taken note of generation {generation} yet"})
	}
	if replicated {
		rules = append(rules, Rule{When: "!has(desired)", Health: v1alpha1.HealthUnknown, Reason: ReasonDesiredUnknown,
			Message: "how many replicas were asked for is not known"})
	}
	return rules
}

// maxSlots bounds the variables of a kind: first the status fields, then the inputs, seen, and the lets.
const maxSlots = 48

// compile checks a definition and makes it ready for use.
func compile(d Definition) (*Kind, error) {
	k := &Kind{Definition: d, vars: variables{}}
	k.Status = append([]Field{
		generations - 2: {Name: fieldGeneration, Type: TypeLong},
		generations - 1: {Name: fieldTemplateGeneration, Type: TypeLong},
	}, d.Status...)
	k.Spec = append([]Input{{Name: "deletionTimestamp", At: "metadata.deletionTimestamp", Type: TypeString}}, d.Spec...)
	if err := k.compileFields(); err != nil {
		return nil, err
	}
	replicated := false
	for i := range k.Spec {
		in := &k.Spec[i]
		replicated = replicated || in.Name == nameDesired
		if in.At != "" {
			path, err := ParsePath(in.At)
			if err != nil {
				return nil, fmt.Errorf("%s %s: input %s: %w", d.Version, d.Kind, in.Name, err)
			}
			in.Path = path
		}
		if in.Derive != "" && derivations[in.Derive] == nil {
			return nil, fmt.Errorf("%s %s: input %s: no derivation %s", d.Version, d.Kind, in.Name, in.Derive)
		}
		if err := k.declare(variableOf(in.Name, in.Type, false)); err != nil {
			return nil, err
		}
	}
	if err := k.declare(variableOf("seen", TypeBool, true)); err != nil {
		return nil, err
	}
	k.Lets = slices.Clone(d.Lets)
	k.Rules = append(preamble(k.observes, replicated), d.Rules...)
	return k, k.compileExpressions()
}

func (k *Kind) compileFields() error {
	for i := range k.Status {
		f := &k.Status[i]
		if f.At == "" {
			f.At = f.Name
		}
		if f.Combine == "" {
			f.Combine = PerCluster
		}
		if f.Absent == "" {
			f.Absent = Unreported
			if f.Type == TypeInt || f.Type == TypeCount {
				f.Absent = Zero
			}
		}
		path, err := ParsePath("status." + f.At)
		if err != nil {
			return fmt.Errorf("%s %s: field %s: %w", k.Version, k.Kind, f.Name, err)
		}
		f.Path = path
		if f.Name == fieldGeneration {
			f.Path = Path{{Key: "metadata"}, {Key: fieldGeneration}}
		}
		k.observes = k.observes || f.Name == fieldObservedGeneration
		if err := k.declare(variableOf(f.Name, f.Type, f.Absent == Zero)); err != nil {
			return err
		}
	}
	return nil
}

// named is a variable that is to be declared.
type named struct {
	name string
	variable
}

func variableOf(name string, t Type, always bool) named {
	return named{name: name, variable: variable{typ: t, always: always}}
}

func (k *Kind) declare(n named) error {
	name := n.name
	if _, twice := k.vars[name]; twice {
		return fmt.Errorf("%s %s: %s is declared twice", k.Version, k.Kind, name)
	}
	if len(k.vars) == maxSlots {
		return fmt.Errorf("%s %s: more than %d variables", k.Version, k.Kind, maxSlots)
	}
	n.slot = len(k.vars)
	k.vars[name] = n.variable
	return nil
}

func (k *Kind) compileExpressions() error {
	for i := range k.Lets {
		l := &k.Lets[i]
		e, err := compileExpr(l.Expr, k.vars, l.Type)
		if err != nil {
			return fmt.Errorf("%s %s: %s: %w", k.Version, k.Kind, l.Name, err)
		}
		l.Compiled = e
		if err := k.declare(variableOf(l.Name, l.Type, true)); err != nil {
			return err
		}
	}
	for i := range k.Rules {
		r := &k.Rules[i]
		if r.When != "" {
			e, err := compileExpr(r.When, k.vars, TypeBool)
			if err != nil {
				return fmt.Errorf("%s %s: rule %d: %w", k.Version, k.Kind, i, err)
			}
			r.Compiled = e
		}
		message, err := compileMessage(r.Message, k.vars)
		if err != nil {
			return fmt.Errorf("%s %s: rule %d: %w", k.Version, k.Kind, i, err)
		}
		r.message = message
	}
	c := k.Counts
	for i, text := range []string{c.Desired, c.Replicas, c.Ready, c.Updated, c.Available, c.Done, c.Total} {
		if text == "" {
			continue
		}
		e, err := compileExpr(text, k.vars, TypeInt)
		if err != nil {
			return fmt.Errorf("%s %s: counts: %w", k.Version, k.Kind, err)
		}
		k.counts[i] = e
	}
	return nil
}

// compileMessage splits a message at its {variables}.
func compileMessage(text string, vars variables) ([]part, error) {
	var parts []part
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		if before != "" {
			parts = append(parts, part{text: before, slot: -1})
		}
		if !found {
			return parts, nil
		}
		name, after, closed := strings.Cut(rest, "}")
		v, known := vars[name]
		if !closed || !known {
			return nil, fmt.Errorf("message %q: {%s} is not known", text, name)
		}
		parts = append(parts, part{slot: v.slot, text: string(v.typ)})
		text = after
	}
	return parts, nil
}
