package main

import (
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
	workv1 "open-cluster-management.io/api/work/v1"
)

// answered tells whether the status speaks about the newest generation.
func answered(work *workv1.ManifestWork) bool {
	c := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkAvailable)
	return c != nil && c.ObservedGeneration == work.Generation
}

// asks tells whether the ManifestWork only asks for the object.
func asks(work *workv1.ManifestWork) bool {
	configs := work.Spec.ManifestConfigs
	return len(configs) > 0 && configs[0].UpdateStrategy != nil &&
		configs[0].UpdateStrategy.Type == workv1.UpdateStrategyTypeReadOnly
}

// statusOf is what a cluster's work agent says of a ManifestWork when all goes well: a workload that is only asked for is
// not there, whatever is delivered is there and runs. A ManifestWork has as many configs as manifests, in the same order.
func statusOf(work *workv1.ManifestWork, now metav1.Time) (workv1.ManifestWorkStatus, error) {
	present := metav1.ConditionTrue
	if asks(work) {
		present = metav1.ConditionFalse
	}
	condition := func(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "Simulated", ObservedGeneration: generation, LastTransitionTime: now}
	}
	status := workv1.ManifestWorkStatus{Conditions: []metav1.Condition{
		condition(workv1.WorkApplied, metav1.ConditionTrue, work.Generation),
		condition(workv1.WorkAvailable, present, work.Generation),
	}}
	for i, manifest := range work.Spec.Workload.Manifests {
		object, err := memberObject(work, manifest)
		if err != nil {
			return status, err
		}
		report := workv1.ManifestCondition{Conditions: []metav1.Condition{
			condition(workv1.ManifestApplied, metav1.ConditionTrue, 0), condition(workv1.ManifestAvailable, present, 0),
		}}
		report.ResourceMeta.Ordinal = int32(i)
		report.ResourceMeta.Kind, _ = object["kind"].(string)
		if present == metav1.ConditionTrue && i < len(work.Spec.ManifestConfigs) {
			if report.StatusFeedbacks.Values, err = feedback(work.Spec.ManifestConfigs[i], object); err != nil {
				return status, err
			}
			report.Conditions = append(report.Conditions, condition("StatusFeedbackSynced", metav1.ConditionTrue, 0))
		}
		status.ResourceStatus.Manifests = append(status.ResourceStatus.Manifests, report)
	}
	return status, nil
}

// feedback evaluates the rules over the member object, as the agent does.
func feedback(config workv1.ManifestConfigOption, object map[string]any) ([]workv1.FeedbackValue, error) {
	var values []workv1.FeedbackValue
	for _, rule := range config.FeedbackRules {
		for _, path := range rule.JsonPaths {
			found, err := lookUp(path.Path, object)
			if err != nil {
				return nil, fmt.Errorf("feedback %s: %w", path.Name, err)
			}
			if value := fieldValue(found); value != nil {
				values = append(values, workv1.FeedbackValue{Name: path.Name, Value: *value})
			}
		}
	}
	return values, nil
}

// memberObject is the manifest as a cluster has it once it runs.
func memberObject(work *workv1.ManifestWork, manifest workv1.Manifest) (map[string]any, error) {
	object := map[string]any{}
	if err := utiljson.Unmarshal(manifest.Raw, &object); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	if object["kind"] == "CustomResourceDefinition" {
		object["spec"] = map[string]any{"versions": []any{map[string]any{"name": "v1alpha1", "served": true}}}
		return object, nil
	}
	metadata, _ := object["metadata"].(map[string]any)
	maps.Copy(metadata, map[string]any{
		"uid": "member-" + string(work.UID), "generation": work.Generation,
		"ownerReferences": []any{map[string]any{"kind": "AppliedManifestWork", "name": work.Name}},
	})
	object["status"] = running(object, work.Generation)
	return object, nil
}

// running is the status of a workload all of whose pods run.
func running(object map[string]any, generation int64) map[string]any {
	status := map[string]any{"observedGeneration": generation, "updateRevision": "new", "currentRevision": "new"}
	if spec, _ := object["spec"].(map[string]any); spec["replicas"] != nil {
		for _, counter := range []string{
			"replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas",
			"updatedAvailableReplicas", "expectedUpdatedReplicas",
		} {
			status[counter] = spec["replicas"]
		}
	}
	return status
}

// paths keeps parsed JSONPaths: there are few, and each is evaluated for every cluster.
var paths sync.Map

// lookUp is the first value that a path leads to, nil when there is none.
func lookUp(path string, object map[string]any) (any, error) {
	cached, known := paths.Load(path)
	if !known {
		parsed := jsonpath.New(path).AllowMissingKeys(true)
		if err := parsed.Parse("{" + path + "}"); err != nil {
			return nil, err
		}
		cached, _ = paths.LoadOrStore(path, &guarded{path: parsed})
	}
	return cached.(*guarded).find(object)
}

// guarded evaluates a JSONPath for one caller at a time: evaluating changes it.
type guarded struct {
	mu   sync.Mutex
	path *jsonpath.JSONPath
}

func (g *guarded) find(object map[string]any) (any, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	results, err := g.path.FindResults(object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil, err
	}
	return results[0][0].Interface(), nil
}

// fieldValue is a scalar as feedback; nil for anything else.
func fieldValue(v any) *workv1.FieldValue {
	switch t := v.(type) {
	case string:
		return &workv1.FieldValue{Type: workv1.String, String: &t}
	case bool:
		return &workv1.FieldValue{Type: workv1.Boolean, Boolean: &t}
	case int64:
		return &workv1.FieldValue{Type: workv1.Integer, Integer: &t}
	case float64:
		n := int64(t)
		return &workv1.FieldValue{Type: workv1.Integer, Integer: &n}
	default:
		return nil
	}
}
