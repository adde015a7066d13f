// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestWhatWalksListIsOnThePages: what a scenario that follows a page has for single commands is for commands that the page has. The scenario would find
// out, too, half an hour later.
func TestWhatWalksListIsOnThePages(t *testing.T) {
	pages, looked := read(t), 0
	each(t, func(file, text string) {
		if !strings.HasPrefix(file, "e2e/") || !strings.HasSuffix(file, "_test.go") || !walked.MatchString(text) {
			return
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range syntax.Decls {
			path, listed := walkIn(declaration)
			at := slices.IndexFunc(pages, func(p Page) bool { return p.Path == path })
			if at < 0 {
				continue // TestEveryCommandIsFollowed tells
			}
			looked += len(listed)
			steps, err := pages[at].Steps()
			if err != nil {
				t.Fatal(err)
			}
			for _, command := range listed {
				if !slices.ContainsFunc(steps, func(s Step) bool { return s.Text == command || s.Part && strings.HasPrefix(s.Text, command+"\n") }) {
					t.Errorf("%s: %s does not have %q any more", file, path, command)
				}
			}
		}
	})
	if looked < 100 {
		t.Errorf("looked at %d commands", looked)
	}
}

// walkIn is the page that a function follows, and the commands that it lists. Those that are constants are left out.
func walkIn(declaration ast.Decl) (page string, listed []string) {
	add := func(expressions ...ast.Expr) {
		for _, e := range expressions {
			if text, is := literal(e); is {
				listed = append(listed, text)
			}
		}
	}
	ast.Inspect(declaration, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CompositeLit:
			if name, is := node.Type.(*ast.Ident); is && name.Name == "walk" {
				page, _ = literal(fieldOf(node, "page"))
				for _, field := range []string{"standIns", "ends", "before"} {
					if values, is := fieldOf(node, field).(*ast.CompositeLit); is {
						for _, e := range values.Elts {
							add(e.(*ast.KeyValueExpr).Key)
						}
					}
				}
			}
		case *ast.CallExpr:
			if name, is := node.Fun.(*ast.Ident); is && name.Name == "because" {
				add(node.Args[1:]...)
			}
		}
		return true
	})
	return page, listed
}

// fieldOf is what a literal gives a field; nil when it gives it nothing.
func fieldOf(of *ast.CompositeLit, name string) ast.Expr {
	for _, e := range of.Elts {
		if pair, is := e.(*ast.KeyValueExpr); is {
			if key, is := pair.Key.(*ast.Ident); is && key.Name == name {
				return pair.Value
			}
		}
	}
	return nil
}

// literal is a text that is written out, in one piece or in several.
func literal(e ast.Expr) (text string, is bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, is := literal(e.X)
		right, also := literal(e.Y)
		return left + right, is && also
	default:
		return "", false
	}
}
