package interpreter

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/health.md anew")

const (
	documentPath = "../../docs/health.md"
	generated    = "<!-- From here on written by: go test ./internal/interpreter -run TestDocument -update -->\n"
)

// TestDocument holds the tables of docs/health.md against the definitions.
func TestDocument(t *testing.T) {
	raw, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	prose, tables, found := strings.Cut(string(raw), generated)
	if !found {
		t.Fatalf("%s lacks the line %s", documentPath, generated)
	}
	want := document(registry(t))
	if *update {
		if err := os.WriteFile(documentPath, []byte(prose+generated+want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if tables != want {
		t.Errorf("%s does not say what the code does; run: go test ./internal/interpreter -run TestDocument -update", documentPath)
	}
}

func document(r *Registry) string {
	var b strings.Builder
	b.WriteString("\n## Before a kind's own rules\n\n")
	writeRules(&b, preamble(true, true))
	b.WriteString("\nThe third and fourth are for kinds with `status.observedGeneration`, the fifth for kinds with replicas.\n")
	written := map[string]string{}
	for _, k := range r.Kinds() {
		own := ownTables(k)
		name := k.GVK().GroupVersion().String() + " " + k.Definition.Kind
		fmt.Fprintf(&b, "\n## %s\n\n", name)
		if same, twice := written[k.Definition.Kind+own]; twice {
			fmt.Fprintf(&b, "As %s.\n", same)
			continue
		}
		written[k.Definition.Kind+own] = name
		b.WriteString(own)
	}
	b.WriteString("\n## Where Karmada's own test cases say something else\n\n| kind | operation | case | why ours is right |\n|---|---|---|---|\n")
	for _, d := range differences {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", d.kind, d.operation, d.name, d.why)
	}
	return b.String()
}

func ownTables(k *Kind) string {
	var b strings.Builder
	place := func(what, path string) {
		if path != "" {
			fmt.Fprintf(&b, "%s: `%s`. ", what, path)
		}
	}
	if k.ClusterScoped {
		b.WriteString("Cluster-scoped. ")
	}
	place("Replicas", k.Replicas)
	place("Pod template", strings.Join(k.PodTemplates, "`, or `"))
	place("Selector", k.Selector)
	place("Never sent", strings.Join(k.SelfRemovals, "`, `"))
	if p := k.Partition; p != nil {
		meaning := map[Meaning]string{PartitionKept: "pods kept old", PartitionOrdinal: "first ordinal updated", PartitionSubsets: "pods kept old, by subset"}
		fmt.Fprintf(&b, "Partition: `%s` (%s). ", p.Path, meaning[p.Meaning])
	}
	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
	if len(k.Lets) > 0 || len(k.Spec) > 1 {
		b.WriteString("| variable | is |\n|---|---|\n")
		for _, in := range k.Spec[1:] {
			from := "`" + in.At + "`"
			if in.Default != nil {
				from += fmt.Sprintf(", else %d", *in.Default)
			}
			if in.Derive != "" {
				from = strings.TrimPrefix(from+", else `"+in.Derive+"`", "``, else ")
			}
			fmt.Fprintf(&b, "| %s | %s |\n", in.Name, from)
		}
		for _, l := range k.Lets {
			fmt.Fprintf(&b, "| %s | `%s` |\n", l.Name, strings.ReplaceAll(l.Expr, "|", `\|`))
		}
		b.WriteString("\n")
	}
	own := k.Rules
	for len(own) > 0 {
		reason := own[0].Reason
		if reason != ReasonDeleting && reason != ReasonWaitingForStatus && reason != ReasonNotObserved && reason != ReasonDesiredUnknown {
			break
		}
		own = own[1:]
	}
	writeRules(&b, own)
	b.WriteString("\n| status field | name | type | over clusters | when absent |\n|---|---|---|---|---|\n")
	for _, f := range k.Status[2:] {
		combine := string(f.Combine)
		if len(f.Order) > 0 {
			combine += fmt.Sprintf(" of %q", f.Order)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.At, f.Name, f.Type, combine, f.Absent)
	}
	return b.String()
}

func writeRules(b *strings.Builder, rules []Rule) {
	b.WriteString("| when | health | reason | message |\n|---|---|---|---|\n")
	for _, r := range rules {
		when := "otherwise"
		if r.When != "" {
			when = "`" + strings.ReplaceAll(r.When, "|", `\|`) + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", when, r.Health, r.Reason, r.Message)
	}
}
