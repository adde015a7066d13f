package brief

import (
	"slices"
	"strings"
	"testing"
)

// A list says how many of it are not named; what just fits is written out.
func TestList(t *testing.T) {
	names := strings.Split("abcdefgh", "")
	for n, want := range map[int]string{0: "", 1: "a", 5: "a, b, c, d, e", 6: "a, b, c, d, e and 1 more", 8: "a, b, c, d, e and 3 more"} {
		if got := List(names[:n]); got != want {
			t.Errorf("%d names: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int]string{0: "", 2: "a; b", 3: "a; b; and 1 more", 8: "a; b; and 6 more"} {
		if got := Clauses(names[:n], 2); got != want {
			t.Errorf("%d clauses: %q, want %q", n, got, want)
		}
	}
}

// TestNote: it is text within 1 KiB, and what fits stays as it is.
func TestNote(t *testing.T) {
	for message, want := range map[string]string{
		"": "", "short": "short", "no\xfftext": "notext",
		strings.Repeat("x", 1000): strings.Repeat("x", 1000), strings.Repeat("x", 1001): strings.Repeat("x", 997) + "...",
		strings.Repeat("é", 501): strings.Repeat("é", 498) + "...",
	} {
		if got := Note(message); got != want {
			t.Errorf("%q is %q, want %q", message, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, test := range map[string]struct {
		messages []string
		most     int
		want     []string
	}{
		"nothing":                        {nil, 10, []string{}},
		"what fits stays":                {[]string{"a", long, ""}, 101, []string{"a", long, ""}},
		"the first have most":            {[]string{long, long, long, long}, 80, []string{long[:47] + "...", long[:7] + "...", long[:7] + "...", long[:7] + "..."}},
		"what the short leave is used":   {[]string{"a", long, "b", long}, 80, []string{"a", long[:56] + "...", "b", long[:16] + "..."}},
		"no letter is cut through":       {[]string{"ééééé"}, 8, []string{"éé..."}},
		"as short as the mark can stand": {[]string{long, long}, 12, []string{long[:6] + "...", "..."}},
	} {
		got := Fit(test.messages, test.most)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
		if again := Fit(got, test.most); !slices.Equal(again, got) {
			t.Errorf("%s: again %q", name, again)
		}
	}
}
