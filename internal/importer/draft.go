package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/plan"
)

// errOurs refuses to import what is a FleetWorkload's already.
func errOurs(obj *unstructured.Unstructured) error {
	return fmt.Errorf("%s is FleetWorkload %s's already; to move it to another backend use migrate", title(obj), obj.GetAnnotations()[v1alpha1.AnnotationOwner])
}

func ours(obj *unstructured.Unstructured) bool {
	return obj.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator
}

// start begins a FleetWorkload with a template.
func start(r Request, workload *unstructured.Unstructured) (*draft, error) {
	if ours(workload) {
		return nil, errOurs(workload)
	}
	d := &draft{Request: r, workload: workload, kind: r.Kinds.For(workload.GroupVersionKind())}
	namespace := workload.GetNamespace()
	if d.kind.ClusterScoped || namespace == "" {
		namespace = r.Home
	}
	d.fw = &v1alpha1.FleetWorkload{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FleetWorkload"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fit(workload.GetName(), "", 63)},
	}
	d.fw.Spec.Backend = r.Backend
	// What runs is there already, whatever may not be taken over elsewhere.
	d.fw.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt
	return d, d.setTemplate(workload)
}

// setTemplate writes spec.template and spec.replicas.
func (d *draft) setTemplate(workload *unstructured.Unstructured) error {
	template, keys := plan.Bare(workload)
	d.stripped(workload, keys)
	if n, given, err := interpreter.Replicas(d.kind, template); err != nil {
		return fmt.Errorf("%s: %w", title(workload), err)
	} else if given {
		d.fw.Spec.Replicas = ptr.To(n)
		unstructured.RemoveNestedField(template.Object, d.kind.ReplicasPath()...)
	}
	unstructured.RemoveNestedField(template.Object, "metadata", "namespace")
	if template.GetName() == d.fw.Name {
		unstructured.RemoveNestedField(template.Object, "metadata", "name")
	}
	if metadata, is := template.Object["metadata"].(map[string]any); is && len(metadata) == 0 {
		delete(template.Object, "metadata")
	}
	raw, err := json.Marshal(withoutNulls(template.Object))
	if err != nil {
		return fmt.Errorf("encode %s: %w", title(workload), err)
	}
	d.fw.Spec.Template = runtime.RawExtension{Raw: raw}
	return nil
}

// stripped tells of keys of orchestrators that are options, and not their own accounts.
func (d *draft) stripped(obj *unstructured.Unstructured, keys []string) {
	for _, key := range keys {
		if slices.ContainsFunc(accounts, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			continue
		}
		field, value := "metadata.labels", obj.GetLabels()[key]
		if annotation, is := obj.GetAnnotations()[key]; is {
			field, value = "metadata.annotations", annotation
		}
		d.cannot(Unexpressed{
			Object: title(obj), Field: fmt.Sprintf("%s[%s]", field, key), Value: cut(value),
			Reason:  "Karmada and Open Cluster Management set such keys themselves, and the operator sends none",
			Instead: "see docs/concepts.md for what the operator does in its place, or do without",
		})
	}
}

// accounts begin the keys by which Karmada and Open Cluster Management keep their accounts on objects (pkg/util/constants.go and
// pkg/apis/*/well_known_constants.go in github.com/karmada-io/karmada). The last two are options that the FleetWorkload has instead.
var accounts = []string{
	"karmada.io/managed", "propagationpolicy.karmada.io/", "clusterpropagationpolicy.karmada.io/", "resourcebinding.karmada.io/",
	"clusterresourcebinding.karmada.io/", "policy.karmada.io/applied-", "resourcetemplate.karmada.io/uid",
	"resourcetemplate.karmada.io/generation", "resourcetemplate.karmada.io/managed-", "resourcetemplate.karmada.io/claimed-by",
	"work.karmada.io/name", "work.karmada.io/permanent-id", "work.karmada.io/manifest-hash", "namespace.karmada.io/", "multiclusterservice.karmada.io/",
	"open-cluster-management.io/config-spec-hash", "open-cluster-management.io/object-hash",
	"work.karmada.io/conflict-resolution", "work.open-cluster-management.io/",
}

// companion adds an object to spec.companions.
func (d *draft) companion(obj *unstructured.Unstructured, from string) error {
	clean, keys := plan.Bare(obj)
	d.stripped(obj, keys)
	// Another namespace stays there for the operator to refuse.
	if clean.GetNamespace() == d.fw.Namespace {
		unstructured.RemoveNestedField(clean.Object, "metadata", "namespace")
	}
	raw, err := json.Marshal(withoutNulls(clean.Object))
	if err != nil {
		return fmt.Errorf("encode %s: %w", title(obj), err)
	}
	d.fw.Spec.Companions = append(d.fw.Spec.Companions, runtime.RawExtension{Raw: raw})
	d.companions = append(d.companions, from)
	return nil
}

// finish takes out what the operator refuses, and returns what is left.
func (d *draft) finish() (Result, error) {
	d.bound()
	notes, err := d.settle()
	if err != nil {
		return Result{}, err
	}
	for _, note := range notes {
		d.note("%s", strings.TrimPrefix(note, "note: "))
	}
	d.result.FleetWorkload = d.fw
	return d.result, nil
}

var errNothingRuns = errors.New("nothing carries it")
