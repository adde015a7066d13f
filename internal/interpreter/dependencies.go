package interpreter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Dependency is an object that a workload's pods cannot start without.
type Dependency struct {
	schema.GroupVersionKind
	// Namespace is empty for a cluster-scoped workload that does not say where its pods are.
	Namespace string
	Name      string
	// Optional is true when every reference to it is optional.
	Optional bool
}

// references collects dependencies; the value is whether all references so far are optional.
type references struct {
	namespace string
	seen      map[Dependency]bool
}

func (r *references) add(kind, name string, optional *bool) {
	if name == "" {
		return
	}
	d := Dependency{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Namespace: r.namespace, Name: name}
	isOptional := optional != nil && *optional
	before, known := r.seen[d]
	r.seen[d] = isOptional && (!known || before)
}

const (
	kindConfigMap      = "ConfigMap"
	kindSecret         = "Secret"
	kindServiceAccount = "ServiceAccount"
	kindClaim          = "PersistentVolumeClaim"
)

// Dependencies lists what the manifest's pod template refers to, sorted: ConfigMaps, Secrets, ServiceAccounts and
// PersistentVolumeClaims. Claims that the workload makes itself, from its templates, are not among them.
func Dependencies(kind *Kind, manifest *unstructured.Unstructured) ([]Dependency, error) {
	found := &references{namespace: manifest.GetNamespace(), seen: map[Dependency]bool{}}
	if path := kind.PodTemplatePath(manifest); len(path) > 0 {
		raw, exists, err := unstructured.NestedMap(manifest.Object, append(slices.Clone(path), "spec")...)
		if err != nil {
			return nil, fmt.Errorf("read pod template: %w", err)
		}
		if exists {
			var spec corev1.PodSpec
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &spec); err != nil {
				return nil, fmt.Errorf("read pod template: %w", err)
			}
			found.pod(&spec)
		}
	}
	if kind.Definition.Dependencies != nil {
		if err := kind.Definition.Dependencies(manifest.Object, found); err != nil {
			return nil, err
		}
	}
	list := make([]Dependency, 0, len(found.seen))
	for d, optional := range found.seen {
		d.Optional = optional
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Dependency) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// pod follows visitPodSecretNames and visitPodConfigmapNames of Kubernetes (pkg/api/v1/pod/util.go), which know every
// field that can refer to one.
func (r *references) pod(spec *corev1.PodSpec) {
	r.add(kindServiceAccount, serviceAccount(cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount)), nil)
	r.pullSecrets(spec.ImagePullSecrets)
	for i := range spec.InitContainers {
		r.container(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		r.container(&spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		c := corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		r.container(&c)
	}
	for i := range spec.Volumes {
		r.volume(&spec.Volumes[i].VolumeSource)
	}
}

// serviceAccount leaves default out: every namespace has one.
func serviceAccount(name string) string {
	if name == "default" {
		return ""
	}
	return name
}

func (r *references) pullSecrets(secrets []corev1.LocalObjectReference) {
	for _, s := range secrets {
		r.add(kindSecret, s.Name, nil)
	}
}

func (r *references) container(c *corev1.Container) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			r.add(kindConfigMap, from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		}
		if from.SecretRef != nil {
			r.add(kindSecret, from.SecretRef.Name, from.SecretRef.Optional)
		}
	}
	for _, env := range c.Env {
		if env.ValueFrom == nil {
			continue
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			r.add(kindConfigMap, ref.Name, ref.Optional)
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			r.add(kindSecret, ref.Name, ref.Optional)
		}
	}
}

func (r *references) volume(v *corev1.VolumeSource) {
	switch {
	case v.ConfigMap != nil:
		r.add(kindConfigMap, v.ConfigMap.Name, v.ConfigMap.Optional)
	case v.Secret != nil:
		r.add(kindSecret, v.Secret.SecretName, v.Secret.Optional)
	case v.PersistentVolumeClaim != nil:
		r.add(kindClaim, v.PersistentVolumeClaim.ClaimName, nil)
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				r.add(kindConfigMap, source.ConfigMap.Name, source.ConfigMap.Optional)
			}
			if source.Secret != nil {
				r.add(kindSecret, source.Secret.Name, source.Secret.Optional)
			}
		}
	case v.AzureFile != nil:
		r.add(kindSecret, v.AzureFile.SecretName, nil)
	default:
		r.storage(v)
	}
}

// storage are the volumes whose driver needs a Secret.
func (r *references) storage(v *corev1.VolumeSource) {
	var ref *corev1.LocalObjectReference
	switch {
	case v.CSI != nil:
		ref = v.CSI.NodePublishSecretRef
	case v.CephFS != nil:
		ref = v.CephFS.SecretRef
	case v.Cinder != nil:
		ref = v.Cinder.SecretRef
	case v.FlexVolume != nil:
		ref = v.FlexVolume.SecretRef
	case v.ISCSI != nil:
		ref = v.ISCSI.SecretRef
	case v.RBD != nil:
		ref = v.RBD.SecretRef
	case v.ScaleIO != nil:
		ref = v.ScaleIO.SecretRef
	case v.StorageOS != nil:
		ref = v.StorageOS.SecretRef
	default:
	}
	if ref != nil {
		r.add(kindSecret, ref.Name, nil)
	}
}

// sidecarReferences: a SidecarSet has the containers of a pod in its own spec. They run in the namespaces of the pods
// that it injects; only spec.namespace names one (kruise-api apps/v1alpha1/sidecarset_types.go).
func sidecarReferences(manifest map[string]any, found *references) error {
	raw, exists, err := unstructured.NestedMap(manifest, "spec")
	if err != nil || !exists {
		return err
	}
	if namespace, ok := raw["namespace"].(string); ok {
		found.namespace = namespace
	}
	parts := map[string]any{}
	for _, name := range []string{"initContainers", "containers", "volumes", "imagePullSecrets"} {
		if v, ok := raw[name]; ok {
			parts[name] = v
		}
	}
	var spec corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(parts, &spec); err != nil {
		return fmt.Errorf("read containers: %w", err)
	}
	found.pod(&spec)
	return nil
}

// workflowReferences finds references anywhere in a Workflow's spec, by the names of fields: its templates have
// containers, scripts, sidecars, artifacts and more, each with references of its own
// (argo-workflows pkg/apis/workflow/v1alpha1/workflow_types.go). A name with a {{parameter}} in it is not known yet.
func workflowReferences(manifest map[string]any, found *references) error {
	spec, exists, err := unstructured.NestedFieldNoCopy(manifest, "spec")
	if err != nil || !exists {
		return err
	}
	found.walk(spec, 0)
	return nil
}

// deepest bounds the recursion. No Workflow is nested as deep.
const deepest = 100

func (r *references) walk(at any, depth int) {
	if depth > deepest {
		return
	}
	switch v := at.(type) {
	case []any:
		for _, element := range v {
			r.walk(element, depth+1)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.field(key, v[key])
			r.walk(v[key], depth+1)
		}
	}
}

func (r *references) field(key string, v any) {
	named := func(kind, field string, object any) {
		o, ok := object.(map[string]any)
		if !ok {
			return
		}
		name, _ := o[field].(string)
		if strings.Contains(name, "{{") {
			return
		}
		optional, _ := o["optional"].(bool)
		r.add(kind, name, &optional)
	}
	switch key {
	case "configMapKeyRef", "configMapRef", "configMap":
		named(kindConfigMap, "name", v)
	case "secretKeyRef", "secretRef", "nodePublishSecretRef":
		named(kindSecret, "name", v)
	case "secret":
		// A volume has secretName, a source of a projected one has name.
		named(kindSecret, "secretName", v)
		named(kindSecret, "name", v)
	case "persistentVolumeClaim":
		named(kindClaim, "claimName", v)
	case "serviceAccountName":
		if name, ok := v.(string); ok && !strings.Contains(name, "{{") {
			r.add(kindServiceAccount, serviceAccount(name), nil)
		}
	case "imagePullSecrets":
		list, _ := v.([]any)
		for _, element := range list {
			named(kindSecret, "name", element)
		}
	default:
		// Artifacts: accessKeySecret, secretKeySecret, usernameSecret, sshPrivateKeySecret and their like.
		if strings.HasSuffix(key, "Secret") {
			named(kindSecret, "name", v)
		}
	}
}
