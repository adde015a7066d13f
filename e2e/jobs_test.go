//go:build e2e

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

var _ = Describe("A job that would remove itself", func() {
	jobs := map[string]struct {
		gvk   schema.GroupVersionKind
		ttl   []string
		field string
	}{
		"Job": {schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
			[]string{"spec", "ttlSecondsAfterFinished"}, `ttlSecondsAfterFinished: 1`},
		"BroadcastJob": {schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "BroadcastJob"},
			[]string{"spec", "completionPolicy", "ttlSecondsAfterFinished"}, `completionPolicy: {type: Always, ttlSecondsAfterFinished: 1}`},
	}
	for _, backend := range backends {
		for name, job := range jobs {
			It(fmt.Sprintf("runs once on %s, and its result stays known: %s", backend, name), Label(backend), func(ctx SpecContext) {
				sharedOperator(ctx)
				k := kind{gvk: job.gvk}
				fw := workload(newNamespace(ctx, "once"), "once", backend, deployment, 1)
				fw.Spec.Replicas = nil
				raw, err := yaml.YAMLToJSON(fmt.Appendf(nil, `{apiVersion: %s, kind: %s, spec: {%s, template: {spec: {restartPolicy: Never,
containers: [{name: web, image: %q}]}}}}`, job.gvk.GroupVersion(), job.gvk.Kind, job.field, imageOld))
				Expect(err).NotTo(HaveOccurred())
				fw.Spec.Template = runtime.RawExtension{Raw: raw}
				create(ctx, fw)
				becomesReady(ctx, fw)
				Expect(condition(fw, v1alpha1.ConditionHealthy).Message).To(ContainSubstring("ttlSecondsAfterFinished is not sent"))
				objects := objectUIDs(ctx, fw, k)
				Expect(objects).NotTo(BeEmpty())
				for name := range objects {
					obj, err := object(ctx, member(name), k, client.ObjectKeyFromObject(fw))
					Expect(err).NotTo(HaveOccurred())
					_, has, _ := unstructured.NestedFieldNoCopy(obj.Object, job.ttl...)
					Expect(has).To(BeFalse(), "%s has a TTL", name)
				}
				// Its TTL would be over by then. What is not removed is not made anew either.
				Consistently(func(g Gomega) {
					g.Expect(objectUIDs(ctx, fw, k)).To(Equal(objects))
					refresh(ctx, fw)
					g.Expect(isReady(fw)).To(BeTrue(), describe(fw))
				}).WithContext(ctx).WithTimeout(3 * hold).WithPolling(time.Second).Should(Succeed())
				remove(ctx, fw)
			})
		}
	}
})
