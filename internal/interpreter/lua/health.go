package lua

import (
	"fmt"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// health writes the rules of a kind. Whatever a report has of the wrong type raises an error inside, and is not healthy:
// Karmada knows no third answer.
func health(kind *interpreter.Kind, s *script) {
	if !kind.BuiltIn() {
		return
	}
	s.add("read", "status")
	fields(kind, s, false)
	s.write("\nlocal statusOptional = %t\n", kind.StatusOptional)
	s.add("readstatus")
	var b strings.Builder
	if err := body(kind, &b); err != nil {
		s.err = err
		return
	}
	if strings.Contains(b.String(), "kept(") {
		s.add("kept")
	}
	for _, in := range kind.Spec {
		if in.Derive != "" {
			s.add(strings.ToLower(in.Derive))
		}
	}
	s.write("\nlocal function healthy(observedObj)\n%send\n", b.String())
	s.write("\nfunction InterpretHealth(observedObj)\n  local ok, verdict = pcall(healthy, observedObj)\n" +
		"  return ok and verdict == true\nend\n")
}

func body(kind *interpreter.Kind, b *strings.Builder) error {
	b.WriteString(`  local status, metadata = observedObj.status, observedObj.metadata
  if status == nil then
    status = {}
  end
  if object(status) and object(metadata) and metadata.generation ~= nil then
    status.generation = metadata.generation
  end
  local v = readStatus(status)
  v.seen = seen(v)
`)
	for _, in := range kind.Spec {
		if err := input(in, b); err != nil {
			return err
		}
	}
	for _, l := range kind.Lets {
		text, err := expression(l.Compiled)
		if err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		fmt.Fprintf(b, "  v.%s = %s\n", l.Name, text)
	}
	for i, r := range kind.Rules {
		verdict := r.Health == v1alpha1.HealthHealthy
		if r.Compiled == nil {
			if i != len(kind.Rules)-1 {
				return fmt.Errorf("rules follow the one that always holds")
			}
			fmt.Fprintf(b, "  return %t -- %s\n", verdict, r.Reason)
			continue
		}
		text, err := expression(r.Compiled)
		if err != nil {
			return fmt.Errorf("rule %d: %w", i, err)
		}
		fmt.Fprintf(b, "  if %s then\n    return %t -- %s\n  end\n", text, verdict, r.Reason)
	}
	return nil
}

func input(in interpreter.Input, b *strings.Builder) error {
	value := "nil"
	if in.At != "" {
		value = fmt.Sprintf("convert(lookup(observedObj, %s), %s)", path(in.Path), quote(string(in.Type)))
	}
	fmt.Fprintf(b, "  v.%s = %s\n", in.Name, value)
	var instead string
	switch {
	case in.Derive != "" && in.Default != nil:
		return fmt.Errorf("input %s is derived and has a default", in.Name)
	case in.Derive != "":
		instead = in.Derive + "(observedObj, v.desired)"
	case in.Default != nil:
		instead = fmt.Sprint(*in.Default)
	default:
		return nil
	}
	fmt.Fprintf(b, "  if v.%s == nil then\n    v.%s = %s\n  end\n", in.Name, in.Name, instead)
	return nil
}
