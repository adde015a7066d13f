package ssa

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return obj
}

const live = `
apiVersion: v1
kind: Service
metadata:
  name: s
  labels: {ours: "1", theirs: "2"}
  managedFields:
  - manager: fleetworkload
    operation: Apply
    apiVersion: v1
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {f:labels: {f:ours: {}}}
      f:spec:
        f:type: {}
        f:ports:
          k:{"port":80,"protocol":"TCP"}: {.: {}, f:port: {}, f:name: {}}
  - manager: kubectl
    operation: Update
    apiVersion: v1
    fieldsType: FieldsV1
    fieldsV1: {f:metadata: {f:labels: {f:theirs: {}}}}
spec: {type: ClusterIP, clusterIP: 10.0.0.1, ports: [{port: 80, protocol: TCP, name: web, targetPort: 80}]}
`

func TestUpToDate(t *testing.T) {
	tests := map[string]struct {
		desired string
		want    bool
	}{
		"the same, without what others and the server added": {`
apiVersion: v1
kind: Service
metadata: {name: s, labels: {ours: "1"}}
spec: {type: ClusterIP, ports: [{port: 80, name: web}]}`, true},
		"another value": {`
apiVersion: v1
kind: Service
metadata: {name: s, labels: {ours: "9"}}
spec: {type: ClusterIP, ports: [{port: 80, name: web}]}`, false},
		"a field more": {`
apiVersion: v1
kind: Service
metadata: {name: s, labels: {ours: "1", more: "1"}}
spec: {type: ClusterIP, ports: [{port: 80, name: web}]}`, false},
		"a field that we own is no longer wanted": {`
apiVersion: v1
kind: Service
metadata: {name: s, labels: {ours: "1"}}
spec: {ports: [{port: 80, name: web}]}`, false},
		"a field of a list item that we own is no longer wanted": {`
apiVersion: v1
kind: Service
metadata: {name: s, labels: {ours: "1"}}
spec: {type: ClusterIP, ports: [{port: 80}]}`, false},
		"a list item more": {`
apiVersion: v1
kind: Service
metadata: {name: s, labels: {ours: "1"}}
spec: {type: ClusterIP, ports: [{port: 80, name: web}, {port: 81}]}`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := UpToDate(object(t, live), object(t, test.desired)); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if UpToDate(nil, object(t, live)) {
		t.Error("an object that is not there is not up to date")
	}
}

func TestContainsComparesAsAPIServersStore(t *testing.T) {
	tests := map[string]struct {
		have, want any
		equal      bool
	}{
		"quantities in another notation":  {"1", "1000m", true},
		"different quantities":            {"1", "1001m", false},
		"a number of another type":        {int64(3), float64(3), true},
		"a number and its string":         {int64(3), "3", true},
		"different strings":               {"a", "b", false},
		"hashes like large numbers":       {"1e996", "1000e993", false},
		"numbers with an exponent":        {"1000000", "1e6", true},
		"an empty map and nothing":        {nil, map[string]any{}, true},
		"an empty list and nothing":       {nil, []any{}, true},
		"a null says nothing":             {map[string]any{}, map[string]any{"a": nil}, true},
		"false is not absent":             {map[string]any{}, map[string]any{"a": false}, false},
		"lists of different lengths":      {[]any{"a", "b"}, []any{"a"}, false},
		"lists in another order":          {[]any{"a", "b"}, []any{"b", "a"}, false},
		"a map where a string was wanted": {map[string]any{}, "a", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Contains(test.have, test.want); got != test.equal {
				t.Errorf("got %t", got)
			}
		})
	}
}
