// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const followed = `Type ''kubectl get clusters'', with ''kubectl'' or ''helm
version''.

'''yaml
# web.yaml
kind: FleetWorkload
'''

'''text
a picture
'''

'''go
func main() {}
'''

'''yaml
# web.yaml, as it is now
kind: FleetWorkload
'''

'''yaml
# web.yaml, without spec.template
kind: FleetWorkload
'''

'''yaml
spec: {}
'''

'''
make build && export PATH=$PWD/bin:$PATH    # in the checkout

# a remark
kubectl apply \
  -f web.yaml
'''

'''console
$ kubectl get fw
NAME   AGE

web    9s
$ kubectl delete fw web \
  --wait=false
'''

At last ''make lint''.
`

func TestSteps(t *testing.T) {
	page, err := parse("a.md", strings.NewReplacer("'''", "```", "''", "`").Replace(followed))
	if err != nil {
		t.Fatal(err)
	}
	got, err := page.Steps()
	if err != nil {
		t.Fatal(err)
	}
	want := []Step{
		{Where: "a.md:1", Text: "kubectl get clusters"},
		{Where: "a.md:1", Text: "helm version"},
		{Where: "a.md:4", File: "web.yaml", Text: "# web.yaml\nkind: FleetWorkload\n"},
		{Where: "a.md:17", File: "web.yaml", Shown: "# web.yaml, as it is now\nkind: FleetWorkload\n"},
		{Where: "a.md:22", File: "web.yaml", LeftOut: "spec.template", Shown: "# web.yaml, without spec.template\nkind: FleetWorkload\n"},
		{Where: "a.md:27", Part: true, Text: "spec: {}\n"},
		{Where: "a.md:32", Text: "make build && export PATH=$PWD/bin:$PATH"},
		{Where: "a.md:35", Text: "kubectl apply \\\n  -f web.yaml"},
		{Where: "a.md:40", Text: "kubectl get fw", Shown: "NAME   AGE\n\nweb    9s\n"},
		{Where: "a.md:44", Text: "kubectl delete fw web \\\n  --wait=false"},
		{Where: "a.md:48", Text: "make lint"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Step{})); diff != "" {
		t.Error(diff)
	}
}

func TestStepsRefuses(t *testing.T) {
	page, err := parse("a.md", "\n```lua\nreturn hs\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	const want = `a.md:2: nobody knows what to do with "lua"`
	if _, err := page.Steps(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAlike(t *testing.T) {
	for _, pair := range [][2]string{
		{"NAME   READY   AGE\nweb    4/4     9s\n", "NAME   READY   AGE\nweb    4/4     3m12s\n"},
		{"CLUSTER   AGE    MESSAGE\nm1        9s     -\n", "CLUSTER   AGE   MESSAGE\nm1        119s   -\n"},
		{"web-7c4b8d9f6-x2x7k   5d3f1c9e-9a55-4c3b-8d6e-0a1b2c3d4e5f   0\n", "web-59df6bd888-qq8zl   00000000-0000-0000-0000-000000000000   0\n"},
		{"ready 4/4 replicas, revision 4e2800fca747\n", "ready 4/4 replicas, revision 6f9c1d0a1b2c\n"},
		{"m1        4         4e2800fca747   True\n", "m1   4   cc2dab08d85d   True\n"},
		{"that holds until 2026-11-28T00:00:00Z;", "that holds until 2027-01-02T03:04:05Z;"},
		{"approved: pass-wave-1-1795280919\n", "approved: pass-wave-1-1795280920\n"},
	} {
		if a, b := Alike(pair[0]), Alike(pair[1]); a != b {
			t.Errorf("%q and %q are not alike:\n%s%s", pair[0], pair[1], a, b)
		}
	}
	for _, pair := range [][2]string{
		{"web    4/4     9s\n", "web    4/5     9s\n"},
		{"web    4       9s\n", "web    5       9s\n"},
		{"m1   4   -\n", "m2   4   -\n"},
		{"within 10m, or\n", "within 20m, or\n"},
		{"deployment web-old\n", "deployment web-new\n"},
		{"  indented\n", "indented\n"},
		{"a line\n", "a line\nand another\n"},
		{"pass-wave-1-1795280919\n", "pass-wave-2-1795280919\n"},
	} {
		if a, b := Alike(pair[0]), Alike(pair[1]); a == b {
			t.Errorf("%q and %q are alike", pair[0], pair[1])
		}
	}
}

func TestLike(t *testing.T) {
	for _, c := range []struct {
		shown, output string
		want          bool
	}{
		{"a\n...\nc\n", "a\nb1\nb2\nc\n", true},
		{"a\n...\nc\n", "a\nc\n", true},
		{"a\n...\nc\n", "a\nb\n", false},
		{"a.\n", "ab\n", false},
		{"a\n", "a\nb\n", false},
	} {
		if got := Like(c.shown).MatchString(c.output); got != c.want {
			t.Errorf("Like(%q) matches %q: %t", c.shown, c.output, got)
		}
	}
}
