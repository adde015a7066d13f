package difference

import (
	"slices"
	"strings"
	"testing"
)

func holding(kind string, data map[string]any) map[string]any {
	return map[string]any{"kind": kind, "data": data, "metadata": map[string]any{"labels": map[string]any{"app": "web"}}}
}

func TestLines(t *testing.T) {
	for name, test := range map[string]struct {
		from, to      map[string]any
		lines, fields string
	}{
		"the same":   {holding("ConfigMap", map[string]any{"a": "1"}), holding("ConfigMap", map[string]any{"a": "1"}), "", ""},
		"a value":    {holding("ConfigMap", map[string]any{"a": "1"}), holding("ConfigMap", map[string]any{"a": "2"}), "data.a 1 -> 2", "data.a changed"},
		"a new key":  {holding("ConfigMap", map[string]any{}), holding("ConfigMap", map[string]any{"a.b": "2"}), "data[a.b] added: 2", "data[a.b] added"},
		"a key gone": {holding("ConfigMap", map[string]any{"a": "1"}), holding("ConfigMap", map[string]any{}), "data.a removed: 1", "data.a removed"},
		"a line of a text": {
			holding("ConfigMap", map[string]any{"a": "x: 1\ny: 2\nz: 3\n"}), holding("ConfigMap", map[string]any{"a": "x: 1\ny: 5\nz: 3\n"}),
			"data.a line 2: y: 2 -> y: 5", "data.a changed",
		},
		"lines of a text": {
			holding("ConfigMap", map[string]any{"a": "x: 1\ny: 2\n"}), holding("ConfigMap", map[string]any{"a": "x: 1\nz: 3\nz: 4\ny: 2\n"}),
			"data.a from line 2: 0 lines taken out, 2 put in", "data.a changed",
		},
		"a text that repeats": {
			holding("ConfigMap", map[string]any{"a": "x\nx\nx\n"}), holding("ConfigMap", map[string]any{"a": "x\nx\n"}),
			"data.a from line 3: 1 line taken out, 0 put in", "data.a changed",
		},
		"what a Secret holds": {
			holding("Secret", map[string]any{"a": "b25l", "c": "dHdv"}), holding("Secret", map[string]any{"a": "dGhyZWU=", "d": "b25l"}),
			"data.a changed|data.c removed|data.d added", "data.a changed|data.c removed|data.d added",
		},
	} {
		if got := strings.Join(Lines(test.from, test.to), "|"); got != test.lines {
			t.Errorf("%s: %q, want %q", name, got, test.lines)
		}
		if got := strings.Join(Fields(test.from, test.to), "|"); got != test.fields {
			t.Errorf("%s, fields: %q, want %q", name, got, test.fields)
		}
	}
}

// TestASecretIsNotQuoted: in no place, of one that comes, changes or loses what it holds.
func TestASecretIsNotQuoted(t *testing.T) {
	const hidden = "aHVudGVyMg=="
	whole := func(value string) map[string]any {
		return map[string]any{
			"kind": "Secret", "data": map[string]any{"password": value}, "stringData": map[string]any{"text": value + "\n" + value},
			"metadata": map[string]any{"annotations": map[string]any{LastApplied: value}},
		}
	}
	empty := map[string]any{"kind": "Secret", "metadata": map[string]any{}}
	for _, pair := range [][2]map[string]any{{whole(hidden), whole("b3RoZXI=")}, {whole("b3RoZXI="), whole(hidden)}, {empty, whole(hidden)}, {whole(hidden), empty}} {
		lines := slices.Concat(Lines(pair[0], pair[1]), Fields(pair[0], pair[1]))
		if all := strings.Join(lines, "\n"); len(lines) == 0 || strings.Contains(all, hidden) || strings.Contains(all, "b3RoZXI=") {
			t.Errorf("it says %s", all)
		}
	}
}
