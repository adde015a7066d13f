// Package crdcheck holds objects against CustomResourceDefinitions with the code of Kubernetes' own API server, so that
// a test knows without a server what one would refuse.
package crdcheck

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// perCallLimit is what an API server lets one CEL rule cost (k8s.io/apiserver/pkg/apis/cel).
const perCallLimit = 1_000_000

// Schemas are those of some CustomResourceDefinitions.
type Schemas map[schema.GroupVersionKind]*Schema

// Schema is one version of a CustomResourceDefinition.
type Schema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
	namespaced bool
}

// Load reads the CustomResourceDefinitions of a Go module in the module cache. patterns are those of filepath.Glob,
// below the module's directory.
func Load(tb testing.TB, module string, patterns ...string) Schemas {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		tb.Fatalf("find module %s: %v", module, err)
	}
	return load(tb, strings.TrimSpace(string(out)), patterns)
}

// LoadDownloaded is Load for a version of a module that is none of ours: it is downloaded, and has to have that checksum.
func LoadDownloaded(tb testing.TB, version, sum string, patterns ...string) Schemas {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "mod", "download", "-json", version).Output()
	var found struct{ Dir, Sum, Error string }
	if decoding := utiljson.Unmarshal(out, &found); decoding != nil || found.Error != "" {
		tb.Fatalf("download %s: %v: %v: %s", version, err, decoding, found.Error)
	}
	if found.Sum != sum {
		tb.Fatalf("the checksum of %s is %s, want %s", version, found.Sum, sum)
	}
	return load(tb, found.Dir, patterns)
}

func load(tb testing.TB, dir string, patterns []string) Schemas {
	tb.Helper()
	schemas := Schemas{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			tb.Fatalf("nothing in %s matches %s: %v", dir, pattern, err)
		}
		for _, file := range files {
			if err := schemas.read(file); err != nil {
				tb.Fatalf("%s: %v", file, err)
			}
		}
	}
	return schemas
}

// LoadFile reads a CustomResourceDefinition.
func LoadFile(tb testing.TB, file string) Schemas {
	tb.Helper()
	schemas := Schemas{}
	if err := schemas.read(file); err != nil {
		tb.Fatalf("%s: %v", file, err)
	}
	return schemas
}

func (s Schemas) read(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	asJSON, err := yaml.YAMLToJSON(raw)
	if err == nil {
		err = utiljson.Unmarshal(asJSON, &crd)
	}
	if err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		var props apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil); err != nil {
			return err
		}
		one := &Schema{namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped}
		if one.structural, err = structuralschema.NewStructural(&props); err != nil {
			return err
		}
		if one.validator, _, err = validation.NewSchemaValidator(&props); err != nil {
			return err
		}
		one.rules = cel.NewValidator(one.structural, true, perCallLimit)
		s[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}] = one
	}
	return nil
}

// Admit returns the object as an API server would keep it, or why it would refuse it. An unknown field is a refusal, as
// it is for server-side apply.
func (s Schemas) Admit(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	one := s[obj.GroupVersionKind()]
	if one == nil {
		return nil, fmt.Errorf("there is no schema for %s", obj.GroupVersionKind())
	}
	stored := obj.DeepCopy()
	unknown := pruning.PruneWithOptions(stored.Object, one.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, fmt.Errorf("unknown fields: %s", strings.Join(unknown, ", "))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(stored.Object, one.structural)
	defaulting.Default(stored.Object, one.structural)
	errs := one.metadata(stored)
	errs = append(errs, validation.ValidateCustomResource(nil, stored.Object, one.validator)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, one.structural, stored.Object)...)
	errs = append(errs, objectmeta.Validate(nil, stored.Object, one.structural, true)...)
	if one.rules != nil {
		broken, _ := one.rules.Validate(ctx, nil, one.structural, stored.Object, nil, math.MaxInt64)
		errs = append(errs, broken...)
	}
	return stored, errs.ToAggregate()
}

// metadata is what API servers check of every object.
func (s *Schema) metadata(obj *unstructured.Unstructured) field.ErrorList {
	var meta metav1.ObjectMeta
	path := field.NewPath("metadata")
	content, _ := obj.Object["metadata"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &meta); err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	return apivalidation.ValidateObjectMeta(&meta, s.namespaced, apivalidation.NameIsDNSSubdomain, path)
}
