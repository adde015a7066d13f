//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// A kind gets another version while workloads of it run, as OpenKruise 1.9 gives one to SidecarSet.
var _ = Describe("Another version of the kind", Label("law1", "karmada", "ocm"), long, func() {
	It("is taken where each cluster serves it, and refused before", func(ctx SpecContext) {
		m := world.members
		gadget := newGadget("version")
		old := strings.ReplaceAll(gadgetCRD, "name: v1,", "name: v1beta1,")
		for _, control := range []string{lab.Karmada, m[0], m[1]} {
			applied(ctx, gadget, control, old)
		}
		applied(ctx, gadget, lab.Karmada, gadgetRole)
		o, namespace := ownOperator(ctx, "version", operatorOptions{
			allowedKinds: []any{map[string]any{"group": gadget.gvk.Group, "kind": gadget.gvk.Kind}},
		})
		o.start(ctx)
		inVersion := func(fw *v1alpha1.FleetWorkload, version string, size int) {
			fw.Spec.Template = runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":"Gadget","spec":{"size":%d}}`, gadget.gvk.Group, version, size)}
		}
		var all []*v1alpha1.FleetWorkload
		for _, b := range backends {
			fw := gadgetWorkload(namespace, "web-"+b, b, gadget, v1alpha1.Placement{Clusters: on(m[0], m[1])})
			inVersion(fw, "v1beta1", 1)
			all = append(all, create(ctx, fw))
		}
		isApplied := func(fw *v1alpha1.FleetWorkload, former string) {
			GinkgoHelper()
			eventually(ctx, fw, 2*time.Minute, func(g Gomega) {
				g.Expect(isObserved(fw)).To(BeTrue())
				g.Expect(fw.Status.Revision).NotTo(Or(BeEmpty(), Equal(former)))
				g.Expect(rowNames(fw)).To(Equal(m[:2]))
				for _, r := range fw.Status.Clusters {
					g.Expect(r.Applied).To(Equal(metav1.ConditionTrue), describe(fw))
					g.Expect(r.Revision).To(Equal(fw.Status.Revision))
				}
			})
		}
		beta := gadget
		beta.gvk.Version = "v1beta1"
		objects := func(fw *v1alpha1.FleetWorkload) (all []string) {
			GinkgoHelper()
			for _, name := range m[:2] {
				obj, err := object(ctx, member(name), beta, client.ObjectKeyFromObject(fw))
				Expect(err).NotTo(HaveOccurred())
				Expect(obj).NotTo(BeNil(), name)
				all = append(all, fmt.Sprint(name, " ", obj.GetUID(), " ", obj.GetGeneration()))
			}
			return all
		}
		before, revisions := map[string][]string{}, map[string]string{}
		for _, fw := range all {
			isApplied(fw, "")
			before[fw.Name], revisions[fw.Name] = objects(fw), fw.Status.Revision
		}

		By("writing a version that one cluster does not serve")
		applied(ctx, gadget, m[0], old+strings.ReplaceAll(gadgetOldVersion, "v1beta1", "v1"))
		for _, fw := range all {
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { inVersion(fw, "v1", 2) })
			Expect(becomesStalled(ctx, fw, v1alpha1.ReasonInvalidTemplate)).To(And(ContainSubstring(m[1]), ContainSubstring("write apiVersion: "+gadget.gvk.Group+"/v1beta1")))
			Expect(objects(fw)).To(Equal(before[fw.Name]))
		}

		By("serving it everywhere")
		for _, control := range []string{m[1], lab.Karmada} {
			applied(ctx, gadget, control, old+strings.ReplaceAll(gadgetOldVersion, "v1beta1", "v1"))
		}
		for _, fw := range all {
			eventually(ctx, fw, 7*time.Minute, func(g Gomega) {
				g.Expect(fw.Status.Workload.APIVersion).To(Equal(gadget.gvk.Group+"/v1"), describe(fw))
			})
			isApplied(fw, revisions[fw.Name])
			for i, now := range objects(fw) {
				Expect(now).To(Equal(strings.TrimSuffix(before[fw.Name][i], " 1")+" 2"), "the object was made anew, or written more than once")
			}
		}
		for _, fw := range all {
			remove(ctx, fw)
			nothingLeft(ctx, fw, gadget)
		}
	}, SpecTimeout(15*time.Minute))
})
