// Package crdschema holds objects against CustomResourceDefinitions with the code of Kubernetes' own API server: it tells without a server what one
// would refuse.
package crdschema

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

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

// Read adds the versions of a CustomResourceDefinition, given as YAML.
func (s Schemas) Read(definition []byte) error {
	var crd apiextensionsv1.CustomResourceDefinition
	asJSON, err := yaml.YAMLToJSON(definition)
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

// Admit returns the object as an API server would keep it when it is created, or why it would refuse it. An unknown field is a refusal, as it
// is for server-side apply.
func (s Schemas) Admit(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return s.admit(ctx, obj, nil)
}

// AdmitUpdate is Admit for an object that is there already: rules may compare both.
func (s Schemas) AdmitUpdate(ctx context.Context, obj, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return s.admit(ctx, obj, old.Object)
}

// admit takes an old that is nil, without a type, when there is none.
func (s Schemas) admit(ctx context.Context, obj *unstructured.Unstructured, old any) (*unstructured.Unstructured, error) {
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
		broken, _ := one.rules.Validate(ctx, nil, one.structural, stored.Object, old, math.MaxInt64)
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

// Structural is the schema of a kind; nil when there is none.
func (s Schemas) Structural(of string) *structuralschema.Structural {
	for gvk, one := range s {
		if gvk.Kind == of {
			return one.structural
		}
	}
	return nil
}
