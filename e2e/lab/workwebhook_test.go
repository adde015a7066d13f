// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"go/format"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWebhooksAreCalledByAddress(t *testing.T) {
	config := &unstructured.Unstructured{Object: object{"webhooks": []any{
		object{"name": "w", "clientConfig": object{"caBundle": "c", "service": object{"name": "s", "path": "/validate"}}},
	}}}
	if err := callByAddress(config, 12345); err != nil {
		t.Fatal(err)
	}
	hooks, _, _ := unstructured.NestedSlice(config.Object, "webhooks")
	want := object{"caBundle": "c", "url": "https://127.0.0.1:12345/validate"}
	if got := hooks[0].(object)["clientConfig"].(object); !maps.Equal(got, want) {
		t.Errorf("it is called at %v, want %v", got, want)
	}
}

func TestAPatchMayReplaceAProgram(t *testing.T) {
	got, err := workWebhookHost.apply([]byte("package main\n"))
	if err != nil || string(got) != workWebhookProgram {
		t.Errorf("got %q, %v", got, err)
	}
	formatted, err := format.Source(got)
	if err != nil || string(formatted) != workWebhookProgram {
		t.Errorf("workwebhook.go.txt is not formatted: %v", err)
	}
	if _, err := argoHost.apply([]byte("package main\n")); err == nil {
		t.Error("a program that lacks what is to be changed was taken")
	}
}
