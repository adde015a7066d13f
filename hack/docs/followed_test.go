// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notTyped are the commands of pages that no scenario follows, by page, each with the reason why nobody types it. Names of commands, and calls of make and
// go, have tests of their own.
var notTyped = map[string]map[string]string{
	"CONTRIBUTING.md": {
		"git clone https://github.com/fleetworkload/fleetworkload && cd fleetworkload": "it makes the checkout that the tests are in",
	},
	"docs/dashboard.md": {"kubectl apply -k config/monitoring": "the fleet has no operator of the Prometheus project; hack/monitoring reads the files"},
	"docs/faq.md":       {"kubectl delete -k config/default": "it would take away what other scenarios need"},
	"docs/performance.md": {
		"kubectl apply -k config/flowcontrol":                   "the scenarios' fleets have it installed by the same files",
		"kubectl label namespace shop fleetworkload.io/shard=a": "e2e/shards_test.go labels a namespace so, with an operator for the shard",
		"helm upgrade fleetworkload charts/fleetworkload -n fleetworkload-system --reset-then-reuse-values --set 'manager.shards={a,b}'": "hack/tools " +
			"renders the chart with these shards",
	},
}

var (
	// walked is how a scenario says which page it follows.
	walked = regexp.MustCompile(`walk\{page: "([^"]+)"`)
	// onlyNames are commands in prose without an object: "kubectl scale", "kubectl fw plan -f FILE".
	onlyNames = regexp.MustCompile(`^(kubectl fw|kubectl|helm|git)( backend)?( [a-z]+)?( -{1,2}[a-z][a-z-]*)*( [A-Z]+)*$`)
	// called are programs whose calls TestMakeTargets and TestGoCommands look at.
	called = regexp.MustCompile(`^(\w+=\S* )*(make|go) `)
)

// TestEveryCommandIsFollowed: what a page has people type is typed by a scenario, held by another test, or listed above with the reason.
func TestEveryCommandIsFollowed(t *testing.T) {
	followed := map[string]bool{}
	each(t, func(file, text string) {
		if strings.HasPrefix(file, "e2e/") {
			for _, match := range walked.FindAllStringSubmatch(text, -1) {
				followed[match[1]] = true
			}
		}
	})
	if len(followed) < 8 {
		t.Errorf("scenarios follow no more than %v", slices.Sorted(maps.Keys(followed)))
	}
	listed := map[string]map[string]string{}
	for page, commands := range notTyped {
		listed[page] = maps.Clone(commands)
	}
	for _, page := range read(t) {
		steps, err := page.Steps()
		if err != nil {
			t.Fatal(err)
		}
		if followed[page.Path] {
			delete(followed, page.Path)
			continue
		}
		for _, step := range steps {
			isCommand := step.File == "" && !step.Part
			if isCommand && notTyped[page.Path][step.Text] == "" && !called.MatchString(step.Text) && !onlyNames.MatchString(step.Text) {
				t.Errorf("%s: nobody types %q: follow %s in e2e, or list the command here with the reason", step.Where, step.Text, page.Path)
			}
			delete(listed[page.Path], step.Text)
		}
	}
	for page := range followed {
		t.Errorf("a scenario follows %s, which is not there", page)
	}
	for page, commands := range listed {
		for command := range commands {
			t.Errorf("%s does not have %q any more, or is followed now", page, command)
		}
	}
}
