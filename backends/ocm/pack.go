package ocm

import (
	"fmt"
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/caches"
	"github.com/fleetworkload/fleetworkload/backends/internal/interned"
)

// sizeField is, in our cache, the size of a ManifestWork's status that is too large to be kept; there is nothing else in the status then.
const sizeField = "fleetworkload.io/size"

// createdField is, in our cache, when a ManifestWork was created, or empty; only what is packed has it. Its metadata has eight fields without that,
// which a map holds in half the memory of nine.
const createdField = "fleetworkload.io/created"

// createdAt is when a ManifestWork was created, from the cache or from the hub.
func createdAt(work *unstructured.Unstructured) (created metav1.Time) {
	text, packed := work.Object[createdField].(string)
	if !packed {
		return work.GetCreationTimestamp()
	}
	_ = created.UnmarshalQueryParameter(text) // zero when it is none, as there
	return created
}

// packManifestWork makes a ManifestWork small in memory. What it has in common with others is theirs too; of a thousand of a workload nearly
// all is. A status that is too large is dropped: what an agent reports is small, and whoever has its rights can write anything there.
func packManifestWork(works *interned.Values, obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	if _, packed := u.Object[createdField]; packed {
		return u, nil // client-go calls this twice with each object of a first list
	}
	u.Object[createdField], _, _ = unstructured.NestedString(u.Object, "metadata", "creationTimestamp")
	caches.KeepOwnFields(u)
	withoutTimes(u.Object["metadata"], "managedFields", "time")
	if status, is := u.Object["status"].(map[string]any); is {
		if size := sizeOf(status); size > backends.MostReported(1) {
			u.Object["status"] = map[string]any{sizeField: int64(size)}
		} else {
			u.Object["status"] = packStatus(works, status)
		}
	}
	for _, part := range partsOf(u) {
		part.in[part.key] = works.Of(part.in[part.key])
	}
	if metadata, is := u.Object["metadata"].(map[string]any); is {
		delete(metadata, "finalizers") // nobody asks
		delete(metadata, "creationTimestamp")
		for _, key := range []string{"namespace", "name"} {
			if name, named := metadata[key].(string); named {
				metadata[key] = unique.Make(name).Value()
			}
		}
		u.Object["metadata"] = withSharedKeys(metadata)
	}
	u.Object = withSharedKeys(u.Object)
	return u, nil
}

// packStatus is a status as the cache has it: what clusters that have come as far have in common, and the UID of the cluster's own object. When
// conditions changed is left out, since nobody asks.
func packStatus(works *interned.Values, status map[string]any) []any {
	withoutTimes(status, "conditions", "lastTransitionTime")
	var uid any = ""
	for i, manifest := range manifestsIn(status) {
		withoutTimes(manifest, "conditions", "lastTransitionTime")
		feedback, _ := manifest["statusFeedback"].(map[string]any)
		values, _ := feedback["values"].([]any)
		at := slices.IndexFunc(values, isUID)
		if i > 0 || at < 0 {
			continue
		}
		uid, _, _ = unstructured.NestedString(values[at].(map[string]any), "fieldValue", "string")
		feedback["values"] = slices.Delete(values, at, at+1)
	}
	return []any{works.Of(status), uid}
}

func isUID(value any) bool {
	v, _ := value.(map[string]any)
	_, has, err := unstructured.NestedString(v, "fieldValue", "string")
	return v["name"] == feedbackUID && has && err == nil
}

// withoutTimes takes a field out of each element of a list.
func withoutTimes(of any, list, field string) {
	object, _ := of.(map[string]any)
	elements, _ := object[list].([]any)
	for _, e := range elements {
		if element, is := e.(map[string]any); is {
			delete(element, field)
		}
	}
}

// manifestsIn are the reports of manifests in a status.
func manifestsIn(status map[string]any) []map[string]any {
	resources, _ := status["resourceStatus"].(map[string]any)
	list, _ := resources["manifests"].([]any)
	manifests := make([]map[string]any, len(list))
	for i := range list {
		manifests[i], _ = list[i].(map[string]any)
	}
	return manifests
}

// statusOf is the status of a ManifestWork, from the cache, which has no times of conditions, or from the hub.
func statusOf(work *unstructured.Unstructured) (status workv1.ManifestWorkStatus, err error) {
	content, uid := sharedStatus(work)
	if content == nil {
		content, _ = work.Object["status"].(map[string]any)
	}
	if err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
		return status, fmt.Errorf("read ManifestWork %s: %w", client.ObjectKeyFromObject(work), err)
	}
	if manifests := status.ResourceStatus.Manifests; uid != "" && len(manifests) > 0 {
		feedback := &manifests[0].StatusFeedbacks
		feedback.Values = append(feedback.Values, workv1.FeedbackValue{
			Name: feedbackUID, Value: workv1.FieldValue{Type: workv1.String, String: &uid},
		})
	}
	return status, nil
}

// sharedStatus is of a status that packStatus has packed what others have, too, and the UID; nil of any other one.
func sharedStatus(work *unstructured.Unstructured) (content map[string]any, uid string) {
	if packed, is := work.Object["status"].([]any); is {
		content, _ = packed[0].(map[string]any)
		uid, _ = packed[1].(string)
	}
	return content, uid
}

// part is a part of an object that others may have as well.
type part struct {
	in  map[string]any
	key string
}

// partsOf are such parts of a ManifestWork, but for its status.
func partsOf(work *unstructured.Unstructured) []part {
	metadata, _ := work.Object["metadata"].(map[string]any)
	var parts []part
	for _, p := range []part{
		{work.Object, "spec"}, {metadata, "labels"}, {metadata, "annotations"}, {metadata, "managedFields"},
	} {
		if _, has := p.in[p.key]; has {
			parts = append(parts, p)
		}
	}
	return parts
}

// withSharedKeys is a map whose keys are the same strings as others'.
func withSharedKeys(of map[string]any) map[string]any {
	shared := make(map[string]any, len(of))
	for key, value := range of {
		shared[unique.Make(key).Value()] = value
	}
	return shared
}

// sizeOf is about how many bytes a value takes as JSON.
func sizeOf(value any) int {
	switch v := value.(type) {
	case map[string]any:
		size := 2
		for key, below := range v {
			size += len(key) + 4 + sizeOf(below)
		}
		return size
	case []any:
		size := 2
		for _, element := range v {
			size += 1 + sizeOf(element)
		}
		return size
	case string:
		return len(v) + 2
	default:
		return 8
	}
}
