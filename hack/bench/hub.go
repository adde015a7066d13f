package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	karmadaclusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	karmadaworkv1alpha1 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

const (
	// namespace holds the FleetWorkloads and ManifestWorkReplicaSets.
	namespace = "shop"
	// clusterSet has all clusters.
	clusterSet = "global"
	crdFile    = "config/crd/bases/apps.fleetworkload.io_fleetworkloads.yaml"
)

// hub is a hub of Open Cluster Management with its clusters.
type hub struct {
	client.Client
	lab      *lab.OCMHub
	config   *rest.Config
	clusters []string
}

// onHub starts a hub with so many clusters, what answers for them, and the operator, has f measure, and ends it all. With f's error it tells
// what else was wrong.
func onHub(
	ctx context.Context, clusters int, progress io.Writer, f func(ctx context.Context, h *hub, o *operator, m *members) error,
) (err error) {
	dir, err := os.MkdirTemp("", "fleetworkload-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	h, err := startHub(ctx, dir, clusters, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.lab.Stop()) }()
	kubeconfig := h.lab.Kubeconfig()
	o, err := startOperator(ctx, dir, kubeconfig, []config.Backend{ocmBackend(kubeconfig)}, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := startMembers(ctx, h.config, h.Client)
	if err != nil {
		return err
	}
	if err := f(ctx, h, o, m); err != nil {
		return errors.Join(err, o.check(), h.lab.Check(context.WithoutCancel(ctx)))
	}
	return nil
}

// startHub starts a hub with so many clusters.
func startHub(ctx context.Context, dir string, clusters int, progress io.Writer) (*hub, error) {
	control, err := lab.StartOCMHub(ctx, filepath.Join(dir, "hub"), progress)
	if err != nil {
		return nil, err
	}
	h := &hub{lab: control}
	if err := h.prepare(ctx, clusters, progress); err != nil {
		return nil, errors.Join(err, control.Stop())
	}
	return h, nil
}

func (h *hub) prepare(ctx context.Context, clusters int, progress io.Writer) error {
	var err error
	if h.config, err = h.lab.RESTConfig(); err != nil {
		return err
	}
	// The API server's own limits are enough.
	h.config.QPS = -1
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	if h.Client, err = client.New(h.config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("client of the hub: %w", err)
	}
	if err := h.installCRD(ctx); err != nil {
		return err
	}
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: clusterSet}}
	set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	}
	for _, obj := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, set} {
		if err := h.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %T %s: %w", obj, obj.GetName(), err)
		}
	}
	fmt.Fprintf(progress, "registering %d clusters\n", clusters)
	for i := range clusters {
		h.clusters = append(h.clusters, fmt.Sprintf("cluster-%04d", i))
	}
	return h.each(ctx, h.join)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, clusterv1.Install, clusterv1beta1.Install,
		clusterv1beta2.Install, workv1.Install, workv1alpha1.Install, policyv1alpha1.Install, karmadaclusterv1alpha1.Install, karmadaworkv1alpha1.Install,
		configv1alpha1.Install, coordinationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("scheme of the hub: %w", err)
		}
	}
	return scheme, nil
}

// installCRD installs the operator's kind and waits until it is served.
func (h *hub) installCRD(ctx context.Context) error {
	text, err := os.ReadFile(crdFile)
	if err != nil {
		return fmt.Errorf("read the CRD of FleetWorkload (run this in the repository's root): %w", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		return fmt.Errorf("read %s: %w", crdFile, err)
	}
	if err := h.Create(ctx, crd); err != nil {
		return fmt.Errorf("create the CRD of FleetWorkload: %w", err)
	}
	return poll(ctx, "the CRD of FleetWorkload to be served", func() error {
		return h.List(ctx, &v1alpha1.FleetWorkloadList{}, client.InNamespace(namespace))
	})
}

// join registers a cluster as one that is accepted and can be reached.
func (h *hub) join(ctx context.Context, name string) error {
	if err := h.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Spec.HubAcceptsClient = true
	if err := h.Create(ctx, cluster); err != nil {
		return fmt.Errorf("create ManagedCluster %s: %w", name, err)
	}
	for _, condition := range []string{
		clusterv1.ManagedClusterConditionHubAccepted, clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable,
	} {
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionTrue, Reason: "Simulated",
		})
	}
	if err := h.Status().Update(ctx, cluster); err != nil {
		return fmt.Errorf("write status of ManagedCluster %s: %w", name, err)
	}
	return nil
}

// each calls f for every cluster, with as many at once as the bare client has writers.
func (h *hub) each(ctx context.Context, f func(ctx context.Context, cluster string) error) error {
	errs := make([]error, len(h.clusters))
	workqueue.ParallelizeUntil(ctx, writers, len(h.clusters), func(i int) { errs[i] = f(ctx, h.clusters[i]) })
	return errors.Join(append(errs, ctx.Err())...)
}

// await waits until the object is as wanted.
func (h *hub) await(ctx context.Context, obj client.Object, wanted func() error) error {
	what := fmt.Sprintf("%T %s", obj, obj.GetName())
	return poll(ctx, what, func() error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		return wanted()
	})
}

// awaitGone waits until the object is gone.
func (h *hub) awaitGone(ctx context.Context, obj client.Object) error {
	return poll(ctx, fmt.Sprintf("the end of %T %s", obj, obj.GetName()), func() error {
		err := h.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	})
}
