package interpreter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// expressionVariables are what the expressions of these tests read, and expressionValues are their values: none is not reported.
func expressionVariables() variables {
	return variables{
		"n": {slot: 0, typ: TypeInt}, "long": {slot: 1, typ: TypeLong}, "yes": {slot: 2, typ: TypeBool}, "word": {slot: 3, typ: TypeString},
		"half": {slot: 4, typ: TypePartition}, "done34": {slot: 5, typ: TypeString}, "none": {slot: 6, typ: TypeInt},
		"counter": {slot: 7, typ: TypeInt, always: true},
	}
}

func expressionValues() []value {
	return []value{
		{i: 5, set: true}, {i: 7, set: true}, {i: 1, set: true}, {s: "b", set: true}, {s: "50%", set: true}, {s: "3/4", set: true}, {}, {set: true},
	}
}

// TestConditions: what the comment on Expr says of conditions.
func TestConditions(t *testing.T) {
	for text, want := range map[string]bool{
		"true": true, "false": false, "!true": false, "!false": true, "yes": true, "!yes": false,
		"n < 5": false, "n < 6": true, "n <= 4": false, "n <= 5": true, "n > 4": true, "n > 5": false, "n >= 5": true, "n >= 6": false,
		"n == 5": true, "n == 6": false, "n != 5": false, "n != 6": true, "n == long - 2": true, "n < long": true, "long <= n": false,
		`word == "b"`: true, `word == "a"`: false, `word != "b"`: false, `word != "a"`: true, "word == `b`": true,
		`word < "b"`: false, `word < "c"`: true, `word <= "a"`: false, `word <= "b"`: true, `word > "b"`: false, `word >= "b"`: true, `word >= "c"`: false,
		"has(n)": true, "has(none)": false, "none == 0": true, "none < n": true,
		"yes && n > 4": true, "yes && n > 5": false, "false && yes": false, "false || yes": true, "true || false": true, "false || false": false,
		"true || false && false": true, "(true || false) && false": false,
	} {
		e, err := compileExpr(text, expressionVariables(), TypeBool)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := e.holds(expressionValues()); err != nil || got != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
}

// TestNumbers: what the comment on Expr says of numbers. nil is not known.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]*int64{
		"7": ptr(int64(7)), "n + long": ptr(int64(12)), "n - long": ptr(int64(-2)), "n - 1 + 1": ptr(int64(5)), "n - (1 + 1)": ptr(int64(3)),
		"min(n, long)": ptr(int64(5)), "max(n, long)": ptr(int64(7)),
		"none": nil, "n + none": nil, "none + n": nil, "n - none": nil, "min(n, none)": nil, "max(none, n)": nil,
		"when(yes, n, none)": ptr(int64(5)), "when(yes, none, n)": nil, "when(!yes, none, n)": ptr(int64(5)),
		"kept(half, n)": ptr(int64(3)), "keptDown(half, n)": ptr(int64(2)), "kept(half, none)": nil,
		"done(done34)": ptr(int64(3)), "total(done34)": ptr(int64(4)), "done(word)": ptr(int64(0)), "total(word)": ptr(int64(0)),
	} {
		e, err := compileExpr(text, expressionVariables(), TypeLong)
		if err != nil {
			t.Error(err)
			continue
		}
		v, err := e.eval(expressionValues())
		var got *int64
		if v.set {
			got = &v.i
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
}

// TestExpressionsThatAreRefused: each error says what is wrong, and where.
func TestExpressionsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"n +": "expected operand", "unheard": "unheard is not known", "n": "is of type int, want bool", "1.5": "1.5 is not possible",
		"99999999999 == n": "value out of range", "-n == 5": "- of int is not possible", "!n": "! of int is not possible",
		"n + word == 5": "int + string is not possible", "yes < yes": "bool < bool is not possible", "yes == yes": "bool == bool is not possible",
		"n == word": "int == string is not possible", "half == half": "partition == partition is not possible", "n && yes": "int && bool is not possible",
		"n * n == 5": "int * int is not possible", "min(n) == 5": "no function min of 1", "least(n, n) == 5": "no function least of 2",
		"min(n, word) == 5": "min: argument 2 is string, not int", "when(n, n, n) == 5": "when: argument 1 is int, not bool",
		"kept(n, n) == 5": "kept: argument 1 is int, not partition", "min(n, unheard) == 5": "unheard is not known", "n.min(1)": "*ast.SelectorExpr is not possible",
		"has(5)": "has takes one variable that can be absent", "has(n, n)": "has takes one variable", "has(counter)": "has takes one variable",
		"word[0] == 5": "*ast.IndexExpr is not possible",
	} {
		if _, err := compileExpr(text, expressionVariables(), TypeBool); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// TestMessages: a variable's value stands in its place, and a question mark for what was not reported.
func TestMessages(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "paused": "paused", "{n}": "5", "{none}": "?", "{n} of {none} ready": "5 of ? ready", "{word}{long}": "b7", "is {word}": "is b",
	} {
		parts, err := compileMessage(text, expressionVariables())
		if got := render(parts, expressionValues()); err != nil || got != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"{unheard}", "{n", "{}"} {
		if parts, err := compileMessage(text, expressionVariables()); err == nil {
			t.Errorf("%q became %v", text, parts)
		}
	}
}

// TestPlainValues: a variable has the JSON that it was read from.
func TestPlainValues(t *testing.T) {
	for name, test := range map[string]struct {
		typ  Type
		json any
	}{
		"a number": {TypeInt, int64(3)}, "a generation": {TypeLong, int64(1) << 40}, "a word": {TypeString, "b"}, "yes": {TypeBool, true}, "no": {TypeBool, false},
		"a partition": {TypePartition, int64(3)}, "no partition": {TypePartition, int64(0)}, "a percentage": {TypePartition, "50%"},
	} {
		v, err := convert(test.json, test.typ)
		if got := plain(v, test.typ); err != nil || got != test.json {
			t.Errorf("%s: %v became %v, %v", name, test.json, got, err)
		}
	}
}

// TestShortenedText: what of a report stands in a message is 64 bytes, and no half of a character.
func TestShortenedText(t *testing.T) {
	fits := strings.Repeat("a", 64)
	for text, want := range map[string]string{
		"": "", "short": "short", fits: fits, fits + "a": fits + "...", fits[:63] + "ä": fits[:63] + "...",
	} {
		if got := shorten(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}
