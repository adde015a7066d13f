//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

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
	writeFixture(obj, r.fw.Namespace, filepath.Join(dir, r.name, step+".yaml"))
}

func writeFixture(obj *unstructured.Unstructured, namespace, path string) {
	GinkgoHelper()
	scrub(obj)
	raw, err := yaml.Marshal(obj.Object)
	Expect(err).NotTo(HaveOccurred())
	text := strings.ReplaceAll(string(raw), namespace, "kinds")
	for _, same := range sameInEveryRun {
		text = same.pattern.ReplaceAllString(text, same.by)
	}
	Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
}

// sameInEveryRun replaces what no interpreter looks into.
var sameInEveryRun = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "2026-01-01T00:00:00Z"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "00000000-0000-0000-0000-000000000000"},
	// A SidecarSet's hash has its namespace in it.
	{regexp.MustCompile(`(latestRevision: \S+)-[0-9a-f]{8,10}\n`), "$1-0000000000\n"},
}

// scrub takes out what is different in every run and what no interpreter reads. Of generations, which count the backend's
// writes too, it keeps whether the newest is the one that the status speaks about.
func scrub(obj *unstructured.Unstructured) {
	metadata := obj.Object["metadata"].(map[string]any)
	for _, field := range []string{"managedFields", "uid", "resourceVersion", "creationTimestamp", "namespace", "labels", "annotations", "ownerReferences", "finalizers"} {
		delete(metadata, field)
	}
	const newest = int64(2)
	if status, ok := obj.Object["status"].(map[string]any); ok {
		if observed, ok := status["observedGeneration"].(int64); ok {
			status["observedGeneration"] = max(0, newest-max(0, obj.GetGeneration()-observed))
		}
	}
	obj.SetGeneration(newest)
}
