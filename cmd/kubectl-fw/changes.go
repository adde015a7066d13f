package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

// changes are what differs from one version to another, a line each.
func changes(from, to revisions.Shipped) ([]string, error) {
	was, err := partsOf(from)
	if err != nil {
		return nil, err
	}
	is, err := partsOf(to)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, name := range union(was, is) {
		before, after := was.named[name], is.named[name]
		switch {
		case before == nil:
			lines = append(lines, name+": added")
		case after == nil:
			lines = append(lines, name+": removed")
		default:
			for _, op := range jsondiff.Diff(before, after) {
				lines = append(lines, name+": "+change(op, before, after))
			}
		}
	}
	if d, e := dependencies(from), dependencies(to); d != e {
		lines = append(lines, fmt.Sprintf("dependencies: %s -> %s", d, e))
	}
	if len(lines) == 0 && !slices.Equal(was.names, is.names) {
		lines = append(lines, "the order of companions or overrides")
	}
	return lines, nil
}

func dependencies(s revisions.Shipped) string {
	if s.Dependencies == "" {
		return string(v1alpha1.DependencyPolicyIgnore)
	}
	return string(s.Dependencies)
}

// parts are the template, the companions and the overrides of a version, by what people call them.
type parts struct {
	names []string
	named map[string]map[string]any
}

func (p *parts) add(name string, raw []byte) error {
	part := map[string]any{}
	if err := utiljson.Unmarshal(raw, &part); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for n, first := 2, name; p.named[name] != nil; n++ {
		name = fmt.Sprintf("%s (%d)", first, n)
	}
	p.names, p.named[name] = append(p.names, name), part
	return nil
}

func partsOf(s revisions.Shipped) (*parts, error) {
	p := &parts{named: map[string]map[string]any{}}
	if err := p.add("template", s.Template.Raw); err != nil {
		return nil, err
	}
	for _, companion := range s.Companions {
		if err := p.add("companion "+nameOf(companion), companion.Raw); err != nil {
			return nil, err
		}
	}
	for _, override := range s.Overrides {
		raw, err := json.Marshal(override)
		if err != nil {
			return nil, fmt.Errorf("override %s: %w", override.Name, err)
		}
		if err := p.add("override "+override.Name, raw); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// nameOf is KIND/NAME of a manifest.
func nameOf(manifest runtime.RawExtension) string {
	var head metav1.PartialObjectMetadata
	_ = utiljson.Unmarshal(manifest.Raw, &head) // what has no name is shown without
	return head.Kind + "/" + head.Name
}

// union are the names of both: those of the first in their order, then what is new.
func union(a, b *parts) []string {
	names := slices.Clone(a.names)
	for _, name := range b.names {
		if a.named[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// change words one operation: where, and from which value to which. What a Secret holds is not shown.
func change(op jsondiff.Op, from, to map[string]any) string {
	tokens := strings.Split(strings.TrimPrefix(op.Path, "/"), "/")
	for i, token := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	where, was := walk(from, tokens)
	what := map[string]string{jsondiff.OpAdd: "added", jsondiff.OpRemove: "removed", jsondiff.OpReplace: "changed"}[op.Op]
	_, wasScalar := scalar(was)
	_, isScalar := scalar(op.Value)
	switch {
	case secret(from, tokens) || secret(to, tokens):
		return where + " " + what
	case op.Op == jsondiff.OpAdd && isScalar:
		return fmt.Sprintf("%s added: %s", where, shown(op.Value))
	case op.Op == jsondiff.OpRemove && wasScalar:
		return fmt.Sprintf("%s removed: %s", where, shown(was))
	case op.Op == jsondiff.OpReplace && (wasScalar || isScalar):
		return fmt.Sprintf("%s %s -> %s", where, shown(was), shown(op.Value))
	}
	if a, b := asList(was), asList(op.Value); a != nil && b != nil {
		return fmt.Sprintf("%s %s -> %d", where, counted(len(a), "entry", "entries"), len(b))
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
	if !isText || text != oneLine(text) || text == "" {
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

// lastApplied holds a whole manifest, content included.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// isSecret tells whether a manifest is that of a Secret.
func isSecret(manifest map[string]any) bool { return manifest["kind"] == "Secret" }

// secret tells whether a path leads to what a Secret holds.
func secret(manifest map[string]any, tokens []string) bool {
	return isSecret(manifest) && (tokens[0] == "data" || tokens[0] == "stringData" || slices.Contains(tokens, lastApplied))
}

// masked is a version without what Secrets hold.
func masked(s revisions.Shipped) (revisions.Shipped, error) {
	var err error
	if s.Template, err = maskedManifest(s.Template); err != nil {
		return s, fmt.Errorf("template: %w", err)
	}
	s.Companions = slices.Clone(s.Companions)
	for i, companion := range s.Companions {
		if s.Companions[i], err = maskedManifest(companion); err != nil {
			return s, fmt.Errorf("companion %s: %w", nameOf(companion), err)
		}
	}
	return s, nil
}

func maskedManifest(whole runtime.RawExtension) (runtime.RawExtension, error) {
	manifest := map[string]any{}
	if err := utiljson.Unmarshal(whole.Raw, &manifest); err != nil || !isSecret(manifest) {
		return whole, err
	}
	for _, field := range []string{"data", "stringData"} {
		if _, has := manifest[field]; has {
			manifest[field] = hidden(manifest[field])
		}
	}
	metadata, _ := manifest["metadata"].(map[string]any)
	if annotations, is := metadata["annotations"].(map[string]any); is && annotations[lastApplied] != nil {
		annotations[lastApplied] = mask
	}
	raw, err := json.Marshal(manifest)
	return runtime.RawExtension{Raw: raw}, err
}

// mask stands for what is not shown, as in kubectl diff.
const mask = "***"

// hidden keeps the keys.
func hidden(v any) any {
	object, is := v.(map[string]any)
	if !is {
		return mask
	}
	out := make(map[string]any, len(object))
	for key := range object {
		out[key] = mask
	}
	return out
}
