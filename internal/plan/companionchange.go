package plan

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/difference"
)

// CompanionChanges are what becomes different of a companion that is delivered, a line each; nil when nothing does. Without values they say
// which fields alone.
func CompanionChanges(was, is *unstructured.Unstructured, values bool) []string {
	if sameCompanion(was, is) {
		return nil
	}
	before, _ := Bare(was)
	after, _ := Bare(is)
	if values {
		return difference.Lines(before.Object, after.Object)
	}
	return difference.Fields(before.Object, after.Object)
}

// sameCompanion spares comparing what bears the same revision: clusters are many. A Secret's says nothing of its values.
func sameCompanion(was, is *unstructured.Unstructured) bool {
	revision := CompanionRevision(is)
	if revision == "" || CompanionRevision(was) != revision {
		return false
	}
	return !difference.IsSecret(is.Object) ||
		reflect.DeepEqual(was.Object["data"], is.Object["data"]) && reflect.DeepEqual(was.Object["stringData"], is.Object["stringData"])
}

// CompanionRevision is that which a companion bears. It says nothing of a Secret's values.
func CompanionRevision(companion *unstructured.Unstructured) string {
	return companion.GetAnnotations()[v1alpha1.AnnotationRevision]
}
