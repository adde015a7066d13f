// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestReasonsAreConstants demands that the code of the operator takes condition reasons from this package: a reason
// that is not a documented constant here has no place in the user guide and may differ by a letter elsewhere.
func TestReasonsAreConstants(t *testing.T) {
	const root = "../.."
	for _, dir := range []string{"controllers", "internal/aggregate", "internal/pass", "internal/plan", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, found := range reasonLiterals(t, path, src) {
				t.Errorf("%s: use a constant of api/v1alpha1", found)
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

func TestReasonLiteralsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		want int
	}{
		"field":              {`package p; var _ = T{Reason: "Broken"}`, 1},
		"assignment":         {`package p; func f() { c.Reason = "Broken" }`, 1},
		"constant":           {`package p; const ReasonBroken = "Broken"`, 1},
		"local constant":     {`package p; const reasonBroken = "Broken"`, 1},
		"constant of ours":   {`package p; var _ = T{Reason: v1alpha1.ReasonReady}`, 0},
		"empty":              {`package p; func f() { c.Reason = "" }`, 0},
		"some other literal": {`package p; var _ = T{Message: "Broken"}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reasonLiterals(t, "p.go", []byte(c.src)); len(got) != c.want {
				t.Errorf("found %v, want %d", got, c.want)
			}
		})
	}
}

// reasonLiterals finds string literals that are used as reasons, as file:line and value.
func reasonLiterals(t *testing.T, path string, src []byte) []string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	check := func(name string, value ast.Expr) {
		lit, ok := value.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING || !strings.HasPrefix(strings.ToLower(name), "reason") {
			return
		}
		if text, err := strconv.Unquote(lit.Value); err == nil && text != "" {
			found = append(found, fset.Position(lit.Pos()).String()+" "+lit.Value)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				check(key.Name, n.Value)
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if sel, ok := left.(*ast.SelectorExpr); ok && i < len(n.Rhs) {
					check(sel.Sel.Name, n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					check(name.Name, n.Values[i])
				}
			}
		}
		return true
	})
	return found
}
