package interpreter

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Description teaches the operator a kind that is not built in. It stands under kinds in the operator's configuration.
type Description struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// Resource is the plural of the kind.
	Resource string `json:"resource"`
	// Scope is Namespaced or Cluster. When absent: Namespaced.
	Scope Scope `json:"scope,omitempty"`

	// ReplicasPath leads to the number of replicas, such as spec.replicas. When absent, the kind has none.
	ReplicasPath string `json:"replicasPath,omitempty"`
	// PodTemplatePath leads to the object whose spec is a pod's, such as spec.template.
	PodTemplatePath string `json:"podTemplatePath,omitempty"`
	// SelectorPath leads to the pods' label selector, such as spec.selector.
	SelectorPath string `json:"selectorPath,omitempty"`
	// SelfRemovalPath leads to the field by which an object has its cluster remove it once it has finished, such as
	// spec.ttlSecondsAfterFinished. It is never sent: the object would be made anew, and run again.
	SelfRemovalPath string `json:"selfRemovalPath,omitempty"`

	// Status are the fields to show and to combine. Those named replicas, ready, updated and available are the numbers
	// of the FleetWorkload's status. With one named observedGeneration, a status is current only when it equals
	// metadata.generation.
	Status []StatusField `json:"status,omitempty"`
	// Health are the rules.
	Health Health `json:"health,omitempty"`
	// Feedback are further fields that the rules read, for backends that return only what they are asked for. Fields of
	// Status are among them anyway.
	Feedback []FeedbackPath `json:"feedback,omitempty"`
}

// Scope says whether objects of a kind have a namespace.
type Scope string

const (
	// ScopeNamespaced is for kinds with a namespace.
	ScopeNamespaced Scope = "Namespaced"
	// ScopeCluster is for kinds without.
	ScopeCluster Scope = "Cluster"
)

// StatusField is one field of the status.
type StatusField struct {
	// Name of the field: letters and digits.
	Name string `json:"name"`
	// Path leads to it from the object's root, such as status.readyReplicas or status.conditions[type=Ready].status.
	Path string `json:"path"`
	// Type is int, long, bool or string.
	Type Type `json:"type"`
	// Combine is how it combines over clusters: sum, min, max, maxAll, equal, any, all, worst or perCluster. When
	// absent: sum for int, perCluster for the rest.
	Combine Combine `json:"combine,omitempty"`
	// Absent is what it means when the field is missing: zero or unreported. When absent: zero for int, unreported for
	// the rest.
	Absent Absence `json:"absent,omitempty"`
	// Order lists the values for combine: worst, the worst first.
	Order []string `json:"order,omitempty"`
}

// FeedbackPath is a scalar that rules read.
type FeedbackPath struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// Health are conditions in CEL over object, spec, status and metadata; each is true or false. They are asked in this
// order, the worst first, and the first that holds decides. When none holds, the workload is Progressing if there is a
// rule for healthy, and Unknown otherwise. A rule that cannot be evaluated, because a field is missing that it did not
// ask for with has(), makes the health Unknown.
type Health struct {
	Degraded    string `json:"degraded,omitempty"`
	Suspended   string `json:"suspended,omitempty"`
	Progressing string `json:"progressing,omitempty"`
	Healthy     string `json:"healthy,omitempty"`
}

const (
	// maxExpression bounds the length of a rule.
	maxExpression = 2048
	// maxCost bounds the work of one evaluation, in CEL's own unit: a rule of a few comparisons costs some ten.
	maxCost = 50_000
	// maxSpent bounds what all rules on all clusters of a FleetWorkload may cost in one decision, in the same unit: up to 1 µs. What a
	// member reports makes a rule cheap or dear.
	maxSpent = 500_000
)

// Budget is what the rules of kinds that are described may cost together, on all clusters. Without one, each evaluation has its own bound.
type Budget struct{ spent uint64 }

// NewBudget is that of one decision.
func NewBudget() *Budget { return &Budget{} }

// take counts an evaluation.
func (b *Budget) take(cost uint64) {
	if b != nil {
		b.spent += cost
	}
}

func (b *Budget) used() bool { return b != nil && b.spent >= maxSpent }

// described is what a description adds to a Kind.
type described struct {
	rules      []celRule
	hasHealthy bool
}

type celRule struct {
	// at is where the rule stands, such as kinds[2].health.degraded, and text the rule.
	at      string
	text    string
	health  v1alpha1.Health
	name    string
	program cel.Program
}

var (
	fieldName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]{0,62}$`)
	kindName  = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]{0,62}$`)
	dnsName   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
)

// compile checks a description. Errors name the field, starting with at.
func (d Description) compile(at string) (*Kind, []error) {
	var errs []error
	report := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s.%s: %w", at, field, fmt.Errorf(format, args...)))
	}
	for _, name := range []struct {
		field, value string
		want         *regexp.Regexp
	}{{"version", d.Version, dnsName}, {"kind", d.Kind, kindName}, {"resource", d.Resource, dnsName}} {
		if !name.want.MatchString(name.value) {
			report(name.field, "%q is not a name for it", name.value)
		}
	}
	if d.Group != "" && !dnsName.MatchString(d.Group) {
		report("group", "%q is not a name for it", d.Group)
	}
	if d.Scope != "" && d.Scope != ScopeNamespaced && d.Scope != ScopeCluster {
		report("scope", "%q is neither %s nor %s", d.Scope, ScopeNamespaced, ScopeCluster)
	}
	definition := Definition{
		Group: d.Group, Version: d.Version, Kind: d.Kind, Resource: d.Resource, ClusterScoped: d.Scope == ScopeCluster,
		StatusOptional: true, // whether there is enough of it is for the rules to say
		Rules:          []Rule{{Health: v1alpha1.HealthUnknown, Reason: ReasonNoRule}},
	}
	for _, p := range []struct {
		field, path string
		into        func(string)
	}{
		{"replicasPath", d.ReplicasPath, func(s string) { definition.Replicas = s }},
		{"podTemplatePath", d.PodTemplatePath, func(s string) { definition.PodTemplates = []string{s} }},
		{"selectorPath", d.SelectorPath, func(s string) { definition.Selector = s }},
		{"selfRemovalPath", d.SelfRemovalPath, func(s string) { definition.SelfRemovals = []string{s} }},
	} {
		if p.path == "" {
			continue
		}
		path, err := plainPath(p.path)
		if err != nil {
			report(p.field, "%w", err)
			continue
		}
		p.into(path)
	}
	if d.ReplicasPath != "" {
		definition.Spec = []Input{{Name: nameDesired, At: d.ReplicasPath, Type: TypeInt, Default: ptr(int64(1))}}
		definition.Counts.Desired = nameDesired
	}
	errs = append(errs, d.compileStatus(at, &definition)...)
	health, problems := d.compileHealth(at)
	extras, more := d.compileFeedback(at)
	problems = append(more, problems...)
	if errs = append(errs, problems...); len(errs) > 0 {
		return nil, errs
	}
	k, err := compile(definition)
	if err != nil {
		return nil, []error{fmt.Errorf("%s: %w", at, err)}
	}
	k.described, k.extras = health, extras
	return k, nil
}

// plainPath is a path of names, without lists and quotes.
func plainPath(text string) (string, error) {
	path, err := ParsePath(text)
	if err != nil {
		return "", err
	}
	keys, plain := path.keys()
	if joined := strings.Join(keys, "."); plain && joined == strings.TrimPrefix(text, ".") {
		return joined, nil
	}
	return "", fmt.Errorf("path %q: only names and dots are possible here", text)
}

// types and ways to combine that a description may use.
var (
	describable  = map[Type]bool{TypeInt: true, TypeLong: true, TypeBool: true, TypeString: true}
	combinations = map[Combine][]Type{
		Sum: {TypeInt}, Min: {TypeInt, TypeLong, TypeString}, Max: {TypeInt, TypeLong, TypeString},
		MaxAll: {TypeInt, TypeLong, TypeString}, Equal: {TypeInt, TypeLong, TypeBool, TypeString},
		Any: {TypeBool, TypeString}, All: {TypeBool, TypeString}, Worst: {TypeString},
		PerCluster: {TypeInt, TypeLong, TypeBool, TypeString},
	}
)

func (d Description) compileStatus(at string, definition *Definition) []error {
	var errs []error
	for i, f := range d.Status {
		here := fmt.Sprintf("%s.status[%d]", at, i)
		if f.Combine == "" && f.Type == TypeInt {
			f.Combine = Sum
		}
		if f.Combine == "" {
			f.Combine = PerCluster
		}
		if !fieldName.MatchString(f.Name) || f.Name == fieldGeneration || f.Name == fieldTemplateGeneration {
			errs = append(errs, fmt.Errorf("%s.name: %q is not a name for a field", here, f.Name))
		}
		if !describable[f.Type] {
			errs = append(errs, fmt.Errorf("%s.type: %q is none of int, long, bool, string", here, f.Type))
		} else if !contains(combinations[f.Combine], f.Type) {
			errs = append(errs, fmt.Errorf("%s.combine: %q does not combine fields of type %s", here, f.Combine, f.Type))
		}
		if f.Absent != "" && f.Absent != Zero && f.Absent != Unreported {
			errs = append(errs, fmt.Errorf("%s.absent: %q is neither %s nor %s", here, f.Absent, Zero, Unreported))
		}
		if (f.Combine == Worst) != (len(f.Order) > 0) {
			errs = append(errs, fmt.Errorf("%s.order: it is for combine: worst, which needs it", here))
		}
		path, err := ParsePath(f.Path)
		below, inStatus := "", false
		if err == nil {
			below, inStatus = strings.CutPrefix(path.String(), "status.")
		}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s.path: %w", here, err))
		case !inStatus:
			errs = append(errs, fmt.Errorf("%s.path: %q does not start with status", here, f.Path))
		}
		definition.Status = append(definition.Status, Field{
			Name: f.Name, At: below, Type: f.Type, Combine: f.Combine, Absent: f.Absent, Order: f.Order,
		})
		if f.Type == TypeInt {
			definition.Counts.take(f.Name)
		}
	}
	return errs
}

// take makes the fields of these names the numbers of a State.
func (c *Counts) take(name string) {
	switch name {
	case "replicas":
		c.Replicas = name
	case "ready":
		c.Ready = name
	case "updated":
		c.Updated = name
	case "available":
		c.Available = name
	}
}

func contains(list []Type, t Type) bool {
	for _, element := range list {
		if element == t {
			return true
		}
	}
	return false
}

// compileFeedback are the paths of Feedback, to put flat values back where rules look for them.
func (d Description) compileFeedback(at string) ([]Extra, []error) {
	var errs []error
	var extras []Extra
	for i, f := range d.Feedback {
		path, err := ParsePath(f.Path)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s.feedback[%d].path: %w", at, i, err))
		}
		if !fieldName.MatchString(f.Name) {
			errs = append(errs, fmt.Errorf("%s.feedback[%d].name: %q is not a name for a field", at, i, f.Name))
		}
		for j := range d.Status {
			if d.Status[j].Name == f.Name {
				errs = append(errs, fmt.Errorf("%s.feedback[%d].name: %q is a field of status already", at, i, f.Name))
			}
		}
		extras = append(extras, Extra{f.Name, path})
	}
	return extras, errs
}

func (d Description) compileHealth(at string) (*described, []error) {
	var errs []error
	health := &described{hasHealthy: d.Health.Healthy != ""}
	env, err := cel.NewEnv(
		cel.Variable("object", cel.DynType), cel.Variable("spec", cel.DynType),
		cel.Variable("status", cel.DynType), cel.Variable("metadata", cel.DynType),
		cel.CrossTypeNumericComparisons(true), cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(50),
	)
	if err != nil {
		return nil, append(errs, fmt.Errorf("%s.health: %w", at, err))
	}
	for _, r := range []struct {
		name, expression string
		health           v1alpha1.Health
	}{
		{"degraded", d.Health.Degraded, v1alpha1.HealthDegraded}, {"suspended", d.Health.Suspended, v1alpha1.HealthSuspended},
		{"progressing", d.Health.Progressing, v1alpha1.HealthProgressing}, {"healthy", d.Health.Healthy, v1alpha1.HealthHealthy},
	} {
		if r.expression == "" {
			continue
		}
		here := at + ".health." + r.name
		program, err := compileCEL(env, r.expression)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", here, err))
			continue
		}
		health.rules = append(health.rules, celRule{at: here, text: r.expression, health: r.health, name: r.name, program: program})
	}
	if len(health.rules) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%s.health: at least one rule is required", at))
	}
	return health, errs
}

func compileCEL(env *cel.Env, expression string) (cel.Program, error) {
	ast, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%q is of type %s, want bool", expression, t)
	}
	return env.Program(ast, cel.CostLimit(maxCost), cel.CostTracking(ruleCosts{}), cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost))
}

// state asks the rules. The numbers come from the fields as for every kind.
func (d *described) state(k *Kind, report Report, env *[maxSlots]value) (State, error) {
	s, err := k.evaluate(env)
	if err != nil || s.Reason != ReasonNoRule {
		return s, err
	}
	object := k.object(report, env)
	part := func(name string) any {
		if m, ok := object[name].(map[string]any); ok {
			return m
		}
		return map[string]any{}
	}
	vars := map[string]any{"object": object, "spec": part("spec"), "status": part("status"), "metadata": part("metadata")}
	for _, r := range d.rules {
		if report.Budget.used() {
			err := r.tooDear("it was not asked here: on the clusters before, the kind's rules have cost the %d units that they may cost on all together", maxSpent)
			s.Health, s.Reason, s.Message = v1alpha1.HealthUnknown, ReasonRuleFailed, err.Error()
			return s, err
		}
		holds, err := r.holds(vars, report.Budget)
		if err != nil {
			s.Health, s.Reason, s.Message = v1alpha1.HealthUnknown, ReasonRuleFailed, shortenTo(err.Error(), 512)
			return s, err
		}
		if holds {
			s.Health, s.Reason = r.health, ReasonRule
			if r.health != v1alpha1.HealthHealthy {
				s.Message = "the rule for " + r.name + " holds"
			}
			return s, nil
		}
	}
	s.Message = "none of the kind's rules holds"
	if d.hasHealthy {
		s.Health, s.Message = v1alpha1.HealthProgressing, "the rule for healthy does not hold yet"
	}
	return s, nil
}

// tooDear says so by field, value, limit and remedy.
func (r celRule) tooDear(why string, limit int) error {
	return fmt.Errorf("%s %q in the operator's configuration: "+why+"; go through shorter lists there, or have the kind's controller write less into the status",
		r.at, shorten(r.text), limit)
}

func (r celRule) holds(vars map[string]any, budget *Budget) (holds bool, err error) {
	// cel-go turns panics of its own functions into errors; a value of a type that it cannot adapt may still panic.
	defer func() {
		if p := recover(); p != nil {
			holds, err = false, fmt.Errorf("%s: %v", r.at, p)
		}
	}()
	out, details, err := r.program.Eval(vars)
	cost := uint64(maxCost)
	if details != nil && details.ActualCost() != nil { // otherwise it panicked
		cost = *details.ActualCost()
	}
	budget.take(cost)
	if err != nil && cost > maxCost {
		return false, r.tooDear("it costs more here than the %d units that a rule may cost on one cluster", maxCost)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", r.at, err)
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("%s: %w", r.at, errors.New("the rule is neither true nor false"))
	}
	return bool(b), nil
}
