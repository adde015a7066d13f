package ocm

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestLeanIndexes: of an index there is what is asked for, within a namespace or for the whole hub, and nothing is asked for that there is not.
func TestLeanIndexes(t *testing.T) {
	informer := newLeanInformer(&toolscache.ListWatch{}, &unstructured.Unstructured{}, 0, toolscache.Indexers{})
	// As controller-runtime makes them of a field.
	both := func(any) ([]string, error) { return []string{"m1/web", anyNamespace + "web"}, nil }
	if err := informer.AddIndexers(toolscache.Indexers{"field:" + indexObject: both, "field:" + indexUID: both}); err != nil {
		t.Fatal(err)
	}
	work := unstructuredOf(manifestWorkGVK)
	work.SetNamespace("m1")
	work.SetName("shop-web")
	if err := informer.GetIndexer().Add(work); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		index, value string
		opts         []client.ListOption
		has          bool
	}{
		{indexObject, "m1/web", []client.ListOption{client.InNamespace("m1")}, true},
		{indexObject, anyNamespace + "web", nil, false},
		{indexUID, "m1/web", []client.ListOption{client.InNamespace("m1")}, false},
		{indexUID, anyNamespace + "web", nil, true},
	} {
		found, err := informer.GetIndexer().ByIndex("field:"+test.index, test.value)
		if err != nil || (len(found) == 1) != test.has {
			t.Errorf("%s, %s: %d found, %v", test.index, test.value, len(found), err)
		}
		if err := checkIndexed(append(test.opts, client.MatchingFields{test.index: "web"})); (err == nil) != test.has {
			t.Errorf("%s, %s: %v", test.index, test.value, err)
		}
	}
	if err := checkIndexed([]client.ListOption{client.InNamespace("m1")}); err != nil {
		t.Error(err)
	}
}
