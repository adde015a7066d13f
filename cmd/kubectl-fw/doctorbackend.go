package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/drivers"
	"github.com/fleetworkload/fleetworkload/backends/ocm"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

// backendDoctor looks at one backend, with the operator's credentials.
type backendDoctor struct {
	config.Backend
	from source
	// load reads how the operator reaches the backend.
	load func(context.Context, config.Connection) (*rest.Config, error)
	// account is the operator's on the management cluster, NAMESPACE/NAME.
	account    string
	management managementCluster
	// workloads are all FleetWorkloads, as far as they could be listed.
	workloads []v1alpha1.FleetWorkload
	now       func() time.Time
}

// look connects to the backend as the operator does. What keeps it from connecting may be a kind or a right that is missing, so these are looked
// at all the same when the API server answers.
func (d backendDoctor) look(ctx context.Context) []finding {
	cfg, err := d.load(ctx, d.Connection)
	if apierrors.IsForbidden(err) {
		return []finding{unread(aspectConnection, "the Secret with the operator's credentials", err)}
	}
	var all []finding
	found, failed := d.from.backend(d.Name)
	if failed != nil {
		all = []finding{unusable(failed)}
	} else {
		all = lookAtClusters(found.fleet, d.now())
	}
	if err != nil && failed != nil {
		return all
	}
	if err != nil {
		return append(all, ill(gradeProblem, aspectConnection, do("check the backend's connection in the configuration"), "the operator's credentials cannot be read: %v", err))
	}
	api := newEndpoint(cfg)
	clock := api.lookAtClock(ctx, "its clock is right")
	if failed != nil && clock.Grade == gradeProblem {
		return all // it says so itself
	}
	if api.err != nil {
		return append(all, clock)
	}
	looks := []look{
		func(context.Context) []finding { return []finding{d.lookAtKinds(api)} },
		func(ctx context.Context) []finding { return d.lookAtRights(ctx, api) },
		func(ctx context.Context) []finding { return d.lookAtToken(ctx, api) },
	}
	if failed == nil {
		looks = append(looks, func(ctx context.Context) []finding { return d.lookAtPods(ctx, found) },
			func(ctx context.Context) []finding { return d.lookAtBindings(ctx, api) },
			func(context.Context) []finding { return d.lookAtOpenKruise(found) })
	}
	return append(append(all, clock), atOnce(ctx, looks...)...)
}

// unusable is about a backend that the operator's credentials do not open from here.
func unusable(err error) finding {
	var refused *backends.Error
	what := do("name the backend in the operator's configuration")
	if !errors.Is(err, backends.ErrNotConfigured) {
		what = do("check its connection in the configuration, and that you reach it from this machine as the operator does")
	}
	if errors.As(err, &refused) && refused.Remedy != "" {
		what = do("%s", refused.Remedy)
	}
	return ill(gradeProblem, aspectConnection, what, "it cannot be used from here: %v", err)
}

func lookAtClusters(fleet backends.Fleet, now time.Time) (found []finding) {
	ready := 0
	for _, c := range fleet.Clusters {
		switch {
		case c.Leaving:
			found = append(found, ill(gradeNote, aspectClusters, do("wait until it is gone; FleetWorkloads that still name it say so (docs/troubleshooting.md)"),
				"cluster %s is being taken off it", c.Name))
		case c.Ready != metav1.ConditionTrue:
			found = append(found, ill(gradeProblem, aspectClusters, do("look at the cluster's agent, and at the network between the two"),
				"cluster %s is not ready%s: %s", c.Name, since(c.ReadySince, now), cmp.Or(c.Message, "the backend has lost contact")))
		default:
			ready++
		}
		if c.Identity == "" {
			found = append(found, ill(gradeNote, aspectClusters, do("name it in clusterAliases if another backend knows it, too"),
				"cluster %s does not tell the UID of its namespace kube-system: hand-overs know it by its name only", c.Name))
		}
	}
	if len(fleet.Clusters) == 0 {
		return append(found, ill(gradeProblem, aspectClusters, do("register clusters; on OCM bind their ManagedClusterSet (docs/backends.md)"), "it has no clusters"))
	}
	return append(found, well(aspectClusters, "connected; %d of %s ready", ready, counted(len(fleet.Clusters), "cluster", "clusters")))
}

func since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " for " + age(&metav1.Time{Time: t}, now)
}

// lookAtKinds asks whether the backend serves what the operator reads and writes there, in the versions in which it does.
func (d backendDoctor) lookAtKinds(api endpoint) finding {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(api.cfg, api.client)
	if err != nil {
		return unread(aspectKinds, "what it serves", err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return unread(aspectKinds, "what it serves", err)
	}
	return judgeKinds(d.Backend, lists)
}

// judgeKinds tells which kinds are missing. A group that does not answer is not among those that are served.
func judgeKinds(b config.Backend, served []*metav1.APIResourceList) finding {
	has := map[schema.GroupVersionKind]bool{}
	for _, list := range served {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			has[gv.WithKind(r.Kind)] = true
		}
	}
	needed, missing := map[string][]string{}, []string(nil)
	for _, kind := range drivers.Needs(b) {
		if !slices.Contains(needed[kind.Group], kind.Version) {
			needed[kind.Group] = append(needed[kind.Group], kind.Version)
		}
		if !has[kind] {
			missing = append(missing, kind.GroupVersion().String()+" "+kind.Kind)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return ill(gradeProblem, aspectKinds, do("install the CRDs of a release of %s that docs/versions.md names, and see that its API server answers for them: kubectl get apiservices,crds", b.Type),
			"it does not serve what the operator needs: %s", strings.Join(missing, ", "))
	}
	var words []string
	for _, group := range slices.Sorted(maps.Keys(needed)) {
		slices.Sort(needed[group])
		words = append(words, group+" "+strings.Join(needed[group], ", "))
	}
	return well(aspectKinds, "it serves what the operator needs: %s", strings.Join(words, "; "))
}

// namespaces are those of the backend's FleetWorkloads, by name.
func (d backendDoctor) namespaces() (all []string) {
	for _, fw := range d.workloads {
		if fw.Spec.Backend == d.Name || fw.Status.Backend == d.Name {
			all = append(all, fw.Namespace)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// lookAtBindings asks, on OCM, whether the namespaces of its FleetWorkloads are bound to sets of clusters: others reach no cluster. Karmada binds
// nothing: every namespace reaches all of its clusters.
func (d backendDoctor) lookAtBindings(ctx context.Context, api endpoint) []finding {
	namespaces := d.namespaces()
	if d.Type != config.TypeOCM || len(namespaces) == 0 {
		return nil
	}
	client, err := dynamic.NewForConfigAndClient(api.cfg, api.client)
	if err != nil {
		return []finding{unread(aspectBindings, "ManagedClusterSetBindings", err)}
	}
	list, err := client.Resource(ocm.Bindings()).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return []finding{ill(gradeUnknown, aspectBindings, do("grant the operator its rights"), "whether sets of clusters are bound: the operator may not list ManagedClusterSetBindings")}
	}
	if err != nil {
		return []finding{unread(aspectBindings, "ManagedClusterSetBindings", err)}
	}
	return judgeBindings(list.Items, namespaces, d.OCM)
}

func judgeBindings(bindings []unstructured.Unstructured, namespaces []string, options *config.OCM) (found []finding) {
	bound := map[string]bool{}
	for _, item := range bindings {
		var b clusterv1beta2.ManagedClusterSetBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &b); err != nil {
			continue
		}
		condition := meta.FindStatusCondition(b.Status.Conditions, clusterv1beta2.ClusterSetBindingBoundType)
		if b.DeletionTimestamp != nil || condition == nil || condition.Status != metav1.ConditionFalse {
			bound[b.Namespace] = bound[b.Namespace] || b.DeletionTimestamp == nil
			continue
		}
		if slices.Contains(namespaces, b.Namespace) {
			found = append(found, ill(gradeProblem, aspectBindings, do("make the ManagedClusterSet %s, or bind another one", b.Spec.ClusterSet),
				"ManagedClusterSetBinding %s/%s binds nothing: %s", b.Namespace, b.Name, condition.Message))
		}
	}
	var without []string
	for _, namespace := range namespaces {
		if !bound[namespace] {
			without = append(without, namespace)
		}
	}
	switch {
	case len(without) == 0:
		return append(found, well(aspectBindings, "sets of clusters are bound in %s of FleetWorkloads", counted(len(namespaces), "namespace", "namespaces")))
	case options != nil && len(options.ClusterSets) > 0:
		// The operator binds them when it first sends something, which it may have reason not to.
		return append(found, ill(gradeNote, aspectBindings, do("see why with kubectl fw status: the operator binds %s once it sends a FleetWorkload there", brief.List(options.ClusterSets)),
			"no set of clusters is bound in %s: FleetWorkloads there reach no cluster", brief.List(without)))
	default:
		return append(found, ill(gradeProblem, aspectBindings, do("bind a set there (clusteradm clusterset bind SET --namespace NAMESPACE), or name sets in ocm.clusterSets of the configuration"),
			"no set of clusters is bound in %s: FleetWorkloads there reach no cluster", brief.List(without)))
	}
}

// kruiseGroup is the API group of OpenKruise.
const kruiseGroup = "apps.kruise.io"

// lookAtOpenKruise tells which versions of OpenKruise's workload kinds clusters serve, as far as the backend knows.
func (d backendDoctor) lookAtOpenKruise(b backend) []finding {
	if b.served == nil {
		return nil
	}
	kinds, err := d.from.kinds()
	if err != nil {
		return []finding{unread(aspectOpenKruise, "the configured kinds", err)}
	}
	served, err := b.served(kruiseGroup)
	if err != nil {
		return []finding{unread(aspectOpenKruise, "what clusters serve of OpenKruise", err)}
	}
	var carried []string
	for _, kind := range kinds.Kinds() {
		if kind.Group == kruiseGroup {
			carried = append(carried, kind.Resource)
		}
	}
	return judgeOpenKruise(b.fleet, served, carried)
}

// judgeOpenKruise tells of clusters that serve the same in one finding.
func judgeOpenKruise(fleet backends.Fleet, served map[string]backends.Served, carried []string) (found []finding) {
	by, unknown, wholes := map[string][]string{}, []string(nil), map[string]bool{}
	for _, c := range fleet.Clusters {
		s, known := served[c.Name]
		if !known {
			unknown = append(unknown, c.Name)
			continue
		}
		says := versionsOf(s, carried)
		by[says] = append(by[says], c.Name)
		if s.Whole {
			wholes[says] = true
		}
	}
	for _, says := range slices.SortedFunc(maps.Keys(by), func(a, b string) int { return strings.Compare(by[a][0], by[b][0]) }) {
		clusters := brief.List(by[says])
		if says == "" {
			found = append(found, ill(gradeNote, aspectOpenKruise, do("install OpenKruise there before its kinds are sent there; other kinds need none"), "%s: nothing of OpenKruise is served", clusters))
			continue
		}
		found = append(found, well(aspectOpenKruise, "OpenKruise on %s: %s", clusters, says))
	}
	delete(wholes, "")
	if len(wholes) > 1 {
		found = append(found, ill(gradeNote, aspectOpenKruise, do("install the same release of OpenKruise everywhere, or send kinds only where their version is served"),
			"clusters serve OpenKruise in different versions"))
	}
	if len(unknown) > 0 {
		found = append(found, ill(gradeUnknown, aspectOpenKruise, do("ask the cluster: kubectl api-resources --api-group=%s; on OCM it is known once a FleetWorkload of such a kind was sent there", kruiseGroup),
			"OpenKruise on %s: not known, the backend does not tell", brief.List(unknown)))
	}
	return found
}

// versionsOf words what a cluster serves of the kinds that can be carried: each version with its kinds.
func versionsOf(s backends.Served, carried []string) string {
	kinds := map[string][]string{}
	for _, r := range s.Resources {
		if slices.Contains(carried, r.Resource) {
			kinds[r.Version] = append(kinds[r.Version], r.Resource)
		}
	}
	var words []string
	for _, version := range slices.Sorted(maps.Keys(kinds)) {
		words = append(words, fmt.Sprintf("%s (%s)", version, strings.Join(kinds[version], ", ")))
	}
	if len(words) > 0 && !s.Whole {
		return strings.Join(words, ", ") + "; of its other kinds nothing is known"
	}
	return strings.Join(words, ", ")
}
