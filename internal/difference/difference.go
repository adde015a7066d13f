// Package difference says for a person what is different between two manifests. What a Secret holds it never says. It is pure.
package difference

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// Lines are what is different, a line each.
func Lines(from, to map[string]any) []string {
	return lines(from, to, Line)
}

// Fields are what is different, a line each, without a value: for who may not read either.
func Fields(from, to map[string]any) []string {
	return lines(from, to, field)
}

func lines(from, to map[string]any, word func(op jsondiff.Op, from, to map[string]any) string) []string {
	var out []string
	for _, op := range jsondiff.Diff(from, to) {
		out = append(out, word(op, from, to))
	}
	return out
}

// field says where, and nothing of what was there or is now.
func field(op jsondiff.Op, from, _ map[string]any) string {
	where, _ := walk(from, tokensOf(op))
	return where + " " + done(op)
}

func tokensOf(op jsondiff.Op) []string {
	tokens := strings.Split(strings.TrimPrefix(op.Path, "/"), "/")
	for i, token := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return tokens
}

func done(op jsondiff.Op) string {
	return map[string]string{jsondiff.OpAdd: "added", jsondiff.OpRemove: "removed", jsondiff.OpReplace: "changed"}[op.Op]
}

// Line words one operation: where, and from which value to which. What a Secret holds is not shown.
func Line(op jsondiff.Op, from, to map[string]any) string {
	tokens := tokensOf(op)
	where, was := walk(from, tokens)
	what := done(op)
	_, wasScalar := scalar(was)
	_, isScalar := scalar(op.Value)
	switch {
	case secret(from, tokens) || secret(to, tokens):
		return where + " " + what
	case op.Op == jsondiff.OpAdd && isScalar:
		return fmt.Sprintf("%s added: %s", where, shown(op.Value))
	case op.Op == jsondiff.OpRemove && wasScalar:
		return fmt.Sprintf("%s removed: %s", where, shown(was))
	case op.Op == jsondiff.OpReplace && isText(was) && isText(op.Value):
		return where + " " + texts(was.(string), op.Value.(string))
	case op.Op == jsondiff.OpReplace && (wasScalar || isScalar):
		return fmt.Sprintf("%s %s -> %s", where, shown(was), shown(op.Value))
	}
	if a, b := asList(was), asList(op.Value); a != nil && b != nil {
		return fmt.Sprintf("%s %s -> %d", where, entries(len(a)), len(b))
	}
	return where + " " + what
}

// walk returns a path as people write it, and the value there.
func walk(from map[string]any, tokens []string) (where string, value any) {
	value = from
	for _, token := range tokens {
		if list, is := value.([]any); is {
			value = nil
			if i, err := strconv.Atoi(token); err == nil && i < len(list) {
				value = list[i]
			}
			where += "[" + token + "]"
			continue
		}
		object, _ := value.(map[string]any)
		value = object[token]
		switch {
		case token == "" || strings.ContainsAny(token, "./[]"):
			where += "[" + token + "]"
		case where == "":
			where = token
		default:
			where += "." + token
		}
	}
	return where, value
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func scalar(v any) (any, bool) {
	switch v.(type) {
	case map[string]any, []any:
		return nil, false
	default:
		return v, true
	}
}

// shown is a value in a line, cut when it is long.
func shown(v any) string {
	const most = 80
	value, is := scalar(v)
	if !is {
		return "..."
	}
	text, isText := value.(string)
	if !isText || text != strings.Join(strings.Fields(text), " ") || text == "" {
		raw, err := json.Marshal(value)
		if err != nil {
			return "?"
		}
		text = string(raw)
	}
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

// LastApplied holds a whole manifest, content included.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// IsSecret tells whether a manifest is that of a Secret.
func IsSecret(manifest map[string]any) bool { return manifest["kind"] == "Secret" }

// secret tells whether a path leads to what a Secret holds.
func secret(manifest map[string]any, tokens []string) bool {
	return IsSecret(manifest) && (tokens[0] == "data" || tokens[0] == "stringData" || slices.Contains(tokens, LastApplied))
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// isText tells whether a value has several lines.
func isText(v any) bool {
	text, is := v.(string)
	return is && strings.Contains(strings.TrimRight(text, "\n"), "\n")
}

// texts says in which lines two texts differ.
func texts(was, is string) string {
	before, after := strings.Split(was, "\n"), strings.Split(is, "\n")
	first := 0
	for first < min(len(before), len(after)) && before[first] == after[first] {
		first++
	}
	last := 0
	for last < min(len(before), len(after))-first && before[len(before)-1-last] == after[len(after)-1-last] {
		last++
	}
	gone, come := before[first:len(before)-last], after[first:len(after)-last]
	if len(gone) == 1 && len(come) == 1 {
		return fmt.Sprintf("line %d: %s -> %s", first+1, shown(gone[0]), shown(come[0]))
	}
	return fmt.Sprintf("from line %d: %s taken out, %d put in", first+1, counted(len(gone)), len(come))
}

// counted counts lines.
func counted(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}
