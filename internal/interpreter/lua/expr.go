package lua

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// operators of expressions, and what Lua calls them.
func operator(op string) (string, bool) {
	switch op {
	case "+", "-", "<", "<=", ">", ">=", "==":
		return op, true
	case "!=":
		return "~=", true
	case "&&":
		return "and", true
	case "||":
		return "or", true
	default:
		return "", false
	}
}

// expression writes an expression of the rules in Lua. Variables are fields of the table v. One that is not set is 0,
// false or "", as in the Go evaluator.
func expression(e *interpreter.Expr) (string, error) {
	switch e.Op {
	case "int":
		return strconv.FormatInt(e.Int, 10), nil
	case "bool":
		return strconv.FormatBool(e.Int != 0), nil
	case "string":
		return quote(e.Str), nil
	case "has":
		return "v." + e.Name + " ~= nil", nil
	case "var":
		return variable(e)
	}
	args := make([]string, 0, len(e.Args))
	for _, a := range e.Args {
		text, err := expression(a)
		if err != nil {
			return "", err
		}
		args = append(args, text)
	}
	if op, ok := operator(e.Op); ok {
		return "(" + args[0] + " " + op + " " + args[1] + ")", nil
	}
	switch e.Op {
	case "!":
		return "not (" + args[0] + ")", nil
	case "min", "max":
		return "math." + e.Op + "(" + strings.Join(args, ", ") + ")", nil
	case "when":
		// A number is never false in Lua, so that "and" and "or" choose; they evaluate no more than eval does.
		return "(" + args[0] + " and " + args[1] + " or " + args[2] + ")", nil
	case "kept", "keptDown":
		return fmt.Sprintf("kept(%s, %s, %t)", args[0], args[1], e.Op == "keptDown"), nil
	default:
		return "", fmt.Errorf("no Lua for %s", e.Op)
	}
}

func variable(e *interpreter.Expr) (string, error) {
	switch e.Type {
	case interpreter.TypeInt, interpreter.TypeLong:
		return "(v." + e.Name + " or 0)", nil
	case interpreter.TypeBool:
		return "(v." + e.Name + " or false)", nil
	case interpreter.TypeString:
		return "(v." + e.Name + ` or "")`, nil
	case interpreter.TypePartition:
		return "v." + e.Name, nil
	case interpreter.TypeObject, interpreter.TypeCount:
	}
	return "", fmt.Errorf("no Lua for a variable of type %s", e.Type)
}

// quote writes a string as Lua reads it. Lua 5.1 knows decimal escapes only.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03d`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// path writes a path as the snippet lookup wants it. Elements of lists are chosen by one key there.
func path(p interpreter.Path) string {
	steps := make([]string, 0, len(p))
	for _, s := range p {
		steps = append(steps, quote(s.Key))
		if s.By != "" {
			steps = append(steps, "{by = "+quote(s.By)+", is = "+quote(s.Is)+"}")
		}
	}
	return "{" + strings.Join(steps, ", ") + "}"
}
