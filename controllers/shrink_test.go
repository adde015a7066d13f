package controllers

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// TestShrink: a FleetWorkload says in the cache what it said, without its managed fields. Its rows have their words from others, and no room that nobody uses.
func TestShrink(t *testing.T) {
	decoded := func() *v1alpha1.FleetWorkload {
		fw := &v1alpha1.FleetWorkload{Status: v1alpha1.FleetWorkloadStatus{Placement: &v1alpha1.PlacementRecord{}}}
		for i := range 100 {
			row, share := v1alpha1.ClusterStatus{}, v1alpha1.ClusterShare{}
			fill(reflect.ValueOf(&row).Elem(), fmt.Sprint("cluster-", i))
			fill(reflect.ValueOf(&share).Elem(), fmt.Sprint("cluster-", i))
			fw.Status.Clusters, fw.Status.Placement.Clusters = append(fw.Status.Clusters, row), append(fw.Status.Placement.Clusters, share)
		}
		text, err := json.Marshal(fw)
		if err != nil {
			t.Fatal(err)
		}
		fw = &v1alpha1.FleetWorkload{}
		if err := json.Unmarshal(text, fw); err != nil {
			t.Fatal(err)
		}
		fw.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		return fw
	}
	shrink := func(obj metav1.Object) metav1.Object {
		out, err := Shrink(obj)
		if err != nil {
			t.Fatal(err)
		}
		return out.(metav1.Object)
	}
	one, other, want := shrink(decoded()).(*v1alpha1.FleetWorkload), shrink(decoded()).(*v1alpha1.FleetWorkload), decoded()
	if want.ManagedFields = nil; !equality.Semantic.DeepEqual(one, want) {
		t.Errorf("it says %+v, want %+v", one, want)
	}
	for i := range one.Status.Clusters {
		shared(t, reflect.ValueOf(one.Status.Clusters[i]), reflect.ValueOf(other.Status.Clusters[i]))
		shared(t, reflect.ValueOf(one.Status.Placement.Clusters[i]), reflect.ValueOf(other.Status.Placement.Clusters[i]))
	}
	if room := cap(one.Status.Clusters); room >= cap(want.Status.Clusters) {
		t.Errorf("there is room for %d clusters", room)
	}
	if shrink(&v1alpha1.FleetWorkload{}); len(shrink(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{ManagedFields: want.ManagedFields}}).GetManagedFields()) > 0 {
		t.Error("another object keeps its managed fields")
	}
}

// fill gives all texts of a struct one value.
func fill(of reflect.Value, text string) {
	for i := range of.NumField() {
		if field := of.Field(i); field.Kind() == reflect.String {
			field.SetString(text)
		}
	}
}

// shared wants all texts of two structs to be the same strings.
func shared(t *testing.T, a, b reflect.Value) {
	t.Helper()
	for i := range a.NumField() {
		if a.Field(i).Kind() != reflect.String {
			continue
		}
		if unsafe.StringData(a.Field(i).String()) != unsafe.StringData(b.Field(i).String()) {
			t.Errorf("each has its own %s", a.Type().Field(i).Name)
		}
	}
}
