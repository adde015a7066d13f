//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

const (
	imageNewest = "registry.example.com/shop/web:3.0"
	restartedAt = "kubectl.kubernetes.io/restartedAt"
)

// setInTemplate changes one field of the template.
func setInTemplate(fw *v1alpha1.FleetWorkload, value string, path ...string) {
	GinkgoHelper()
	var manifest map[string]any
	Expect(json.Unmarshal(fw.Spec.Template.Raw, &manifest)).To(Succeed())
	Expect(unstructured.SetNestedField(manifest, value, path...)).To(Succeed())
	raw, err := json.Marshal(manifest)
	Expect(err).NotTo(HaveOccurred())
	fw.Spec.Template.Raw = raw
}

// versionsOf are the ControllerRevisions with what a FleetWorkload has shipped.
func versionsOf(ctx context.Context, fw *v1alpha1.FleetWorkload) ([]appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	err := hub().List(ctx, &list, client.InNamespace(fw.Namespace), client.MatchingLabels{v1alpha1.LabelHistoryOf: string(fw.UID)})
	return list.Items, err
}

// takeOut removes the annotation of a restart, and tells its value.
func takeOut(spec any) string {
	GinkgoHelper()
	fields, is := spec.(map[string]any)
	Expect(is).To(BeTrue())
	at, _, err := unstructured.NestedString(fields, "template", "metadata", "annotations", restartedAt)
	Expect(err).NotTo(HaveOccurred())
	unstructured.RemoveNestedField(fields, "template", "metadata", "annotations", restartedAt)
	if left, _, _ := unstructured.NestedMap(fields, "template", "metadata", "annotations"); len(left) == 0 {
		unstructured.RemoveNestedField(fields, "template", "metadata", "annotations")
	}
	return at
}

// What was shipped is kept, can be returned to, and can be restarted.
var _ = forEach("What was shipped", func(backend string, k kind) {
	var (
		fw      *v1alpha1.FleetWorkload
		program string
		run     func(ctx context.Context, args ...string) (out, errOut string, err error)
		all     func(image string) map[string]want
	)

	BeforeAll(func(ctx SpecContext) {
		sharedOperator(ctx)
		program = buildKubectlFW(ctx)
		m := world.members
		fw = workload(newNamespace(ctx, "undo"), "web", backend, k, 2)
		fw.Spec.Placement.Clusters = on(m[0], m[1])
		run = func(ctx context.Context, args ...string) (out, errOut string, err error) {
			return commandLine(ctx, program, fw, args...)
		}
		all = func(image string) map[string]want {
			return map[string]want{m[0]: {2, image, "info"}, m[1]: {2, image, "info"}}
		}
		create(ctx, fw)
		becomesReady(ctx, fw)
	})

	It("is listed, the newest marked", func(ctx SpecContext) {
		for _, image := range []string{imageNew, imageNewest} {
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, image) })
			becomesReady(ctx, fw)
		}
		Expect(fw.Status.SpecRevision).NotTo(BeNil())
		Expect(fw.Status.SpecRevision.Number).To(HaveValue(BeEquivalentTo(3)))
		Expect(fw.Status.SpecRevision.Older).To(HaveValue(BeEquivalentTo(2)))
		out, errOut, err := run(ctx, "history", "web")
		Expect(err).NotTo(HaveOccurred(), errOut)
		Expect(out).To(MatchRegexp(`(?m)^1 +\S+ +-$`))
		Expect(out).To(MatchRegexp(`(?m)^2 +\S+ +template: spec\.template\.spec\.containers\[0\]\.image ` + imageOld + ` -> ` + imageNew + `$`))
		Expect(out).To(MatchRegexp(`(?m)^3 +\* +\S+ +template: spec\.template\.spec\.containers\[0\]\.image ` + imageNew + ` -> ` + imageNewest + `$`))
		out, errOut, err = run(ctx, "history", "web", "--revision", "1", "-o", "yaml")
		Expect(err).NotTo(HaveOccurred(), errOut)
		Expect(out).To(And(ContainSubstring("image: "+imageOld), ContainSubstring("kind: "+k.gvk.Kind)))
	})

	It("is not kept anew for what is not shipped", func(ctx SpecContext) {
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan })
		becomesReady(ctx, fw)
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete })
		becomesReady(ctx, fw)
		Expect(versionsOf(ctx, fw)).To(HaveLen(3))
	})

	It("is returned to", func(ctx SpecContext) {
		refresh(ctx, fw)
		before := fw.ResourceVersion
		out, errOut, err := run(ctx, "undo", "web", "--dry-run")
		Expect(err).NotTo(HaveOccurred(), errOut)
		Expect(out).To(ContainSubstring(imageNewest + " -> " + imageNew))
		refresh(ctx, fw)
		Expect(fw.ResourceVersion).To(Equal(before), "a dry run changes nothing")

		_, errOut, err = run(ctx, "undo", "web")
		Expect(err).NotTo(HaveOccurred(), errOut)
		refresh(ctx, fw)
		becomesReady(ctx, fw)
		runs(ctx, fw, k, all(imageNew))

		out, errOut, err = run(ctx, "undo", "web", "--to-revision", "1")
		Expect(err).NotTo(HaveOccurred(), errOut)
		Expect(out).To(ContainSubstring("from revision 4 back to revision 1:"))
		refresh(ctx, fw)
		becomesReady(ctx, fw)
		runs(ctx, fw, k, all(imageOld))
		Expect(fw.Status.SpecRevision.Number).To(HaveValue(BeEquivalentTo(5)))
		Expect(versionsOf(ctx, fw)).To(HaveLen(3), "one that is returned to is not kept twice")
		Expect(*fw.Spec.Replicas).To(BeEquivalentTo(2))

		_, errOut, err = run(ctx, "undo", "web", "--to-revision", "5")
		Expect(err).To(HaveOccurred())
		Expect(errOut).To(ContainSubstring("is that of revision 5 already"))
	})

	It("is restarted, and nothing else changes", func(ctx SpecContext) {
		if k.gvk == cloneSet.gvk { // whose pods would stay
			_, errOut, err := run(ctx, "restart", "web")
			Expect(err).To(HaveOccurred())
			Expect(errOut).To(ContainSubstring(`spec.updateStrategy.type "InPlaceIfPossible"`))
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setInTemplate(fw, "ReCreate", "spec", "updateStrategy", "type") })
			becomesReady(ctx, fw)
		}
		pods, before := podUIDs(ctx, fw), specs(ctx, fw, k)
		Expect(pods).To(HaveLen(4))
		_, errOut, err := run(ctx, "restart", "web")
		Expect(err).NotTo(HaveOccurred(), errOut)
		refresh(ctx, fw)
		becomesReady(ctx, fw)
		runs(ctx, fw, k, all(imageOld))
		var old []any
		for _, uid := range pods {
			old = append(old, uid)
		}
		now := podUIDs(ctx, fw)
		Expect(now).To(HaveLen(4))
		for pod, uid := range now {
			Expect(old).NotTo(ContainElement(uid), "%s was not made anew", pod)
		}
		after := specs(ctx, fw, k)
		at := ""
		for _, name := range world.members[:2] {
			is := takeOut(after[name])
			_, err := time.Parse(time.RFC3339, is)
			Expect(err).NotTo(HaveOccurred())
			Expect(at).To(BeElementOf("", is), "the same on all clusters")
			at = is
		}
		Expect(after).To(Equal(before))
	})

	It("goes with its FleetWorkload", func(ctx SpecContext) {
		remove(ctx, fw)
		Eventually(func() ([]appsv1.ControllerRevision, error) { return versionsOf(ctx, fw) }).
			WithContext(ctx).WithTimeout(deleteTimeout).Should(BeEmpty())
	})
}, Label("undo"), Ordered)
