// Package retire looks through a Karmada control plane that is to be switched off: which objects of members would go with it, and how
// they stay.
package retire

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"

	"github.com/fleetworkload/fleetworkload/backends"
)

const (
	// page is how many Works a request asks for: a manifest may have hundreds of kilobytes.
	page = 200
	// lookTimeout is how long a member has to answer.
	lookTimeout = 5 * time.Second
)

// ControlPlane is a Karmada control plane that is to be switched off.
type ControlPlane struct {
	client client.Client
	// members leads to the members' API servers.
	members rest.Interface
}

var _ backends.Retirer = (*ControlPlane)(nil)

// New connects to the control plane whose API server cfg leads to. It sends no request. The caller needs the right to list Works and to get
// clusters/proxy, and for Preserve to patch policies, namespaces and Works and to delete Works.
func New(cfg *rest.Config) (*ControlPlane, error) {
	known, kinds := runtime.NewScheme(), runtime.NewSchemeBuilder(corev1.AddToScheme, workv1alpha1.Install, policyv1alpha1.Install)
	if err := kinds.AddToScheme(known); err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to Karmada: %w", err)
	}
	bounded := backends.Bounded(httpClient)
	c, err := client.New(cfg, client.Options{HTTPClient: bounded, Scheme: known})
	if err != nil {
		return nil, fmt.Errorf("connect to Karmada: %w", err)
	}
	members, err := memberAccess(cfg, bounded)
	return &ControlPlane{client: c, members: members}, err
}

func memberAccess(cfg *rest.Config, httpClient *http.Client) (rest.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion, cfg.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	members, err := rest.RESTClientForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to Karmada: %w", err)
	}
	return members, nil
}

// Dependents implements backends.Retirer.
func (c *ControlPlane) Dependents(ctx context.Context) ([]backends.Dependent, error) {
	var out []backends.Dependent
	err := c.works(ctx, client.InNamespace(metav1.NamespaceAll), func(w *workv1alpha1.Work) error {
		for _, d := range Dependents(w) {
			if d.Kind == kindNamespace && d.Fate == backends.FateRemoved {
				free, note := c.look(ctx, d)
				if free {
					continue
				}
				d.Note = note
			}
			out = append(out, d)
		}
		return nil
	})
	return out, err
}

func (c *ControlPlane) works(ctx context.Context, in client.InNamespace, each func(*workv1alpha1.Work) error) error {
	for from := ""; ; {
		var list workv1alpha1.WorkList
		if err := c.client.List(ctx, &list, in, client.Limit(page), client.Continue(from)); err != nil {
			return backends.Classify("list Works", err)
		}
		for i := range list.Items {
			if err := each(&list.Items[i]); err != nil {
				return err
			}
		}
		if from = list.Continue; from == "" {
			return nil
		}
	}
}

// look asks a member whether a namespace is Karmada's still. Karmada deletes what has its label (isManagedResource in
// pkg/util/objectwatcher), and a hand-over to OCM takes that away without Karmada noticing.
func (c *ControlPlane) look(ctx context.Context, d backends.Dependent) (free bool, note string) {
	found := &corev1.Namespace{}
	err := c.members.Get().AbsPath("/apis/cluster.karmada.io/v1alpha1/clusters", d.Cluster, "proxy", "api", "v1", "namespaces", d.Name).
		Timeout(lookTimeout).Do(ctx).Into(found)
	switch {
	case apierrors.IsNotFound(err):
		return true, ""
	case err != nil:
		return false, fmt.Sprintf("it may be free of Karmada already, but the member cannot be asked: %s", err)
	}
	return found.Labels[managedLabel] != "true", "with everything in it"
}

// Preserve implements backends.Retirer.
func (c *ControlPlane) Preserve(ctx context.Context, owner backends.Owner) error {
	var obj client.Object
	meta := metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name}
	patch := map[string]any{"spec": map[string]any{"preserveResourcesOnDeletion": true}}
	switch owner.Kind {
	case kindPolicy:
		obj = &policyv1alpha1.PropagationPolicy{ObjectMeta: meta}
	case kindClusterPolicy:
		obj = &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: meta}
	case kindNamespace:
		obj = &corev1.Namespace{ObjectMeta: meta}
		patch = map[string]any{"metadata": map[string]any{"labels": map[string]any{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "true"}}}
	default:
		return fmt.Errorf("%s %s/%s: what it has brought to clusters cannot be made to stay", owner.Kind, owner.Namespace, owner.Name)
	}
	if err := c.patch(ctx, obj, patch); err != nil {
		return err
	}
	if owner.Kind != kindNamespace {
		return nil
	}
	return c.works(ctx, client.InNamespace(metav1.NamespaceAll), func(w *workv1alpha1.Work) error {
		if controlledBy(w, kindNamespace) != owner.Name {
			return nil
		}
		return c.free(ctx, w)
	})
}

// free takes a namespace's Work away while the namespace stays on the member. To have Karmada preserve it would not do: it would write
// the namespace once more, and hang on one that has lost Karmada's label (https://github.com/karmada-io/karmada/issues/7463).
func (c *ControlPlane) free(ctx context.Context, w *workv1alpha1.Work) error {
	freed := w.DeepCopy()
	freed.Finalizers = withoutFinalizer(w)
	if err := c.client.Patch(ctx, freed, client.MergeFromWithOptions(w, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("take Karmada's finalizer off Work %s/%s: %w", w.Namespace, w.Name, err)
	}
	only := client.Preconditions{UID: &freed.UID, ResourceVersion: &freed.ResourceVersion}
	if err := c.client.Delete(ctx, freed, only); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Work %s/%s: %w", w.Namespace, w.Name, err)
	}
	return nil
}

func (c *ControlPlane) patch(ctx context.Context, obj client.Object, change map[string]any) error {
	raw, err := json.Marshal(change)
	if err != nil {
		return err
	}
	if err := c.client.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", raw)); err != nil {
		return fmt.Errorf("patch %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}
