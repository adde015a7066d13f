//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// envFixtures names a folder in which the specs leave what members really say: internal/interpreter/testdata/fleet. Its
// tests hold the interpretation of each to what the step means.
const envFixtures = "E2E_FIXTURES"

// recordFixture writes the first member's object after a step.
func recordFixture(ctx context.Context, r *livedOn, step string) {
	GinkgoHelper()
	dir := os.Getenv(envFixtures)
	if dir == "" {
		return
	}
	obj, err := object(ctx, member(world.members[0]), kind{gvk: r.gvk()}, r.memberKey())
	Expect(err).NotTo(HaveOccurred())
	Expect(obj).NotTo(BeNil())
	scrub(obj)
	raw, err := yaml.Marshal(obj.Object)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.MkdirAll(filepath.Join(dir, r.name), 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, r.name, step+".yaml"), raw, 0o644)).To(Succeed())
}

// scrub takes out what is different in every run and what no interpreter reads.
func scrub(obj *unstructured.Unstructured) {
	metadata := obj.Object["metadata"].(map[string]any)
	for _, field := range []string{"managedFields", "uid", "resourceVersion", "creationTimestamp", "namespace", "labels", "annotations", "ownerReferences", "finalizers"} {
		delete(metadata, field)
	}
}
