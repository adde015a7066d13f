package ocm

import (
	"maps"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/jsonpath"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
	"github.com/fleetworkload/fleetworkload/backends/internal/interned"
	"github.com/fleetworkload/fleetworkload/backends/internal/ssa"
)

func loadWork(t *testing.T, change func(*workv1.ManifestWork)) report {
	t.Helper()
	data, err := os.ReadFile("testdata/manifestwork.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var work workv1.ManifestWork
	if err := yaml.UnmarshalStrict(data, &work); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&work)
	}
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&work)
	if err != nil {
		t.Fatal(err)
	}
	status, _ := obj["status"].(map[string]any)
	for _, in := range append(manifestsIn(status), status) {
		withoutTimes(in, "conditions", "lastTransitionTime") // which the cache does not have
	}
	r, err := readWork(&unstructured.Unstructured{Object: obj})
	if err != nil {
		t.Fatal(err)
	}
	cached := packed(t, &interned.Values{}, &unstructured.Unstructured{Object: obj})
	if again, err := readWork(cached); err != nil || !reflect.DeepEqual(r, again) {
		t.Errorf("as the cache has it, it says %+v, not %+v (%v)", again, r, err)
	}
	return r
}

// packed is a ManifestWork as the cache has it.
func packed(t *testing.T, works *interned.Values, work *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	cached, err := packManifestWork(works, work.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if cached, err = packManifestWork(works, cached); err != nil {
		t.Fatal(err) // client-go may call it twice
	}
	return cached.(*unstructured.Unstructured)
}

// TestWorksOfOneWorkloadAreSmall: what they have in common is there once, of what their clusters report too, and each has its own place, object
// and what it alone reports.
func TestWorksOfOneWorkloadAreSmall(t *testing.T) {
	work := func(cluster, message string) *unstructured.Unstructured {
		condition := map[string]any{"type": "Applied", "message": message, "lastTransitionTime": "2026-11-27T10:00:0" + cluster[1:] + "Z"}
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{
				"namespace": cluster, "name": "w", "labels": map[string]any{"uid": "1"}, "annotations": map[string]any{"hash": "2"},
				"uid": cluster, "generation": int64(1), "resourceVersion": "1", "creationTimestamp": "2026-11-27T09:00:0" + cluster[1:] + "Z",
				"finalizers": []any{"f"}, "managedFields": []any{
					map[string]any{"manager": ssa.FieldOwner, "time": "2026-11-27T10:00:0" + cluster[1:] + "Z", "fieldsV1": map[string]any{"f:spec": map[string]any{}}},
					map[string]any{"manager": cluster},
				},
			},
			"spec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{"kind": "CloneSet"}}}},
			"status": map[string]any{
				"conditions": []any{condition},
				"resourceStatus": map[string]any{"manifests": []any{map[string]any{
					"conditions": []any{maps.Clone(condition)},
					"statusFeedback": map[string]any{"values": []any{
						map[string]any{"name": feedbackUID, "fieldValue": map[string]any{"type": "String", "string": "object of " + cluster}},
						map[string]any{"name": "replicas", "fieldValue": map[string]any{"type": "Integer", "integer": int64(2)}},
					}},
				}}},
			},
		}}
	}
	var works interned.Values
	var reports reports
	m1, m2, m3 := packed(t, &works, work("m1", "fine")), packed(t, &works, work("m2", "fine")), packed(t, &works, work("m3", "no"))
	same := func(name string, a, b any) {
		t.Helper()
		if of, other := reflect.ValueOf(a), reflect.ValueOf(b); of.Pointer() != other.Pointer() || of.Len() == 0 {
			t.Errorf("each has its own %s: %v", name, a)
		}
	}
	for i, part := range partsOf(m1) {
		other := partsOf(m2)[i]
		same(part.key, part.in[part.key], other.in[other.key])
	}
	same("status", m1.Object["status"].([]any)[0], m2.Object["status"].([]any)[0])
	if metadata := m1.Object["metadata"].(map[string]any); len(metadata) > 8 {
		t.Errorf("a map of so many takes twice the memory: %v", metadata)
	}
	if created := work("m2", "").GetCreationTimestamp(); createdAt(m2) != created || createdAt(work("m2", "")) != created || created.IsZero() {
		t.Errorf("it was created at %s, want %s", createdAt(m2), created)
	}
	if !older(m1, m2) || older(m2, m1) {
		t.Error("which of two is older is forgotten")
	}
	read := map[string]report{}
	for cluster, cached := range map[string]*unstructured.Unstructured{"m1": m1, "m2": m2, "m3": m3} {
		r, err := reports.read(cached)
		if err != nil || r.cluster != cluster || r.objectUID != types.UID("object of "+cluster) || r.conditions[0].Message != map[bool]string{true: "no", false: "fine"}[cluster == "m3"] {
			t.Errorf("%s: %+v, %v", cluster, r, err)
		}
		read[cluster] = r
	}
	same("values", read["m1"].values, read["m2"].values)
	same("conditions", read["m1"].conditions, read["m2"].conditions)
	reports.forget("m1")
	reports.sweep([]*unstructured.Unstructured{m2})
	if r, err := reports.read(m1); err != nil {
		t.Error(err)
	} else {
		same("values, after others were forgotten", read["m2"].values, r.values)
	}
	if len(reports.statuses) != 1 {
		t.Errorf("%d statuses are kept, of which one is in use", len(reports.statuses))
	}
}

func strategy(kind workv1.UpdateStrategyType) func(*workv1.ManifestWork) {
	return func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs[0].UpdateStrategy = &workv1.UpdateStrategy{Type: kind}
	}
}

func all(changes ...func(*workv1.ManifestWork)) func(*workv1.ManifestWork) {
	return func(w *workv1.ManifestWork) {
		for _, change := range changes {
			change(w)
		}
	}
}

// manifestCondition sets a condition of the manifest, and of the work where it has one of that type.
func manifestCondition(kind string, status metav1.ConditionStatus, message string) func(*workv1.ManifestWork) {
	return func(w *workv1.ManifestWork) {
		for _, list := range [][]metav1.Condition{w.Status.Conditions, w.Status.ResourceStatus.Manifests[0].Conditions} {
			for i := range list {
				if list[i].Type == kind {
					list[i].Status, list[i].Message = status, message
				}
			}
		}
	}
}

// value sets a feedback value, or removes it when it is nil.
func value(name string, v any) func(*workv1.ManifestWork) {
	return func(w *workv1.ManifestWork) {
		manifest := &w.Status.ResourceStatus.Manifests[0]
		var values []workv1.FeedbackValue
		for _, old := range manifest.StatusFeedbacks.Values {
			if old.Name != name {
				values = append(values, old)
			}
		}
		switch v := v.(type) {
		case int64:
			values = append(values, workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Integer: &v}})
		case string:
			values = append(values, workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{String: &v}})
		}
		manifest.StatusFeedbacks.Values = values
	}
}

func newGeneration(w *workv1.ManifestWork) { w.Generation++ }

var cloneSets = backends.Workload{
	Resource: "clonesets", Namespace: "shop", Name: "web", ReplicasPath: []string{"spec", "replicas"},
	Feedback: []backends.FeedbackField{
		{Name: "observedGeneration", Path: ".status.observedGeneration"},
		{Name: "readyReplicas", Path: ".status.readyReplicas"},
		{Name: "updatedReplicas", Path: ".status.updatedReplicas"},
	},
}

// fieldsLost is what an agent says whose fields somebody has changed.
const fieldsLost = `Failed to apply manifest: Apply failed with 1 conflict: conflict with "kubectl-edit" using apps/v1: .spec.replicas`

func TestObserve(t *testing.T) {
	steady := backends.ClusterObservation{
		Cluster: "member2", Asked: new(int32), Revision: "8a872d0d", Applied: metav1.ConditionTrue, Current: true,
		Status: map[string]any{"observedGeneration": int64(1), "readyReplicas": int64(4)},
		UID:    "ff959922-67b2-42d8-8133-3cacaea9277d",
	}
	*steady.Asked = 4
	with := func(change func(*backends.ClusterObservation)) backends.ClusterObservation {
		o := steady
		change(&o)
		return o
	}
	stale := with(func(o *backends.ClusterObservation) { o.Current = false })
	for name, c := range map[string]struct {
		change func(*workv1.ManifestWork)
		want   backends.ClusterObservation
	}{
		"steady":             {want: steady},
		"agent has not seen": {newGeneration, with(func(o *backends.ClusterObservation) { o.Applied, o.Current = "Unknown", false })},
		"older manifest":     {value(feedbackRevision, "0000"), stale},
		"no revision":        {value(feedbackRevision, nil), stale},
		"not observed":       {value(feedbackObservedGeneration, nil), stale},
		"observed earlier":   {value(feedbackGeneration, int64(2)), stale},
		"other replicas": {value(feedbackReplicas, int64(3)), with(func(o *backends.ClusterObservation) {
			o.Current, o.Message = false, "its object asks for 3 replicas, not 4: the agent has yet to apply that, or somebody has changed it on the cluster"
		})},
		"object gone, values stay": {
			manifestCondition(workv1.ManifestAvailable, "False", "Resource is not available"),
			with(func(o *backends.ClusterObservation) { o.Current, o.Message = false, "Resource is not available" }),
		},
		"feedback broken": {
			manifestCondition(conditionFeedbackSynced, "False", "the type float64"),
			with(func(o *backends.ClusterObservation) { o.Current, o.Message = false, "the type float64" }),
		},
		"kind not served": {
			manifestCondition(workv1.ManifestApplied, "False",
				`Failed to apply manifest: the server doesn't have a resource type "CloneSet"`),
			with(func(o *backends.ClusterObservation) {
				o.Applied, o.Current = "False", false
				o.Message = "the cluster does not serve apps.kruise.io/v1alpha1 CloneSet: install what serves it there (OpenKruise)"
			}),
		},
		"changed by somebody": {
			manifestCondition(workv1.ManifestApplied, "False", fieldsLost),
			with(func(o *backends.ClusterObservation) {
				o.Applied, o.Current, o.Message = "Unknown", false, "somebody has changed it on the cluster, and it is put back: "+fieldsLost
			}),
		},
		"changed by somebody, and held": {
			all(manifestCondition(workv1.ManifestApplied, "False", fieldsLost), func(w *workv1.ManifestWork) { w.Annotations[annotationHeld] = "true" }),
			with(func(o *backends.ClusterObservation) {
				o.Applied, o.Current, o.Held = "False", false, true
				o.Message = "somebody has changed it on the cluster, where it is held: " + fieldsLost
			}),
		},
		"asking": {
			all(strategy("ReadOnly"), newGeneration),
			with(func(o *backends.ClusterObservation) {
				o.Applied, o.Current, o.Message = "Unknown", false, "the agent is asked whether the object exists already"
			}),
		},
		"conflict": {
			all(strategy("ReadOnly"), value(feedbackWorkload, "another")),
			with(func(o *backends.ClusterObservation) {
				o.Applied, o.Current, o.Conflict, o.Message = "False", false, true, conflictMessage
			}),
		},
		"held": {
			func(w *workv1.ManifestWork) { w.Annotations[annotationHeld] = "true" },
			with(func(o *backends.ClusterObservation) { o.Held = true }),
		},
		"left marked by Karmada": {
			value(feedbackMarkPrefix+"6", "abort"),
			with(func(o *backends.ClusterObservation) { o.Marks = []string{"work.karmada.io/conflict-resolution"} }),
		},
		"managed by Karmada still": {
			value(feedbackMarkPrefix+"0", "true"),
			with(func(o *backends.ClusterObservation) { o.Marks = []string{managedByKarmada} }),
		},
		"being removed": {
			func(w *workv1.ManifestWork) { w.Spec.DeleteOption.PropagationPolicy = "Foreground" },
			with(func(o *backends.ClusterObservation) { o.Presence = backends.PresenceRemoving }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, loadWork(t, c.change).observe(cloneSets)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDelivered: the agent's word proves something while it applies without force, and of the newest order alone.
func TestDelivered(t *testing.T) {
	unforced := func(w *workv1.ManifestWork) {
		w.UID = "w1"
		w.Spec.ManifestConfigs[0].UpdateStrategy.ServerSideApply.Force = false
	}
	failed := func(message string) func(*workv1.ManifestWork) {
		return manifestCondition(workv1.ManifestApplied, "False", message)
	}
	whole := &backends.Delivered{Order: backends.Order{UID: "w1", Generation: 2}}
	lost := &backends.Delivered{Order: whole.Order, Others: `conflict with "kubectl-edit" using apps/v1: .spec.replicas`}
	for name, c := range map[string]struct {
		change func(*workv1.ManifestWork)
		want   *backends.Delivered
	}{
		"whole":                    {unforced, whole},
		"changed by somebody":      {all(unforced, failed(fieldsLost)), lost},
		"changed where it is held": {all(unforced, failed(fieldsLost), func(w *workv1.ManifestWork) { w.Annotations[annotationHeld] = "true" }), lost},
		"changed in several fields": {
			all(unforced, failed("Failed to apply manifest: Apply failed with 2 conflicts: conflicts with \"helm\" using apps/v1:\n- .spec.a\n- .spec.b")),
			&backends.Delivered{Order: whole.Order, Others: `conflicts with "helm" using apps/v1: - .spec.a - .spec.b`},
		},
		"failed for another reason": {all(unforced, failed("no room")), nil},
		"put back by force":         {nil, nil},
		"agent has not seen":        {all(unforced, newGeneration), nil},
		"asking":                    {all(unforced, strategy("ReadOnly")), nil},
		"giving up":                 {all(unforced, strategy("CreateOnly")), nil},
		"another backend's":         {all(unforced, func(w *workv1.ManifestWork) { w.Annotations[annotationObserved] = "true" }), nil},
		"being removed":             {all(unforced, func(w *workv1.ManifestWork) { w.Annotations[annotationRemoving] = "Orphan" }), nil},
		"no report of the object":   {all(unforced, value(feedbackUID, nil)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, loadWork(t, c.change).observe(cloneSets).Delivered); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDeliveredCompanions: of a companion the agent's word proves as much, of a Secret nobody's words are passed on, and what is put back by force
// before anybody has looked is told all the same.
func TestDeliveredCompanions(t *testing.T) {
	unforced := func(w *workv1.ManifestWork) {
		w.UID = "w1"
		w.Spec.ManifestConfigs[0].UpdateStrategy.ServerSideApply.Force = false
	}
	byHand := manifestCondition(workv1.ManifestApplied, "False", fieldsLost)
	order := backends.Order{UID: "w1", Generation: 2}
	lost := &backends.Delivered{Order: order, Others: `conflict with "kubectl-edit" using apps/v1: .spec.replicas`}
	fought := &contests{}
	fought.add("w1", contest{order: 1, others: lost.Others})
	for name, c := range map[string]struct {
		kind     string
		change   func(*workv1.ManifestWork)
		contests *contests
		want     *backends.Delivered
	}{
		"whole":                       {"ConfigMap", unforced, nil, &backends.Delivered{Order: order}},
		"changed by somebody":         {"ConfigMap", all(unforced, byHand), nil, lost},
		"a Secret, whole":             {"Secret", unforced, nil, &backends.Delivered{Order: order}},
		"a Secret":                    {"Secret", all(unforced, byHand), nil, &backends.Delivered{Order: order, Others: companions.Say("Secret", lost.Others)}},
		"put back by force":           {"ConfigMap", func(w *workv1.ManifestWork) { w.UID = "w1" }, nil, nil},
		"put back before anybody saw": {"ConfigMap", func(w *workv1.ManifestWork) { w.UID = "w1" }, fought, &backends.Delivered{Order: backends.Order{UID: "w1", Generation: 1}, Others: lost.Others}},
		"used as it is":               {"ConfigMap", all(unforced, strategy("ReadOnly")), nil, nil},
		"being removed":               {"ConfigMap", all(unforced, func(w *workv1.ManifestWork) { w.Annotations[annotationRemoving] = "Orphan" }), nil, nil},
		"no report of the object":     {"ConfigMap", all(unforced, value(feedbackUID, nil)), nil, &backends.Delivered{Order: order}},
	} {
		t.Run(name, func(t *testing.T) {
			r, d, o := loadWork(t, c.change), &Driver{}, backends.ClusterObservation{}
			r.manifest = map[string]any{"kind": c.kind, "metadata": map[string]any{"name": "settings"}}
			if c.contests != nil {
				d.contests.add("w1", c.contests.by["w1"])
			}
			d.tellDelivered(r, &o)
			if diff := cmp.Diff(map[string]*backends.Delivered{c.kind + " settings": c.want}, o.CompanionsDelivered); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestObserveWithoutGeneration: of a kind that need not report what it has observed, a report without it is current.
func TestObserveWithoutGeneration(t *testing.T) {
	gadgets := backends.Workload{
		Resource: "gadgets", Namespace: "shop", Name: "web",
		Feedback: []backends.FeedbackField{{Name: "observed", Path: observedGenerationPath}},
	}
	if o := loadWork(t, value(feedbackObservedGeneration, nil)).observe(gadgets); !o.Current {
		t.Errorf("got %+v", o)
	}
}

func TestState(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*workv1.ManifestWork)
		object presence
		owned  bool
	}{
		"ours":                        {nil, presenceOurs, false},
		"foreign":                     {value(feedbackWorkload, nil), presenceForeign, false},
		"owned":                       {value(feedbackOwner, "hash-shop-web-74ca86d9da"), presenceOurs, true},
		"evidence of an earlier spec": {newGeneration, presenceUnknown, true},
		"missing":                     {manifestCondition(workv1.ManifestAvailable, "False", ""), presenceMissing, true},
		"not readable":                {manifestCondition(workv1.ManifestAvailable, "Unknown", ""), presenceUnknown, true},
		"values of nothing":           {value(feedbackUID, nil), presenceUnknown, false},
		"feedback broken":             {manifestCondition(conditionFeedbackSynced, "False", ""), presenceOurs, true},
	} {
		t.Run(name, func(t *testing.T) {
			if s := loadWork(t, c.change).state(); s.object != c.object || s.owned != c.owned {
				t.Errorf("object %v, owned %v; want %v, %v", s.object, s.owned, c.object, c.owned)
			}
		})
	}
}

// TestWasReleased: what was released when it was deleted is no danger, and anything else that is being deleted is one.
func TestWasReleased(t *testing.T) {
	deleted := func(w *workv1.ManifestWork) { // markAsDeleting in pkg/registry/generic/registry/store.go of the API server
		now := metav1.Now()
		w.DeletionTimestamp, w.Generation = &now, w.Generation+1
	}
	observed := all(strategy(workv1.UpdateStrategyTypeReadOnly), func(w *workv1.ManifestWork) {
		w.Annotations[annotationObserved] = "true"
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	})
	for name, c := range map[string]struct {
		change func(*workv1.ManifestWork)
		want   bool
	}{
		"observed":                    {observed, true},
		"deleted":                     {all(observed, deleted), true},
		"deleted after an edit":       {all(observed, newGeneration, deleted), false},
		"edited after the deletion":   {all(observed, deleted, newGeneration), false},
		"deleted and still owned":     {all(observed, value(feedbackOwner, "hash-shop-web-74ca86d9da"), deleted), false},
		"deleted, and never observed": {deleted, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := loadWork(t, c.change).state().released(); got != c.want {
				t.Errorf("released %t, want %t", got, c.want)
			}
		})
	}
}

// TestFeedbackPaths evaluates the rendered paths as the agent does (ocm pkg/work/spoke/statusfeedback/reader.go).
func TestFeedbackPaths(t *testing.T) {
	rules, err := feedbackRules(cloneSets)
	if err != nil {
		t.Fatal(err)
	}
	bare := map[string]any{"metadata": map[string]any{"uid": "u"}}
	full := map[string]any{
		"metadata": map[string]any{
			"uid": "u", "generation": int64(2),
			"labels":      map[string]any{v1alpha1.LabelUID: "w"},
			"annotations": map[string]any{v1alpha1.AnnotationRevision: "r"},
			"ownerReferences": []any{
				map[string]any{"kind": "Other", "name": "x"}, map[string]any{"kind": "AppliedManifestWork", "name": "o"},
			},
		},
		"spec":   map[string]any{"replicas": int64(0)},
		"status": map[string]any{"observedGeneration": int64(1), "readyReplicas": int64(3)},
	}
	for name, c := range map[string]struct{ obj, want map[string]any }{
		"bare": {bare, map[string]any{feedbackUID: "u"}},
		"full": {full, map[string]any{
			feedbackUID: "u", feedbackGeneration: int64(2), feedbackObservedGeneration: int64(1), feedbackRevision: "r",
			feedbackWorkload: "w", feedbackOwner: "o", feedbackReplicas: int64(0),
			"observedGeneration": int64(1), "readyReplicas": int64(3),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]any{}
			for _, rule := range rules {
				rule := rule.(map[string]any)
				j := jsonpath.New("x").AllowMissingKeys(true)
				if err := j.Parse("{" + rule["path"].(string) + "}"); err != nil {
					t.Fatal(err)
				}
				results, err := j.FindResults(c.obj)
				if err != nil {
					t.Fatalf("%s: %v", rule["path"], err)
				}
				if len(results) > 0 && len(results[0]) > 0 {
					got[rule["name"].(string)] = results[0][0].Interface()
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadSelection(t *testing.T) {
	placement := func(reason, misconfigured string, selected int32) *clusterv1beta1.Placement {
		p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
			Name: "fw-web-1", Namespace: "shop", UID: "p", Generation: 1,
		}}
		p.Status.NumberOfSelectedClusters = selected
		p.Status.Conditions = []metav1.Condition{
			{Type: clusterv1beta1.PlacementConditionSatisfied, Reason: reason, Message: "m"},
			{Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionStatus(misconfigured)},
		}
		return p
	}
	decision := func(owner string, clusters ...string) clusterv1beta1.PlacementDecision {
		yes := true
		d := clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			OwnerReferences: []metav1.OwnerReference{{UID: "p", Controller: &yes}},
		}}
		d.OwnerReferences[0].UID = "p"
		if owner != "p" {
			d.OwnerReferences[0].UID = "earlier"
		}
		for _, cluster := range clusters {
			d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
		}
		return d
	}
	edited := placement("AllDecisionsScheduled", "False", 1)
	edited.Generation = 2
	fresh := placement("", "", 0)
	fresh.Status = clusterv1beta1.PlacementStatus{}
	both := []clusterv1beta1.PlacementDecision{decision("p", "m2", "m1"), decision("p", "m1", "m3")}
	for name, c := range map[string]struct {
		placement *clusterv1beta1.Placement
		decisions []clusterv1beta1.PlacementDecision
		want      []string
		settled   bool
	}{
		"none":                    {nil, nil, nil, false},
		"not seen":                {fresh, both, nil, false},
		"settled, de-duplicated":  {placement("AllDecisionsScheduled", "False", 3), both, []string{"m1", "m2", "m3"}, true},
		"decisions lag":           {placement("AllDecisionsScheduled", "False", 4), both, nil, false},
		"fewer than wanted":       {placement("NotAllDecisionsScheduled", "False", 3), both, []string{"m1", "m2", "m3"}, true},
		"plugin error":            {placement("NotAllDecisionsScheduled", "False", 0), nil, nil, false},
		"misconfigured":           {placement("NoManagedClusterMatched", "True", 0), nil, nil, false},
		"no bindings":             {placement("NoManagedClusterSetBindings", "False", 0), nil, nil, false},
		"no intersection":         {placement("NoIntersection", "False", 0), nil, nil, false},
		"sets empty":              {placement("AllManagedClusterSetsEmpty", "False", 0), nil, nil, false},
		"nothing matches":         {placement("NoManagedClusterMatched", "False", 0), nil, nil, true},
		"somebody has edited it":  {edited, []clusterv1beta1.PlacementDecision{decision("p", "m1")}, nil, false},
		"decisions of an earlier": {placement("AllDecisionsScheduled", "False", 1), []clusterv1beta1.PlacementDecision{decision("x", "m1")}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := readSelection(c.placement, c.decisions)
			if diff := cmp.Diff(c.want, s.Clusters); diff != "" || s.Settled != c.settled {
				t.Errorf("settled %v, %s", s.Settled, diff)
			}
			if s.Message == "" && (!s.Settled || len(s.Clusters) == 0) {
				t.Error("no message")
			}
		})
	}
}

func TestTranslateFleet(t *testing.T) {
	since := metav1.NewTime(time.Unix(1000, 0))
	cluster := func(name string, accepted bool, conditions ...metav1.Condition) clusterv1.ManagedCluster {
		c := clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"topology.kubernetes.io/region": "from-label", "topology.kubernetes.io/zone": "z",
		}}}
		c.Spec.HubAcceptsClient = accepted
		c.Spec.Taints = []clusterv1.Taint{
			{Key: "k", Value: "v", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: since},
			{Key: clusterv1.ManagedClusterTaintUnreachable, Effect: clusterv1.TaintEffectNoSelect},
		}
		c.Status.Allocatable = clusterv1.ResourceList{clusterv1.ResourceCPU: resource.MustParse("4")}
		c.Status.Conditions = conditions
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{
			{Name: "id.k8s.io", Value: "uid-" + name}, {Name: "region.open-cluster-management.io", Value: "from-claim"},
		}
		return c
	}
	available := metav1.Condition{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue, LastTransitionTime: since,
	}
	lost := available
	lost.Status, lost.Message = metav1.ConditionUnknown, "stopped updating its lease"
	fleet := translateFleet([]clusterv1.ManagedCluster{
		cluster("m3", true), cluster("m2", true, lost), cluster("denied", false), cluster("m1", true, available),
	}, Options{}.withDefaults())
	ready := map[string]metav1.ConditionStatus{}
	for _, c := range fleet.Clusters {
		ready[c.Name] = c.Ready
		if c.Attributes[v1alpha1.AttributeRegion] != "from-claim" || c.Attributes[v1alpha1.AttributeZone] != "z" ||
			c.Identity != "uid-"+c.Name || len(c.Taints) != 1 || c.Allocatable.Cpu().Value() != 4 ||
			c.Taints[0] != (backends.Taint{Key: "k", Value: "v", Effect: backends.TaintNoExecute, Added: since.Time}) {
			t.Errorf("%+v", c)
		}
		if (c.Message == "") != (c.Ready == metav1.ConditionTrue) {
			t.Errorf("%s: message %q", c.Name, c.Message)
		}
	}
	want := map[string]metav1.ConditionStatus{"m1": "True", "m2": "Unknown", "m3": "Unknown"}
	if diff := cmp.Diff(want, ready); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
