// SPDX-License-Identifier: Apache-2.0

// Package history has the words in which a soak is told: what a FleetWorkload asks for, what is true of clusters, and what
// was done to them. It is pure data; what follows from it is decided in packages share and oracle.
package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Key names a FleetWorkload.
type Key struct{ Namespace, Name string }

func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Kind is a kind of workload.
type Kind string

// The kinds that a soak runs.
const (
	CloneSet            Kind = "CloneSet"
	Deployment          Kind = "Deployment"
	AdvancedStatefulSet Kind = "AdvancedStatefulSet"
)

// The names of the backends, as the operator's configuration has them.
const (
	Karmada = "karmada"
	OCM     = "ocm"
)

// Spec is what one FleetWorkload asks for, as far as a soak uses it.
type Spec struct {
	Backend  string
	Kind     Kind
	Replicas int
	Pods     Template
	Clusters Selection
	// Divided says that Replicas is the fleet's total and not each cluster's.
	Divided bool
	// Weights of clusters by name; when empty, all weigh the same.
	Weights map[string]int
	// Overrides by cluster.
	Overrides map[string]Override
	Waves     Waves
	Suspended bool
	// Companions is how many objects travel along.
	Companions int
	// Dependencies says that what pods refer to travels along.
	Dependencies bool
	// Orphan says that deletion leaves the member objects running.
	Orphan bool
	// Adopt says that objects that are there already are taken over.
	Adopt bool
}

// Template is what decides a pod.
type Template struct{ Image, Env string }

// Override is what is different on one cluster; empty fields are not.
type Override struct {
	Image, Env string
	// Label is on the member object, not on its pods.
	Label string
}

// Selection chooses clusters: those named, or those with the workload's own label, or every one but those excluded.
type Selection struct {
	Names   []string
	ByLabel bool
	Exclude []string
}

// Waves says in how many steps a change of backend proceeds.
type Waves struct {
	// Size of each wave, as in spec.migration.waves; empty: all at once.
	Size string
	// Soak in seconds.
	Soak int
}

// Clone returns a copy that shares nothing.
func (s Spec) Clone() Spec {
	s.Weights, s.Overrides = maps.Clone(s.Weights), maps.Clone(s.Overrides)
	s.Clusters.Names, s.Clusters.Exclude = slices.Clone(s.Clusters.Names), slices.Clone(s.Clusters.Exclude)
	return s
}

// On is what pods of one cluster are to be.
func (s Spec) On(cluster string) Template {
	t, o := s.Pods, s.Overrides[cluster]
	if o.Image != "" {
		t.Image = o.Image
	}
	if o.Env != "" {
		t.Env = o.Env
	}
	return t
}

// SamePlaces tells whether two specs ask for the same replicas on the same clusters, whatever the facts.
func (s Spec) SamePlaces(o Spec) bool {
	return s.Replicas == o.Replicas && s.Divided == o.Divided && maps.Equal(s.Weights, o.Weights) && s.Clusters.Equal(o.Clusters)
}

// SameClusters tells whether another spec chooses clusters as this one does.
func (s Spec) SameClusters(o Spec) bool { return s.Clusters.Equal(o.Clusters) }

// SameDivision tells whether another spec divides replicas as this one does, however many they are.
func (s Spec) SameDivision(o Spec) bool {
	return s.Divided == o.Divided && maps.Equal(s.Weights, o.Weights)
}

// Equal tells whether two selections are the same.
func (s Selection) Equal(o Selection) bool {
	return s.ByLabel == o.ByLabel && slices.Equal(s.Names, o.Names) && slices.Equal(s.Exclude, o.Exclude)
}

func (s Selection) String() string {
	switch {
	case s.ByLabel:
		return "by label"
	case len(s.Names) > 0:
		return strings.Join(s.Names, ",")
	case len(s.Exclude) > 0:
		return "all but " + strings.Join(s.Exclude, ",")
	default:
		return "all"
	}
}

// String tells the spec in one line.
func (s Spec) String() string {
	parts := []string{s.Backend, string(s.Kind), fmt.Sprintf("%dx%s", s.Replicas, s.Pods.Image), "on " + s.Clusters.String()}
	if s.Divided {
		parts = append(parts, "divided"+sorted(s.Weights, func(_ string, w int) string { return fmt.Sprint(w) }))
	}
	if len(s.Overrides) > 0 {
		parts = append(parts, "overrides"+sorted(s.Overrides, func(_ string, o Override) string { return o.Image + o.Env + o.Label }))
	}
	for flag, set := range map[string]bool{"suspended": s.Suspended, "orphan": s.Orphan, "adopt": s.Adopt, "dependencies": s.Dependencies} {
		if set {
			parts = append(parts, flag)
		}
	}
	slices.Sort(parts[4:])
	return strings.Join(parts, " ")
}

func sorted[V any](m map[string]V, show func(string, V) string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, key+":"+show(key, m[key]))
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// Cluster is what is true of one member cluster.
type Cluster struct {
	// Joined says that both backends know it.
	Joined bool
	// Lost says that nobody can reach it.
	Lost bool
	// Tainted says that it takes no new workload.
	Tainted bool
	// Labels are the workloads whose own label it has.
	Labels map[Key]bool
}

// Available tells whether a workload may be started there.
func (c Cluster) Available() bool { return c.Joined && !c.Lost && !c.Tainted }

// Facts are the clusters by name.
type Facts map[string]Cluster

// With returns a copy in which one cluster is another.
func (f Facts) With(name string, c Cluster) Facts {
	out := maps.Clone(f)
	c.Labels = maps.Clone(c.Labels)
	out[name] = c
	return out
}

// After returns the facts once an action on a cluster has been carried out. Labels and everything else change by actions of
// their own, which need not come in the order in which they were chosen; a cluster that leaves takes its labels along.
func (f Facts) After(a Action) Facts {
	now, then := f[a.Cluster], *a.Fact
	switch {
	case a.Verb != Label && now.Joined && then.Joined:
		then.Labels = now.Labels
	case a.Verb == Label && !now.Joined:
		return f
	case a.Verb == Label:
		on := then.Labels[a.Workload]
		then = now
		if then.Labels = maps.Clone(now.Labels); then.Labels == nil {
			then.Labels = map[Key]bool{}
		}
		if then.Labels[a.Workload] = on; !on {
			delete(then.Labels, a.Workload)
		}
	}
	return f.With(a.Cluster, then)
}

// Names are sorted.
func (f Facts) Names() []string { return slices.Sorted(maps.Keys(f)) }
