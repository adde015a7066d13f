package interpreter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestKeptOldRoundsAsOpenKruise(t *testing.T) {
	// From CalculatePartitionReplicas of OpenKruise v1.8.3 (pkg/util/tools.go).
	for _, test := range []struct {
		partition string
		replicas  int32
		want      int32
	}{
		{"0%", 10, 0}, {"50%", 3, 2}, {"99%", 10, 9}, {"100%", 10, 10}, {"1%", 1, 1}, {"30%", 0, 0}, {"half", 0, 0}, {"34%", 3, 2},
		{"99.99%", 10, 9}, {"100.0%", 10, 9}, {"150%", 10, 10}, {"3", 5, -1}, {"-3%", 5, -1}, {"0x10%", 5, -1}, {"", 5, -1},
		{"1e2%", 5, -1}, {"99999999999999%", 5, 5}, {" 5%", 5, -1},
		{"0000000000000050%", 3, -1}, {"000000000000050%", 3, 2}, // 17 characters, and 16
	} {
		got, err := KeptOld(kindOf(t, kruise1, "CloneSet"), intstr.FromString(test.partition), test.replicas)
		if (err != nil) != (test.want < 0) || (err == nil && got != test.want) {
			t.Errorf("%q of %d: got %d, %v, want %d", test.partition, test.replicas, got, err, test.want)
		}
	}
	for partition, want := range map[int32]int32{-5: 0, 0: 0, 3: 3, 12: 10} {
		if got, err := KeptOld(kindOf(t, kruise1, "CloneSet"), intstr.FromInt32(partition), 10); err != nil || got != want {
			t.Errorf("%d: got %d, %v, want %d", partition, got, err, want)
		}
	}
	if got, err := KeptOld(kindOf(t, kruise2, "DaemonSet"), intstr.FromString("50%"), 3); err != nil || got != 1 {
		t.Errorf("a DaemonSet of 1.9 keeps %d, %v of 3 at 50%%, want 1", got, err)
	}
}

// TestSetPartition: what SetPartition writes, health reads as that many kept.
func TestSetPartition(t *testing.T) {
	for name, test := range map[string]struct {
		apiVersion, kind, body string
		path                   []string
		want                   any
	}{
		"a count":   {kruise1, "CloneSet", `{spec: {replicas: 5}}`, []string{"spec", "updateStrategy", "partition"}, int64(3)},
		"nested":    {kruise2, "StatefulSet", `{spec: {replicas: 5}}`, []string{"spec", "updateStrategy", "rollingUpdate", "partition"}, int64(3)},
		"ordinal":   {"apps/v1", "StatefulSet", `{spec: {replicas: 5, ordinals: {start: 2}}}`, []string{"spec", "updateStrategy", "rollingUpdate", "partition"}, int64(5)},
		"sidecars":  {kruise1, "SidecarSet", `{spec: {}}`, []string{"spec", "updateStrategy", "partition"}, int64(3)},
		"daemons":   {kruise1, "DaemonSet", `{spec: {}}`, []string{"spec", "updateStrategy", "rollingUpdate", "partition"}, int64(3)},
		"a subset":  {kruise1, "UnitedDeployment", `{spec: {replicas: 5, topology: {subsets: [{name: a, replicas: 40%}, {name: b}]}}}`, []string{"spec", "updateStrategy", "manualUpdate", "partitions"}, map[string]any{"a": int64(1), "b": int64(2)}},
		"no choice": {kruise1, "UnitedDeployment", `{spec: {replicas: 5, topology: {subsets: [{name: a}, {name: b}]}}}`, nil, nil},
		"none":      {"apps/v1", "Deployment", `{spec: {replicas: 5}}`, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			kind := kindOf(t, test.apiVersion, test.kind)
			u := live{apiVersion: test.apiVersion, kind: test.kind, body: test.body}.object(t)
			err := SetPartition(kind, u, 3)
			if test.path == nil {
				if err == nil {
					t.Error("want an error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedFieldNoCopy(u.Object, test.path...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSetReplicas(t *testing.T) {
	united := kindOf(t, kruise1, "UnitedDeployment")
	u := live{apiVersion: kruise1, kind: "UnitedDeployment", body: `{spec: {topology: {subsets: [{name: a, replicas: 2}, {name: b, replicas: 3}]}}}`}.object(t)
	if n, err := DefaultReplicas(united, u); err != nil || n != 5 {
		t.Errorf("the default is %d, %v, want the sum", n, err)
	}
	if err := SetReplicas(united, u, 5); err != nil {
		t.Error(err)
	}
	if err := SetReplicas(united, u, 6); err == nil {
		t.Error("OpenKruise refuses numbers of subsets that do not sum up to replicas")
	}
	job := live{apiVersion: "batch/v1", kind: "Job", body: `{spec: {parallelism: 5}}`}.object(t)
	if _, given, err := Replicas(kindOf(t, "batch/v1", "Job"), job); given || err != nil {
		t.Error("parallelism is not replicas")
	}
}

func TestSelector(t *testing.T) {
	for body, want := range map[string]string{
		`{spec: {selector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: In, values: [a, b]}]}}}`: "app=web,tier in (a,b)",
		`{spec: {}}`:                               "",
		`{spec: {selector: web}}`:                  "",
		`{spec: {selector: {matchLabels: [web]}}}`: "",
	} {
		u := live{apiVersion: "apps/v1", kind: "Deployment", body: body}.object(t)
		if got := Selector(kindOf(t, "apps/v1", "Deployment"), u); got != want {
			t.Errorf("%s: %q", body, got)
		}
	}
	if got := Selector(kindOf(t, "batch/v1", "CronJob"), live{apiVersion: "batch/v1", kind: "CronJob", body: `{spec: {}}`}.object(t)); got != "" {
		t.Errorf("a CronJob has %q", got)
	}
}

// TestOverridePartition: what a kind cannot say itself, as a percentage, is worked out for the manifest's replicas.
func TestOverridePartition(t *testing.T) {
	for name, test := range map[string]struct {
		apiVersion, kind, body, partition string
		want                              any
	}{
		"a number":                     {kruise1, "CloneSet", `{spec: {replicas: 5}}`, "3", int64(3)},
		"a percentage":                 {kruise1, "CloneSet", `{spec: {replicas: 5}}`, "50%", "50%"},
		"a percentage, worked out":     {"apps/v1", "StatefulSet", `{spec: {replicas: 4}}`, "50%", int64(2)},
		"worked out for the default":   {"apps/v1", "StatefulSet", `{spec: {}}`, "100%", int64(1)},
		"a number as it is":            {"apps/v1", "StatefulSet", `{spec: {replicas: 4}}`, "3", int64(3)},
		"no percentage":                {"apps/v1", "StatefulSet", `{spec: {replicas: 4}}`, "half", nil},
		"replicas that are none":       {"apps/v1", "StatefulSet", `{spec: {replicas: four}}`, "50%", nil},
		"ordinals that start nowhere":  {"apps/v1", "StatefulSet", `{spec: {replicas: 4, ordinals: {start: x}}}`, "50%", nil},
		"ordinals in no map":           {"apps/v1", "StatefulSet", `{spec: {replicas: 4, ordinals: x}}`, "50%", nil},
		"a percentage without a total": {kruise1, "DaemonSet", `{spec: {}}`, "50%", nil},
		"none":                         {"apps/v1", "Deployment", `{spec: {}}`, "1", nil},
	} {
		kind := kindOf(t, test.apiVersion, test.kind)
		u := live{apiVersion: test.apiVersion, kind: test.kind, body: test.body}.object(t)
		err := OverridePartition(kind, u, intstr.Parse(test.partition))
		got, _, _ := unstructured.NestedFieldNoCopy(u.Object, PartitionPath(kind)...)
		if (err != nil) != (test.want == nil) || err == nil && got != test.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestSubsetsShareAPartition: each subset keeps its part, none more than it has.
func TestSubsetsShareAPartition(t *testing.T) {
	kind := kindOf(t, kruise1, "UnitedDeployment")
	for name, test := range map[string]struct {
		spec string
		kept int32
		want map[string]any
	}{
		"none":               {`{replicas: 5, topology: {subsets: [{name: a, replicas: 2}, {name: b, replicas: 3}]}}`, 0, map[string]any{"a": int64(0), "b": int64(0)}},
		"fewer than none":    {`{replicas: 5, topology: {subsets: [{name: a, replicas: 2}, {name: b, replicas: 3}]}}`, -1, map[string]any{"a": int64(0), "b": int64(0)}},
		"one":                {`{replicas: 5, topology: {subsets: [{name: a, replicas: 2}, {name: b, replicas: 3}]}}`, 1, map[string]any{"a": int64(0), "b": int64(1)}},
		"more than all":      {`{replicas: 5, topology: {subsets: [{name: a, replicas: 2}, {name: b, replicas: 3}]}}`, 9, map[string]any{"a": int64(2), "b": int64(3)}},
		"replicas by subset": {`{topology: {subsets: [{name: a, replicas: 2}, {name: b, replicas: 2}]}}`, 2, map[string]any{"a": int64(1), "b": int64(1)}},
		"equal parts":        {`{replicas: 5, topology: {subsets: [{name: a}, {name: b}, {name: c, replicas: 1}]}}`, 5, map[string]any{"a": int64(2), "b": int64(2), "c": int64(1)}},
		"of no known size":   {`{topology: {subsets: [{name: a, replicas: 40%}, {name: b}]}}`, 2, nil},
		"none of no size":    {`{topology: {subsets: [{name: a, replicas: 40%}, {name: b}]}}`, 0, map[string]any{"a": int64(0), "b": int64(0)}},
		"no subsets":         {`{replicas: 5, topology: {subsets: x}}`, 2, nil},
		"no replicas":        {`{replicas: x, topology: {subsets: [{name: a, replicas: 2}]}}`, 2, nil},
	} {
		u := live{apiVersion: kruise1, kind: "UnitedDeployment", body: `{spec: ` + test.spec + `}`}.object(t)
		err := SetPartition(kind, u, test.kept)
		got, _, _ := unstructured.NestedMap(u.Object, "spec", "updateStrategy", "manualUpdate", "partitions")
		if diff := cmp.Diff(test.want, got); (err != nil) != (test.want == nil) || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}
