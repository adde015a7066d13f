package crdcheck

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// Draw makes up objects by a schema, at its limits more often than not. It obeys what the schema says of single values; rules across
// fields it may break, so that Admit has the last word.
type Draw struct {
	*rand.Rand
	// Choices decide before chance does, one a byte, so that a fuzzer can steer.
	Choices []byte
	// Room bounds the size of an object, in bytes of JSON, about.
	Room int
	// Words are strings to draw where the schema takes any.
	Words []string
	// Hint are words for a path; they are drawn more often than others.
	Hint func(path string) []string
	// Free makes up a value where the schema takes any; path leads to it. It may return nothing, and a word is drawn.
	Free func(path string) any
}

// Value draws a value of the schema. path leads to it, with dots.
func (d *Draw) Value(s *structuralschema.Structural, path string) any {
	v := s.ValueValidation
	if v == nil {
		v = &structuralschema.ValueValidation{}
	}
	switch {
	case len(v.Enum) > 0:
		return v.Enum[d.below(len(v.Enum))].Object
	case s.Type == "" || s.XPreserveUnknownFields:
		if value := d.free(path); s.Type == "" || isObject(value) {
			return value
		}
		return map[string]any{}
	case s.Type == "object":
		return d.object(s, v, path)
	case s.Type == "array":
		return d.array(s, v, path)
	case s.Type == "string":
		return d.text(s, v, path)
	case s.Type == "boolean":
		return d.below(2) == 0
	default:
		return d.number(v)
	}
}

// below is a number from 0 to n-1.
func (d *Draw) below(n int) int {
	if len(d.Choices) > 0 {
		choice := int(d.Choices[0])
		d.Choices = d.Choices[1:]
		return choice % n
	}
	return d.IntN(n)
}

func (d *Draw) free(path string) any {
	if d.Free != nil {
		if value := d.Free(path); value != nil {
			return value
		}
	}
	return d.Words[d.below(len(d.Words))]
}

func (d *Draw) object(s *structuralschema.Structural, v *structuralschema.ValueValidation, path string) any {
	out := map[string]any{}
	d.Room -= 2
	chance, forced := 1+d.below(9), ""
	if keys := slices.Sorted(maps.Keys(s.Properties)); v.MinProperties != nil && len(keys) > 0 {
		forced = keys[d.below(len(keys))]
	}
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		wanted := slices.Contains(v.Required, key) || key == forced
		if !wanted && (d.Room <= 0 || d.below(10) >= chance) {
			continue
		}
		below := s.Properties[key]
		d.Room -= len(key) + 4
		out[key] = d.Value(&below, path+"."+key)
	}
	if more := s.AdditionalProperties; more != nil && more.Structural != nil {
		for range d.count(v.MinProperties, v.MaxProperties) {
			key := d.text(more.Structural, &structuralschema.ValueValidation{}, path+".key")
			out[key] = d.Value(more.Structural, path+".*")
		}
	}
	return out
}

func (d *Draw) array(s *structuralschema.Structural, v *structuralschema.ValueValidation, path string) any {
	out := []any{}
	for i := range d.count(v.MinItems, v.MaxItems) {
		item := d.Value(s.Items, path+"[]")
		if entry, is := item.(map[string]any); is { // the keys of a list must differ
			for _, key := range s.XListMapKeys {
				entry[key] = fmt.Sprintf("%.20s%d", entry[key], i)
			}
		}
		if word, is := item.(string); is && s.XListType != nil && *s.XListType == "set" && slices.Contains(out, item) {
			item = fmt.Sprintf("%.20s%d", word, i)
		}
		out = append(out, item)
	}
	return out
}

// count is how many entries something has: few, or as many as may be and there is room for.
func (d *Draw) count(least, most *int64) int {
	low, high := 0, 200
	if least != nil {
		low = int(*least)
	}
	if most != nil {
		high = int(*most)
	}
	high = max(low, min(high, d.Room/16))
	switch d.below(4) {
	case 0:
		return high
	case 1:
		return low
	default:
		return min(high, low+d.below(3))
	}
}

func (d *Draw) text(s *structuralschema.Structural, v *structuralschema.ValueValidation, path string) string {
	least, most := 0, 4096
	if v.MinLength != nil {
		least = int(*v.MinLength)
	}
	if v.MaxLength != nil {
		most = int(*v.MaxLength)
	}
	most = max(least, min(most, d.Room))
	fits := func(w string) bool {
		return len(w) >= least && len(w) <= most && !slices.ContainsFunc(patterns(s, v), func(p *regexp.Regexp) bool { return !p.MatchString(w) })
	}
	words := d.Words
	if d.Hint != nil && d.below(8) > 0 {
		if hints := d.Hint(path); len(hints) > 0 {
			words = hints
		}
	}
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !fits(w) })
	word := strings.Repeat("a", max(1, least))
	if len(words) > 0 {
		word = words[d.below(len(words))]
	}
	if word != "" && d.below(12) == 0 { // as long as it may be
		if long := word + strings.Repeat(word[len(word)-1:], max(0, most-len(word))); fits(long) {
			word = long
		}
	}
	d.Room -= len(word) + 3
	return word
}

// matches is how a CEL rule has a string match a pattern.
var matches = regexp.MustCompile(`self\.matches\('([^']+)'\)`)

// patterns are those that a string must match.
func patterns(s *structuralschema.Structural, v *structuralschema.ValueValidation) []*regexp.Regexp {
	var all []*regexp.Regexp
	if v.Pattern != "" {
		all = append(all, regexp.MustCompile(v.Pattern))
	}
	for _, rule := range s.XValidations {
		if found := matches.FindStringSubmatch(rule.Rule); found != nil {
			all = append(all, regexp.MustCompile(found[1]))
		}
	}
	return all
}

func isObject(value any) bool {
	_, is := value.(map[string]any)
	return is
}

func (d *Draw) number(v *structuralschema.ValueValidation) any {
	low, high := int64(-1)<<31, int64(1)<<31-1
	if v.Minimum != nil {
		low = int64(*v.Minimum)
	}
	if v.Maximum != nil {
		high = int64(*v.Maximum)
	}
	d.Room -= 8
	switch d.below(4) {
	case 0:
		return low
	case 1:
		return high
	default:
		return min(high, low+int64(d.below(5)))
	}
}
