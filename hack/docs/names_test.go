// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// TestMakeTargets: each target that a page names is there, and so is each variable that it sets behind it. One before it is known to the Makefile,
// to the script of the end-to-end tests, or to a program.
func TestMakeTargets(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	known, commands, variables := variablesOf(t), 0, 0
	for _, page := range read(t) {
		for _, command := range page.Commands("make") {
			commands++
			for _, name := range command.Variables {
				variables++
				if !known[name] {
					t.Errorf("%s: nobody reads %s", command.Where, name)
				}
			}
			for _, word := range command.Words {
				name, _, isVariable := strings.Cut(word, "=")
				target := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `:`)
				if isVariable {
					target = regexp.MustCompile(`(?m)(\$[({](or \$\()?|^export )` + regexp.QuoteMeta(name) + `\b`)
				}
				if !target.Match(makefile) {
					t.Errorf("%s: the Makefile has no %s", command.Where, name)
				}
			}
		}
	}
	if commands < 50 || variables < 15 {
		t.Errorf("looked at %d commands and %d variables", commands, variables)
	}
}

// variablesOf returns the names of variables that may be set before make.
func variablesOf(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{"GOGC": true} // Go's own
	for _, file := range []string{"Makefile", "hack/e2e"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\b[A-Z][A-Z0-9_]+\b`).FindAllString(string(text), -1) {
			known[name] = true
		}
	}
	each(t, func(_, text string) {
		for _, match := range regexp.MustCompile(`"([A-Z][A-Z0-9_]+)"`).FindAllStringSubmatch(text, -1) {
			known[match[1]] = true
		}
	})
	return known
}

// TestGoCommands: packages and tests that pages have people run are there.
func TestGoCommands(t *testing.T) {
	tests, commands := testsOf(t), 0
	for _, page := range read(t) {
		for _, command := range page.Commands("go") {
			for i, word := range command.Words {
				dir, isPackage := strings.CutPrefix(word, "./")
				name, _, _ := strings.Cut(word, "/")
				switch {
				case isPackage:
					commands++
					if files, err := filepath.Glob(filepath.Join(root, strings.TrimSuffix(dir, "..."), "*.go")); err != nil || len(files) == 0 && !strings.HasSuffix(dir, "...") {
						t.Errorf("%s: there is no package %s", command.Where, word)
					}
				case i > 0 && command.Words[i-1] == "-run" && !tests[name]:
					t.Errorf("%s: there is no test %s", command.Where, word)
				}
			}
		}
	}
	if commands < 10 {
		t.Errorf("looked at %d commands", commands)
	}
}

// flagsOf returns the names of the flags that the programs below a folder define.
func flagsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	defines := regexp.MustCompile(`^(Bool|Int|Int32|Int64|Uint64|Float64|Duration|String|StringSlice|StringArray|StringToString)?(Var)?P?$`)
	found := map[string]bool{"help": true, "version": true}
	err := filepath.WalkDir(filepath.Join(root, dir), func(file string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			call, isCall := n.(*ast.CallExpr)
			if !isCall {
				return true
			}
			method, isMethod := call.Fun.(*ast.SelectorExpr)
			if isMethod && defines.MatchString(method.Sel.Name) {
				if name := firstLiteral(call.Args); name != "" {
					found[name] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func firstLiteral(args []ast.Expr) string {
	for _, arg := range args {
		if literal, is := arg.(*ast.BasicLit); is && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				return ""
			}
			return text
		}
	}
	return ""
}

// otherFlags are those of programs of other people that pages name without a command.
var otherFlags = map[string]string{
	"reset-then-reuse-values":           "helm",
	"reuse-values":                      "helm",
	"take-ownership":                    "helm",
	"custom-resource-state-config-file": "kube-state-metrics",
	"server-side":                       "kubectl",
	"field-manager":                     "kubectl",
	"node-monitor-grace-period":         "kube-controller-manager",
	"repeat":                            "ginkgo",
	"until-it-fails":                    "ginkgo",
}

var flagWord = regexp.MustCompile(`^--([a-z][a-z0-9-]*)`)

// TestFlags: a flag that a page names without a program is one of ours, or one of a program that is listed above.
func TestFlags(t *testing.T) {
	known, unused := flagsOf(t, "cmd"), maps.Clone(otherFlags)
	maps.Copy(known, flagsOf(t, "e2e/lab/cmd"))
	connection := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(connection)
	flags := 0
	for _, page := range read(t) {
		for _, span := range page.Spans() {
			if !strings.HasPrefix(span.Text, "--") {
				continue
			}
			for _, word := range words(span.Text) {
				flag := flagWord.FindStringSubmatch(word)
				if flag == nil {
					continue
				}
				flags++
				delete(unused, flag[1])
				if !known[flag[1]] && connection.Lookup(flag[1]) == nil && otherFlags[flag[1]] == "" {
					t.Errorf("%s: nothing has the flag --%s", span.Where, flag[1])
				}
			}
		}
	}
	if flags < 80 {
		t.Errorf("looked at %d flags", flags)
	}
	if len(unused) > 0 {
		t.Errorf("no page names the flags %v any more", slices.Sorted(maps.Keys(unused)))
	}
}

// TestManagerFlags: the list of the operator's flags is whole, and its calls on all pages have flags that it has.
func TestManagerFlags(t *testing.T) {
	flags := flagsOf(t, "cmd/manager")
	for _, page := range read(t) {
		for _, command := range page.Commands("manager") {
			for _, word := range command.Words {
				if flag := flagWord.FindStringSubmatch(word); flag != nil && !flags[flag[1]] {
					t.Errorf("%s: the manager has no flag --%s", command.Where, flag[1])
				}
			}
		}
		if page.Path != "docs/installation.md" {
			continue
		}
		_, list, found := strings.Cut(page.Prose, "\nFlags of `manager`:")
		list, _, _ = strings.Cut(list, "\n\n")
		if !found {
			t.Fatal("docs/installation.md has no list of flags")
		}
		ofCheck := []string{"ready-url", "webhook", "timeout", "help"}
		for flag := range flags {
			if !slices.Contains(ofCheck, flag) && !strings.Contains(list, fmt.Sprintf("`--%s`", flag)) {
				t.Errorf("docs/installation.md does not list --%s", flag)
			}
		}
	}
}

var (
	filePath = regexp.MustCompile(`^[a-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$`)
	testName = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]\w*$`)
	// made are folders that are not in the repository.
	made = []string{"bin", "dist"}
)

// testsOf returns the names of all tests of the repository.
func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	each(t, func(_, text string) {
		for _, match := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`).FindAllStringSubmatch(text, -1) {
			tests[match[1]] = true
		}
	})
	return tests
}

// TestPathsAndTests: files, folders and tests that pages name are there.
func TestPathsAndTests(t *testing.T) {
	tests := testsOf(t)
	top, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	paths := 0
	for _, page := range read(t) {
		for _, span := range page.Spans() {
			first, _, _ := strings.Cut(span.Text, "/")
			isOurs := slices.ContainsFunc(top, func(e os.DirEntry) bool { return e.IsDir() && e.Name() == first && !slices.Contains(made, first) })
			switch {
			case testName.MatchString(span.Text) && !tests[span.Text]:
				t.Errorf("%s: there is no test %s", span.Where, span.Text)
			case filePath.MatchString(span.Text) && isOurs && !strings.Contains(span.Text, "NAME"):
				paths++
				if _, err := os.Stat(filepath.Join(root, span.Text)); err != nil {
					t.Errorf("%s: there is no %s", span.Where, span.Text)
				}
			}
		}
	}
	if paths < 100 {
		t.Errorf("looked at %d paths", paths)
	}
}
