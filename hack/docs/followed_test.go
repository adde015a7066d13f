// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Why commands of pages that no scenario follows are not typed.
const (
	named           = "it is only named"
	elsewhereTyped  = "another page has it, and a scenario follows that one"
	installed       = "the scenarios' fleets have it installed by the same files"
	checkedOut      = "it makes the checkout that the tests are in"
	severalFleets   = "a scenario of e2e/shards_test.go runs several operators so"
	othersNeedIt    = "it would take away what others need; hack/tools builds the folder"
	noPrometheus    = "the fleet has no operator of the Prometheus project; hack/monitoring reads the files"
	largeFleetsOnly = "only large fleets have the field; api/v1alpha1/packed_test.go unpacks it"
)

// notTyped are the commands of pages that no scenario follows, by page. Names of commands, and calls of make and go, have tests of their own.
var notTyped = map[string]map[string]string{
	"CONTRIBUTING.md": {"git clone https://github.com/fleetworkload/fleetworkload && cd fleetworkload": checkedOut},
	"docs/concepts.md": {
		"kubectl get fleetworkload NAME -o jsonpath='{.status.packed}' | base64 -d | gunzip": largeFleetsOnly,
		"kubectl get -o yaml":                   named,
		"kubectl fw status NAME -o yaml":        elsewhereTyped,
		"kubectl fw plan web":                   elsewhereTyped,
		"kubectl fw approve web --change VALUE": elsewhereTyped,
		"kubectl fw plan web --approve":         elsewhereTyped,
	},
	"docs/conditions.md": {"kubectl get fw": elsewhereTyped},
	"docs/dashboard.md":  {"kubectl apply -k config/monitoring": noPrometheus},
	"docs/faq.md":        {"kubectl delete -k config/default": othersNeedIt},
	"docs/performance.md": {
		"kubectl apply -k config/flowcontrol":                   installed,
		"kubectl label namespace shop fleetworkload.io/shard=a": severalFleets,
		"helm upgrade fleetworkload charts/fleetworkload -n fleetworkload-system --reset-then-reuse-values --set 'manager.shards={a,b}'": severalFleets,
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
