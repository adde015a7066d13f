package ocm

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// translated keeps the fleet until a ManagedCluster changes: a pass asks for it several times, and there may be a thousand.
type translated struct {
	mu    sync.Mutex
	fleet *backends.Fleet
	// changes tells a fleet that was read before the last change from one read after it.
	changes int
}

func (t *translated) get(translate func() (backends.Fleet, error)) (backends.Fleet, error) {
	t.mu.Lock()
	known, before := t.fleet, t.changes
	t.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	fleet, err := translate()
	if err != nil {
		return backends.Fleet{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changes == before {
		t.fleet = &fleet
	}
	return fleet, nil
}

func (t *translated) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fleet = nil
	t.changes++
}

// claimIdentity is the UID of the cluster's kube-system namespace (ocm pkg/registration/spoke/managedcluster).
const claimIdentity = "id.k8s.io"

// translateFleet translates the hub's ManagedClusters. Those not accepted are left out: they have no agent.
func translateFleet(clusters []clusterv1.ManagedCluster, opts Options) backends.Fleet {
	fleet := backends.Fleet{Clusters: make([]backends.Cluster, 0, len(clusters))}
	for i := range clusters {
		if clusters[i].Spec.HubAcceptsClient {
			fleet.Clusters = append(fleet.Clusters, translateCluster(&clusters[i], opts))
		}
	}
	slices.SortFunc(fleet.Clusters, func(a, b backends.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return fleet
}

func translateCluster(mc *clusterv1.ManagedCluster, opts Options) backends.Cluster {
	c := backends.Cluster{
		Name: mc.Name, Attributes: attributesOf(mc, opts), Identity: claimValue(mc, claimIdentity),
		Ready: metav1.ConditionUnknown, Message: "the cluster has never reported that it is available",
	}
	if len(mc.Labels) > 0 {
		c.Labels = make(map[string]string, len(mc.Labels))
		for key, value := range mc.Labels {
			c.Labels[key] = value
		}
	}
	for _, taint := range mc.Spec.Taints {
		if !slices.Contains(taintsOfLost, taint.Key) {
			c.Taints = append(c.Taints, backends.Taint{
				Key: taint.Key, Value: taint.Value, Effect: TaintEffect(taint.Effect), Added: taint.TimeAdded.Time,
			})
		}
	}
	c.Allocatable = allocatable(mc)
	if available := meta.FindStatusCondition(mc.Status.Conditions, clusterv1.ManagedClusterConditionAvailable); available != nil {
		c.Ready, c.ReadySince, c.Message = available.Status, available.LastTransitionTime.Time, ""
		if available.Status != metav1.ConditionTrue {
			c.Message = available.Message
		}
	}
	if !mc.DeletionTimestamp.IsZero() {
		c.Leaving = true
		c.Message = "the cluster is being removed from the hub"
	}
	return c
}

// taintsOfLost are given by the hub to clusters that it cannot reach (ocm pkg/registration/hub/taint).
var taintsOfLost = []string{clusterv1.ManagedClusterTaintUnreachable, clusterv1.ManagedClusterTaintUnavailable}

// TaintEffect is an effect in Kubernetes' words; those stay as they are. NoSelect takes a cluster out of decisions at once,
// also where something runs (ocm pkg/placement/plugins/tainttoleration).
func TaintEffect(effect clusterv1.TaintEffect) backends.TaintEffect {
	switch effect {
	case clusterv1.TaintEffectNoSelect:
		return backends.TaintNoExecute
	case clusterv1.TaintEffectNoSelectIfNew:
		return backends.TaintNoSchedule
	case clusterv1.TaintEffectPreferNoSelect:
		return backends.TaintPreferNoSchedule
	default:
		return backends.TaintEffect(effect)
	}
}

// allocatable is what the cluster's nodes can give to pods. The hub does not know what of it is in use.
func allocatable(mc *clusterv1.ManagedCluster) corev1.ResourceList {
	if len(mc.Status.Allocatable) == 0 {
		return nil
	}
	out := corev1.ResourceList{}
	for name, quantity := range mc.Status.Allocatable {
		out[corev1.ResourceName(name)] = quantity.DeepCopy()
	}
	return out
}

// attributesOf must give the same values as celAttribute.
func attributesOf(mc *clusterv1.ManagedCluster, opts Options) map[v1alpha1.Attribute]string {
	attributes := map[v1alpha1.Attribute]string{}
	for attribute, source := range opts.Attributes {
		value := ""
		if source.Claim != "" {
			value = claimValue(mc, source.Claim)
		}
		if value == "" && source.Label != "" {
			value = mc.Labels[source.Label]
		}
		if value != "" {
			attributes[attribute] = value
		}
	}
	return attributes
}

func claimValue(mc *clusterv1.ManagedCluster, name string) string {
	for _, c := range mc.Status.ClusterClaims {
		if c.Name == name && c.Value != "" {
			return c.Value
		}
	}
	return ""
}
