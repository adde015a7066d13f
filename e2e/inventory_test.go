//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// controlOf is the control plane of a backend.
func controlOf(backend string) *cluster {
	if backend == "karmada" {
		return world.clusters[lab.Karmada]
	}
	return hub()
}

// labelled lists every object of every type with a label, as TYPE NAMESPACE/NAME. FleetWorkloads are left out.
func labelled(ctx context.Context, c *cluster, selector string) ([]string, error) {
	lists, err := c.discovery.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("types of %s: %w", c.name, err)
	}
	var found []string
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || gv.Group == v1alpha1.GroupVersion.Group || strings.Contains(r.Name, "/") {
				continue
			}
			objects, err := c.metadata.Resource(gv.WithResource(r.Name)).List(ctx, metav1.ListOptions{LabelSelector: selector})
			if apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("list %s of %s: %w", r.Name, c.name, err)
			}
			for _, o := range objects.Items {
				found = append(found, fmt.Sprintf("%s %s/%s", r.Name, o.Namespace, o.Name))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

func ofWorkload(fw *v1alpha1.FleetWorkload) string { return v1alpha1.LabelUID + "=" + identity(fw) }

// installation names that of the scenarios' operators.
const installation = "scenarios"

// identity is by what backends know a workload.
func identity(fw *v1alpha1.FleetWorkload) string {
	GinkgoHelper()
	carried := &metav1.PartialObjectMetadata{}
	Expect(json.Unmarshal(fw.Spec.Template.Raw, carried)).To(Succeed())
	ref := v1alpha1.WorkloadReference{APIVersion: carried.APIVersion, Kind: carried.Kind, Name: cmp.Or(carried.Name, fw.Name)}
	return string(v1alpha1.Identity(installation, client.ObjectKeyFromObject(fw), ref))
}

// list lists objects of a type, whole.
func list(ctx context.Context, c *cluster, gvk schema.GroupVersionKind, opts ...client.ListOption) ([]unstructured.Unstructured, error) {
	items := &unstructured.UnstructuredList{}
	items.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := c.List(ctx, items, opts...); err != nil {
		return nil, fmt.Errorf("list %s of %s: %w", gvk.Kind, c.name, err)
	}
	return items.Items, nil
}

var (
	policyGVK   = schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "PropagationPolicy"}
	overrideGVK = schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "OverridePolicy"}
	bindingGVK  = schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha2", Kind: "ResourceBinding"}
	// clusterBindingGVK is of cluster-scoped workloads.
	clusterBindingGVK = schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha2", Kind: "ClusterResourceBinding"}
	workGVK           = schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"}
	manifestWork      = schema.GroupVersionKind{Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWork"}
	placementGVK      = schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Kind: "Placement"}
	decisionGVK       = schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Kind: "PlacementDecision"}
)

// backendObjects are the objects of a workload on its backend, those that the backend made of ours included.
func backendObjects(ctx context.Context, fw *v1alpha1.FleetWorkload, k kind) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	add := func(gvk schema.GroupVersionKind, keep func(unstructured.Unstructured) bool, opts ...client.ListOption) error {
		items, err := list(ctx, controlOf(fw.Spec.Backend), gvk, opts...)
		for _, item := range items {
			if keep == nil || keep(item) {
				all = append(all, item)
			}
		}
		return err
	}
	ours := client.MatchingLabels{v1alpha1.LabelUID: identity(fw)}
	if fw.Spec.Backend == "ocm" {
		return all, firstError(
			func() error { return add(placementGVK, nil, client.InNamespace(fw.Namespace)) },
			func() error { return add(decisionGVK, nil, client.InNamespace(fw.Namespace)) },
			func() error { return add(manifestWork, nil, ours) },
		)
	}
	return all, firstError(
		func() error { return add(policyGVK, nil, client.InNamespace(fw.Namespace)) },
		func() error { return add(overrideGVK, nil, client.InNamespace(fw.Namespace)) },
		func() error { return add(k.gvk, nil, client.InNamespace(fw.Namespace), ours) },
		func() error { return add(bindingGVK, nil, client.InNamespace(fw.Namespace)) },
		func() error {
			return add(workGVK, func(work unstructured.Unstructured) bool { return delivers(work, identity(fw)) })
		},
	)
}

// delivers tells whether a Work of Karmada carries an object of one of the workloads.
func delivers(work unstructured.Unstructured, uids ...string) bool {
	manifests, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
	return slices.ContainsFunc(manifests, func(m any) bool {
		object, _ := m.(map[string]any)
		labels, _, _ := unstructured.NestedStringMap(object, "metadata", "labels")
		return slices.Contains(uids, labels[v1alpha1.LabelUID])
	})
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// nothingLeft wants a backend to have nothing of a workload: nothing with its label, nothing derived from it.
func nothingLeft(ctx context.Context, fw *v1alpha1.FleetWorkload, k kind) {
	GinkgoHelper()
	left, err := backendObjects(ctx, fw, k)
	Expect(err).NotTo(HaveOccurred())
	for _, obj := range left {
		Fail(fmt.Sprintf("%s %s/%s is left on %s", obj.GetKind(), obj.GetNamespace(), obj.GetName(), fw.Spec.Backend))
	}
	marked, err := labelled(ctx, controlOf(fw.Spec.Backend), ofWorkload(fw))
	Expect(err).NotTo(HaveOccurred())
	Expect(marked).To(BeEmpty(), "left on %s", fw.Spec.Backend)
}

// nothingLeftOf is nothingLeft for all that lived in one namespace of a backend; members must have nothing of it either.
func nothingLeftOf(ctx context.Context, backend string, all []*livedOn) {
	GinkgoHelper()
	var uids []string
	for _, r := range all {
		uids = append(uids, identity(r.fw))
		left, err := backendObjects(ctx, r.fw, kind{gvk: r.gvk()})
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty(), "left of %s on %s", r.name, backend)
	}
	if backend == "karmada" {
		// Those of cluster-scoped kinds have no label of ours; their names are made of the workloads', which name the namespace.
		bindings, err := list(ctx, controlOf(backend), clusterBindingGVK)
		Expect(err).NotTo(HaveOccurred())
		for _, b := range bindings {
			Expect(b.GetName()).NotTo(ContainSubstring(all[0].fw.Namespace))
		}
	}
	selector := v1alpha1.LabelUID + " in (" + strings.Join(uids, ",") + ")"
	for _, c := range append([]*cluster{controlOf(backend)}, member(world.members[0]), member(world.members[1])) {
		marked, err := labelled(ctx, c, selector)
		Expect(err).NotTo(HaveOccurred())
		Expect(marked).To(BeEmpty(), "left on %s", c.name)
	}
	for _, name := range world.members[:2] {
		Eventually(func(g Gomega) {
			var pods corev1.PodList
			g.Expect(member(name).List(ctx, &pods, client.InNamespace(all[0].fw.Namespace))).To(Succeed())
			g.Expect(pods.Items).To(BeEmpty(), "pods on %s", name)
		}).WithContext(ctx).WithTimeout(30 * time.Second).Should(Succeed())
	}
}
