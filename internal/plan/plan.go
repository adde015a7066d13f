package plan

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	pointer "k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/division"
	"github.com/fleetworkload/fleetworkload/internal/guard"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/override"
)

// Plan is a FleetWorkload understood: everything but which clusters it runs on.
type Plan struct {
	Query    backends.Query
	Kind     *interpreter.Kind
	Template *unstructured.Unstructured
	Revision string
	// Replicas is spec.replicas with its defaults; nil for kinds without.
	Replicas *int32
	// Companions are those of spec.companions.
	Companions []backends.Companion
	// Notes say, for a person, what of the spec is not sent.
	Notes []string

	fw        *v1alpha1.FleetWorkload
	overrides *override.Set
	// size is the template's, in bytes of JSON, and objects how many there are in it.
	size      int64
	objects   int
	manifests *manifests
	// asked is spec.placement as it was written, whatever a backend calls its clusters, and askedNumbers the clusters' own replicas.
	asked        v1alpha1.Placement
	askedNumbers map[string]int32
	// numbers are those by the backend's names; most bounds them for now.
	numbers, most map[string]int32
	// pinned is how many of the replicas paused clusters keep.
	pinned int32
}

// New understands a FleetWorkload. Errors are *backends.Error and name field, value and remedy.
func New(fw *v1alpha1.FleetWorkload, kinds *interpreter.Registry) (*Plan, error) {
	template, note, err := manifest(fw)
	if err != nil {
		return nil, err
	}
	own := numbers(fw.Spec.Overrides)
	p := &Plan{fw: fw, asked: fw.Spec.Placement, askedNumbers: own, numbers: own, Template: template, size: int64(len(fw.Spec.Template.Raw)),
		objects: objectsIn(fw.Spec.Template.Raw), manifests: newManifests()}
	if err := Allowed(template, kinds); err != nil {
		return nil, err
	}
	p.Query, p.Kind = Query(fw, *Reference(template), kinds)
	template.SetNamespace(p.Query.Workload.Namespace)
	notes := []string{note, stripSelfRemoval("spec.template", template, p.Kind)}
	if err := p.setReplicas(); err != nil {
		return nil, err
	}
	if p.Revision, err = revision(p.Kind, template, fw.Spec.Overrides); err != nil {
		return nil, err
	}
	mark(template, fw, p.Revision)
	if p.Companions, p.Notes, err = companions(fw, template, kinds); err != nil {
		return nil, err
	}
	p.Notes = slices.DeleteFunc(append(notes, p.Notes...), func(n string) bool { return n == "" })
	if p.overrides, err = override.Compile(fw.Spec.Overrides, p.paths()); err != nil {
		return nil, err
	}
	if err := p.checkOverriding(); err != nil {
		return nil, err
	}
	if err := p.overrides.Validate(template); err != nil {
		return nil, err
	}
	return p, p.checkPartitions()
}

// paths lead to what overrides must know of the template.
func (p *Plan) paths() override.Paths {
	return override.Paths{
		PodTemplate: p.Kind.PodTemplatePath(p.Template), Selector: p.Kind.SelectorPath(), Replicas: p.Kind.ReplicasPath(),
		SelfRemovals: p.Kind.SelfRemovalPaths(),
	}
}

// checkPartitions refuses partitions that the kind cannot have, also those for clusters that are not there today.
func (p *Plan) checkPartitions() error {
	for i, o := range p.fw.Spec.Overrides {
		if o.Partition == nil {
			continue
		}
		if err := p.setPartition(own(p.Template, interpreter.PartitionPath(p.Kind)), fmt.Sprintf("spec.overrides[%d].partition", i), *o.Partition); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) setPartition(manifest *unstructured.Unstructured, field string, partition intstr.IntOrString) error {
	if err := interpreter.OverridePartition(p.Kind, manifest, partition); err != nil {
		return &backends.Error{Code: backends.CodeInvalidOverride, Field: field, Value: partition.String(),
			Message: err.Error(), Remedy: "correct it, or leave it out"}
	}
	return nil
}

// Allowed refuses kinds that no FleetWorkload may carry.
func Allowed(template *unstructured.Unstructured, kinds *interpreter.Registry) error {
	if kinds.Carried(template.GroupVersionKind()) {
		return nil
	}
	return &backends.Error{
		Code: backends.CodeUnsupported, Field: "spec.template.kind",
		Value:   template.GetAPIVersion() + " " + template.GetKind(),
		Message: "FleetWorkloads may not carry this kind",
		Remedy: "use a kind of docs/health.md, or let an administrator describe it under kinds, or allow it under allowedKinds, " +
			"in the operator's configuration",
	}
}

// setReplicas decides the number of replicas, and writes it into the template.
func (p *Plan) setReplicas() error {
	if len(p.Kind.ReplicasPath()) == 0 {
		return p.refuseReplicas()
	}
	n, given, err := interpreter.Replicas(p.Kind, p.Template)
	if err != nil {
		return &backends.Error{Code: backends.CodeInvalidTemplate, Field: "spec.template.spec.replicas",
			Message: err.Error(), Remedy: "correct it, or leave it out and set spec.replicas"}
	}
	if p.fw.Spec.Replicas != nil {
		n, given = *p.fw.Spec.Replicas, true
	}
	if !given {
		if n, err = interpreter.DefaultReplicas(p.Kind, p.Template); err != nil {
			return &backends.Error{Code: backends.CodeInvalidTemplate, Field: "spec.replicas", Message: err.Error(), Remedy: "set it"}
		}
	}
	p.Replicas = &n
	if err := interpreter.SetReplicas(p.Kind, p.Template, n); err != nil {
		return &backends.Error{Code: backends.CodeInvalidTemplate, Field: "spec.template", Message: err.Error(), Remedy: "correct it"}
	}
	return nil
}

// refuseReplicas refuses what would have no effect on a kind without replicas.
func (p *Plan) refuseReplicas() error {
	kind := p.Template.GetKind()
	if n := p.fw.Spec.Replicas; n != nil {
		return &backends.Error{Code: backends.CodeInvalidTemplate, Field: "spec.replicas", Value: fmt.Sprint(*n),
			Message: fmt.Sprintf("a %s has no replicas that could be set", kind), Remedy: "leave it out"}
	}
	if p.Division() == v1alpha1.DivisionTypeDivided {
		return &backends.Error{Code: backends.CodeInvalidPlacement, Field: "spec.placement.division.type",
			Value:   string(v1alpha1.DivisionTypeDivided),
			Message: fmt.Sprintf("a %s has no replicas to divide", kind), Remedy: "leave it out: every cluster gets the whole object"}
	}
	return p.refuseNumbered()
}

// Division is spec.placement.division.type with its default.
func (p *Plan) Division() v1alpha1.DivisionType { return DivisionOf(p.fw.Spec.Placement) }

// DivisionOf is division.type of a placement with its default.
func DivisionOf(placement v1alpha1.Placement) v1alpha1.DivisionType {
	if d := placement.Division; d != nil && d.Type != "" {
		return d.Type
	}
	return v1alpha1.DivisionTypeDuplicated
}

// Asked is what the spec says about where replicas run.
func (p *Plan) Asked() (guard.Asked, error) {
	clusters := p.asked
	clusters.Division, clusters.Paused = nil, nil
	asked := guard.Asked{
		Replicas: pointer.Deref(p.Replicas, 1), Divided: p.Division() == v1alpha1.DivisionTypeDivided, Own: p.numbers,
	}
	var err error
	if asked.Clusters, err = Hash(clusters); err != nil {
		return asked, err
	}
	parts := []any{p.asked.Division}
	if p.asked.Paused != nil || len(p.askedNumbers) > 0 { // a pause, and its end, divide anew and ask for no cluster to be left
		parts = append(parts, p.asked.Paused)
	}
	if len(p.askedNumbers) > 0 {
		parts = append(parts, p.askedNumbers)
	}
	asked.Division, err = Hash(parts...)
	return asked, err
}

// Targets gives each chosen cluster its replicas and its manifest. chosen must be clusters of the fleet, current are the
// replicas that clusters were asked to run before. Clusters that get nothing of a divided total are left out, as Karmada
// does; when the total is zero, every cluster keeps its object with zero replicas, and so does one whose own number that is.
func (p *Plan) Targets(fleet backends.Fleet, chosen []string, current map[string]int32) ([]backends.Target, error) {
	clusters, err := clustersOf(fleet, chosen)
	if err != nil {
		return nil, err
	}
	if err := p.checkCarried(len(clusters)); err != nil {
		return nil, err
	}
	shares, err := p.shares(clusters, current)
	if err != nil {
		return nil, err
	}
	targets := make([]backends.Target, 0, len(clusters))
	for _, c := range clusters {
		target := backends.Target{Cluster: c.Name, Mode: p.mode()}
		if n, divided := shares[c.Name]; divided {
			target.Replicas = &n
		}
		if p.dropped(target) {
			continue
		}
		if target.Manifest, err = p.manifest(c, target.Replicas); err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// Beside is the plan for the clusters beside those that are paused and keep so many of the replicas.
func (p *Plan) Beside(pinned int32) *Plan {
	out := *p
	out.pinned = pinned
	return &out
}

// Of is the plan for another number of replicas.
func (p *Plan) Of(replicas int32) *Plan {
	out := *p
	out.Replicas = &replicas
	return &out
}

// Shares are the replicas of each chosen cluster; nil for kinds without.
func (p *Plan) Shares(fleet backends.Fleet, chosen []string, current map[string]int32) (map[string]int32, error) {
	clusters, err := clustersOf(fleet, chosen)
	if err != nil {
		return nil, err
	}
	return p.shares(clusters, current)
}

// Pinned are the targets of clusters whose replicas were decided. One that gets none has its target all the same.
func (p *Plan) Pinned(fleet backends.Fleet, chosen []string, shares map[string]int32) ([]backends.Target, error) {
	clusters, err := clustersOf(fleet, chosen)
	if err != nil {
		return nil, err
	}
	if err := p.checkCarried(len(clusters)); err != nil {
		return nil, err
	}
	targets := make([]backends.Target, 0, len(clusters))
	for _, c := range clusters {
		target := backends.Target{Cluster: c.Name, Mode: p.mode()}
		if n := shares[c.Name]; p.Replicas != nil {
			target.Replicas = &n
		}
		if target.Manifest, err = p.manifest(c, target.Replicas); err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// Adopts tells whether running member objects are taken over that have a number of replicas to keep.
func (p *Plan) Adopts() bool {
	return p.fw.Spec.ConflictPolicy == v1alpha1.ConflictPolicyAdopt && p.Replicas != nil
}

// Probes are the targets of clusters that are to be asked what they run, before anything is divided.
func (p *Plan) Probes(fleet backends.Fleet, chosen []string) ([]backends.Target, error) {
	clusters, err := clustersOf(fleet, chosen)
	if err != nil {
		return nil, err
	}
	targets := make([]backends.Target, 0, len(clusters))
	for _, c := range clusters {
		target := backends.Target{Cluster: c.Name, Replicas: p.Replicas, Mode: backends.ModeProbe}
		if target.Manifest, err = p.manifest(c, p.Replicas); err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// Held is the target of a cluster that keeps what it runs for now: it is not chosen any more, or paused.
func (p *Plan) Held(c backends.Cluster, replicas *int32) (backends.Target, error) {
	manifest, err := p.manifest(c, replicas)
	return backends.Target{Cluster: c.Name, Replicas: replicas, Manifest: manifest, Mode: backends.ModeHold}, err
}

// Unused names the overrides that select none of the clusters.
func (p *Plan) Unused(fleet backends.Fleet, chosen []string) ([]string, error) {
	clusters, err := clustersOf(fleet, chosen)
	return p.overrides.Unused(clusters), err
}

func clustersOf(fleet backends.Fleet, names []string) ([]backends.Cluster, error) {
	clusters := make([]backends.Cluster, 0, len(names))
	for _, name := range slices.Sorted(slices.Values(names)) {
		c, known := fleet.Get(name)
		if !known {
			return nil, fmt.Errorf("cluster %q was chosen but is not in the backend's list", name)
		}
		clusters = append(clusters, c)
	}
	return clusters, nil
}

// mode is that of the targets: while the workload is suspended nothing is dispatched.
func (p *Plan) mode() backends.Mode {
	if p.fw.Spec.Suspend != nil && *p.fw.Spec.Suspend {
		return backends.ModeHold
	}
	return backends.ModeOwn
}

// manifest is what a cluster must run. It is shared with other clusters.
func (p *Plan) manifest(c backends.Cluster, replicas *int32) (*unstructured.Unstructured, error) {
	v := variation{overrides: p.overrides.Selecting(c)}
	if replicas != nil {
		v.replicas, v.counted = *replicas, true
	}
	if manifest, known := p.manifests.made[v]; known {
		return manifest, nil
	}
	manifest, err := p.make(c, v)
	if err == nil {
		p.manifests.made[v] = manifest
	}
	return manifest, err
}

func (p *Plan) make(c backends.Cluster, v variation) (*unstructured.Unstructured, error) {
	overridden, err := p.overridden(c)
	if err != nil {
		return nil, err
	}
	if err := p.manifests.spend(p, v); err != nil {
		return nil, err
	}
	manifest := own(overridden, p.Kind.ReplicasPath())
	if v.counted {
		if err := interpreter.SetReplicas(p.Kind, manifest, v.replicas); err != nil {
			return nil, p.refuseShare(c, v.replicas, err)
		}
	}
	field, partition := p.overrides.Partition(c)
	if partition == nil {
		return manifest, nil
	}
	manifest = own(manifest, interpreter.PartitionPath(p.Kind))
	return manifest, p.setPartition(manifest, field, *partition)
}

// overridden is the template with the overrides of a cluster, but for replicas and partition.
func (p *Plan) overridden(c backends.Cluster) (*unstructured.Unstructured, error) {
	selecting := p.overrides.Selecting(c)
	if manifest, known := p.manifests.overridden[selecting]; known {
		return manifest, nil
	}
	if err := p.manifests.spendOverridden(p, selecting); err != nil {
		return nil, err
	}
	manifest, err := p.overrides.Target(p.Template, c)
	if err != nil {
		return nil, err
	}
	if err := checkQuantities(manifest.Object, backends.CodeInvalidOverride, "spec.overrides"); err != nil {
		return nil, err
	}
	p.manifests.overridden[selecting] = manifest
	return manifest, nil
}

// own is a manifest of which the objects on a path can be changed; all else is shared.
func own(manifest *unstructured.Unstructured, path []string) *unstructured.Unstructured {
	out := maps.Clone(manifest.Object)
	here := out
	for _, key := range path[:max(0, len(path)-1)] {
		below, is := here[key].(map[string]any)
		if !is {
			break
		}
		below = maps.Clone(below)
		here[key], here = below, below
	}
	return &unstructured.Unstructured{Object: out}
}

// refuseShare words what stands against a cluster's replicas: the template as it is, or what overrides made of it.
func (p *Plan) refuseShare(c backends.Cluster, replicas int32, cause error) error {
	refusal := &backends.Error{
		Code: backends.CodeInvalidOverride, Field: "spec.overrides",
		Message: fmt.Sprintf("the manifest for cluster %s cannot have %d replicas", c.Name, replicas),
		Remedy:  "correct the override that leads to this manifest", Err: cause,
	}
	if interpreter.SetReplicas(p.Kind, own(p.Template, p.Kind.ReplicasPath()), replicas) != nil {
		refusal.Code, refusal.Field, refusal.Remedy = backends.CodeInvalidTemplate, "spec.template", "correct it"
	}
	return refusal
}

// shares are the replicas of each cluster; nil for kinds without replicas.
func (p *Plan) shares(clusters []backends.Cluster, current map[string]int32) (map[string]int32, error) {
	if p.Replicas == nil {
		return nil, nil
	}
	given, others := p.given(clusters)
	if p.Division() == v1alpha1.DivisionTypeDuplicated {
		for _, c := range others {
			given[c.Name] = *p.Replicas
		}
		return given, nil
	}
	total, err := p.toDivide(given, len(others))
	if err != nil || len(given) > 0 && len(others) == 0 {
		return given, err
	}
	shares, err := p.divide(total, others, current)
	if err != nil {
		return nil, err
	}
	maps.Copy(shares, given)
	return shares, nil
}

// divide divides a total over clusters.
func (p *Plan) divide(total int32, clusters []backends.Cluster, current map[string]int32) (map[string]int32, error) {
	d := p.fw.Spec.Placement.Division
	switch d.Preference {
	case v1alpha1.DivisionPreferenceAggregated:
		return p.byRoom(total, clusters, current, division.Aggregate)
	case v1alpha1.DivisionPreferenceAvailableCapacity:
		return p.byRoom(total, clusters, current, division.ByCapacity)
	case v1alpha1.DivisionPreferenceWeighted:
	}
	shares, err := division.Weights(d.Weights, clusters)
	if err != nil {
		return nil, err
	}
	return division.Divide(total, shares)
}

func (p *Plan) dropped(t backends.Target) bool {
	return p.Division() == v1alpha1.DivisionTypeDivided && p.Replicas != nil && *p.Replicas > 0 &&
		t.Replicas != nil && *t.Replicas == 0 && !p.Numbered(t.Cluster)
}

// Desired is what the driver is to carry out, but for what the pods refer to. Without targets only the placement is set
// up.
func (p *Plan) Desired(targets []backends.Target) backends.Desired {
	conflict := p.fw.Spec.ConflictPolicy
	if conflict == "" {
		conflict = v1alpha1.ConflictPolicyFail
	}
	return backends.Desired{
		Query: p.Query, Template: p.Template, Revision: p.Revision, Targets: targets,
		ConflictPolicy: conflict, Division: p.Division(), Companions: p.Companions,
	}
}
