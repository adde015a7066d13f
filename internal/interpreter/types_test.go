package interpreter

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kruisev1alpha1 "github.com/openkruise/kruise-api/apps/v1alpha1"
	kruisev1beta1 "github.com/openkruise/kruise-api/apps/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiTypes are the types of the kinds that have them. Argo's Workflow and OpenKruise 1.9's v1beta1 have none here.
var apiTypes = map[schema.GroupVersionKind]any{
	{Group: "apps", Version: "v1", Kind: "Deployment"}:                  appsv1.Deployment{},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}:                 appsv1.StatefulSet{},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}:                   appsv1.DaemonSet{},
	{Group: "batch", Version: "v1", Kind: "Job"}:                        batchv1.Job{},
	{Group: "batch", Version: "v1", Kind: "CronJob"}:                    batchv1.CronJob{},
	{Group: kruiseGroup, Version: "v1alpha1", Kind: "CloneSet"}:         kruisev1alpha1.CloneSet{},
	{Group: kruiseGroup, Version: "v1alpha1", Kind: "StatefulSet"}:      kruisev1alpha1.StatefulSet{},
	{Group: kruiseGroup, Version: "v1beta1", Kind: "StatefulSet"}:       kruisev1beta1.StatefulSet{},
	{Group: kruiseGroup, Version: "v1alpha1", Kind: "DaemonSet"}:        kruisev1alpha1.DaemonSet{},
	{Group: kruiseGroup, Version: "v1alpha1", Kind: "SidecarSet"}:       kruisev1alpha1.SidecarSet{},
	{Group: kruiseGroup, Version: "v1alpha1", Kind: "UnitedDeployment"}: kruisev1alpha1.UnitedDeployment{},
	{Group: kruiseGroup, Version: "v1alpha1", Kind: "BroadcastJob"}:     kruisev1alpha1.BroadcastJob{},
	{Group: kruiseGroup, Version: "v1alpha1", Kind: "AdvancedCronJob"}:  kruisev1alpha1.AdvancedCronJob{},
}

// foreign are fields that no API has: Karmada's interpreters add them.
var foreign = map[string]bool{"status.resourceTemplateGeneration": true}

// TestPathsAreInTheTypes holds every path against the Go types of the API: a path that leads nowhere would be a field
// that is always absent, and a wrong type one that is always malformed.
func TestPathsAreInTheTypes(t *testing.T) {
	for gvk, value := range apiTypes {
		kind := registry(t).For(gvk)
		root := reflect.TypeOf(value)
		check := func(what string, path Path, want Type) {
			if foreign[path.String()] {
				return
			}
			got, ok := follow(root, path)
			if !ok {
				t.Errorf("%s: %s: no field %s", gvk, what, path)
				return
			}
			if !fits(got, want) {
				t.Errorf("%s: %s: %s is a %s, not %s", gvk, what, path, got, want)
			}
		}
		for _, f := range kind.Status {
			check("status field", f.Path, f.Type)
		}
		for _, in := range kind.Spec {
			if in.At != "" {
				check("input", in.Path, in.Type)
			}
		}
		paths := slices.Concat([]string{kind.Replicas, kind.Selector}, kind.PodTemplates, kind.SelfRemovals)
		for _, field := range kind.InPlace {
			paths = append(paths, field.Path)
		}
		if kind.Partition != nil {
			paths = append(paths, kind.Partition.Path)
		}
		for _, text := range paths {
			if text == "" {
				continue
			}
			path, err := ParsePath(text)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := follow(root, path); !ok {
				t.Errorf("%s: no field %s", gvk, text)
			}
		}
	}
}

// TestAbsenceIsThatOfTheTypes: a number that its type omits when it is 0 is 0 when it is absent, and only such a one. The
// others are there in every status, so that absence means that the report is a part of one. A word that its type never omits is
// in each status that is written.
func TestAbsenceIsThatOfTheTypes(t *testing.T) {
	for gvk, value := range apiTypes {
		status, ok := field(reflect.TypeOf(value), "status")
		if !ok {
			t.Fatalf("%s has no status", gvk)
		}
		omitted := map[string]bool{}
		for i := range status.NumField() {
			name, options, _ := strings.Cut(status.Field(i).Tag.Get("json"), ",")
			omitted[name] = strings.Contains(options, "omitempty")
		}
		for _, f := range registry(t).For(gvk).Status {
			omits, direct := omitted[f.At]
			switch {
			case f.Type == TypeString && direct && f.Combine != PerCluster && f.Required == omits:
				t.Errorf("%s: whether %s is required is not what its type says", gvk, f.Name)
			case f.Type != TypeInt && f.Type != TypeCount:
			case f.Absent == Zero && !omitted[f.At]:
				t.Errorf("%s: %s is never left out, so that its absence is not zero", gvk, f.Name)
			case f.Required && omitted[f.At]:
				t.Errorf("%s: %s is left out when it is zero", gvk, f.Name)
			}
		}
	}
}

func follow(at reflect.Type, path Path) (reflect.Type, bool) {
	for _, s := range path {
		for at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		switch at.Kind() {
		case reflect.Map:
			at = at.Elem()
		case reflect.Struct:
			next, ok := field(at, s.Key)
			if !ok {
				return nil, false
			}
			at = next
		default:
			return nil, false
		}
		if s.By != "" {
			if at.Kind() != reflect.Slice {
				return nil, false
			}
			at = at.Elem()
		}
	}
	return at, true
}

func field(at reflect.Type, name string) (reflect.Type, bool) {
	for i := range at.NumField() {
		f := at.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name {
			return f.Type, true
		}
		if tag == "" && strings.Contains(options, "inline") {
			if found, ok := field(f.Type, name); ok {
				return found, true
			}
		}
	}
	return nil, false
}

func fits(t reflect.Type, want Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch want {
	case TypeCount:
		return t.Kind() == reflect.Slice
	case TypeInt:
		return t.Kind() == reflect.Int32
	case TypeLong:
		return t.Kind() == reflect.Int64
	case TypeBool:
		return t.Kind() == reflect.Bool
	case TypePartition:
		return t.Kind() == reflect.Int32 || t.Name() == "IntOrString"
	case TypeObject:
		return t.Kind() == reflect.Struct
	default:
		return t.Kind() == reflect.String || t.Name() == "Time"
	}
}

func TestEveryServedVersionIsKnown(t *testing.T) {
	// OpenKruise v1.8.3 config/crd/bases, and 1.9.0's v1beta1.
	served := map[string][]string{
		"CloneSet": {"v1alpha1"}, "StatefulSet": {"v1alpha1", "v1beta1"}, "DaemonSet": {"v1alpha1", "v1beta1"},
		"SidecarSet": {"v1alpha1", "v1beta1"}, "UnitedDeployment": {"v1alpha1"}, "BroadcastJob": {"v1alpha1", "v1beta1"},
		"AdvancedCronJob": {"v1alpha1", "v1beta1"},
	}
	for kind, versions := range served {
		for _, version := range versions {
			kindOf(t, kruiseGroup+"/"+version, kind)
		}
	}
	if !kindOf(t, kruise1, "SidecarSet").ClusterScoped || kindOf(t, kruise1, "CloneSet").ClusterScoped {
		t.Error("only SidecarSet is cluster-scoped")
	}
}

func TestFeedbackIsScalar(t *testing.T) {
	want := map[string]string{
		"generation": ".metadata.generation", "observedGeneration": ".status.observedGeneration", "replicas": ".status.replicas",
		"conditionReplicaFailure": `.status.conditions[?(@.type=="ReplicaFailure")].status`,
	}
	for _, f := range kindOf(t, "apps/v1", "Deployment").Feedback() {
		if path, listed := want[f.Name]; listed && path != f.Path {
			t.Errorf("%s: got %s, want %s", f.Name, f.Path, path)
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	for _, k := range registry(t).Kinds() {
		seen := map[string]bool{}
		for _, f := range k.Feedback() {
			if seen[f.Name] || strings.Contains(f.Name, ":") {
				t.Errorf("%s: feedback %s", k.GVK(), f.Name)
			}
			seen[f.Name] = true
		}
	}
}

func TestParsePath(t *testing.T) {
	for text, want := range map[string]string{
		"spec.replicas": ".spec.replicas", ".spec.replicas": ".spec.replicas",
		"status.conditions[type=Ready].status": `.status.conditions[?(@.type=="Ready")].status`,
		"metadata.annotations['a.b/c']":        `.metadata.annotations.a\.b/c`,
		"a[b.c=x].d":                           `.a[?(@.b.c=="x")].d`,
		"":                                     "", "a..b": "", "a.": "", "a[": "", "a[0]": "", "a[type=]": "", "a[=x]": "", "a[.b=x]": "", "a[b c=x]": "", ".": "", "a['']": "", "a[type=x][type=y]": "",
	} {
		path, err := ParsePath(text)
		got := ""
		if err == nil {
			got = path.JSONPath()
			if again, err := ParsePath(path.String()); err != nil || cmp.Diff(path, again) != "" {
				t.Errorf("%s is written as %s", text, path)
			}
		}
		if got != want {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
}
