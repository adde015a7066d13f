package pass

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// TestEveryCodeHasAReason: a person has to act on all but what passes by itself.
func TestEveryCodeHasAReason(t *testing.T) {
	source, err := os.ReadFile("../../backends/errors.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`\tCode\w+ +Code = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(codes) != len(reasons) {
		t.Errorf("%d codes and %d reasons", len(codes), len(reasons))
	}
	for _, match := range codes {
		code := backends.Code(match[1])
		problem, _ := problemOf(fmt.Errorf("apply: %w", &backends.Error{Code: code, Message: "m"}), "one")
		passes := code == backends.CodeUnavailable || code == backends.CodeNotReady
		if problem.Reason == v1alpha1.ReasonInternalError || problem.Stalled == passes {
			t.Errorf("%s: %+v", code, problem)
		}
	}
	for name, err := range map[string]error{"a code that nobody knows": &backends.Error{Code: "New"}, "no code": errors.New("broken")} {
		if problem, _ := problemOf(err, "one"); problem.Reason != v1alpha1.ReasonInternalError || problem.Stalled {
			t.Errorf("%s: %+v", name, problem)
		}
	}
}
