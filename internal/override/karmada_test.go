package override_test

import (
	"strings"
	"testing"

	"github.com/karmada-io/karmada/pkg/util/imageparser"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/override"
)

// TestImagesAgreeWithKarmada compares every combination of an image and the parts of an override with what Karmada's
// image overriders make of it (overrideImage in pkg/util/overridemanager/imageoverride.go, operator replace).
func TestImagesAgreeWithKarmada(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	other := "sha512:" + strings.Repeat("fedcba9876543210", 8)
	var images []string
	for _, registry := range []string{"", "localhost/", "localhost:5000/", "r.example.com/", "r.example.com:5000/", "[2001:db8::1]:80/"} {
		for _, repository := range []string{"nginx", "library/nginx", "a/b.c/d_e/f--g", "registry"} {
			for _, version := range []string{"", ":1.19", ":Latest_x", "@" + digest} {
				images = append(images, registry+repository+version)
			}
		}
	}
	var compared int
	for _, image := range images {
		for _, registry := range []string{"", "mirror.example.com", "localhost", "10.0.0.1:5000"} {
			for _, repository := range []string{"", "proxy", "team/proxy"} {
				for _, version := range []string{"", "v2", other} {
					o := v1alpha1.ImageOverride{Container: "c", Registry: registry, Repository: repository}
					if strings.Contains(version, ":") {
						o.Digest = version
					} else {
						o.Tag = version
					}
					want := karmadaImage(t, image, registry, repository, version)
					if got := overrideImage(t, image, o); got != want {
						t.Errorf("image %s with %+v: got %s, karmada makes %s", image, o, got, want)
					}
					compared++
				}
			}
		}
	}
	t.Logf("compared %d", compared)
}

func karmadaImage(t *testing.T, image, registry, repository, version string) string {
	t.Helper()
	parsed, err := imageparser.Parse(image)
	if err != nil {
		t.Fatal(err)
	}
	if registry != "" {
		parsed.SetHostname(registry)
	}
	if repository != "" {
		parsed.SetRepository(repository)
	}
	if version != "" {
		parsed.SetTagOrDigest(version)
	}
	return parsed.String()
}

func overrideImage(t *testing.T, image string, o v1alpha1.ImageOverride) string {
	t.Helper()
	pod := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}},
	}}
	set, err := override.Compile([]v1alpha1.Override{{Images: []v1alpha1.ImageOverride{o}}}, override.Paths{PodTemplate: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := set.Target(pod, m1)
	if err != nil {
		t.Fatal(err)
	}
	containers, _, err := unstructured.NestedSlice(got.Object, "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	return containers[0].(map[string]any)["image"].(string)
}

// TestDigestBesideTagStays is the one difference on purpose: Karmada would turn a pinned image into an unpinned one.
func TestDigestBesideTagStays(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0123456789abcdef", 4)
	got := overrideImage(t, "nginx:1.19"+digest, v1alpha1.ImageOverride{Container: "c", Registry: "r.example.com"})
	if want := "r.example.com/nginx:1.19" + digest; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := karmadaImage(t, "nginx:1.19"+digest, "r.example.com", "", ""), "r.example.com/nginx:1.19"; got != want {
		t.Errorf("karmada makes %s now, no longer %s: the difference may be gone", got, want)
	}
}
