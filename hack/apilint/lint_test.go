// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withField wraps a field into a package in which all else is in order.
func withField(lines ...string) string {
	return "package v1\n\n// Spec is a spec.\ntype Spec struct {\n" + strings.Join(lines, "\n") + "\n}\n"
}

const root = `
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status

// Thing is a thing.
type Thing struct {
	// status is the status.
	// +optional
	Status ThingStatus ` + "`json:\"status,omitzero\"`" + `
}
`

func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		want []string // rules that are broken
	}{
		"good string":        {withField("// name of it.", "// +required", "// +kubebuilder:validation:MinLength=1", "// +kubebuilder:validation:MaxLength=9", "Name string `json:\"name,omitempty\"`"), nil},
		"good list":          {withField("// names of it.", "// +optional", "// +listType=set", "// +kubebuilder:validation:MaxItems=9", "// +kubebuilder:validation:items:MaxLength=9", "Names []string `json:\"names,omitempty\"`"), nil},
		"comment":            {withField("// Name of it.", "// +optional", "// +kubebuilder:validation:MaxLength=9", "Name string `json:\"name,omitempty\"`"), []string{"commentstart"}},
		"neither":            {withField("// name of it.", "// +kubebuilder:validation:MaxLength=9", "Name string `json:\"name,omitempty\"`"), []string{"optionalorrequired"}},
		"both":               {withField("// name of it.", "// +optional", "// +required", "// +kubebuilder:validation:MinLength=1", "// +kubebuilder:validation:MaxLength=9", "Name string `json:\"name,omitempty\"`"), []string{"optionalorrequired"}},
		"snake case":         {withField("// a_b of it.", "// +optional", "// +kubebuilder:validation:MaxLength=9", "AB string `json:\"a_b,omitempty\"`"), []string{"jsontags"}},
		"not omitted":        {withField("// name of it.", "// +optional", "// +kubebuilder:validation:MaxLength=9", "Name string `json:\"name\"`"), []string{"omitted"}},
		"unbounded string":   {withField("// name of it.", "// +optional", "Name string `json:\"name,omitempty\"`"), []string{"maxlength"}},
		"empty string":       {withField("// name of it.", "// +required", "// +kubebuilder:validation:MaxLength=9", "Name string `json:\"name,omitempty\"`"), []string{"requiredfields"}},
		"zero is absent":     {withField("// n of it.", "// +optional", "// +kubebuilder:validation:Minimum=0", "N int32 `json:\"n,omitempty\"`"), []string{"optionalfields"}},
		"unbounded number":   {withField("// n of it.", "// +optional", "N *int32 `json:\"n,omitempty\"`"), []string{"minimum"}},
		"odd number":         {withField("// n of it.", "// +optional", "// +kubebuilder:validation:Minimum=0", "N *uint16 `json:\"n,omitempty\"`"), []string{"integers"}},
		"number or string":   {withField("// n of it.", "// +optional", "// +kubebuilder:validation:XIntOrString", "// +kubebuilder:validation:MaxLength=9", "// +kubebuilder:validation:XValidation:rule=\"true\"", "N *intstr.IntOrString `json:\"n,omitempty\"`"), nil},
		"number unbounded":   {withField("// n of it.", "// +optional", "// +kubebuilder:validation:XIntOrString", "// +kubebuilder:validation:MaxLength=9", "N *intstr.IntOrString `json:\"n,omitempty\"`"), []string{"intorstring"}},
		"float":              {withField("// n of it.", "// +optional", "N *float64 `json:\"n,omitempty\"`"), []string{"nofloats"}},
		"bool":               {withField("// b of it.", "// +optional", "B *bool `json:\"b,omitempty\"`"), []string{"nobools"}},
		"duration":           {withField("// d of it.", "// +optional", "D *metav1.Duration `json:\"d,omitempty\"`"), []string{"nodurations"}},
		"map":                {withField("// m of it.", "// +optional", "M map[string]string `json:\"m,omitempty\"`"), []string{"nomaps", "maxlength"}},
		"list without type":  {withField("// l of it.", "// +optional", "// +kubebuilder:validation:MaxItems=9", "L []Spec `json:\"l,omitempty\"`"), []string{"ssatags"}},
		"map without key":    {withField("// l of it.", "// +optional", "// +listType=map", "// +kubebuilder:validation:MaxItems=9", "L []Spec `json:\"l,omitempty\"`"), []string{"ssatags"}},
		"set of objects":     {withField("// l of it.", "// +optional", "// +listType=set", "// +kubebuilder:validation:MaxItems=9", "L []Spec `json:\"l,omitempty\"`"), []string{"ssatags"}},
		"unbounded list":     {withField("// l of it.", "// +optional", "// +listType=atomic", "L []Spec `json:\"l,omitempty\"`"), []string{"maxlength"}},
		"default":            {withField("// s of it.", "// +optional", "// +kubebuilder:default=1", "S *Spec `json:\"s,omitempty\"`"), []string{"forbiddenmarkers"}},
		"twice":              {withField("// s of it.", "// +optional", "// +optional", "S *Spec `json:\"s,omitempty\"`"), []string{"duplicatemarkers"}},
		"optional struct":    {withField("// s of it.", "// +optional", "S Spec `json:\"s,omitempty\"`"), []string{"optionalfields"}},
		"phase":              {withField("// phase of it.", "// +optional", "Phase *Spec `json:\"phase,omitempty\"`"), []string{"nophase"}},
		"timestamp":          {withField("// timestamp of it.", "// +optional", "Timestamp *Spec `json:\"timestamp,omitempty\"`"), []string{"notimestamp"}},
		"second conditions":  {withField("// a of it.", "// +optional", "A *Spec `json:\"a,omitempty\"`", "// conditions of it.", "// +optional", "// +listType=map", "// +listMapKey=type", "// +kubebuilder:validation:MaxItems=9", "Conditions []metav1.Condition `json:\"conditions,omitempty\"`"), []string{"conditions"}},
		"type comment":       {"package v1\n\n// A spec.\ntype Spec struct{}\n", []string{"typecomment"}},
		"const comment":      {"package v1\n\n// The a.\nconst A = \"a\"\n", []string{"constcomment"}},
		"reason":             {"package v1\n\n// ReasonA is a reason.\nconst ReasonA = \"A\"\n", []string{"reasons"}},
		"enum":               {"package v1\n\n// E is an enum.\n// +kubebuilder:validation:Enum=a;b\ntype E string\n\nconst (\n// EA is a.\nEA E = \"a\"\n// EB is b.\nEB E = \"b\"\n)\n", nil},
		"enum lacks a value": {"package v1\n\n// E is an enum.\n// +kubebuilder:validation:Enum=a\ntype E string\n\nconst (\n// EA is a.\nEA E = \"a\"\n// EB is b.\nEB E = \"b\"\n)\n", []string{"enums"}},
		"enum lacks marker":  {"package v1\n\n// EA is a.\nconst EA E = \"a\"\n\n// E is an enum.\ntype E string\n", []string{"enums"}},
		"status":             {"package v1\n" + root + "\n// ThingStatus is the status.\ntype ThingStatus struct {\n// s of it.\n// +required\nS *Thing `json:\"s,omitempty\"`\n}\n", []string{"statusoptional"}},
		"no subresource":     {"package v1\n" + strings.Replace(root, "// +kubebuilder:subresource:status\n", "", 1) + "\n// ThingStatus is the status.\ntype ThingStatus struct {\n// s of it.\n// +optional\nS *Thing `json:\"s,omitempty\"`\n}\n", []string{"statussubresource"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "types.go"), []byte(c.src), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := load(dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, pr := range lint(p) {
				got = append(got, pr.rule)
			}
			if strings.Join(got, " ") != strings.Join(c.want, " ") {
				t.Errorf("broken rules: got %v, want %v", got, c.want)
			}
		})
	}
}

func TestExemptions(t *testing.T) {
	src := withField("// b of it.", "// +optional", "B *bool `json:\"b,omitempty\"`")
	for name, c := range map[string]struct {
		exemptions, want string
	}{
		"none":     {"exemptions: []", "nobools: Spec.b"},
		"fits":     {"exemptions: [{rule: nobools, subject: Spec.b, reason: r}]", ""},
		"idle":     {"exemptions: [{rule: nobools, subject: Spec.b, reason: r}, {rule: nomaps, subject: Spec.b, reason: r}]", "nomaps of Spec.b exempts nothing"},
		"unreason": {"exemptions: [{rule: nobools, subject: Spec.b}]", "has no reason"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			exemptions := filepath.Join(dir, "exemptions.yaml")
			for path, content := range map[string]string{filepath.Join(dir, "types.go"): src, exemptions: c.exemptions} {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			err := run(&out, dir, exemptions)
			if (err == nil) != (c.want == "") {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if err != nil && !strings.Contains(out.String()+err.Error(), c.want) {
				t.Errorf("got %s %v, want %q", out.String(), err, c.want)
			}
		})
	}
}
