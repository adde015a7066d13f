package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	karmadaworkv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/util/names"

	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/importer"
)

// listChunk bounds one answer of an API server.
const listChunk = 500

// importable reads from a live backend what an import of a workload needs. Nothing is written.
func (l *live) importable(request importer.Request, b backend) ([]*unstructured.Unstructured, error) {
	c, err := l.clientOf(b.name)
	if err != nil {
		return nil, err
	}
	r := importReads{ctx: l.ctx, client: c}
	if b.kind == config.TypeKarmada {
		r.karmada(request)
	} else {
		r.ocm()
	}
	return r.objects, errors.Join(r.errs...)
}

// clientOf connects to the API server of a backend, as the operator would.
func (l *live) clientOf(name string) (client.Client, error) {
	for _, b := range l.cfg.Backends {
		if b.Name != name {
			continue
		}
		cfg, _, err := l.source.Load(l.ctx, b.Connection)
		if err != nil {
			return nil, fmt.Errorf("backend %q: %w", name, err)
		}
		c, err := client.New(cfg, client.Options{Scheme: runtime.NewScheme()})
		if err != nil {
			return nil, fmt.Errorf("backend %q: %w", name, err)
		}
		return c, nil
	}
	return nil, fmt.Errorf("backend %q is not configured", name)
}

// importReads collects objects.
type importReads struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one command
	client  client.Client
	objects []*unstructured.Unstructured
	errs    []error
}

// karmada reads the template, all policies that may be about it, and its Works.
func (r *importReads) karmada(request importer.Request) {
	gvk, err := r.kindOf(request.Kind)
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	template := r.get(gvk, request.Namespace, request.Name)
	if template == nil {
		r.errs = append(r.errs, fmt.Errorf("%s %s is not on the Karmada control plane (namespace %s)", gvk.Kind, request.Name, request.Namespace))
		return
	}
	namespace := client.InNamespace(template.GetNamespace())
	binding := r.binding(template)
	for _, list := range []struct {
		gvk  schema.GroupVersionKind
		opts []client.ListOption
		skip bool
	}{
		{policyv1alpha1.SchemeGroupVersion.WithKind("PropagationPolicy"), []client.ListOption{namespace}, template.GetNamespace() == ""},
		{policyv1alpha1.SchemeGroupVersion.WithKind("ClusterPropagationPolicy"), nil, false},
		{policyv1alpha1.SchemeGroupVersion.WithKind("OverridePolicy"), []client.ListOption{namespace}, template.GetNamespace() == ""},
		{policyv1alpha1.SchemeGroupVersion.WithKind("ClusterOverridePolicy"), nil, false},
		{karmadaworkv1alpha1.SchemeGroupVersion.WithKind("Work"), []client.ListOption{binding}, binding == nil},
	} {
		if !list.skip {
			r.list(list.gvk, list.opts...)
		}
	}
}

// kindOf finds the kind that a person has typed.
func (r *importReads) kindOf(typed string) (schema.GroupVersionKind, error) {
	resource, group, _ := strings.Cut(strings.ToLower(typed), ".")
	gvk, err := r.client.RESTMapper().KindFor(schema.GroupVersionResource{Group: group, Resource: resource})
	if err != nil {
		return gvk, fmt.Errorf("kind %q: %w", typed, err)
	}
	return gvk, nil
}

// binding is the label by which Karmada finds the Works of a template; nil when it is not bound.
func (r *importReads) binding(template *unstructured.Unstructured) client.MatchingLabels {
	kind, label := "ResourceBinding", workv1alpha2.ResourceBindingPermanentIDLabel
	if template.GetNamespace() == "" {
		kind, label = "ClusterResourceBinding", workv1alpha2.ClusterResourceBindingPermanentIDLabel
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(workv1alpha2.SchemeGroupVersion.WithKind(kind))
	key := client.ObjectKey{Namespace: template.GetNamespace(), Name: names.GenerateBindingName(template.GetKind(), template.GetName())}
	switch err := r.client.Get(r.ctx, key, obj); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		r.errs = append(r.errs, fmt.Errorf("get %s %s: %w", kind, key, err))
		return nil
	case obj.GetLabels()[label] == "":
		return nil
	}
	return client.MatchingLabels{label: obj.GetLabels()[label]}
}

// ocm reads all ManifestWorks: which of them carry an object is in their manifests alone.
func (r *importReads) ocm() {
	r.list(workv1.SchemeGroupVersion.WithKind("ManifestWork"))
	r.list(workv1alpha1.SchemeGroupVersion.WithKind("ManifestWorkReplicaSet"))
	r.list(clusterv1beta1.SchemeGroupVersion.WithKind("Placement"))
}

// get adds an object; it is nil when there is none.
func (r *importReads) get(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	mapping, err := r.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("kind %s: %w", gvk.Kind, err))
		return nil
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		key.Namespace = ""
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	if err := r.client.Get(r.ctx, key, obj); err != nil {
		if client.IgnoreNotFound(err) != nil {
			r.errs = append(r.errs, fmt.Errorf("get %s %s: %w", gvk.Kind, key, err))
		}
		return nil
	}
	r.objects = append(r.objects, obj)
	return obj
}

// list adds all objects of a kind. A kind that is not served has none.
func (r *importReads) list(gvk schema.GroupVersionKind, opts ...client.ListOption) {
	for more, first := "", true; first || more != ""; first = false {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := r.client.List(r.ctx, list, append([]client.ListOption{client.Limit(listChunk), client.Continue(more)}, opts...)...)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return
		}
		if err != nil {
			r.errs = append(r.errs, fmt.Errorf("list %s: %w", gvk.Kind, err))
			return
		}
		for i := range list.Items {
			r.objects = append(r.objects, &list.Items[i])
		}
		more = list.GetContinue()
	}
}
