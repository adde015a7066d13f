package interpreter

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/fleetworkload/fleetworkload/backends"
)

// Segment is one step of a Path: a key, and then, when By is set, the first element of the list there whose By is Is. By
// is a key, or several with dots between.
type Segment struct {
	Key    string
	By, Is string
}

// Path leads through an object to one value. It is written spec.replicas, status.conditions[type=Ready].status, or
// metadata.annotations['example.io/key'].
type Path []Segment

// ParsePath reads a Path. A leading dot is allowed, as JSONPath has it.
func ParsePath(text string) (Path, error) {
	rest := strings.TrimPrefix(text, ".")
	var path Path
	for rest != "" {
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		segment := Segment{Key: rest[:end]}
		if segment.Key == "" {
			return nil, fmt.Errorf("path %q: a name is missing at %q", text, rest)
		}
		rest = rest[end:]
		path = append(path, segment)
		for strings.HasPrefix(rest, "[") {
			inside, after, closed := strings.Cut(rest[1:], "]")
			rest = after
			last := &path[len(path)-1]
			switch by, is, chosen := strings.Cut(inside, "="); {
			case !closed:
				return nil, fmt.Errorf("path %q: a bracket is not closed", text)
			case chosen && selectable.MatchString(by) && is != "" && last.By == "":
				last.By, last.Is = by, is
			case len(inside) > 2 && inside[0] == '\'' && inside[len(inside)-1] == '\'':
				path = append(path, Segment{Key: inside[1 : len(inside)-1]})
			default:
				return nil, fmt.Errorf("path %q: [%s] is neither [key=...] nor ['key']", text, inside)
			}
		}
		if rest == "." {
			return nil, fmt.Errorf("path %q: a name is missing at its end", text)
		}
		rest = strings.TrimPrefix(rest, ".")
	}
	if len(path) == 0 {
		return nil, fmt.Errorf("path %q is empty", text)
	}
	return path, nil
}

// selectable is a key by which an element of a list is chosen.
var selectable = regexp.MustCompile(`^[a-zA-Z]+(\.[a-zA-Z]+)*$`)

// chosen tells whether the step takes that element of a list.
func (s Segment) chosen(element map[string]any) bool {
	var at any = element
	for _, key := range strings.Split(s.By, ".") {
		object, _ := at.(map[string]any)
		at = object[key]
	}
	return at == s.Is
}

// keys returns a path of keys alone, and false when the path goes through a list.
func (p Path) keys() ([]string, bool) {
	keys := make([]string, 0, len(p))
	for _, s := range p {
		if s.By != "" {
			return nil, false
		}
		keys = append(keys, s.Key)
	}
	return keys, true
}

// JSONPath writes the path as OCM's feedback rules want it, without braces.
func (p Path) JSONPath() string {
	var b strings.Builder
	for _, s := range p {
		b.WriteString(".")
		b.WriteString(strings.ReplaceAll(s.Key, ".", `\.`))
		if s.By != "" {
			fmt.Fprintf(&b, `[?(@.%s==%q)]`, s.By, s.Is)
		}
	}
	return b.String()
}

// String writes the path as ParsePath reads it.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case strings.ContainsAny(s.Key, ".[]/"):
			fmt.Fprintf(&b, "['%s']", s.Key)
		case i > 0:
			b.WriteString("." + s.Key)
		default:
			b.WriteString(s.Key)
		}
		if s.By != "" {
			fmt.Fprintf(&b, "[%s=%s]", s.By, s.Is)
		}
	}
	return b.String()
}

// lookup returns the value at the path; nil when there is none, or when something on the way is null. A value on the
// way that is of another shape is an error: it is not absence.
func (p Path) lookup(root map[string]any) (any, error) {
	var at any = root
	for i, s := range p {
		object, ok := at.(map[string]any)
		if !ok {
			if at == nil {
				return nil, nil
			}
			return nil, fmt.Errorf("%s: want an object, got %s", p[:i], shape(at))
		}
		at = object[s.Key]
		if s.By == "" || at == nil {
			continue
		}
		list, ok := at.([]any)
		if !ok {
			return nil, fmt.Errorf("%s: want a list, got %s", p[:i+1], shape(at))
		}
		at = nil
		for _, element := range list {
			e, ok := element.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%s: want a list of objects, got %s in it", p[:i+1], shape(element))
			}
			if at == nil && s.chosen(e) {
				at = e
			}
		}
	}
	return at, nil
}

// put writes a value at the path, making what is missing on the way. It is for objects made here only.
func (p Path) put(root map[string]any, v any) {
	at := root
	for i, s := range p {
		if s.By == "" {
			if i == len(p)-1 {
				at[s.Key] = v
				return
			}
			next, ok := at[s.Key].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[s.Key] = next
			}
			at = next
			continue
		}
		list, _ := at[s.Key].([]any)
		var next map[string]any
		for _, element := range list {
			if e, ok := element.(map[string]any); ok && s.chosen(e) {
				next = e
			}
		}
		if next == nil {
			next = map[string]any{}
			keysPath(s.By).put(next, s.Is)
			at[s.Key] = append(list, next)
		}
		at = next
	}
}

// keysPath is a path of keys with dots between.
func keysPath(dotted string) Path {
	var path Path
	for _, key := range strings.Split(dotted, ".") {
		path = append(path, Segment{Key: key})
	}
	return path
}

// shape names a JSON type for messages; it never shows the value, which may be large.
func shape(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	default:
		return "a number"
	}
}

// feedback makes one feedback field of a status field.
func feedback(f Field) backends.FeedbackField {
	return backends.FeedbackField{Name: f.Name, Path: f.Path.JSONPath()}
}
