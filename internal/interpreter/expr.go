package interpreter

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Type is the type of a variable or an expression.
type Type string

const (
	// TypeInt is a whole number from 0 to 2^31-1.
	TypeInt Type = "int"
	// TypeLong is a whole number from 0 to 2^53, which a float64 still holds: generations.
	TypeLong Type = "long"
	// TypeBool is true or false.
	TypeBool Type = "bool"
	// TypeString is a string, times too.
	TypeString Type = "string"
	// TypePartition is a whole number or a percentage.
	TypePartition Type = "partition"
	// TypeCount is a list of which only the length counts; a number is such a length already. No rule can read it: OCM
	// feeds back no lists.
	TypeCount Type = "count"
	// TypeObject is an object of which only the presence counts; an empty one is absent. For selectors, where empty
	// means everything.
	TypeObject Type = "object"
)

const (
	maxInt  = math.MaxInt32
	maxLong = 1 << 53
)

// value is a variable's value. Booleans are 0 and 1; a partition that is a percentage is in s.
type value struct {
	s   string
	i   int64
	set bool
}

// Expr is an expression of the rules, parsed and typed. Its operators are those of Go, with Go's precedence; its
// functions are
//
//	has(x)          x was reported, or stands in the spec
//	when(c, a, b)   a when c holds, else b
//	min, max        of two numbers
//	kept(p, n)      pods that partition p keeps old of n, as OpenKruise rounds (KeptOld)
//	keptDown(p, n)  the same, percentages rounded down (OpenKruise 1.9's DaemonSet)
//	done(s)         the n of a progress "n/m", 0 when s is none
//	total(s)        its m
//
// Strings are ordered by their bytes, as times are. A variable that is not set counts as 0, false or "", and a number that
// rests on one that is not set is not set either. There are no loops: evaluation always ends.
type Expr struct {
	// Op is "int", "string", "bool", "var", a Go operator, or the name of a function.
	Op   string
	Type Type
	// Args are the operands.
	Args []*Expr
	// Name is the variable's, for "var" and has.
	Name string
	// Int and Str are the constant's; a bool is in Int.
	Int int64
	Str string

	slot int
}

// variables resolve names while expressions are compiled.
type variables map[string]variable

type variable struct {
	slot int
	typ  Type
	// always is true when has would say nothing: it is computed, or its absence is zero.
	always bool
}

// compileExpr parses an expression. Go's own parser is used, so that there is no grammar of ours to get wrong.
func compileExpr(text string, vars variables, want Type) (*Expr, error) {
	tree, err := parser.ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	e, err := typed(tree, vars)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	if !assignable(e.Type, want) {
		return nil, fmt.Errorf("expression %q: is of type %s, want %s", text, e.Type, want)
	}
	return e, nil
}

func assignable(got, want Type) bool {
	return got == want || (isNumber(got) && isNumber(want))
}

func isNumber(t Type) bool { return t == TypeInt || t == TypeLong }

func typed(tree ast.Expr, vars variables) (*Expr, error) {
	switch t := tree.(type) {
	case *ast.ParenExpr:
		return typed(t.X, vars)
	case *ast.BasicLit:
		return constant(t)
	case *ast.Ident:
		if t.Name == "true" || t.Name == "false" {
			e := &Expr{Op: "bool", Type: TypeBool}
			if t.Name == "true" {
				e.Int = 1
			}
			return e, nil
		}
		v, known := vars[t.Name]
		if !known {
			return nil, fmt.Errorf("%s is not known", t.Name)
		}
		return &Expr{Op: "var", Type: v.typ, Name: t.Name, slot: v.slot}, nil
	case *ast.UnaryExpr:
		x, err := typed(t.X, vars)
		if err != nil {
			return nil, err
		}
		if t.Op != token.NOT || x.Type != TypeBool {
			return nil, fmt.Errorf("%s of %s is not possible", t.Op, x.Type)
		}
		return &Expr{Op: "!", Type: TypeBool, Args: []*Expr{x}}, nil
	case *ast.BinaryExpr:
		return binary(t, vars)
	case *ast.CallExpr:
		return call(t, vars)
	default:
		return nil, fmt.Errorf("%T is not possible", tree)
	}
}

func constant(lit *ast.BasicLit) (*Expr, error) {
	switch lit.Kind {
	case token.INT:
		n, err := strconv.ParseInt(lit.Value, 10, 32)
		return &Expr{Op: "int", Type: TypeInt, Int: n}, err
	case token.STRING:
		s, err := strconv.Unquote(lit.Value)
		return &Expr{Op: "string", Type: TypeString, Str: s}, err
	default:
		return nil, fmt.Errorf("%s is not possible", lit.Value)
	}
}

func binary(t *ast.BinaryExpr, vars variables) (*Expr, error) {
	x, err := typed(t.X, vars)
	if err != nil {
		return nil, err
	}
	y, err := typed(t.Y, vars)
	if err != nil {
		return nil, err
	}
	e := &Expr{Op: t.Op.String(), Args: []*Expr{x, y}, Type: TypeBool}
	numbers, same := isNumber(x.Type) && isNumber(y.Type), x.Type == y.Type
	ok := false
	switch t.Op {
	case token.ADD, token.SUB:
		e.Type, ok = TypeInt, numbers
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		ok = numbers || (same && x.Type == TypeString)
	case token.EQL, token.NEQ:
		ok = numbers || (same && x.Type == TypeString)
	case token.LAND, token.LOR:
		ok = same && x.Type == TypeBool
	default:
	}
	if !ok {
		return nil, fmt.Errorf("%s %s %s is not possible", x.Type, t.Op, y.Type)
	}
	return e, nil
}

// signatures of the functions: what they take, and what they return.
var signatures = map[string]struct {
	args   []Type
	result Type
}{
	"when":     {[]Type{TypeBool, TypeInt, TypeInt}, TypeInt},
	"min":      {[]Type{TypeInt, TypeInt}, TypeInt},
	"max":      {[]Type{TypeInt, TypeInt}, TypeInt},
	"kept":     {[]Type{TypePartition, TypeInt}, TypeInt},
	"keptDown": {[]Type{TypePartition, TypeInt}, TypeInt},
	"done":     {[]Type{TypeString}, TypeInt},
	"total":    {[]Type{TypeString}, TypeInt},
}

func call(t *ast.CallExpr, vars variables) (*Expr, error) {
	name, ok := t.Fun.(*ast.Ident)
	if !ok {
		return nil, fmt.Errorf("%T is not possible", t.Fun)
	}
	args := make([]*Expr, 0, len(t.Args))
	for _, a := range t.Args {
		e, err := typed(a, vars)
		if err != nil {
			return nil, err
		}
		args = append(args, e)
	}
	if name.Name == "has" {
		if len(args) != 1 || args[0].Op != "var" || vars[args[0].Name].always {
			return nil, fmt.Errorf("has takes one variable that can be absent")
		}
		return &Expr{Op: "has", Type: TypeBool, Name: args[0].Name, slot: args[0].slot}, nil
	}
	signature, known := signatures[name.Name]
	if !known || len(args) != len(signature.args) {
		return nil, fmt.Errorf("no function %s of %d", name.Name, len(args))
	}
	for i, want := range signature.args {
		if !assignable(args[i].Type, want) {
			return nil, fmt.Errorf("%s: argument %d is %s, not %s", name.Name, i+1, args[i].Type, want)
		}
	}
	return &Expr{Op: name.Name, Type: signature.result, Args: args}, nil
}

// holds evaluates an expression that is a bool.
func (e *Expr) holds(env []value) (bool, error) {
	v, err := e.eval(env)
	return v.i != 0, err
}

func truth(b bool) value {
	if b {
		return value{i: 1, set: true}
	}
	return value{set: true}
}

// eval never fails but for a partition that is none.
func (e *Expr) eval(env []value) (value, error) {
	switch e.Op {
	case "int", "bool":
		return value{i: e.Int, set: true}, nil
	case "string":
		return value{s: e.Str, set: true}, nil
	case "var":
		return env[e.slot], nil
	case "has":
		return truth(env[e.slot].set), nil
	}
	x, err := e.Args[0].eval(env)
	if err != nil {
		return value{}, err
	}
	switch e.Op {
	case "!":
		return truth(x.i == 0), nil
	case "done", "total":
		done, total := fraction(x.s)
		if e.Op == "total" {
			done = total
		}
		return value{i: done, set: x.set}, nil
	case "&&":
		if x.i == 0 {
			return truth(false), nil
		}
		return e.Args[1].eval(env)
	case "||":
		if x.i != 0 {
			return truth(true), nil
		}
		return e.Args[1].eval(env)
	case "when":
		if x.i != 0 {
			return e.Args[1].eval(env)
		}
		return e.Args[2].eval(env)
	}
	y, err := e.Args[1].eval(env)
	if err != nil {
		return value{}, err
	}
	return combine(e.Op, x, y)
}

func combine(op string, x, y value) (value, error) {
	known := x.set && y.set
	order := cmp.Or(cmp.Compare(x.i, y.i), cmp.Compare(x.s, y.s))
	switch op {
	case "+":
		return value{i: x.i + y.i, set: known}, nil
	case "-":
		return value{i: x.i - y.i, set: known}, nil
	case "<":
		return truth(order < 0), nil
	case "<=":
		return truth(order <= 0), nil
	case ">":
		return truth(order > 0), nil
	case ">=":
		return truth(order >= 0), nil
	case "==":
		return truth(x.i == y.i && x.s == y.s), nil
	case "!=":
		return truth(x.i != y.i || x.s != y.s), nil
	case "min":
		return value{i: min(x.i, y.i), set: known}, nil
	case "max":
		return value{i: max(x.i, y.i), set: known}, nil
	case "kept", "keptDown": // without a partition none
		n, err := keptOld(x, y.i, op == "keptDown")
		return value{i: n, set: y.set}, err
	default:
		return value{}, fmt.Errorf("operator %s is not known", op)
	}
}

// maxPartition bounds the length of a partition's text: no percentage needs more.
const maxPartition = 16

// percentage is what OpenKruise's webhooks and GetScaledValueFromIntOrPercent (pkg/util/tools.go) both accept.
var percentage = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?%$`)

// keptOld is how many of n pods a partition keeps on the old revision. OpenKruise rounds percentages up, and lets at
// least one pod go unless the partition is 100% (v1.8.3 pkg/util/tools.go, CalculatePartitionReplicas); its DaemonSet
// of 1.9 rounds them down.
func keptOld(partition value, n int64, down bool) (int64, error) {
	if !partition.set || n <= 0 {
		return 0, nil
	}
	if partition.s == "" {
		return min(max(partition.i, 0), n), nil
	}
	if len(partition.s) > maxPartition || !percentage.MatchString(partition.s) {
		return 0, fmt.Errorf("partition %q is neither a number nor a percentage", shorten(partition.s))
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(partition.s, "%"), 64)
	if err != nil {
		return 0, fmt.Errorf("partition %q is neither a number nor a percentage", shorten(partition.s))
	}
	share := percent * float64(n) / 100
	if down {
		return int64(math.Floor(min(share, float64(n)))), nil
	}
	kept := int64(min(math.Ceil(share), float64(n)+1))
	if n > 1 && kept == n && partition.s != "100%" {
		kept = n - 1
	}
	return min(kept, n), nil
}

// shorten bounds what of a report may stand in a message.
func shorten(s string) string { return shortenTo(s, 64) }

func shortenTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// fraction reads "n/m", as Argo's status.progress is written (v3 pkg/apis/workflow/v1alpha1/progress.go).
func fraction(s string) (done, total int64) {
	n, m, found := strings.Cut(s, "/")
	if !found {
		return 0, 0
	}
	a, errA := strconv.ParseUint(n, 10, 31)
	b, errB := strconv.ParseUint(m, 10, 31)
	if errA != nil || errB != nil {
		return 0, 0
	}
	return int64(a), int64(b)
}
