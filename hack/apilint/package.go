// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// marker is a comment line such as +kubebuilder:validation:MaxLength=63.
type marker struct{ key, value string }

type markers []marker

func (m markers) has(key string) bool {
	return slices.ContainsFunc(m, func(x marker) bool { return x.key == key })
}

func (m markers) value(key string) string {
	for _, x := range m {
		if x.key == key {
			return x.value
		}
	}
	return ""
}

// validation tells whether a marker of kubebuilder:validation is there, in its long or its short form.
func (m markers) validation(key string) bool {
	return m.has("kubebuilder:validation:"+key) || m.has("k8s:"+key)
}

// field is one field of a struct of the API.
type field struct {
	owner   *typeDecl
	index   int
	goName  string
	json    string   // empty for an inlined struct
	options []string // of the json tag
	inline  bool
	typ     ast.Expr
	comment string
	markers markers
	pos     token.Pos
}

func (f field) id() string { return f.owner.name + "." + f.json }

// typeDecl is one type of the API.
type typeDecl struct {
	name    string
	comment string
	markers markers
	fields  []field
	base    string   // the underlying type's name when it is not a struct
	consts  []string // values of the constants of this type
	pos     token.Pos
}

// constDecl is one constant.
type constDecl struct {
	name, comment string
	pos           token.Pos
}

// apiPackage is what the rules look at.
type apiPackage struct {
	fset   *token.FileSet
	types  []*typeDecl
	consts []constDecl
	typed  []typedConst
}

// typedConst is a constant of a named type.
type typedConst struct{ typ, value string }

func (p *apiPackage) lookup(name string) *typeDecl {
	for _, t := range p.types {
		if t.name == name {
			return t
		}
	}
	return nil
}

// load parses the hand-written files of a folder.
func load(dir string) (*apiPackage, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	p := &apiPackage{fset: token.NewFileSet()}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_generated") {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if err := p.add(path, src); err != nil {
			return nil, err
		}
	}
	p.link()
	return p, nil
}

func (p *apiPackage) add(path string, src []byte) error {
	file, err := parser.ParseFile(p.fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse %s: %w", path, err)
	}
	end := file.Name.End()
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			end = decl.End()
			continue
		}
		for _, spec := range gen.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				p.addType(spec, gen, commentsBetween(file, end, spec.Pos()))
			case *ast.ValueSpec:
				if gen.Tok == token.CONST {
					p.addConst(spec, gen)
				}
			}
			end = spec.End()
		}
	}
	return nil
}

// commentsBetween joins the comments from one declaration to the next: markers may stand apart from the doc comment.
func commentsBetween(file *ast.File, from, to token.Pos) string {
	var all []string
	for _, group := range file.Comments {
		if group.Pos() >= from && group.End() <= to {
			all = append(all, lines(group)...)
		}
	}
	return strings.Join(all, "\n")
}

func lines(group *ast.CommentGroup) []string {
	var out []string
	if group == nil {
		return nil
	}
	for _, c := range group.List {
		out = append(out, strings.TrimSpace(strings.TrimPrefix(c.Text, "//")))
	}
	return out
}

// split parts a comment into its text and its markers.
func split(comment string) (string, markers) {
	var text []string
	var found markers
	for _, line := range strings.Split(comment, "\n") {
		rest, isMarker := strings.CutPrefix(line, "+")
		if !isMarker {
			text = append(text, line)
			continue
		}
		key, value, _ := strings.Cut(rest, "=")
		if i := strings.Index(key, ":rule"); i > 0 { // XValidation:rule="..."
			key, value = key[:i], rest[i+1:]
		}
		found = append(found, marker{key, value})
	}
	return strings.TrimSpace(strings.Join(text, "\n")), found
}

func (p *apiPackage) addType(spec *ast.TypeSpec, gen *ast.GenDecl, around string) {
	_, all := split(around)
	text, _ := split(strings.Join(lines(gen.Doc), "\n"))
	if spec.Doc != nil {
		text, _ = split(strings.Join(lines(spec.Doc), "\n"))
	}
	t := &typeDecl{name: spec.Name.Name, comment: text, markers: all, pos: spec.Pos()}
	p.types = append(p.types, t)
	body, ok := spec.Type.(*ast.StructType)
	if !ok {
		if ident, ok := spec.Type.(*ast.Ident); ok {
			t.base = ident.Name
		}
		return
	}
	for i, af := range body.Fields.List {
		text, found := split(strings.Join(lines(af.Doc), "\n"))
		f := field{owner: t, index: i, typ: af.Type, comment: text, markers: found, pos: af.Pos()}
		if len(af.Names) > 0 {
			f.goName = af.Names[0].Name
		}
		f.json, f.options, f.inline = jsonTag(af.Tag)
		t.fields = append(t.fields, f)
	}
}

func jsonTag(lit *ast.BasicLit) (name string, options []string, inline bool) {
	if lit == nil {
		return "", nil, false
	}
	raw, err := strconv.Unquote(lit.Value)
	if err != nil {
		return "", nil, false
	}
	parts := strings.Split(reflect.StructTag(raw).Get("json"), ",")
	return parts[0], parts[1:], slices.Contains(parts[1:], "inline")
}

func (p *apiPackage) addConst(spec *ast.ValueSpec, gen *ast.GenDecl) {
	doc := spec.Doc
	if !gen.Lparen.IsValid() {
		doc = gen.Doc
	}
	text, _ := split(strings.Join(lines(doc), "\n"))
	for _, name := range spec.Names {
		p.consts = append(p.consts, constDecl{name.Name, text, name.Pos()})
	}
	ident, ok := spec.Type.(*ast.Ident)
	if !ok || len(spec.Values) == 0 {
		return
	}
	lit, ok := spec.Values[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return
	}
	value, err := strconv.Unquote(lit.Value)
	if err != nil {
		return
	}
	p.typed = append(p.typed, typedConst{ident.Name, value})
}

// link gives constants to their types, wherever those were declared.
func (p *apiPackage) link() {
	for _, c := range p.typed {
		if t := p.lookup(c.typ); t != nil {
			t.consts = append(t.consts, c.value)
		}
	}
}
