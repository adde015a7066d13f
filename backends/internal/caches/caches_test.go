package caches

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// TestHandler: what was there before and what has not changed is not told, and what has gone unseen is.
func TestHandler(t *testing.T) {
	namespace := func(version string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	var told []string
	handler := Handler(func(now *corev1.Namespace) { told = append(told, "come "+now.ResourceVersion) },
		func(before, now *corev1.Namespace) {
			told = append(told, before.ResourceVersion+" to "+now.ResourceVersion)
		},
		func(last *corev1.Namespace) { told = append(told, "gone "+last.ResourceVersion) })
	handler.OnAdd(namespace("1"), true)
	handler.OnAdd(namespace("2"), false)
	handler.OnUpdate(namespace("2"), namespace("2"))
	handler.OnUpdate(namespace("2"), namespace("3"))
	handler.OnDelete(namespace("4"))
	handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: namespace("5")})
	handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: &corev1.Secret{}})
	if want := []string{"come 2", "2 to 3", "gone 4", "gone 5"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestKeepOwnFields: what others have set is theirs to remember.
func TestKeepOwnFields(t *testing.T) {
	obj := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: "fleetworkload"}}}}
	KeepOwnFields(obj)
	if len(obj.ManagedFields) != 1 || obj.ManagedFields[0].Manager != "fleetworkload" {
		t.Errorf("%v", obj.ManagedFields)
	}
}
