// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func testFleet(t *testing.T) *Fleet {
	t.Helper()
	f, err := newFleet(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestPortsAreFreeDistinctAndRemembered(t *testing.T) {
	f := testFleet(t)
	keys := []string{"a", "b", "c"}
	ports, err := f.ports(keys...)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, key := range keys {
		if seen[ports[key]] {
			t.Errorf("port %d was given twice", ports[key])
		}
		seen[ports[key]] = true
		l, err := net.Listen("tcp", address(ports[key]))
		if err != nil {
			t.Errorf("port of %s is not free: %v", key, err)
			continue
		}
		defer l.Close()
	}
	again, err := newFleet(f.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.state.port("b"); err != nil || got != ports["b"] {
		t.Errorf("port of b is %d (%v) after reading the state again, want %d", got, err, ports["b"])
	}
}

func TestStateRoundTrip(t *testing.T) {
	f := testFleet(t)
	if err := f.claim(Options{Members: 6, DifferentNames: true}); err != nil {
		t.Fatal(err)
	}
	if err := f.state.update(func() { f.state.Processes["etcd"] = &process{PID: 1, Started: "never", Log: "x"} }); err != nil {
		t.Fatal(err)
	}
	got, err := Open(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	members := got.Members()
	if len(members) != 6 || members[5].OCMName != "ocm-member6" || members[5].Zone != profiles[0].Zone {
		t.Errorf("members came back as %+v", members)
	}
	if err := got.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "etcd (process 1) has died") {
		t.Errorf("a process of another start time passes as ours: %v", err)
	}
	if err := got.claim(Options{Members: 6}); err == nil {
		t.Error("a fleet with other cluster names was accepted")
	}
}

func TestForeignFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Up(t.Context(), Options{Dir: dir}); err == nil {
		t.Error("Up took a folder with other content")
	}
	if _, err := Open(dir); err == nil {
		t.Error("Open took a folder with other content")
	}
}

func TestLoadObjects(t *testing.T) {
	dir := t.TempDir()
	text := "# only a comment\n---\nkind: A\nmetadata: {name: {{ .Name }}}\n---\nkind: B\n"
	if err := os.WriteFile(filepath.Join(dir, "x.crd.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := loadObjects(filepath.Join(dir, "*.crd.yaml"), rendered(object{"Name": "some"}))
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 2 || objects[0].GetName() != "some" || objects[1].GetKind() != "B" {
		t.Errorf("got %v", *objects[0])
	}
	if _, err := loadObjects(filepath.Join(dir, "*.json"), nil); err == nil {
		t.Error("a pattern without files must be an error: a module may have moved them")
	}
}

func TestMergeWebhooks(t *testing.T) {
	config := &unstructured.Unstructured{Object: object{"kind": "V", "webhooks": []any{
		object{"name": "a", "failurePolicy": "Fail"}, object{"name": "b"},
	}}}
	patch := &unstructured.Unstructured{Object: object{"kind": "V", "webhooks": []any{object{"name": "a", "objectSelector": "s"}}}}
	if err := mergeWebhooks(config, []*unstructured.Unstructured{patch}); err != nil {
		t.Fatal(err)
	}
	hooks, _, _ := unstructured.NestedSlice(config.Object, "webhooks")
	if hooks[0].(object)["objectSelector"] != "s" || hooks[0].(object)["failurePolicy"] != "Fail" || len(hooks[1].(object)) != 1 {
		t.Errorf("got %v", hooks)
	}
}

func TestRunKeepsTheOrderOfNeeds(t *testing.T) {
	f := testFleet(t)
	var mu sync.Mutex
	var order []string
	step := func(name string, needs ...string) unit {
		return unit{name: name, needs: needs, prepare: func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return nil
		}}
	}
	units := []unit{step("c", "b", "runs already"), step("b", "a"), step("a")}
	if err := f.run(t.Context(), units); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(order, []string{"a", "b", "c"}) {
		t.Errorf("order is %v", order)
	}
}

func TestRunReportsADeadProcessWithItsLog(t *testing.T) {
	f := testFleet(t)
	dies := unit{
		name: "brittle",
		command: func() (command, error) {
			return command{path: "/bin/sh", args: []string{"-c", "echo out of luck; exit 1"}}, nil
		},
		ready: func(context.Context) error { return errors.New("not yet") },
	}
	begin := time.Now()
	err := f.run(t.Context(), []unit{dies, {name: "dependent", needs: []string{"brittle"}}})
	if err == nil || !strings.Contains(err.Error(), "brittle: process died") || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("got %v", err)
	}
	if time.Since(begin) > 10*time.Second {
		t.Error("a dead process was waited for")
	}
	if err := f.Down(t.Context()); err != nil {
		t.Error(err)
	}
	if exists(f.dir) {
		t.Error("Down left the folder")
	}
}
