package lua

import (
	"testing"

	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// TestQuote: what is printable stays readable; Lua 5.1 knows the rest as decimal escapes.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"": `""`, "a b": `"a b"`, " ~": `" ~"`, "\x1f\x7f": `"\031\127"`, "\x00" + "1": `"\0001"`, "\n": `"\010"`,
		`"quoted" \ here`: `"\"quoted\" \\ here"`, "ä": `"\195\164"`,
	} {
		if got := quote(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// TestExpression: the Lua of what an expression is made of.
func TestExpression(t *testing.T) {
	number := func(n int64) *interpreter.Expr {
		return &interpreter.Expr{Op: "int", Type: interpreter.TypeInt, Int: n}
	}
	boolean := func(n int64) *interpreter.Expr {
		return &interpreter.Expr{Op: "bool", Type: interpreter.TypeBool, Int: n}
	}
	named := func(t interpreter.Type) *interpreter.Expr { return &interpreter.Expr{Op: "var", Type: t, Name: "x"} }
	of := func(op string, args ...*interpreter.Expr) *interpreter.Expr {
		return &interpreter.Expr{Op: op, Args: args}
	}
	for want, e := range map[string]*interpreter.Expr{
		"5": number(5), "true": boolean(1), "false": boolean(0), `"a"`: {Op: "string", Str: "a"}, "v.x ~= nil": {Op: "has", Name: "x"},
		"(v.x or 0)": named(interpreter.TypeLong), "(v.x or false)": named(interpreter.TypeBool), `(v.x or "")`: named(interpreter.TypeString),
		"v.x": named(interpreter.TypePartition), "(1 + 2)": of("+", number(1), number(2)), "(1 ~= 2)": of("!=", number(1), number(2)),
		"(true and false)": of("&&", boolean(1), boolean(0)), "(true or false)": of("||", boolean(1), boolean(0)), "not (true)": of("!", boolean(1)),
		"math.min(1, 2)": of("min", number(1), number(2)), "(true and 1 or 2)": of("when", boolean(1), number(1), number(2)),
		"kept(v.x, 2, false)": of("kept", named(interpreter.TypePartition), number(2)), "kept(v.x, 2, true)": of("keptDown", named(interpreter.TypePartition), number(2)),
	} {
		if got, err := expression(e); err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	for name, e := range map[string]*interpreter.Expr{
		"an object": named(interpreter.TypeObject), "a list's length": named(interpreter.TypeCount), "done": of("done", named(interpreter.TypeString)),
		"an operand": of("!", named(interpreter.TypeObject)),
	} {
		if got, err := expression(e); err == nil {
			t.Errorf("%s is written as %s", name, got)
		}
	}
}
