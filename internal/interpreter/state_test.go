package interpreter

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

func registry(tb testing.TB, descriptions ...Description) *Registry {
	tb.Helper()
	r, err := New(descriptions...)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func kindOf(tb testing.TB, apiVersion, kind string) *Kind {
	tb.Helper()
	k := registry(tb).For(schema.FromAPIVersionAndKind(apiVersion, kind))
	if !k.Known() {
		tb.Fatalf("%s %s is not known", apiVersion, kind)
	}
	return k
}

func object(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(raw); err != nil {
		tb.Fatal(err)
	}
	return &u
}

// live is one live object and what is to be made of it.
type live struct {
	apiVersion, kind string
	// body are spec and status; generation is 2 unless it stands in there.
	body    string
	health  v1alpha1.Health
	reason  Reason
	message string
}

func (l live) object(tb testing.TB) *unstructured.Unstructured {
	tb.Helper()
	body := map[string]any{}
	if err := yaml.Unmarshal([]byte(l.body), &body); err != nil {
		tb.Fatal(err)
	}
	body["apiVersion"], body["kind"] = l.apiVersion, l.kind
	if body["metadata"] == nil {
		body["metadata"] = map[string]any{"name": "web", "namespace": "shop", "generation": 2}
	}
	text, err := yaml.Marshal(body)
	if err != nil {
		tb.Fatal(err)
	}
	return object(tb, string(text))
}

const (
	healthy     = v1alpha1.HealthHealthy
	progressing = v1alpha1.HealthProgressing
	degraded    = v1alpha1.HealthDegraded
	suspended   = v1alpha1.HealthSuspended
	unknown     = v1alpha1.HealthUnknown
)

const kruise1, kruise2 = "apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"

// states are the rule tables of docs/health.md by example.
var states = map[string]live{
	// Deployment.
	"deployment: all there":        {"apps/v1", "Deployment", `{spec: {replicas: 3}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, updatedReplicas: 3, availableReplicas: 3}}`, healthy, ReasonComplete, ""},
	"deployment: no status":        {"apps/v1", "Deployment", `{spec: {replicas: 3}}`, progressing, ReasonWaitingForStatus, "waiting for a status"},
	"deployment: no generation":    {"apps/v1", "Deployment", `{spec: {replicas: 3}, status: {replicas: 3}}`, progressing, ReasonNotObserved, "its controller has not taken note of it yet"},
	"deployment: stale":            {"apps/v1", "Deployment", `{spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 3, readyReplicas: 3, updatedReplicas: 3, availableReplicas: 3}}`, progressing, ReasonNotObserved, "its controller has not taken note of generation 2 yet"},
	"deployment: counters omitted": {"apps/v1", "Deployment", `{spec: {replicas: 3}, status: {observedGeneration: 2}}`, progressing, ReasonUpdating, "0 of 3 updated"},
	"deployment: zero wanted":      {"apps/v1", "Deployment", `{spec: {replicas: 0}, status: {observedGeneration: 2}}`, healthy, ReasonComplete, ""},
	"deployment: nil is one":       {"apps/v1", "Deployment", `{spec: {}, status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, updatedReplicas: 1, availableReplicas: 1}}`, healthy, ReasonComplete, ""},
	"deployment: surge":            {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, updatedReplicas: 2, availableReplicas: 3}}`, progressing, ReasonScalingDown, "1 more than 2 wanted"},
	"deployment: not available":    {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 1, updatedReplicas: 2, availableReplicas: 1}}`, progressing, ReasonUnavailable, "1 of 2 available"},
	"deployment: paused":           {"apps/v1", "Deployment", `{spec: {replicas: 2, paused: true}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 1, availableReplicas: 2}}`, suspended, ReasonPaused, "paused with 1 of 2 updated"},
	"deployment: born paused":      {"apps/v1", "Deployment", `{spec: {replicas: 2, paused: true}, status: {observedGeneration: 2}}`, suspended, ReasonPaused, "paused with 0 of 2 updated"},
	"deployment: paused, done":     {"apps/v1", "Deployment", `{spec: {replicas: 2, paused: true}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2}}`, healthy, ReasonComplete, ""},
	"deployment: deadline":         {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 2, updatedReplicas: 1, availableReplicas: 2, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`, degraded, ReasonDeadlineExceeded, "no progress within its deadline, 1 of 2 updated"},
	"deployment: stale deadline":   {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: {observedGeneration: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`, progressing, ReasonNotObserved, "its controller has not taken note of generation 2 yet"},
	"deployment: quota":            {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: {observedGeneration: 2, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate}]}}`, degraded, ReasonReplicaFailure, "pods cannot be created or deleted: FailedCreate"},
	"deployment: flat status":      {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: {observedGeneration: 2, conditionReplicaFailure: "True", reasonReplicaFailure: FailedCreate}}`, degraded, ReasonReplicaFailure, "pods cannot be created or deleted: FailedCreate"},
	"deployment: being deleted":    {"apps/v1", "Deployment", `{metadata: {name: web, generation: 2, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {replicas: 0}, status: {observedGeneration: 2}}`, progressing, ReasonDeleting, "being deleted"},
	"deployment: wrong type":       {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: "2"}}`, unknown, ReasonMalformed, "status.replicas: want a number, got a string"},
	"deployment: wrong spec":       {"apps/v1", "Deployment", `{spec: {replicas: two}, status: {observedGeneration: 2}}`, unknown, ReasonMalformed, "spec.replicas: want a number, got a string"},
	"deployment: status no object": {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: 5}`, unknown, ReasonMalformed, "status: want an object, got a number"},
	"deployment: conditions none":  {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: {conditions: {}}}`, unknown, ReasonMalformed, "status.conditions[type=Available]: want a list, got an object"},
	"deployment: huge":             {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: {replicas: 99999999999}}`, unknown, ReasonMalformed, "status.replicas: 99999999999 is not from 0 to 2147483647"},
	"deployment: negative":         {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: {replicas: -1}}`, unknown, ReasonMalformed, "status.replicas: -1 is not from 0 to 2147483647"},

	// StatefulSet: the partition is an ordinal.
	"sts: held":            {"apps/v1", "StatefulSet", `{spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 3}}}, status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, updatedReplicas: 2, availableReplicas: 5}}`, healthy, ReasonPartitionReached, "update held at its partition: 2 of 5 updated as asked"},
	"sts: on the way":      {"apps/v1", "StatefulSet", `{spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 3}}}, status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, updatedReplicas: 1, availableReplicas: 5}}`, progressing, ReasonUpdating, "1 of 2 updated"},
	"sts: ordinals start":  {"apps/v1", "StatefulSet", `{spec: {replicas: 5, ordinals: {start: 3}, updateStrategy: {rollingUpdate: {partition: 5}}}, status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, updatedReplicas: 3, availableReplicas: 5}}`, healthy, ReasonPartitionReached, "update held at its partition: 3 of 5 updated as asked"},
	"sts: partition high":  {"apps/v1", "StatefulSet", `{spec: {replicas: 2, updateStrategy: {rollingUpdate: {partition: 9}}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, availableReplicas: 2}}`, healthy, ReasonPartitionReached, "update held at its partition: 0 of 2 updated as asked"},
	"sts: on delete":       {"apps/v1", "StatefulSet", `{spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 1}}`, healthy, ReasonOnDelete, "pods are updated as they are deleted: 1 of 2 updated"},
	"sts: on delete, down": {"apps/v1", "StatefulSet", `{spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 1}}`, progressing, ReasonUnavailable, "1 of 2 available"},

	// CloneSet.
	"clone: held":               {kruise1, "CloneSet", `{spec: {replicas: 10, updateStrategy: {partition: 50%}}, status: {observedGeneration: 2, replicas: 10, readyReplicas: 10, updatedReplicas: 5, availableReplicas: 10}}`, healthy, ReasonPartitionReached, "update held at its partition: 5 of 10 updated as asked"},
	"clone: beyond partition":   {kruise1, "CloneSet", `{spec: {replicas: 10, updateStrategy: {partition: 8}}, status: {observedGeneration: 2, replicas: 10, readyReplicas: 10, updatedReplicas: 5, availableReplicas: 10}}`, healthy, ReasonPartitionReached, "update held at its partition: 5 of 10 updated as asked"},
	"clone: all in spite of it": {kruise1, "CloneSet", `{spec: {replicas: 2, updateStrategy: {partition: 1}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2}}`, healthy, ReasonComplete, ""},
	"clone: short of partition": {kruise1, "CloneSet", `{spec: {replicas: 10, updateStrategy: {partition: 4}}, status: {observedGeneration: 2, replicas: 10, readyReplicas: 10, updatedReplicas: 5, availableReplicas: 10}}`, progressing, ReasonUpdating, "5 of 6 updated"},
	"clone: 99% updates one":    {kruise1, "CloneSet", `{spec: {replicas: 10, updateStrategy: {partition: 99%}}, status: {observedGeneration: 2, replicas: 10, readyReplicas: 10, updatedReplicas: 0, availableReplicas: 10}}`, progressing, ReasonUpdating, "0 of 1 updated"},
	"clone: paused":             {kruise1, "CloneSet", `{spec: {replicas: 4, updateStrategy: {paused: true}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 1, availableReplicas: 4}}`, suspended, ReasonPaused, "paused with 1 of 4 updated"},
	"clone: paused still grows": {kruise1, "CloneSet", `{spec: {replicas: 4, updateStrategy: {paused: true}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 1, availableReplicas: 2}}`, progressing, ReasonUpdating, "1 of 4 updated"},
	"clone: bad partition":      {kruise1, "CloneSet", `{spec: {replicas: 4, updateStrategy: {partition: half}}, status: {observedGeneration: 2}}`, unknown, ReasonMalformed, `partition "half" is neither a number nor a percentage`},
	"clone: deadline of 1.9":    {kruise1, "CloneSet", `{spec: {replicas: 4}, status: {observedGeneration: 2, replicas: 4, updatedReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`, degraded, ReasonDeadlineExceeded, "no progress within its deadline, 1 of 4 updated"},
	"clone: zero":               {kruise1, "CloneSet", `{spec: {replicas: 0, updateStrategy: {partition: 50%}}, status: {observedGeneration: 2, replicas: 0, readyReplicas: 0, updatedReplicas: 0, availableReplicas: 0}}`, healthy, ReasonComplete, ""},

	// Advanced StatefulSet: the partition is a count.
	"asts: held":         {kruise2, "StatefulSet", `{spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 3}}}, status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, updatedReplicas: 2, availableReplicas: 5}}`, healthy, ReasonPartitionReached, "update held at its partition: 2 of 5 updated as asked"},
	"asts: v1alpha1":     {kruise1, "StatefulSet", `{spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 3, paused: true}}}, status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, updatedReplicas: 1, availableReplicas: 5}}`, suspended, ReasonPaused, "paused with 1 of 2 updated"},
	"asts: on delete":    {kruise2, "StatefulSet", `{spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 0}}`, healthy, ReasonOnDelete, "pods are updated as they are deleted: 0 of 2 updated"},
	"asts: not observed": {kruise2, "StatefulSet", `{spec: {replicas: 0}, status: {replicas: 0}}`, progressing, ReasonNotObserved, "its controller has not taken note of it yet"},

	// DaemonSets.
	"ds: all":             {"apps/v1", "DaemonSet", `{spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 3, numberAvailable: 3}}`, healthy, ReasonComplete, ""},
	"ds: available gone":  {"apps/v1", "DaemonSet", `{spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 0}}`, progressing, ReasonUnavailable, "0 of 3 available"},
	"ds: no nodes":        {"apps/v1", "DaemonSet", `{spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 0, currentNumberScheduled: 0, numberReady: 0, numberMisscheduled: 0}}`, healthy, ReasonNothingToRun, "no node matches"},
	"ds: on delete":       {"apps/v1", "DaemonSet", `{spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, numberReady: 3, numberAvailable: 3, updatedNumberScheduled: 1}}`, healthy, ReasonOnDelete, "pods are updated as they are deleted: 1 of 3 updated"},
	"ads: held":           {kruise1, "DaemonSet", `{spec: {updateStrategy: {rollingUpdate: {partition: 2}}}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberReady: 3, numberAvailable: 3}}`, healthy, ReasonPartitionReached, "update held at its partition: 1 of 3 updated as asked"},
	"ads: percent down":   {kruise2, "DaemonSet", `{spec: {updateStrategy: {rollingUpdate: {partition: 50%}}}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberReady: 3, numberAvailable: 3}}`, progressing, ReasonUpdating, "1 of 2 updated"},
	"ads: paused":         {kruise1, "DaemonSet", `{spec: {updateStrategy: {rollingUpdate: {paused: true}}}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberReady: 3, numberAvailable: 3}}`, suspended, ReasonPaused, "paused with 1 of 3 updated"},
	"ads: selector":       {kruise1, "DaemonSet", `{spec: {updateStrategy: {rollingUpdate: {selector: {matchLabels: {a: b}}}}}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberReady: 3, numberAvailable: 3}}`, healthy, ReasonSelectedOnly, "only selected nodes are updated: 1 of 3 updated"},
	"ads: empty selector": {kruise1, "DaemonSet", `{spec: {updateStrategy: {rollingUpdate: {selector: {}}}}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberReady: 3, numberAvailable: 3}}`, progressing, ReasonUpdating, "1 of 3 updated"},
	"ads: progressive":    {kruise1, "DaemonSet", `{metadata: {name: a, generation: 2, annotations: {daemonset.kruise.io/progressive-create-pod: "true"}}, spec: {updateStrategy: {rollingUpdate: {partition: 2}}}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 1, updatedNumberScheduled: 1, numberReady: 1, numberAvailable: 1}}`, healthy, ReasonPartitionReached, "update held at its partition: 1 of 3 updated as asked"},
	"ads: not created":    {kruise1, "DaemonSet", `{spec: {updateStrategy: {rollingUpdate: {partition: 2}}}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 1, updatedNumberScheduled: 1, numberReady: 1, numberAvailable: 1}}`, progressing, ReasonCreating, "1 of 3 created"},

	// Absence is not zero where the API type never leaves the number out.
	"ds: a part":           {"apps/v1", "DaemonSet", `{spec: {}, status: {observedGeneration: 2, numberAvailable: 3, updatedNumberScheduled: 3}}`, unknown, ReasonIncomplete, "the report lacks desiredNumberScheduled"},
	"ds: half":             {"apps/v1", "DaemonSet", `{spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 0}}`, unknown, ReasonIncomplete, "the report lacks currentNumberScheduled"},
	"ads: a part":          {kruise1, "DaemonSet", `{spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 0, currentNumberScheduled: 0, numberReady: 0}}`, unknown, ReasonIncomplete, "the report lacks updatedNumberScheduled"},
	"sidecar: a part":      {kruise1, "SidecarSet", `{spec: {}, status: {observedGeneration: 2}}`, unknown, ReasonIncomplete, "the report lacks matchedPods"},
	"clone: a part":        {kruise1, "CloneSet", `{spec: {replicas: 0}, status: {observedGeneration: 2}}`, unknown, ReasonIncomplete, "the report lacks replicas"},
	"asts: a part":         {kruise2, "StatefulSet", `{spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, updatedReplicas: 1}}`, unknown, ReasonIncomplete, "the report lacks availableReplicas"},
	"ud: a part":           {kruise1, "UnitedDeployment", `{spec: {replicas: 0}, status: {observedGeneration: 2, replicas: 0}}`, unknown, ReasonIncomplete, "the report lacks updatedReplicas"},
	"bcj: a part":          {kruise1, "BroadcastJob", `{spec: {}, status: {phase: running, active: 2}}`, progressing, ReasonRunning, "2 active, ? of ? succeeded, ? failed"},
	"sts: before 1.22":     {"apps/v1", "StatefulSet", `{spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, updatedReplicas: 1}}`, healthy, ReasonComplete, ""},
	"sts: before, down":    {"apps/v1", "StatefulSet", `{spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1}}`, progressing, ReasonUnavailable, "0 of 1 available"},
	"sts: minReadySeconds": {"apps/v1", "StatefulSet", `{spec: {replicas: 1, minReadySeconds: 5}, status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, updatedReplicas: 1}}`, unknown, ReasonIncomplete, "the report lacks availableReplicas"},
	"sts: a part":          {"apps/v1", "StatefulSet", `{spec: {replicas: 0}, status: {observedGeneration: 2}}`, unknown, ReasonIncomplete, "the report lacks replicas"},

	// What contradicts itself is not believed.
	"deployment: not ready":      {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 1, updatedReplicas: 2, availableReplicas: 2}}`, unknown, ReasonContradictory, "the numbers contradict each other: 2 pods, 2 updated, 1 ready, 2 available"},
	"deployment: too many ready": {"apps/v1", "Deployment", `{spec: {replicas: 0}, status: {observedGeneration: 2, readyReplicas: 1}}`, unknown, ReasonContradictory, "the numbers contradict each other: 0 pods, 0 updated, 1 ready, 0 available"},
	"deployment: condition":      {"apps/v1", "Deployment", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: "False"}]}}`, unknown, ReasonContradictory, "2 of 2 are available by number, and the condition Available is False"},
	"sts: more than there are":   {"apps/v1", "StatefulSet", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 3, availableReplicas: 2}}`, unknown, ReasonContradictory, "the numbers contradict each other: 2 pods, 3 updated, 2 ready, 2 available"},
	"clone: not ready":           {kruise1, "CloneSet", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 0, updatedReplicas: 2, availableReplicas: 2}}`, unknown, ReasonContradictory, "the numbers contradict each other: 2 pods, 2 updated, 0 ready, 2 available"},
	"ds: not ready":              {"apps/v1", "DaemonSet", `{spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 2, numberAvailable: 3}}`, unknown, ReasonContradictory, "the numbers contradict each other: 3 of 3 pods, 3 updated, 2 ready, 3 available"},
	"ds: pods and no nodes":      {"apps/v1", "DaemonSet", `{spec: {}, status: {observedGeneration: 2, desiredNumberScheduled: 0, currentNumberScheduled: 1, updatedNumberScheduled: 1, numberReady: 1, numberAvailable: 1}}`, unknown, ReasonContradictory, "the numbers contradict each other: 1 of 0 pods, 1 updated, 1 ready, 1 available"},
	"sidecar: updated, unknown":  {kruise1, "SidecarSet", `{spec: {}, status: {observedGeneration: 2, matchedPods: 0, updatedPods: 4, readyPods: 4, updatedReadyPods: 4}}`, unknown, ReasonContradictory, "the numbers contradict each other: 0 pods, 4 updated, 4 of them ready"},
	"ud: too many ready":         {kruise1, "UnitedDeployment", `{spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 3, updatedReplicas: 2}}`, unknown, ReasonContradictory, "the numbers contradict each other: 2 pods, 2 updated, 0 of them ready, 3 ready"},

	// SidecarSet.
	"sidecar: none matched": {kruise1, "SidecarSet", `{spec: {}, status: {observedGeneration: 2, matchedPods: 0, updatedPods: 0, readyPods: 0}}`, healthy, ReasonNothingToRun, "no pod has the sidecar yet"},
	"sidecar: none seen":    {kruise1, "SidecarSet", `{spec: {}, status: {matchedPods: 0}}`, progressing, ReasonNotObserved, "its controller has not taken note of it yet"},
	"sidecar: all":          {kruise1, "SidecarSet", `{spec: {}, status: {observedGeneration: 2, matchedPods: 4, updatedPods: 4, readyPods: 4, updatedReadyPods: 4}}`, healthy, ReasonComplete, ""},
	"sidecar: held":         {kruise2, "SidecarSet", `{spec: {updateStrategy: {partition: 50%}}, status: {observedGeneration: 2, matchedPods: 4, updatedPods: 2, readyPods: 4, updatedReadyPods: 2}}`, healthy, ReasonPartitionReached, "update held at its partition: 2 of 4 updated as asked"},
	"sidecar: updating":     {kruise1, "SidecarSet", `{spec: {}, status: {observedGeneration: 2, matchedPods: 4, updatedPods: 2, readyPods: 4, updatedReadyPods: 2}}`, progressing, ReasonUpdating, "2 of 4 updated"},
	"sidecar: not ready":    {kruise1, "SidecarSet", `{spec: {}, status: {observedGeneration: 2, matchedPods: 4, updatedPods: 4, readyPods: 4}}`, progressing, ReasonUnavailable, "0 of 4 updated pods ready"},
	"sidecar: NotUpdate":    {kruise1, "SidecarSet", `{spec: {updateStrategy: {type: NotUpdate}}, status: {observedGeneration: 2, matchedPods: 4, updatedPods: 1, readyPods: 4}}`, healthy, ReasonOnDelete, "pods are updated as they are created again: 1 of 4 updated"},
	"sidecar: paused":       {kruise1, "SidecarSet", `{spec: {updateStrategy: {paused: true}}, status: {observedGeneration: 2, matchedPods: 4, updatedPods: 1, readyPods: 4}}`, suspended, ReasonPaused, "paused with 1 of 4 updated"},
	"sidecar: selector":     {kruise1, "SidecarSet", `{spec: {updateStrategy: {selector: {matchLabels: {a: b}}}}, status: {observedGeneration: 2, matchedPods: 4, updatedPods: 1, readyPods: 4, updatedReadyPods: 1}}`, healthy, ReasonSelectedOnly, "only selected pods are updated: 1 of 4 updated"},

	// UnitedDeployment.
	"ud: all":           {kruise1, "UnitedDeployment", `{spec: {replicas: 4}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4, updatedReadyReplicas: 4}}`, healthy, ReasonComplete, ""},
	"ud: no replicas":   {kruise1, "UnitedDeployment", `{spec: {}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4}}`, unknown, ReasonDesiredUnknown, "how many replicas were asked for is not known"},
	"ud: sum":           {kruise1, "UnitedDeployment", `{spec: {topology: {subsets: [{name: a, replicas: 1}, {name: b, replicas: 3}]}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4}}`, healthy, ReasonComplete, ""},
	"ud: held":          {kruise1, "UnitedDeployment", `{spec: {replicas: 4, topology: {subsets: [{name: a, replicas: 1}, {name: b}]}, updateStrategy: {type: Manual, manualUpdate: {partitions: {a: 9, b: 1}}}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 2}}`, healthy, ReasonPartitionReached, "update held at its partitions: 2 of 4 updated as asked"},
	"ud: updating":      {kruise1, "UnitedDeployment", `{spec: {replicas: 4, topology: {subsets: [{name: a, replicas: 50%}, {name: b}]}, updateStrategy: {manualUpdate: {partitions: {a: 9}}}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 1}}`, progressing, ReasonUpdating, "1 of 2 updated"},
	"ud: elastic":       {kruise1, "UnitedDeployment", `{spec: {replicas: 4, topology: {subsets: [{name: a, maxReplicas: 2}, {name: b}]}, updateStrategy: {manualUpdate: {partitions: {a: 9}}}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 2}}`, unknown, ReasonPartitionUnknown, "2 of 4 updated; how many the partitions keep old depends on subsets whose size its controller decides"},
	"ud: elastic, done": {kruise1, "UnitedDeployment", `{spec: {replicas: 4, topology: {subsets: [{name: a, maxReplicas: 2}, {name: b}]}, updateStrategy: {manualUpdate: {partitions: {a: 9}}}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4}}`, healthy, ReasonComplete, ""},
	"ud: the least":     {kruise1, "UnitedDeployment", `{spec: {replicas: 5, topology: {subsets: [{name: a}, {name: b}]}, updateStrategy: {type: "", manualUpdate: {partitions: {a: 2, b: 2}}}}, status: {observedGeneration: 2, replicas: 5, readyReplicas: 5, updatedReplicas: 1}}`, healthy, ReasonPartitionReached, "update held at its partitions: 1 of 5 updated as asked"},
	"ud: 100%":          {kruise1, "UnitedDeployment", `{spec: {replicas: 4, topology: {subsets: [{name: a, replicas: 100%}]}, updateStrategy: {manualUpdate: {partitions: {a: 1}}}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 3}}`, healthy, ReasonPartitionReached, "update held at its partitions: 3 of 4 updated as asked"},
	"ud: 101%":          {kruise1, "UnitedDeployment", `{spec: {replicas: 4, topology: {subsets: [{name: a, replicas: 101%}]}, updateStrategy: {manualUpdate: {partitions: {a: 1}}}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 3}}`, unknown, ReasonMalformed, "replicas \"101%\" of subset a are not from 0% to 100%"},
	"ud: nothing held":  {kruise1, "UnitedDeployment", `{spec: {replicas: 4, topology: {subsets: [{name: a, replicas: half}]}, updateStrategy: {manualUpdate: {partitions: {a: 0}}}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4}}`, healthy, ReasonComplete, ""},
	"ud: not manual":    {kruise1, "UnitedDeployment", `{spec: {replicas: 4, topology: {subsets: [{name: a}]}, updateStrategy: {type: Other, manualUpdate: {partitions: {a: 2}}}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 2}}`, progressing, ReasonUpdating, "2 of 4 updated"},
	"ud: the most":      {kruise1, "UnitedDeployment", `{spec: {topology: {subsets: [{name: a, replicas: 2147483646}, {name: b, replicas: 1}]}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 2147483647}}`, progressing, ReasonCreating, "4 of 2147483647 created"},
	"ud: too many":      {kruise1, "UnitedDeployment", `{spec: {topology: {subsets: [{name: a, replicas: 2147483647}, {name: b, replicas: 1}]}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4}}`, unknown, ReasonMalformed, "spec.topology.subsets: 2147483648 replicas are more than any workload can have"},
	"ud: no name":       {kruise1, "UnitedDeployment", `{spec: {replicas: 4, topology: {subsets: [{replicas: 1}]}, updateStrategy: {manualUpdate: {partitions: {a: 2}}}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4}}`, unknown, ReasonMalformed, "spec.topology.subsets: subset 0 needs a name, and a number or a percentage of replicas"},
	"ud: below nothing": {kruise1, "UnitedDeployment", `{spec: {replicas: 4, topology: {subsets: [{name: a, replicas: -1}]}, updateStrategy: {manualUpdate: {partitions: {a: 2}}}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4}}`, unknown, ReasonMalformed, "spec.topology.subsets: subset 0 needs a name, and a number or a percentage of replicas"},
	"ud: deployments":   {kruise1, "UnitedDeployment", `{spec: {replicas: 4, template: {deploymentTemplate: {}}, topology: {subsets: [{name: a}]}, updateStrategy: {manualUpdate: {partitions: {a: 2}}}}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 2}}`, progressing, ReasonUpdating, "2 of 4 updated"},

	// Jobs.
	"job: nothing yet":    {"batch/v1", "Job", `{spec: {completions: 3}}`, progressing, ReasonWaitingForStatus, "waiting for a status"},
	"job: queued":         {"batch/v1", "Job", `{spec: {completions: 3}, status: {active: 0}}`, progressing, ReasonPending, "not started"},
	"job: runs":           {"batch/v1", "Job", `{spec: {completions: 3}, status: {startTime: "2026-01-01T00:00:00Z", active: 2, succeeded: 1}}`, progressing, ReasonRunning, "2 active, 1 succeeded, 0 failed"},
	"job: done":           {"batch/v1", "Job", `{spec: {completions: 3}, status: {startTime: "2026-01-01T00:00:00Z", succeeded: 3, conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}}`, healthy, ReasonSucceeded, "finished: 3 succeeded"},
	"job: failed":         {"batch/v1", "Job", `{spec: {}, status: {failed: 7, conditions: [{type: FailureTarget, status: "True"}, {type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`, degraded, ReasonFailed, "failed: BackoffLimitExceeded, 0 succeeded, 7 failed"},
	"job: about to fail":  {"batch/v1", "Job", `{spec: {}, status: {failed: 7, conditions: [{type: FailureTarget, status: "True"}]}}`, progressing, ReasonFinishing, "about to fail"},
	"job: suspended":      {"batch/v1", "Job", `{spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True"}]}}`, suspended, ReasonPaused, "suspended with 0 succeeded"},
	"cron: never ran":     {"batch/v1", "CronJob", `{spec: {schedule: "* * * * *"}, status: {}}`, healthy, ReasonScheduled, ""},
	"cron: suspended":     {"batch/v1", "CronJob", `{spec: {suspend: true}, status: {lastScheduleTime: "2026-01-01T00:00:00Z"}}`, suspended, ReasonPaused, "suspended"},
	"cron: succeeded":     {"batch/v1", "CronJob", `{spec: {}, status: {lastScheduleTime: "2026-01-01T00:00:00Z", lastSuccessfulTime: "2026-01-01T00:00:09Z"}}`, healthy, ReasonScheduled, ""},
	"cron: failed":        {"batch/v1", "CronJob", `{spec: {}, status: {lastScheduleTime: "2026-01-02T00:00:00Z", lastSuccessfulTime: "2026-01-01T00:00:09Z"}}`, healthy, ReasonRunNotSucceeded, "the last run, of 2026-01-02T00:00:00Z, has ended without success; the last success was at 2026-01-01T00:00:09Z"},
	"cron: no success":    {"batch/v1", "CronJob", `{spec: {}, status: {lastScheduleTime: "2026-01-01T00:00:00Z"}}`, healthy, ReasonRunNotSucceeded, "the last run, of 2026-01-01T00:00:00Z, has ended; no success of it or of an earlier one is reported"},
	"cron: runs":          {"batch/v1", "CronJob", `{spec: {}, status: {active: [{kind: Job, name: web-1}], lastScheduleTime: "2026-01-01T00:00:00Z"}}`, healthy, ReasonScheduled, ""},
	"cron: runs, flat":    {"batch/v1", "CronJob", `{spec: {}, status: {active: [{kind: Job, name: web-1}], activeJob: null, lastScheduleTime: "2026-01-01T00:00:00Z"}}`, healthy, ReasonScheduled, ""},
	"acj: ran":            {kruise1, "AdvancedCronJob", `{spec: {}, status: {type: Job, lastScheduleTime: "2026-01-01T00:00:00Z"}}`, healthy, ReasonScheduled, "it has run; whether with success its status does not say"},
	"acj: scheduled":      {kruise1, "AdvancedCronJob", `{spec: {}, status: {type: Job}}`, healthy, ReasonScheduled, ""},
	"acj: paused":         {kruise2, "AdvancedCronJob", `{spec: {paused: true}, status: {type: Job}}`, suspended, ReasonPaused, "suspended"},
	"bcj: nothing yet":    {kruise1, "BroadcastJob", `{spec: {}}`, progressing, ReasonWaitingForStatus, "waiting for a status"},
	"bcj: queued":         {kruise1, "BroadcastJob", `{spec: {}, status: {desired: 3}}`, progressing, ReasonPending, "not started"},
	"bcj: runs":           {kruise1, "BroadcastJob", `{spec: {}, status: {phase: running, desired: 3, active: 2, succeeded: 1, failed: 0}}`, progressing, ReasonRunning, "2 active, 1 of 3 succeeded, 0 failed"},
	"bcj: done":           {kruise1, "BroadcastJob", `{spec: {}, status: {phase: completed, desired: 3, succeeded: 3, conditions: [{type: Complete, status: "True"}]}}`, healthy, ReasonSucceeded, "finished: 3 of 3 succeeded"},
	"bcj: continued":      {kruise2, "BroadcastJob", `{spec: {}, status: {phase: completed, desired: 3, succeeded: 2, failed: 1}}`, healthy, ReasonSucceeded, "finished: 2 of 3 succeeded, 1 failed, which its failure policy lets pass"},
	"bcj: failed":         {kruise1, "BroadcastJob", `{spec: {}, status: {phase: failed, desired: 3, succeeded: 2, failed: 1}}`, degraded, ReasonFailed, "failed: 2 of 3 succeeded, 1 failed"},
	"bcj: paused":         {kruise1, "BroadcastJob", `{spec: {paused: true}, status: {phase: paused, desired: 3, succeeded: 2}}`, suspended, ReasonPaused, "paused with 2 of 3 succeeded"},
	"bcj: no nodes":       {kruise1, "BroadcastJob", `{spec: {}, status: {phase: running, desired: 0}}`, healthy, ReasonNothingToRun, "no node matches"},
	"bcj: never":          {kruise1, "BroadcastJob", `{spec: {completionPolicy: {type: Never}}, status: {phase: running, desired: 3, active: 3}}`, healthy, ReasonRunning, "runs on all 3 nodes, and never completes by its policy"},
	"workflow: done":      {"argoproj.io/v1alpha1", "Workflow", `{spec: {}, status: {phase: Succeeded, progress: 3/3}}`, healthy, ReasonSucceeded, ""},
	"workflow: runs":      {"argoproj.io/v1alpha1", "Workflow", `{spec: {}, status: {phase: Running, progress: 1/3}}`, progressing, ReasonRunning, "running, 1/3 done"},
	"workflow: failed":    {"argoproj.io/v1alpha1", "Workflow", `{spec: {}, status: {phase: Error, message: no such template}}`, degraded, ReasonFailed, "Error: no such template"},
	"workflow: suspended": {"argoproj.io/v1alpha1", "Workflow", `{spec: {suspend: true}, status: {phase: Running, progress: 1/3}}`, suspended, ReasonPaused, "suspended at 1/3"},
	"workflow: queued":    {"argoproj.io/v1alpha1", "Workflow", `{spec: {}, status: {phase: ""}}`, progressing, ReasonPending, "not started"},
	"workflow: new":       {"argoproj.io/v1alpha1", "Workflow", `{spec: {}}`, progressing, ReasonWaitingForStatus, "waiting for a status"},
}

func TestState(t *testing.T) {
	for name, test := range states {
		t.Run(name, func(t *testing.T) {
			kind := kindOf(t, test.apiVersion, test.kind)
			report := ReportOf(test.object(t))
			got, err := kind.State(report)
			if got.Health != test.health || got.Reason != test.reason || got.Message != test.message {
				t.Errorf("got %s %s %q (%v), want %s %s %q", got.Health, got.Reason, got.Message, err, test.health, test.reason, test.message)
			}
			if (err != nil) != (test.reason == ReasonMalformed) {
				t.Errorf("error: %v", err)
			}
			if again, _ := kind.State(flat(kind, report)); test.reason != ReasonMalformed && again.Message != got.Message {
				t.Errorf("fed back by OCM it says %q, not %q", again.Message, got.Message)
			}
		})
	}
}

// flat is the report that OCM makes of an object: the feedback values alone, under their names.
func flat(kind *Kind, report Report) Report {
	values := map[string]any{}
	for _, f := range kind.Status {
		if f.Type == TypeCount {
			continue // OCM feeds back no lists
		}
		if v := report.Status[f.Name]; v != nil {
			values[f.Name] = v
		} else if v, err := f.Path[1:].lookup(report.Status); err == nil && v != nil && f.At != f.Name {
			values[f.Name] = v
		}
	}
	return Report{Manifest: report.Manifest, Desired: report.Desired, Status: values}
}

func TestEveryRuleHasAnExample(t *testing.T) {
	used := map[string]bool{}
	for _, test := range states {
		k := kindOf(t, test.apiVersion, test.kind)
		used[k.Definition.Kind+" "+k.Group+" "+string(test.reason)] = true
	}
	for _, k := range registry(t).Kinds() {
		for _, r := range k.Rules[2:] {
			if name := k.Definition.Kind + " " + k.Group + " " + string(r.Reason); !used[name] {
				switch r.Reason {
				case ReasonNotObserved, ReasonDesiredUnknown, ReasonCreating, ReasonScalingDown, ReasonUnavailable, ReasonUpdating,
					ReasonComplete, ReasonFinishing, ReasonReplicaFailure, ReasonPartitionReached, ReasonNothingToRun,
					ReasonSelectedOnly, ReasonOnDelete, ReasonIncomplete, ReasonContradictory:
					// Shared by kinds, with an example at one of them.
				default:
					t.Errorf("no example for %s", name)
				}
			}
		}
	}
}

func TestStateOfNothing(t *testing.T) {
	for _, k := range registry(t).Kinds() {
		if s, err := k.State(Report{}); err != nil || s.Health != unknown || s.Replicas != nil {
			t.Errorf("%s: no report is %+v, %v", k.GVK(), s, err)
		}
		if s, err := k.State(Report{Status: map[string]any{}}); err != nil || s.Health != progressing || s.Replicas != nil {
			t.Errorf("%s: an empty status is %+v, %v", k.GVK(), s, err)
		}
	}
}

// TestWithoutManifest: what is not known of the spec must not make a workload look better.
func TestWithoutManifest(t *testing.T) {
	for name, test := range states {
		if test.health == healthy {
			continue
		}
		k := kindOf(t, test.apiVersion, test.kind)
		report := ReportOf(test.object(t))
		report.Manifest = nil
		if s, _ := k.State(report); s.Health == healthy && !strings.Contains(test.message, "suspended") && test.reason != ReasonPaused &&
			test.reason != ReasonDeleting {
			t.Errorf("%s: without the manifest it is %+v", name, s)
		}
	}
}

func TestDesiredOverrules(t *testing.T) {
	report := ReportOf(states["clone: held"].object(t))
	report.Desired = ptr(int32(12))
	s, err := kindOf(t, kruise1, "CloneSet").State(report)
	if err != nil || s.Message != "5 of 6 updated" || *s.Desired != 12 {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestCounts(t *testing.T) {
	for name, want := range map[string][7]int32{
		// desired, replicas, ready, updated, available, done, total; -1 is unknown.
		"clone: held":           {10, 10, 10, 5, 10, 5, 5},
		"ds: all":               {3, 3, 3, 3, 3, 3, 3},
		"sidecar: held":         {4, 4, 4, 2, -1, 2, 2},
		"ud: held":              {4, 4, 4, 2, 4, 2, 2},
		"job: runs":             {-1, -1, -1, -1, -1, 1, 3},
		"workflow: runs":        {-1, -1, -1, -1, -1, 1, 3},
		"cron: never ran":       {-1, -1, -1, -1, -1, -1, -1},
		"deployment: stale":     {3, 3, 3, 3, 3, 3, 3},
		"deployment: no status": {3, -1, -1, -1, -1, -1, -1}, // what was asked for is known before any report
		"ds: a part":            {-1, -1, -1, 3, 3, -1, -1},
		"ds: half":              {0, -1, -1, 0, 0, 0, 0},
		"bcj: a part":           {-1, -1, -1, -1, -1, -1, -1},
		"sts: before 1.22":      {1, 1, 1, 1, 1, 1, 1},
		"sts: a part":           {0, -1, 0, 0, 0, 0, 0},
	} {
		test := states[name]
		s, err := kindOf(t, test.apiVersion, test.kind).State(ReportOf(test.object(t)))
		if err != nil {
			t.Fatal(err)
		}
		got := [7]int32{-1, -1, -1, -1, -1, -1, -1}
		for i, n := range []*int32{s.Desired, s.Replicas, s.Ready, s.Updated, s.Available} {
			if n != nil {
				got[i] = *n
			}
		}
		if s.Progress != nil {
			got[5], got[6] = s.Progress.Done, s.Progress.Total
		}
		if got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// TestBeforeAnyReport: what was asked for is known all the same, and a manifest that is wrong is told of once there is a report.
func TestBeforeAnyReport(t *testing.T) {
	deployment := kindOf(t, "apps/v1", "Deployment")
	for body, want := range map[string]*int32{`{spec: {replicas: 3}}`: ptr(int32(3)), `{spec: {}}`: ptr(int32(1)), `{spec: {replicas: three}}`: nil} {
		s, err := deployment.State(Report{Manifest: live{apiVersion: "apps/v1", kind: "Deployment", body: body}.object(t)})
		if diff := cmp.Diff(want, s.Desired); err != nil || s.Health != unknown || s.Reason != ReasonWaitingForStatus || diff != "" {
			t.Errorf("%s: %+v, %v %s", body, s, err, diff)
		}
	}
}

func TestNumbersAtTheirBounds(t *testing.T) {
	deployment := kindOf(t, "apps/v1", "Deployment")
	for name, test := range map[string]struct {
		desired  *int32
		replicas any
		reason   Reason
	}{
		"none are asked for":       {ptr(int32(0)), int64(0), ReasonComplete},
		"fewer than none":          {ptr(int32(-1)), int64(0), ReasonMalformed},
		"the most, as a decimal":   {nil, float64(math.MaxInt32), ReasonUpdating},
		"one more, as a decimal":   {nil, float64(math.MaxInt32 + 1), ReasonMalformed},
		"one more":                 {nil, int64(math.MaxInt32 + 1), ReasonMalformed},
		"a half":                   {nil, 0.5, ReasonMalformed},
		"fewer than none, decimal": {nil, float64(-1), ReasonMalformed},
	} {
		s, _ := deployment.State(Report{
			Manifest: live{apiVersion: "apps/v1", kind: "Deployment", body: `{spec: {replicas: 2}}`}.object(t), Desired: test.desired,
			Status: map[string]any{"generation": int64(2), "observedGeneration": int64(2), "replicas": test.replicas},
		})
		if s.Reason != test.reason {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for n, fine := range map[int64]bool{-1: false, 0: true, 1_000_000: true, 1_000_001: false} {
		u := live{apiVersion: "apps/v1", kind: "Deployment", body: fmt.Sprintf(`{spec: {replicas: %d}}`, n)}.object(t)
		if got, given, err := Replicas(deployment, u); (err == nil && given && int64(got) == n) != fine {
			t.Errorf("%d replicas are read as %d, %v", n, got, err)
		}
	}
	empty := live{apiVersion: "apps/v1", kind: "Deployment", body: `{spec: {}}`}.object(t)
	if n, err := DefaultReplicas(deployment, empty); err != nil || n != 1 {
		t.Errorf("a Deployment that does not say has %d replicas, %v", n, err)
	}
	if n, err := DefaultReplicas(kindOf(t, "apps/v1", "DaemonSet"), empty); err == nil {
		t.Errorf("a DaemonSet has %d replicas", n)
	}
}

// TestFields: a counter that a status leaves out is 0 once its controller has looked, and nothing before.
func TestFields(t *testing.T) {
	deployment := kindOf(t, "apps/v1", "Deployment")
	for name, test := range map[string]struct {
		status map[string]any
		want   map[string]any
	}{
		"looked at": {
			map[string]any{"observedGeneration": int64(2), "replicas": int64(3), "conditionAvailable": "True"},
			map[string]any{"observedGeneration": int64(2), "replicas": int64(3), "readyReplicas": int64(0), "conditionAvailable": "True", "reasonProgressing": nil},
		},
		"not looked at": {map[string]any{}, map[string]any{"observedGeneration": nil, "replicas": nil, "readyReplicas": nil}},
	} {
		fields, err := deployment.Fields(Report{Status: test.status})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		for _, f := range fields {
			if _, asked := test.want[f.Name]; asked {
				got[f.Name] = f.Value
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := deployment.Fields(Report{Status: map[string]any{"replicas": "three"}}); err == nil {
		t.Error("a word is no number")
	}
	cron := kindOf(t, "batch/v1", "CronJob")
	for status, want := range map[string]int64{`active: [{name: a}, {name: b}]`: 2, `activeJobs: 2`: 2, `active: []`: 0, `suspended: x`: 0} {
		u := live{apiVersion: "batch/v1", kind: "CronJob", body: `{spec: {}, status: {lastScheduleTime: x, ` + status + `}}`}.object(t)
		fields, err := cron.Fields(ReportOf(u))
		i := slices.IndexFunc(fields, func(f FieldValue) bool { return f.Name == "activeJobs" })
		if err != nil || i < 0 || fields[i].Value != want {
			t.Errorf("%s: %+v, %v", status, fields, err)
		}
	}
}

// TestWhatMayBeCarried: what is known, and what an administrator allows; allowing more takes nothing away, and changes no other
// registry.
func TestWhatMayBeCarried(t *testing.T) {
	none := registry(t, widget())
	first := none.Allowing(schema.GroupKind{Group: "example.com", Kind: "Something"})
	second := first.Allowing(schema.GroupKind{Group: "example.net", Kind: AnyKind})
	for gvk, want := range map[schema.GroupVersionKind][3]bool{
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                              {true, true, true},
		{Group: "example.io", Version: "v1", Kind: "Widget"}:                            {true, true, true},
		{Group: "example.com", Version: "v1", Kind: "Something"}:                        {false, true, true},
		{Group: "example.com", Version: "v1", Kind: "SomethingElse"}:                    {false, false, false},
		{Group: "example.net", Version: "v1", Kind: "Whatever"}:                         {false, false, true},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}: {false, false, false},
	} {
		if got := [3]bool{none.Carried(gvk), first.Carried(gvk), second.Carried(gvk)}; got != want {
			t.Errorf("%s: got %v, want %v", gvk, got, want)
		}
	}
}

func TestWhoseRulesAKindHas(t *testing.T) {
	all := registry(t, widget())
	for gvk, want := range map[schema.GroupVersionKind][2]bool{
		{Group: "apps", Version: "v1", Kind: "Deployment"}:       {true, true},
		{Group: "example.io", Version: "v1", Kind: "Widget"}:     {true, false},
		{Group: "example.com", Version: "v1", Kind: "Something"}: {false, false},
	} {
		if k := all.For(gvk); k.Known() != want[0] || k.BuiltIn() != want[1] {
			t.Errorf("%s: known %v, built in %v", gvk, k.Known(), k.BuiltIn())
		}
	}
}
