// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// problem is one broken rule.
type problem struct {
	rule    string
	subject string // Type or Type.field, as in exemptions
	message string
	pos     token.Pos
}

// The names of the rules are those of kube-api-linter where it has such a rule.
var fieldRules = []struct {
	name  string
	check func(f field, p *apiPackage) string
}{
	{"jsontags", jsonTags},
	{"commentstart", commentStart},
	{"optionalorrequired", optionalOrRequired},
	{"omitted", omitted},
	{"optionalfields", optionalFields},
	{"requiredfields", requiredFields},
	{"integers", integers},
	{"intorstring", intOrString},
	{"nofloats", noFloats},
	{"nobools", noBools},
	{"nodurations", noDurations},
	{"nomaps", noMaps},
	{"nophase", noPhase},
	{"notimestamp", noTimestamp},
	{"maxlength", maxLength},
	{"minimum", minimum},
	{"ssatags", ssaTags},
	{"forbiddenmarkers", forbiddenMarkers},
	{"duplicatemarkers", duplicateMarkers},
	{"conditions", conditions},
	{"statusoptional", statusOptional},
}

var typeRules = []struct {
	name  string
	check func(t *typeDecl, p *apiPackage) string
}{
	{"typecomment", typeComment},
	{"enums", enums},
	{"statussubresource", statusSubresource},
}

// lint applies every rule.
func lint(p *apiPackage) []problem {
	var problems []problem
	for _, t := range p.types {
		for _, rule := range typeRules {
			if msg := rule.check(t, p); msg != "" {
				problems = append(problems, problem{rule.name, t.name, msg, t.pos})
			}
		}
		if strings.HasSuffix(t.name, "List") && t.markers.has("kubebuilder:object:root") {
			continue // its shape is given by Kubernetes
		}
		for _, f := range t.fields {
			if f.inline {
				continue
			}
			for _, rule := range fieldRules {
				if msg := rule.check(f, p); msg != "" {
					problems = append(problems, problem{rule.name, f.id(), msg, f.pos})
				}
			}
		}
	}
	return append(problems, lintConsts(p)...)
}

func lintConsts(p *apiPackage) []problem {
	var problems []problem
	for _, c := range p.consts {
		if !strings.HasPrefix(c.comment, c.name+" ") {
			problems = append(problems, problem{"constcomment", c.name, "the comment must begin with " + c.name, c.pos})
		}
		if strings.HasPrefix(c.name, "Reason") && !strings.Contains(c.comment, "surfaces") {
			problems = append(problems, problem{"reasons", c.name, "the comment must say when the reason surfaces", c.pos})
		}
	}
	return problems
}

var camelCase = regexp.MustCompile(`^[a-z][a-z0-9]*([A-Z][a-z0-9]*)*$`)

func jsonTags(f field, _ *apiPackage) string {
	if !camelCase.MatchString(f.json) {
		return fmt.Sprintf("%s needs a camelCase json name", f.goName)
	}
	return ""
}

func commentStart(f field, _ *apiPackage) string {
	if !strings.HasPrefix(f.comment, f.json+" ") {
		return "the comment must begin with the json name " + f.json
	}
	return ""
}

func optionalOrRequired(f field, _ *apiPackage) string {
	if f.markers.has("optional") == f.markers.has("required") {
		return "needs exactly one of +optional and +required"
	}
	return ""
}

func omitted(f field, _ *apiPackage) string {
	if !slices.Contains(f.options, "omitempty") && !slices.Contains(f.options, "omitzero") {
		return "needs omitempty, or omitzero for a struct"
	}
	return ""
}

// optionalFields demands that absence can be told from a zero value, and that it survives a round trip.
func optionalFields(f field, p *apiPackage) string {
	if !f.markers.has("optional") {
		return ""
	}
	if name := typeName(f.typ); isInteger(name) || name == "bool" {
		return "is optional, so it must be a pointer: zero is not absence"
	}
	if isStruct(f.typ, p) && !slices.Contains(f.options, "omitzero") {
		return "is an optional struct, so it must be a pointer or have omitzero"
	}
	return ""
}

// requiredFields demands that a required field cannot be satisfied by an empty value.
func requiredFields(f field, p *apiPackage) string {
	if !f.markers.has("required") {
		return ""
	}
	if isString(f.typ, p) && !isEnum(f, p) && !f.markers.validation("MinLength") && !f.markers.validation("Pattern") {
		return "is a required string, so it needs MinLength"
	}
	if _, isSlice := f.typ.(*ast.ArrayType); isSlice && !f.markers.validation("MinItems") {
		return "is a required list, so it needs MinItems"
	}
	return ""
}

func integers(f field, _ *apiPackage) string {
	if name := elementName(f.typ); isInteger(name) && name != "int32" && name != "int64" {
		return "must be int32 or int64"
	}
	return ""
}

// intOrString demands bounds: a number of more than 32 bits cannot be decoded, and would keep every object of the kind from being listed.
func intOrString(f field, _ *apiPackage) string {
	if elementName(f.typ) != "intstr.IntOrString" {
		return ""
	}
	if v := f.markers.validation; !v("XIntOrString") || !v("MaxLength") || !v("XValidation") {
		return "is a number or a string, so it needs XIntOrString, MaxLength, and XValidation with bounds of the number"
	}
	return ""
}

func noFloats(f field, _ *apiPackage) string {
	if strings.HasPrefix(elementName(f.typ), "float") {
		return "must not be a floating point number: it does not survive a round trip"
	}
	return ""
}

func noBools(f field, _ *apiPackage) string {
	if elementName(f.typ) == "bool" {
		return "should be an enum: a bool cannot grow a third value"
	}
	return ""
}

func noDurations(f field, _ *apiPackage) string {
	if name := elementName(f.typ); name == "metav1.Duration" || name == "time.Duration" {
		return "should be a number with its unit in the name, such as timeoutSeconds, or a Duration of the API, which admits only what decodes"
	}
	return ""
}

func noMaps(f field, _ *apiPackage) string {
	if _, ok := deref(f.typ).(*ast.MapType); ok {
		return "should be a list with a key"
	}
	return ""
}

func noPhase(f field, _ *apiPackage) string {
	if f.json == "phase" {
		return "should be told by conditions"
	}
	return ""
}

func noTimestamp(f field, _ *apiPackage) string {
	if strings.Contains(strings.ToLower(f.json), "timestamp") {
		return "should be named ...Time or ...At"
	}
	return ""
}

// maxLength demands a bound on everything that can grow: the API server's cost estimate of CEL rules stands on it.
func maxLength(f field, p *apiPackage) string {
	switch t := deref(f.typ).(type) {
	case *ast.ArrayType:
		if !f.markers.validation("MaxItems") {
			return "is a list, so it needs MaxItems"
		}
		if isString(t.Elt, p) && !isEnumType(t.Elt, p) && !f.markers.validation("items:MaxLength") {
			return "is a list of strings, so it needs items:MaxLength"
		}
	case *ast.MapType:
		if !f.markers.validation("MaxProperties") {
			return "is a map, so it needs MaxProperties"
		}
	default:
		if isString(t, p) && !isEnum(f, p) && !f.markers.validation("MaxLength") && !f.markers.validation("Format") {
			return "is a string, so it needs MaxLength, Enum or Format"
		}
	}
	return ""
}

func minimum(f field, _ *apiPackage) string {
	if isInteger(typeName(deref(f.typ))) && !f.markers.validation("Minimum") {
		return "is a number, so it needs Minimum"
	}
	return ""
}

// ssaTags demands that server-side apply knows how to merge a list.
func ssaTags(f field, p *apiPackage) string {
	list, ok := deref(f.typ).(*ast.ArrayType)
	if !ok || typeName(list.Elt) == "byte" {
		return ""
	}
	kind := f.markers.value("listType")
	switch {
	case kind != "atomic" && kind != "set" && kind != "map":
		return "is a list, so it needs +listType=atomic, set or map"
	case kind == "map" && !f.markers.has("listMapKey"):
		return "is a list of type map, so it needs +listMapKey"
	case kind == "set" && !isString(list.Elt, p) && !isInteger(typeName(list.Elt)):
		return "is a list of objects, which cannot be a set"
	}
	return ""
}

func forbiddenMarkers(f field, _ *apiPackage) string {
	for _, m := range f.markers {
		if m.key == "kubebuilder:default" || m.key == "default" || m.key == "nullable" {
			return "must not have +" + m.key + ": what absence means is said in the comment and applied in code"
		}
	}
	return ""
}

func duplicateMarkers(f field, _ *apiPackage) string {
	seen := map[string]bool{}
	for _, m := range f.markers {
		if seen[m.key] && m.key != "listMapKey" && m.key != "kubebuilder:validation:XValidation" {
			return "has +" + m.key + " twice"
		}
		seen[m.key] = true
	}
	return ""
}

func conditions(f field, _ *apiPackage) string {
	if f.goName != "Conditions" {
		return ""
	}
	switch {
	case elementName(f.typ) != "metav1.Condition":
		return "must be a list of metav1.Condition"
	case f.index != 0:
		return "must be the first field"
	case f.markers.value("listType") != "map" || f.markers.value("listMapKey") != "type":
		return "needs +listType=map and +listMapKey=type"
	}
	return ""
}

func statusOptional(f field, p *apiPackage) string {
	root := p.lookup(strings.TrimSuffix(f.owner.name, "Status"))
	isStatus := strings.HasSuffix(f.owner.name, "Status") && root != nil && root.markers.has("kubebuilder:object:root")
	if isStatus && !f.markers.has("optional") {
		return "is a field of the status, so it must be optional"
	}
	return ""
}

func typeComment(t *typeDecl, _ *apiPackage) string {
	if !strings.HasPrefix(t.comment, t.name+" ") {
		return "the comment must begin with " + t.name
	}
	return ""
}

// enums demands that the values that the schema allows are exactly the constants.
func enums(t *typeDecl, _ *apiPackage) string {
	if t.base != "string" {
		return ""
	}
	if !t.markers.validation("Enum") {
		if len(t.consts) > 0 {
			return "has constants, so it needs an Enum marker"
		}
		return ""
	}
	allowed := strings.Split(t.markers.value("kubebuilder:validation:Enum"), ";")
	declared := slices.Clone(t.consts)
	slices.Sort(allowed)
	slices.Sort(declared)
	if !slices.Equal(allowed, declared) {
		return fmt.Sprintf("allows %v but has constants for %v", allowed, declared)
	}
	return ""
}

func statusSubresource(t *typeDecl, _ *apiPackage) string {
	hasStatus := slices.ContainsFunc(t.fields, func(f field) bool { return f.json == "status" })
	if t.markers.has("kubebuilder:object:root") && hasStatus && !t.markers.has("kubebuilder:subresource:status") {
		return "has a status, so it needs +kubebuilder:subresource:status"
	}
	return ""
}

func deref(e ast.Expr) ast.Expr {
	if star, ok := e.(*ast.StarExpr); ok {
		return star.X
	}
	return e
}

// typeName names a plain type, such as int32 or metav1.Duration, and is empty for all others.
func typeName(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		if x, ok := t.X.(*ast.Ident); ok {
			return x.Name + "." + t.Sel.Name
		}
	}
	return ""
}

// elementName names what a field is made of, pointers and lists looked through.
func elementName(e ast.Expr) string {
	e = deref(e)
	if list, ok := e.(*ast.ArrayType); ok {
		e = deref(list.Elt)
	}
	return typeName(e)
}

func isInteger(name string) bool {
	return !strings.Contains(name, ".") && (strings.HasPrefix(name, "int") || strings.HasPrefix(name, "uint"))
}

func isString(e ast.Expr, p *apiPackage) bool {
	name := typeName(e)
	if name == "string" || name == "metav1.ConditionStatus" {
		return true
	}
	t := p.lookup(name)
	return t != nil && t.base == "string"
}

func isStruct(e ast.Expr, p *apiPackage) bool {
	t := p.lookup(typeName(e))
	return t != nil && t.base == "" && len(t.fields) > 0
}

func isEnum(f field, p *apiPackage) bool {
	return f.markers.validation("Enum") || isEnumType(deref(f.typ), p)
}

func isEnumType(e ast.Expr, p *apiPackage) bool {
	t := p.lookup(typeName(e))
	return t != nil && t.markers.validation("Enum")
}
