package v1alpha1

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEveryReasonHasItsRemedy demands a section of docs/conditions.md for each reason, and a reason for each section.
func TestEveryReasonHasItsRemedy(t *testing.T) {
	source, err := os.ReadFile("conditions.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(string(page), -1) {
		sections[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`Reason\w+ += "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		if !sections[m[1]] {
			t.Errorf("reason %s has no section", m[1])
		}
		delete(sections, m[1])
	}
	for name := range sections {
		t.Errorf("section %s has no reason", name)
	}
	for _, kind := range []string{ConditionReady, ConditionReconciling, ConditionStalled, ConditionScheduled, ConditionApplied, ConditionHealthy} {
		if !strings.Contains(string(page), "| `"+kind+"` |") {
			t.Errorf("condition %s is not explained", kind)
		}
	}
}
