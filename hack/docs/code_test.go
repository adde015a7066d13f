// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCode: Go on pages is Go, and what it names of our packages is there, with the fields that it sets.
func TestCode(t *testing.T) {
	looked := 0
	for _, page := range read(t) {
		for _, block := range page.Blocks {
			if block.Language != "go" {
				continue
			}
			syntax, err := parseCode(block.Text)
			if err != nil {
				t.Errorf("%s: %v", block.Where, err)
				continue
			}
			for _, name := range namesIn(syntax) {
				of, _, _ := strings.Cut(name, ".")
				if dir, isOurs := ours[of]; isOurs {
					looked++
					if !declared(t, dir)[name] {
						t.Errorf("%s: there is no %s in %s", block.Where, name, dir)
					}
				}
			}
		}
	}
	if looked < 15 {
		t.Errorf("looked at %d names", looked)
	}
}

// parseCode reads declarations, or statements.
func parseCode(text string) (*ast.File, error) {
	syntax, err := parser.ParseFile(token.NewFileSet(), "", "package page\n"+text, 0)
	if err == nil {
		return syntax, nil
	}
	statements, failed := parser.ParseFile(token.NewFileSet(), "", fmt.Sprintf("package page\nfunc _() {\n%s}\n", text), 0)
	if failed != nil {
		return nil, fmt.Errorf("neither declarations (%w) nor statements (%w)", err, failed)
	}
	return statements, nil
}

// namesIn are "package.Name", and "package.Type.Field" for what a literal sets.
func namesIn(syntax *ast.File) []string {
	var names []string
	qualified := func(expr ast.Expr) string {
		if selector, is := expr.(*ast.SelectorExpr); is {
			if of, is := selector.X.(*ast.Ident); is {
				return of.Name + "." + selector.Sel.Name
			}
		}
		return ""
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if name := qualified(n); name != "" {
				names = append(names, name)
			}
		case *ast.CompositeLit:
			for _, element := range n.Elts {
				pair, isPair := element.(*ast.KeyValueExpr)
				if name := qualified(n.Type); isPair && name != "" {
					names = append(names, name+"."+pair.Key.(*ast.Ident).Name)
				}
			}
		}
		return true
	})
	return names
}

// ours are the folders of packages that code on pages names, by name.
var ours = map[string]string{"backends": "backends", "backendtest": "backends/backendtest", "lab": "e2e/lab", "v1alpha1": "api/v1alpha1", "pass": "internal/pass"}

// declared are the names of a package as namesIn has them.
func declared(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names, of := map[string]bool{}, filepath.Base(dir)+"."
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".go" || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, dir, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range syntax.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[of+d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addSpec(names, of, spec)
				}
			}
		}
	}
	return names
}

// addSpec adds a constant, a variable, or a type with its fields.
func addSpec(names map[string]bool, of string, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			names[of+name.Name] = true
		}
	case *ast.TypeSpec:
		names[of+spec.Name.Name] = true
		if fields, isStruct := spec.Type.(*ast.StructType); isStruct {
			for _, field := range fields.Fields.List {
				for _, name := range field.Names {
					names[of+spec.Name.Name+"."+name.Name] = true
				}
			}
		}
	}
}
