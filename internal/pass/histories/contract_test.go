package histories

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/pass"
)

// Everything that knows the words of the contract between the operator and its drivers is in this file, and nowhere else.

// wish is what a driver is asked to carry out.
type wish struct {
	uid       string
	selectors []v1alpha1.ClusterSelector
	revision  string
	// takes is conflictPolicy Adopt, alone that no other backend has anything of the workload.
	takes, alone bool
	targets      []target
	// removed are the clusters that are to be left.
	removed map[string]bool
}

// target is what one cluster is to run.
type target struct {
	cluster string
	mode    mode
	hold    bool
	content content
}

// wishOf reads what a driver is asked.
func wishOf(d backends.Desired) wish {
	w := wish{
		uid: string(d.Key.UID), selectors: d.Selectors, revision: d.Revision, takes: d.ConflictPolicy == v1alpha1.ConflictPolicyAdopt, alone: d.Alone(),
		removed: map[string]bool{},
	}
	for _, t := range d.Targets {
		if t.Mode == backends.ModeRemove {
			w.removed[t.Cluster] = true
			continue
		}
		w.targets = append(w.targets, target{
			cluster: t.Cluster, mode: modeOf(t.Mode), hold: t.Mode == backends.ModeHold, content: contentOf(t.Manifest),
		})
	}
	return w
}

func modeOf(o backends.Mode) mode {
	switch o {
	case backends.ModeAdopt:
		return adopts
	case backends.ModeObserve:
		return observes
	case backends.ModeProbe:
		return probes
	case backends.ModeOwn, backends.ModeHold, backends.ModeRemove:
	}
	return owns
}

// contentOf is what a manifest says, as far as it matters here.
func contentOf(manifest *unstructured.Unstructured) content {
	spec := manifest.Object["spec"].(map[string]any)
	pods := spec["template"].(map[string]any)["spec"].(map[string]any)
	main := pods["containers"].([]any)[0].(map[string]any)
	c := content{
		template: template{Image: main["image"].(string)}, Replicas: int(spec["replicas"].(int64)),
		Newer: strings.HasSuffix(manifest.GetAPIVersion(), "/"+versionOf(true)),
	}
	if env, is := main["env"].([]any); is {
		c.Env, _ = env[0].(map[string]any)["value"].(string)
	}
	return c
}

// deletion is how a driver is to give everything up.
type deletion struct {
	uid, policy string
	alone, heir bool
}

func deletionOf(d pass.Deletion) deletion {
	return deletion{uid: string(d.Query.Key.UID), policy: string(d.Policy), alone: d.Query.Alone(), heir: d.Query.Counterpart == backends.CounterpartHeir}
}

// features are what both backends can do.
func features() backends.Features {
	return backends.Features{backends.FeatureHold: true, backends.FeatureModes: true, backends.FeatureClusterScoped: true}
}

// room is how many pods a cluster can take: more than all workloads together ask for.
const room = 40

func fleetOf(b *backend, known map[string]facts) backends.Fleet {
	fleet := backends.Fleet{}
	for _, name := range b.w.names {
		f := known[name]
		if !f.Known {
			continue
		}
		c := clusterOf(name, f)
		pods := func(n int) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(n), resource.DecimalSI)}
		}
		if b.gated {
			used := 0
			for _, o := range b.w.clusters[name].objects {
				used += o.Replicas
			}
			c.Free = pods(max(0, room-used))
		} else {
			c.Allocatable = pods(room)
		}
		fleet.Clusters = append(fleet.Clusters, c)
	}
	return fleet
}

func clusterOf(name string, f facts) backends.Cluster {
	c := backends.Cluster{
		Name: name, Identity: "id-" + name, Labels: map[string]string{"name": name}, Ready: metav1.ConditionTrue, ReadySince: f.Since,
	}
	if f.Label {
		c.Labels["app"] = "on"
	}
	if !f.Ready {
		c.Ready = metav1.ConditionUnknown
	}
	if f.Taint != "" {
		c.Taints = []backends.Taint{{Key: "t", Effect: backends.TaintEffect(f.Taint), Added: f.Tainted}}
	}
	return c
}

// match are the clusters that any of the selectors chooses, sorted. It reads the few kinds of selectors that histories have.
func match(selectors []v1alpha1.ClusterSelector, known map[string]facts) []string {
	var names []string
	for name, f := range known {
		if f.Known && slices.ContainsFunc(selectors, func(s v1alpha1.ClusterSelector) bool {
			return (len(s.Names) == 0 || slices.Contains(s.Names, name)) && !slices.Contains(s.Exclude, name) && (s.Selector == nil || f.Label)
		}) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func unavailable() error {
	return &backends.Error{Code: backends.CodeUnavailable, Message: "the backend cannot be reached", Remedy: "wait"}
}

func nameConflict() error {
	return &backends.Error{Code: backends.CodeNameConflict, Message: "there is something of an earlier FleetWorkload of this name", Remedy: "wait"}
}

func notConfigured(name string) error { return fmt.Errorf("%q: %w", name, backends.ErrNotConfigured) }

// observation is what a backend says of a workload.
func observation(b *backend, from snapshot, slot string, query backends.Query) backends.Observation {
	uid := string(query.Key.UID)
	out := backends.Observation{Selection: backends.Selection{Message: "the placement is not there yet"}}
	if p := from.places[slot]; p != nil && p.uid == uid {
		out.Found, out.Selection = true, selectionOf(b, from, p, query.Selectors)
	}
	for _, c := range at(from.orders, slot) {
		o := from.orders[where{slot, c}]
		if o.uid != uid {
			continue
		}
		out.Found = true
		out.Clusters = append(out.Clusters, report(c, o))
	}
	if query.Counterpart != backends.CounterpartNone {
		out.Clusters = append(out.Clusters, stillNamed(from, slot, uid)...)
		slices.SortFunc(out.Clusters, func(a, c backends.ClusterObservation) int { return strings.Compare(a.Cluster, c.Cluster) })
	}
	return out
}

// stillNamed are the clusters to which the gated backend will send the workload: at once, or when they are back.
func stillNamed(from snapshot, slot, uid string) (all []backends.ClusterObservation) {
	p := from.places[slot]
	if p == nil || p.uid != uid {
		return nil
	}
	for c, w := range p.want {
		o := backends.ClusterObservation{Cluster: c, Applied: metav1.ConditionUnknown}
		if !from.facts[c].Known {
			o.Presence = backends.PresenceNamed
		}
		if _, is := from.orders[where{slot, c}]; !is && (from.facts[c].Known || w.mode.writes()) {
			all = append(all, o)
		}
	}
	return all
}

func selectionOf(b *backend, from snapshot, p *place, selectors []v1alpha1.ClusterSelector) backends.Selection {
	s := backends.Selection{Serves: serves(from.facts)}
	switch {
	case !slices.EqualFunc(p.selectors, selectors, sameSelector):
		s.Message = "the placement is still the one before"
	case b.gated:
		s.Settled, s.Clusters = true, match(selectors, from.facts)
	case !p.settled:
		s.Message = "clusters are being chosen"
	default:
		// The choice is as old as the cache; a cluster that has left is not in it.
		s.Settled, s.Clusters = true, slices.DeleteFunc(slices.Clone(p.decided), func(c string) bool { return !from.facts[c].Known })
	}
	return s
}

// serves are the versions of the kind by cluster.
func serves(known map[string]facts) map[string][]string {
	all := map[string][]string{}
	for name, f := range known {
		switch {
		case f.Known && f.Older:
			all[name] = []string{versionOf(false)}
		case f.Known:
			all[name] = []string{versionOf(false), versionOf(true)}
		}
	}
	return all
}

func sameSelector(a, o v1alpha1.ClusterSelector) bool {
	return slices.Equal(a.Names, o.Names) && slices.Equal(a.Exclude, o.Exclude) && (a.Selector == nil) == (o.Selector == nil)
}

// report is what is known of one order.
func report(cluster string, o *order) backends.ClusterObservation {
	c := backends.ClusterObservation{
		Cluster: cluster, Revision: o.revision, Held: o.hold || o.gate, Applied: metav1.ConditionUnknown,
		Presence: backends.PresenceOf(o.removal != "", o.released()),
	}
	if o.has {
		c.Asked = ptr(int32(o.content.Replicas))
	}
	carriedOut := o.status.generation == o.generation
	if o.mode == probes && o.removal == "" {
		c.Probe = &backends.ProbeResult{Answered: carriedOut, Exists: o.status.present}
		if o.status.present {
			c.Probe.Replicas = ptr(int32(o.status.member.content.Replicas))
		}
	}
	if carriedOut {
		c.Conflict = o.status.conflict
		switch {
		case o.status.conflict:
			c.Applied, c.Message = metav1.ConditionFalse, "it exists and is not ours"
		case o.status.applied && o.has && o.mode.writes():
			c.Applied = metav1.ConditionTrue
		}
	}
	if m := o.status.member; o.status.present {
		c.UID, c.Status = types.UID(m.uid), statusOf(m)
		if c.Held {
			c.Runs = m.revision
		}
		c.Current = c.Applied == metav1.ConditionTrue && m.revision == c.Revision && m.seen == m.generation &&
			m.content.Replicas == o.content.Replicas
		if m.traces != "" && o.mode == adopts {
			c.Marks = []string{m.traces}
		}
	}
	return c
}

// statusOf is what a StatefulSet's status says.
func statusOf(m memberReport) map[string]any {
	return map[string]any{
		"observedGeneration": int64(m.seen), "replicas": int64(m.ran), "readyReplicas": int64(m.ready), "updatedReplicas": int64(m.updated),
		"availableReplicas": int64(m.ready), "updatedReadyReplicas": int64(min(m.updated, m.ready)),
		"updateRevision": m.content.Image + "-" + m.content.Env,
	}
}

// readSide answers what a pass asks of a backend.
func readSide(b *backend, slot string, read pass.SideRead, restarted bool) *pass.Side {
	if b.down {
		return &pass.Side{Features: features(), Err: sideErr(read)}
	}
	side := &pass.Side{Features: features(), Live: read.Live()}
	from := b.cache
	if restarted || read.Query != nil && read.Query.Counterpart != backends.CounterpartNone {
		from = b.snapshot()
	}
	if read.Fleet {
		side.Fleet = ptr(fleetOf(b, from.facts))
	}
	if read.Query != nil {
		side.Observed = ptr(observation(b, from, slot, *read.Query))
	}
	return side
}

func sideErr(read pass.SideRead) error {
	if !read.Fleet && read.Query == nil {
		return nil
	}
	return unavailable()
}

// carryOut has a backend carry one order out, and says what came of it.
func carryOut(b *backend, slot string, o pass.Order, alone bool, by *passInfo) pass.Outcome {
	if b.down {
		return pass.Outcome{Err: unavailable()}
	}
	if o.Delete != nil {
		d := deletionOf(*o.Delete)
		waiting, done, err := b.remove(slot, d, by)
		return pass.Outcome{Progress: backends.Progress{Done: done, Waiting: waiting}, Err: err}
	}
	wish := b.w.tamper(wishOf(*o.Apply))
	wish.alone = wish.alone || alone
	if b.takenBy(slot, wish.uid) {
		return pass.Outcome{Err: nameConflict()}
	}
	waiting, err := b.apply(slot, wish, by)
	return pass.Outcome{Progress: backends.Progress{Done: waiting == "" && err == nil, Waiting: waiting}, Err: err}
}

// readFacts is what a pass has learned of clusters.
func readFacts(side *pass.Side) (known map[string]facts, selected []string, settled bool) {
	known = map[string]facts{}
	if side == nil || side.Fleet == nil {
		return known, nil, false
	}
	for _, c := range side.Fleet.Clusters {
		f := facts{Known: true, Label: c.Labels["app"] == "on", Ready: c.Ready == metav1.ConditionTrue, Since: c.ReadySince}
		if len(c.Taints) > 0 {
			f.Taint, f.Tainted = string(c.Taints[0].Effect), c.Taints[0].Added
		}
		known[c.Name] = f
	}
	if side.Observed != nil {
		for name, versions := range side.Observed.Selection.Serves {
			if f, is := known[name]; is {
				f.Older = len(versions) == 1
				known[name] = f
			}
		}
		selected, settled = side.Observed.Selection.Clusters, side.Observed.Selection.Settled
	}
	return known, selected, settled
}

// retryAfter is how soon a pass is tried again that was refused for an outdated object.
const retryAfter = time.Second
