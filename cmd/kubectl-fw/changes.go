package main

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/difference"
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
				lines = append(lines, name+": "+difference.Line(op, before, after))
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
	if err := utiljson.Unmarshal(whole.Raw, &manifest); err != nil || !difference.IsSecret(manifest) {
		return whole, err
	}
	for _, field := range []string{"data", "stringData"} {
		if _, has := manifest[field]; has {
			manifest[field] = hidden(manifest[field])
		}
	}
	metadata, _ := manifest["metadata"].(map[string]any)
	if annotations, is := metadata["annotations"].(map[string]any); is && annotations[difference.LastApplied] != nil {
		annotations[difference.LastApplied] = mask
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
