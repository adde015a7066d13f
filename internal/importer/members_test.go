package importer_test

import (
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/internal/importer"
)

// TestImagesOfMembers has two clusters with every pair of images: each is to run just what it runs.
func TestImagesOfMembers(t *testing.T) {
	digest := "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	images := []string{"nginx", "nginx:1.27", "nginx" + digest, "nginx:1.27" + digest, "r.example.com/nginx:1.27", "r.example.com:5000/team/nginx", "localhost/nginx:1.28", "", "No Image"}
	with := func(image string) *unstructured.Unstructured {
		web := workload(2)
		containers := []any{map[string]any{"name": "web", "image": image}}
		if err := unstructured.SetNestedSlice(web.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			t.Fatal(err)
		}
		return web
	}
	for _, one := range images {
		for _, other := range images {
			result, err := importer.Plain(request(t), map[string][]*unstructured.Unstructured{"member1": {with(one)}, "member2": {with(other)}})
			if err != nil {
				t.Fatal(err)
			}
			if found := changes(t, result); len(found)+len(result.Unexpressed) > 0 {
				t.Errorf("%q and %q: %v %v, overrides %s", one, other, found, result.Unexpressed, text(result.FleetWorkload.Spec.Overrides))
			}
		}
	}
}

// TestMembersKeepWhatTheyRun disturbs the manifests of three clusters: what is imported leaves each as it is, or it is said what it cannot say.
func TestMembersKeepWhatTheyRun(t *testing.T) {
	exact := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		byCluster := map[string][]*unstructured.Unstructured{}
		for _, c := range fleet.Clusters {
			web := workload(1 + r.IntN(3))
			for range r.IntN(3) {
				part, _ := web.Object[pick(r, "metadata", "spec", "spec")].(map[string]any)
				disturb(r, part)
			}
			web.SetName("web")
			web.SetNamespace("shop")
			byCluster[c.Name] = []*unstructured.Unstructured{web}
		}
		result, err := importer.Plain(request(t), byCluster)
		if err != nil || len(result.Unexpressed) > 0 {
			continue
		}
		if found := changes(t, result); len(found) > 0 {
			t.Fatalf("seed %d: %s\noverrides %s", seed, text(found), text(result.FleetWorkload.Spec.Overrides))
		}
		exact++
	}
	if exact < 500 {
		t.Errorf("only %d were compared", exact)
	}
}
