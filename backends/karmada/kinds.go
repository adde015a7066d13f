package karmada

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/fleetworkload/fleetworkload/backends"
)

const (
	// kindsRefresh is how often known kinds are looked up again: an upgrade of a CRD may change the preferred version.
	kindsRefresh = 5 * time.Minute
	// kindsRetry is how long a refusal is remembered.
	kindsRetry = 10 * time.Second
)

// kinds knows which versions of workload kinds Karmada propagates. Its detector watches the preferred version of each
// resource alone, and matches selectors by the exact apiVersion: a workload of another version is never propagated
// (pkg/util/lifted/discovery.go, pkg/util/selector.go).
type kinds struct {
	discovery discovery.DiscoveryInterface

	mu    sync.Mutex
	known map[schema.GroupVersionKind]verdict
}

type verdict struct {
	err error
	at  time.Time
}

// check returns nil when Karmada propagates the kind.
func (k *kinds) check(gvk schema.GroupVersionKind) error {
	k.mu.Lock()
	v, found := k.known[gvk]
	k.mu.Unlock()
	if found && (v.err == nil || time.Since(v.at) < kindsRetry) {
		return v.err
	}
	return k.look(gvk)
}

// refresh looks all known kinds up again until ctx ends.
func (k *kinds) refresh(ctx context.Context) {
	ticker := time.NewTicker(kindsRefresh)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		k.mu.Lock()
		known := make([]schema.GroupVersionKind, 0, len(k.known))
		for gvk := range k.known {
			known = append(known, gvk)
		}
		k.mu.Unlock()
		for _, gvk := range known {
			_ = k.look(gvk)
		}
	}
}

func (k *kinds) look(gvk schema.GroupVersionKind) error {
	preferred, err := k.preferred(gvk.GroupKind())
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return backends.Classify(fmt.Sprintf("look up %s on the Karmada control plane", gvk), err)
	case preferred == "":
		err = backends.NotServed(gvk, "the Karmada control plane does not serve this kind", "install its CRD on the Karmada API server")
	case preferred != gvk.Version:
		other := schema.GroupVersion{Group: gvk.Group, Version: preferred}
		err = backends.NotServed(gvk, "Karmada propagates only the preferred version of a kind, which is "+other.String(),
			"write apiVersion: "+other.String())
	default:
		err = nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[schema.GroupVersionKind]verdict{}
	}
	k.known[gvk] = verdict{err: err, at: time.Now()}
	return err
}

// preferred returns the version that the API server prefers for the kind, and "" when it serves none: the group's
// preferred version when it has the kind, else the first one that does.
func (k *kinds) preferred(gk schema.GroupKind) (string, error) {
	groups, err := k.discovery.ServerGroups()
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == gk.Group })
	if i < 0 {
		return "", nil
	}
	group := groups.Groups[i]
	versions := append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...)
	for _, version := range versions {
		resources, err := k.discovery.ServerResourcesForGroupVersion(version.GroupVersion)
		if err != nil {
			return "", err
		}
		for _, r := range resources.APIResources {
			if r.Kind == gk.Kind {
				return version.Version, nil
			}
		}
	}
	return "", nil
}
