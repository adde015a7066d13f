package backendtest_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fleetworkload/fleetworkload/backends/backendtest"
)

// TestContractIsComplete holds the rules in the interface's comment, the page and the suite together.
func TestContractIsComplete(t *testing.T) {
	page := file(t, "../../docs/driver-contract.md")
	sections := map[string]string{}
	for _, section := range strings.Split(page, "\n### ")[1:] {
		number, _, _ := strings.Cut(section, " ")
		section, _, _ = strings.Cut(section, "\n## ")
		sections[number] = section
	}
	rules := regexp.MustCompile(`(?m)^//\t(R\d+)\s`).FindAllStringSubmatch(file(t, "../driver.go"), -1)
	if len(rules) == 0 {
		t.Fatal("backends/driver.go has no numbered rules")
	}
	for _, match := range rules {
		rule := match[1]
		section, ok := sections[rule]
		if !ok {
			t.Errorf("docs/driver-contract.md has no section for %s", rule)
		}
		delete(sections, rule)
		proven := false
		for _, c := range backendtest.Cases() {
			if !slices.Contains(c.Rules, rule) {
				continue
			}
			proven = true
			if !strings.Contains(section, "`"+c.Name+"`") {
				t.Errorf("the section of %s does not name its case `%s`", rule, c.Name)
			}
		}
		if !proven {
			t.Errorf("no case proves %s", rule)
		}
	}
	for number := range sections {
		t.Errorf("docs/driver-contract.md explains %s, which backends/driver.go does not have", number)
	}
}

// TestContractNamesCases finds names on the page that no case has any more, and cases that the page does not name.
func TestContractNamesCases(t *testing.T) {
	page := file(t, "../../docs/driver-contract.md")
	var names []string
	for _, c := range backendtest.Cases() {
		if slices.Contains(names, c.Name) {
			t.Errorf("two cases are called %q", c.Name)
		}
		names = append(names, c.Name)
		if !strings.Contains(page, "`"+c.Name+"`") {
			t.Errorf("docs/driver-contract.md does not name the case `%s`", c.Name)
		}
	}
	for _, match := range regexp.MustCompile("(?m)^- `([^`]+)`$").FindAllStringSubmatch(page, -1) {
		if !slices.Contains(names, match[1]) {
			t.Errorf("docs/driver-contract.md names a case that is not there: %q", match[1])
		}
	}
}

// TestContractExplainsErrors finds codes and features that the page does not have.
func TestContractExplainsErrors(t *testing.T) {
	page := file(t, "../../docs/driver-contract.md")
	for name, pattern := range map[string]string{
		"../errors.go": `Code\w+\s+Code = "(\w+)"`,
		"../driver.go": `Feature\w+\s+Feature = "(\w+)"`,
	} {
		words := regexp.MustCompile(pattern).FindAllStringSubmatch(file(t, name), -1)
		if len(words) == 0 {
			t.Errorf("%s has nothing like %s", name, pattern)
		}
		for _, word := range words {
			if !strings.Contains(page, "| `"+word[1]+"` |") {
				t.Errorf("docs/driver-contract.md has no row for %s", word[1])
			}
		}
	}
}

func file(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
