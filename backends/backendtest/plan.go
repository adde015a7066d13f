package backendtest

import (
	"fmt"
	"hash/fnv"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

const (
	firstImage  = "registry.k8s.io/pause:3.9"
	secondImage = "registry.k8s.io/pause:3.10"
	// defaultGreeting is the template's; clusters with another one have an override.
	defaultGreeting = "hello"
)

// kind is a workload kind as the interpreter would describe it.
type kind struct {
	gvk      schema.GroupVersionKind
	resource string
	// replicas is false for kinds without them, which are cluster-scoped here.
	replicas bool
	feedback []string
}

var (
	deployment = kind{
		gvk:      schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		resource: "deployments", replicas: true,
		feedback: []string{"observedGeneration", "replicas", "readyReplicas", "updatedReplicas", "availableReplicas"},
	}
	cloneSet = kind{
		gvk:      schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"},
		resource: "clonesets", replicas: true,
		feedback: []string{"observedGeneration", "replicas", "readyReplicas", "updatedReplicas", "availableReplicas",
			"updatedReadyReplicas"},
	}
	sidecarSet = kind{
		gvk:      schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "SidecarSet"},
		resource: "sidecarsets", feedback: []string{"observedGeneration", "matchedPods"},
	}
	gizmo = kind{
		gvk:      schema.GroupVersionKind{Group: "toys.example.com", Version: "v1", Kind: "Gizmo"},
		resource: "gizmos", replicas: true, feedback: []string{"observedGeneration"},
	}
)

var bothKinds = []kind{deployment, cloneSet}

// plan is what a case wants to run; a desired state is rendered from it the way the controller does.
type plan struct {
	key       backends.Key
	kind      kind
	selectors []v1alpha1.ClusterSelector
	division  v1alpha1.DivisionType
	replicas  int32
	image     string
	conflict  v1alpha1.ConflictPolicy
	options   *v1alpha1.BackendOptions
	targets   []planned
	// leftOn are clusters that are no targets and keep an object that was given up.
	leftOn []string
	// unlisted are clusters that have the workload and of which nothing is said.
	unlisted []string
	// passengers are its companions; theirs are the clusters on which shared ones are somebody else's.
	passengers []passenger
	theirs     []string
	// prune says which companions go that are no longer its own.
	prune backends.Prune
	// counterpart is what another backend has of it.
	counterpart backends.Counterpart
	// drift says what becomes of others' changes on members.
	drift v1alpha1.DriftPolicy
	// change edits every rendered manifest, the template's too.
	change func(obj *unstructured.Unstructured)
}

// planned is one cluster of a plan.
type planned struct {
	cluster  string
	replicas int32
	// greeting is an environment variable of the container: the override of this cluster.
	greeting string
	mode     backends.Mode
}

// writes tells whether the member object becomes the target manifest.
func (t planned) writes() bool { return t.mode.Owns() && !t.held() }

// held tells whether the member object stays as it is.
func (t planned) held() bool { return t.mode == backends.ModeHold }

// newPlan places a workload of that name on the clusters, two replicas each.
func (s *session) newPlan(name string, clusters ...string) plan {
	p := plan{
		key: backends.Key{
			NamespacedName: types.NamespacedName{Namespace: s.namespace, Name: name},
			UID:            uuid.NewUUID(),
		},
		kind: s.kind, division: v1alpha1.DivisionTypeDuplicated, replicas: 2, image: firstImage,
		conflict: v1alpha1.ConflictPolicyFail, prune: backends.PruneAll,
	}
	p = p.on(clusters...)
	for i := range p.targets {
		p.targets[i].replicas = p.replicas
	}
	return p
}

// on places the plan on the clusters; those it was on keep their targets.
func (p plan) on(clusters ...string) plan {
	p.selectors = []v1alpha1.ClusterSelector{{Names: clusters}}
	var targets []planned
	for _, cluster := range slices.Sorted(slices.Values(clusters)) {
		target := planned{cluster: cluster, replicas: p.replicas, greeting: defaultGreeting}
		for _, old := range p.targets {
			if old.cluster == cluster {
				target = old
			}
		}
		targets = append(targets, target)
	}
	p.targets = targets
	return p
}

// divided shares the replicas among the plan's clusters, one number each.
func (p plan) divided(replicas ...int32) plan {
	p.division = v1alpha1.DivisionTypeDivided
	p.targets = slices.Clone(p.targets)
	p.replicas = 0
	for i := range p.targets {
		p.targets[i].replicas = replicas[i]
		p.replicas += replicas[i]
	}
	return p
}

// scaled gives every cluster that number of replicas, divided or duplicated as before. Weights stay.
func (p plan) scaled(each int32) plan {
	p.targets = slices.Clone(p.targets)
	for i := range p.targets {
		p.targets[i].replicas = each
	}
	p.replicas = each
	if p.division == v1alpha1.DivisionTypeDivided {
		p.replicas = each * int32(len(p.targets))
	}
	return p
}

// changed asks for another image, more replicas and, on the last cluster, another greeting, all at once.
func (p plan) changed() plan {
	p.image = secondImage
	p.targets = slices.Clone(p.targets)
	if p.kind.replicas {
		p.replicas = 0
		for i := range p.targets {
			p.targets[i].replicas += int32(1 + i%2)
			p.replicas += p.targets[i].replicas
		}
		if p.division == v1alpha1.DivisionTypeDuplicated {
			for i := range p.targets {
				p.targets[i].replicas = p.targets[0].replicas
			}
			p.replicas = p.targets[0].replicas
		}
	}
	p.targets[len(p.targets)-1].greeting = "bonjour"
	return p
}

// with edits one target.
func (p plan) with(cluster string, edit func(*planned)) plan {
	p.targets = slices.Clone(p.targets)
	for i := range p.targets {
		if p.targets[i].cluster == cluster {
			edit(&p.targets[i])
		}
	}
	return p
}

func (p plan) clusters() []string {
	names := make([]string, 0, len(p.targets))
	for _, target := range p.targets {
		names = append(names, target.cluster)
	}
	return names
}

func (p plan) workload() backends.Workload {
	w := backends.Workload{GVK: p.kind.gvk, Resource: p.kind.resource, Namespace: p.key.Namespace, Name: p.key.Name}
	if p.kind.replicas {
		w.ReplicasPath = []string{"spec", "replicas"}
	} else {
		w.Namespace, w.Name = "", p.key.Namespace+"-"+p.key.Name
	}
	for _, name := range p.kind.feedback {
		w.Feedback = append(w.Feedback, backends.FeedbackField{Name: name, Path: ".status." + name})
	}
	return w
}

func (p plan) ref() Ref {
	w := p.workload()
	return Ref{GVK: w.GVK, NamespacedName: types.NamespacedName{Namespace: w.Namespace, Name: w.Name}}
}

func (p plan) query() backends.Query {
	return backends.Query{
		Key: p.key, Workload: p.workload(), Selectors: p.selectors, Options: p.options, Counterpart: p.counterpart, Drift: p.drift,
	}
}

// desired renders the plan; without targets while the selection is not known.
func (p plan) desired(selected bool) backends.Desired {
	d := backends.Desired{
		Query:          p.query(),
		Template:       p.manifest(p.replicas, defaultGreeting),
		Revision:       p.revision(),
		ConflictPolicy: p.conflict,
		Division:       p.division,
		Companions:     p.companions(),
		Prune:          p.prune,
	}
	if !selected {
		return d
	}
	for _, target := range p.targets {
		t := backends.Target{
			Cluster: target.cluster, Manifest: p.manifest(target.replicas, target.greeting),
			Mode: target.mode,
		}
		if p.kind.replicas {
			t.Replicas = &target.replicas
		}
		d.Targets = append(d.Targets, t)
	}
	return d
}

// revision covers everything but replicas, and does not depend on which clusters are chosen.
func (p plan) revision() string {
	hash := fnv.New32a()
	fmt.Fprint(hash, p.manifestOf(0, defaultGreeting, ""))
	for _, target := range p.targets {
		if target.greeting != defaultGreeting {
			fmt.Fprint(hash, target.cluster, target.greeting)
		}
	}
	return fmt.Sprintf("%08x", hash.Sum32())
}

func (p plan) manifest(replicas int32, greeting string) *unstructured.Unstructured {
	return p.manifestOf(replicas, greeting, p.revision())
}

func (p plan) manifestOf(replicas int32, greeting, revision string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": p.spec(replicas, greeting)}}
	w := p.workload()
	obj.SetGroupVersionKind(w.GVK)
	obj.SetNamespace(w.Namespace)
	obj.SetName(w.Name)
	obj.SetLabels(map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator,
		v1alpha1.LabelUID:       string(p.key.UID),
		"app":                   p.key.Name,
	})
	obj.SetAnnotations(map[string]string{
		v1alpha1.AnnotationOwner:    p.key.String(),
		v1alpha1.AnnotationRevision: revision,
	})
	if p.change != nil {
		p.change(obj)
	}
	return obj
}

func (p plan) spec(replicas int32, greeting string) map[string]any {
	container := map[string]any{
		"name": "main", "image": p.image,
		"env": []any{map[string]any{"name": "GREETING", "value": greeting}},
		// Schedulers may treat zero replicas of a workload with requests differently.
		"resources": map[string]any{"requests": map[string]any{"cpu": "1m", "memory": "1Mi"}},
	}
	selector := map[string]any{"matchLabels": map[string]any{"app": p.key.Name}}
	if !p.kind.replicas {
		return map[string]any{"selector": selector, "containers": []any{container}}
	}
	return map[string]any{
		"replicas": int64(replicas),
		"selector": selector,
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": p.key.Name}},
			"spec":     map[string]any{"containers": []any{container}},
		},
	}
}

// condition is a readable name of Applied.
func condition(s metav1.ConditionStatus) string {
	if s == "" {
		return "(empty)"
	}
	return string(s)
}

func pointer[T any](v T) *T { return &v }
