package ocm

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/internal/companions"
	"github.com/fleetworkload/fleetworkload/backends/internal/options"
)

// Names of the feedback values that the driver itself reads. Two values of one name would make every status update of
// a ManifestWork fail (the list is keyed by name), hence the prefix.
const (
	feedbackPrefix             = "fw:"
	feedbackUID                = feedbackPrefix + "uid"
	feedbackGeneration         = feedbackPrefix + "generation"
	feedbackObservedGeneration = feedbackPrefix + "observedGeneration"
	feedbackRevision           = feedbackPrefix + "revision"
	feedbackWorkload           = feedbackPrefix + "workload"
	feedbackReplicas           = feedbackPrefix + "replicas"
	feedbackOwner              = feedbackPrefix + "owner"
)

const (
	observedGenerationPath = ".status.observedGeneration"
	feedbackUIDPath        = ".metadata.uid"
	feedbackOwnerPath      = `.metadata.ownerReferences[?(@.kind=="AppliedManifestWork")].name`
	// maxManifest is what OCM's webhook admits by default (ocm pkg/work/webhook/common, ManifestValidator); the hub may
	// have another limit, so it is only named in the remedy.
	maxManifest = "500 KiB"
)

// Render renders the hub's objects for a desired state in the order in which they are written, as they are when
// everything has settled: the set bindings, the Placement, and for each cluster its prerequisites, the companion works of
// companions, and its ManifestWork. Those of different clusters share what they deliver.
func Render(desired backends.Desired, opts Options) ([]*unstructured.Unstructured, error) {
	plan, err := newPlan(desired, opts.withDefaults())
	if err != nil {
		return nil, err
	}
	objects := slices.Concat(plan.bindings, []*unstructured.Unstructured{plan.placement})
	for _, target := range plan.targets {
		objects = append(objects, target.prerequisites...)
		for _, c := range target.companionWorks {
			work, annotations := inNamespace(c.work, target.cluster), c.work.GetAnnotations()
			companions.ReadNeed(nil).Owning(desired.Key, nil).Write(annotations)
			work.SetAnnotations(annotations)
			objects = append(objects, work)
		}
		objects = append(objects, target.work)
	}
	return objects, nil
}

// plan is everything that Apply wants on the hub.
type plan struct {
	desired   backends.Desired
	bindings  []*unstructured.Unstructured
	placement *unstructured.Unstructured
	targets   []clusterPlan
	variants  *variants
}

// clusterPlan is what Apply wants on the hub for one cluster.
type clusterPlan struct {
	cluster        string
	mode           backends.Mode
	prerequisites  []*unstructured.Unstructured
	companionWorks []companionWork
	// work is the ManifestWork in its final form; see variant for the others. Clusters may share its spec, which must not be
	// changed.
	work *unstructured.Unstructured
}

func newPlan(desired backends.Desired, opts Options) (plan, error) {
	p := plan{desired: desired, variants: &variants{}}
	placement, err := renderPlacement(desired.Query, opts)
	if err != nil {
		return plan{}, err
	}
	p.placement = placement
	p.bindings = renderBindings(desired.Key.Namespace, opts)
	as, err := executor(desired.Query)
	if err != nil {
		return plan{}, err
	}
	type variety struct {
		manifest *unstructured.Unstructured
		adopts   bool
	}
	rendered, companionWorks := map[variety]*unstructured.Unstructured{}, map[variety]companionWork{}
	carry := func(c backends.Companion, t clusterPlan) companionWork {
		v := variety{c.Object, t.mode == backends.ModeAdopt}
		made, known := companionWorks[v]
		if !known {
			made = renderCompanionWork(desired.Key, c, v.adopts, as)
			companionWorks[v] = made
		}
		return companionWork{companion: c, work: inNamespace(made.work, t.cluster)}
	}
	configs := map[bool]map[string]any{}
	prerequisites := renderPrerequisites("", desired.Workload)
	needs := map[*unstructured.Unstructured][]*unstructured.Unstructured{}
	needsOf := func(c backends.Companion) []*unstructured.Unstructured {
		made, known := needs[c.Object]
		if !known {
			made = renderPrerequisites("", backends.Workload{
				GVK: c.Object.GroupVersionKind(), Resource: c.Resource, Namespace: c.Object.GetNamespace(),
				NamespaceLabels: desired.Workload.NamespaceLabels,
			})
			needs[c.Object] = made
		}
		return made
	}
	for _, target := range desired.Wanted() {
		v := variety{target.Manifest, target.Mode == backends.ModeAdopt}
		work, known := rendered[v]
		if !known {
			config, known := configs[v.adopts]
			if !known {
				if config, err = renderConfig(desired, v.adopts); err != nil {
					return plan{}, err
				}
				configs[v.adopts] = config
			}
			if work, err = renderWork(desired, target, config, as); err != nil {
				return plan{}, err
			}
			rendered[v] = work
		}
		t := clusterPlan{cluster: target.Cluster, mode: target.Mode, work: inNamespace(work, target.Cluster)}
		for _, prerequisite := range prerequisites {
			t.prerequisites = append(t.prerequisites, inNamespace(prerequisite, target.Cluster))
		}
		t.addCompanions(desired, carry, needsOf)
		p.targets = append(p.targets, t)
	}
	return p, nil
}

// addCompanions adds the companion works of what travels along, and what the cluster needs for them.
func (t *clusterPlan) addCompanions(
	desired backends.Desired, carry func(backends.Companion, clusterPlan) companionWork, needsOf func(backends.Companion) []*unstructured.Unstructured,
) {
	has := map[string]bool{}
	for _, prerequisite := range t.prerequisites {
		has[prerequisite.GetName()] = true
	}
	for _, c := range desired.Companions {
		if !c.NeededOn(t.cluster) {
			continue
		}
		t.companionWorks = append(t.companionWorks, carry(c, *t))
		for _, prerequisite := range needsOf(c) {
			if !has[prerequisite.GetName()] {
				has[prerequisite.GetName()] = true
				t.prerequisites = append(t.prerequisites, inNamespace(prerequisite, t.cluster))
			}
		}
	}
}

// observes tells whether the cluster's objects are not to be written or removed.
func (t clusterPlan) observes() bool { return !t.mode.Owns() }

// held tells whether they are to stay as they are.
func (t clusterPlan) held() bool { return t.mode == backends.ModeHold }

// probes tells whether the cluster is only asked what is there.
func (t clusterPlan) probes() bool { return t.mode == backends.ModeProbe }

// adopts tells whether what is found there is taken over.
func (t clusterPlan) adopts(desired backends.Desired) bool {
	return t.mode == backends.ModeAdopt || desired.ConflictPolicy == v1alpha1.ConflictPolicyAdopt
}

// takes is adopts for a companion. To a hand-over, a shared one that is somebody else's stays so.
func (t clusterPlan) takes(desired backends.Desired, c backends.Companion) bool {
	return t.adopts(desired) && (!c.Shared || desired.ConflictPolicy == v1alpha1.ConflictPolicyAdopt)
}

// renderBindings binds the configured cluster sets in the namespace. A binding's name is its set's: the placement
// controller looks the set up by it (ocm pkg/placement/controllers/scheduling, getValidManagedClusterSetBindings).
func renderBindings(namespace string, opts Options) []*unstructured.Unstructured {
	var bindings []*unstructured.Unstructured
	for _, set := range slices.Sorted(slices.Values(opts.ClusterSets)) {
		binding := newObject(bindingGVK, namespace, set)
		binding.Object["spec"] = map[string]any{"clusterSet": set}
		bindings = append(bindings, binding)
	}
	return bindings
}

// renderConfig is what the agent is told of a workload. Clusters that differ in their manifests share it.
func renderConfig(desired backends.Desired, adopts bool) (map[string]any, error) {
	rules, err := feedbackRules(desired.Workload)
	if err != nil {
		return nil, err
	}
	if adopts {
		rules = append(rules, markRules()...)
	}
	config := map[string]any{
		"resourceIdentifier": map[string]any{
			"group": desired.Workload.GVK.Group, "resource": desired.Workload.Resource,
			"namespace": desired.Workload.Namespace, "name": desired.Workload.Name,
		},
		"feedbackRules":      []any{map[string]any{"type": string(workv1.JSONPathsType), "jsonPaths": rules}},
		"feedbackScrapeType": string(scrapeType(desired.Workload.GVK)),
		"updateStrategy":     applying(false),
	}
	if o := desired.Options; o != nil && o.OCM != nil {
		return mergeManifestWork(config, o.OCM.ManifestWork)
	}
	return config, nil
}

// renderWork renders the ManifestWork of one cluster in its final form: server-side apply, so that fields of others on the member are left
// alone, and Orphan, so that deleting it by accident deletes nothing.
func renderWork(desired backends.Desired, target backends.Target, config, as map[string]any) (*unstructured.Unstructured, error) {
	manifest, err := deliverable(desired.Workload, target)
	if err != nil {
		return nil, err
	}
	spec := map[string]any{
		"workload":        map[string]any{"manifests": []any{manifest}},
		"manifestConfigs": []any{config},
		"deleteOption":    map[string]any{"propagationPolicy": string(workv1.DeletePropagationPolicyTypeOrphan)},
	}
	if as != nil {
		spec["executor"] = as
	}
	work := newOwnedObject(manifestWorkGVK, desired.Key, target.Cluster, workName(desired.Key))
	work.Object["spec"] = spec
	annotate(work, annotationHash, hashOf(spec))
	return work, nil
}

// scrapeType is how an agent learns of a member object's status. It watches, but for kinds that become another generation each time
// they are applied: OpenKruise's webhook fills the lists of a UnitedDeployment, which server-side apply has emptied of what the
// manifest does not have. The agent patches a ManifestWork's status from two controllers, and each gives way to the other's write
// (ocm pkg/work/spoke/controllers, PatchStatus with a resource version). Of such a kind the one that watches has written before the
// one that applied can say so, again and again: Applied came minutes late.
func scrapeType(gvk schema.GroupVersionKind) workv1.FeedbackScrapeType {
	if gvk.Group == "apps.kruise.io" && gvk.Kind == "UnitedDeployment" {
		return workv1.FeedbackPollType
	}
	return workv1.FeedbackWatchType
}

// deliverable is the target manifest without what only an API server may set, and which OCM's webhook or agent would
// stumble over. It shares what is below metadata and spec.
func deliverable(workload backends.Workload, target backends.Target) (map[string]any, error) {
	if target.Manifest == nil || target.Manifest.GetName() == "" || target.Manifest.GetGenerateName() != "" {
		return nil, &backends.Error{
			Code: backends.CodeInvalidTemplate, Field: "spec.template.metadata.name",
			Message: "the manifest for cluster " + target.Cluster + " has no name of its own",
			Remedy:  "set metadata.name and no generateName",
		}
	}
	manifest := maps.Clone(target.Manifest.Object)
	delete(manifest, "status")
	metadata, _ := manifest["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	manifest["metadata"] = metadata
	for _, field := range []string{
		"creationTimestamp", "uid", "resourceVersion", "generation", "managedFields", "selfLink", "ownerReferences",
	} {
		delete(metadata, field)
	}
	if workload.Namespace == "" {
		// The agent would ask for a namespaced resource (ocm#323).
		delete(metadata, "namespace")
	}
	return manifest, nil
}

// feedbackRules asks for the kind's status fields and for what proves that they speak about the newest manifest
// (facts: ocm pkg/work/spoke/statusfeedback/reader.go evaluates paths over the whole object).
func feedbackRules(workload backends.Workload) ([]any, error) {
	fields := []backends.FeedbackField{
		{Name: feedbackUID, Path: feedbackUIDPath},
		{Name: feedbackGeneration, Path: ".metadata.generation"},
		{Name: feedbackObservedGeneration, Path: observedGenerationPath},
		{Name: feedbackRevision, Path: ".metadata.annotations." + escapePath(v1alpha1.AnnotationRevision)},
		{Name: feedbackWorkload, Path: feedbackWorkloadPath()},
		{Name: feedbackOwner, Path: feedbackOwnerPath},
	}
	if len(workload.ReplicasPath) > 0 {
		path := ""
		for _, segment := range workload.ReplicasPath {
			path += "." + escapePath(segment)
		}
		fields = append(fields, backends.FeedbackField{Name: feedbackReplicas, Path: path})
	}
	seen := map[string]string{}
	var rules []any
	for _, field := range append(fields, workload.Feedback...) {
		if path, taken := seen[field.Name]; taken {
			if path == field.Path {
				continue
			}
			return nil, fmt.Errorf("feedback %q of %s has two paths, %s and %s", field.Name, workload.GVK.Kind, path, field.Path)
		}
		seen[field.Name] = field.Path
		rules = append(rules, map[string]any{"name": field.Name, "path": field.Path})
	}
	return rules, nil
}

// ownerRules ask whose an object is, and nothing else.
func ownerRules() []any {
	return []any{
		map[string]any{"name": feedbackUID, "path": feedbackUIDPath},
		map[string]any{"name": feedbackWorkload, "path": feedbackWorkloadPath()},
		map[string]any{"name": feedbackOwner, "path": feedbackOwnerPath},
	}
}

func feedbackWorkloadPath() string { return ".metadata.labels." + escapePath(v1alpha1.LabelUID) }

// escapePath makes one segment of a JSONPath of a key with dots.
func escapePath(key string) string { return strings.ReplaceAll(key, ".", `\.`) }

// workOption is what the agent reports of the workload, and what of it on the member it leaves alone. What decides whether a member object is
// written or deleted, and under which account, cannot be set.
func workOption() options.Option {
	return options.Option{
		Field: "spec.backendOptions.ocm.manifestWork", Allowed: []string{"manifestConfigs"},
		Instead: map[string]string{
			"workload":     "use spec.template and spec.overrides, or spec.companions for further objects",
			"deleteOption": "use spec.deletionPolicy",
			"executor":     "use spec.backendOptions.ocm.executor",
		},
	}
}

func configOption() options.Option {
	return options.Option{
		Field:   workOption().Field + ".manifestConfigs[0]",
		Allowed: []string{"resourceIdentifier", "feedbackRules", "conditionRules", "updateStrategy.type", "updateStrategy.serverSideApply.ignoreFields"},
	}
}

// mergeManifestWork merges the one entry of spec.backendOptions.ocm.manifestWork.manifestConfigs over the workload's. Feedback rules are
// added to the driver's own; everything else is a merge patch.
func mergeManifestWork(config map[string]any, raw *runtime.RawExtension) (map[string]any, error) {
	patch, err := workOption().Decode(raw)
	if err != nil || patch["manifestConfigs"] == nil {
		return config, err
	}
	entries, _ := patch["manifestConfigs"].([]any)
	if len(entries) != 1 || entries[0] == nil {
		return nil, workOption().Invalid("manifestConfigs", "must have exactly one entry, for the workload", nil)
	}
	encoded, err := json.Marshal(entries[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configOption().Field, err)
	}
	entry, err := configOption().Decode(&runtime.RawExtension{Raw: encoded})
	if err != nil {
		return nil, err
	}
	if id, set := entry["resourceIdentifier"]; set && hashOf(id) != hashOf(config["resourceIdentifier"]) {
		return nil, configOption().Invalid("resourceIdentifier", "is not the workload's; leave it out", nil)
	}
	rules, _ := entry["feedbackRules"].([]any)
	delete(entry, "feedbackRules")
	merged, err := configOption().Merge(config, entry, &workv1.ManifestConfigOption{})
	if err != nil {
		return nil, err
	}
	own, _ := merged["feedbackRules"].([]any)
	merged, err = configOption().Merge(merged, map[string]any{"feedbackRules": slices.Concat(own, rules)}, &workv1.ManifestConfigOption{})
	if err != nil {
		return nil, err
	}
	return merged, checkConfig(merged)
}

// ignorable are the paths that an agent may ignore. The revision and the owner are in metadata, and the agent puts a path into a template as
// it is, so that one with braces reaches anything (removeFieldByJSONPath in ocm pkg/work/spoke/apply/server_side_apply.go).
var ignorable = regexp.MustCompile(`^\.spec(\.[A-Za-z][A-Za-z0-9_-]*)+$`)

// checkConfig refuses what would take the driver's control away, and fills in defaults inside atomic lists.
func checkConfig(config map[string]any) error {
	invalid := func(path, message string) error { return configOption().Invalid(path, message, nil) }
	strategy, _ := config["updateStrategy"].(map[string]any)
	if strategy["type"] != string(workv1.UpdateStrategyTypeServerSideApply) {
		return invalid("updateStrategy.type", "must stay ServerSideApply")
	}
	apply, _ := strategy["serverSideApply"].(map[string]any)
	ignored, _ := apply["ignoreFields"].([]any)
	for _, item := range ignored {
		m, isObject := item.(map[string]any)
		paths, _ := m["jsonPaths"].([]any)
		plain := isObject && !slices.ContainsFunc(paths, func(path any) bool {
			text, _ := path.(string)
			return !ignorable.MatchString(text)
		})
		if !plain {
			return invalid("updateStrategy.serverSideApply.ignoreFields", "can only have paths of plain names that begin with .spec, such as .spec.replicas")
		}
		if m["condition"] == nil {
			m["condition"] = string(workv1.IgnoreFieldsConditionOnSpokePresent)
		}
	}
	if problem := wrongFeedback(config); problem != "" {
		return invalid("feedbackRules", problem)
	}
	conditions, _ := config["conditionRules"].([]any)
	for _, rule := range conditions {
		m, _ := rule.(map[string]any)
		if m["condition"] == workv1.WorkComplete || m["type"] == string(workv1.WellKnownConditionsType) {
			// The agent never writes a complete manifest again, not even to orphan it (ocm pkg/work/spoke).
			return invalid("conditionRules", "a condition Complete would freeze the workload")
		}
	}
	return nil
}

// wrongFeedback says what is wrong with rules that were added; it is empty when nothing is.
func wrongFeedback(config map[string]any) string {
	names := map[string]bool{}
	rules, _ := config["feedbackRules"].([]any)
	for _, rule := range rules {
		m, _ := rule.(map[string]any)
		if m["type"] != string(workv1.JSONPathsType) {
			return "only rules of type JSONPaths can be added"
		}
		paths, _ := m["jsonPaths"].([]any)
		for _, path := range paths {
			m, _ := path.(map[string]any)
			name, _ := m["name"].(string)
			if names[name] {
				return fmt.Sprintf("the name %q is taken", name)
			}
			names[name] = true
		}
	}
	return ""
}

// inNamespace is the object for another cluster. Only its metadata may be changed: the rest is the same.
func inNamespace(obj *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(obj.Object)}
	metadata, _ := obj.Object["metadata"].(map[string]any)
	out.Object["metadata"] = maps.Clone(metadata)
	out.SetNamespace(namespace)
	return out
}

// variants keep those that were made from specs of a plan: many clusters need the same one.
type variants struct {
	mu   sync.Mutex
	made map[variation]*unstructured.Unstructured
}

// variation tells variants of one plan apart. Specs with one hash are equal.
type variation struct {
	hash string
	move move
}

// of is variant, of which only the metadata may be changed.
func (v *variants) of(work *unstructured.Unstructured, m move) *unstructured.Unstructured {
	m.write, m.onEvidence, m.waiting = 0, false, "" // how it is written makes no other one
	key := variation{work.GetAnnotations()[annotationHash], m}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.made[key] == nil {
		if v.made == nil {
			v.made = map[variation]*unstructured.Unstructured{}
		}
		v.made[key] = variant(work, m)
	}
	return inNamespace(v.made[key], work.GetNamespace())
}

// variant is the ManifestWork with another update strategy and delete option; see next for when.
func variant(work *unstructured.Unstructured, m move) *unstructured.Unstructured {
	if m.strategy == workv1.UpdateStrategyTypeServerSideApply && m.deletion == workv1.DeletePropagationPolicyTypeOrphan &&
		m.removing == "" && !m.held && !m.observe && m.clean == "" && m.force == forced(configOf(work)) {
		return work.DeepCopy()
	}
	copied := work.DeepCopy()
	configs, _, _ := unstructured.NestedSlice(copied.Object, "spec", "manifestConfigs")
	if len(configs) == 1 {
		if config, ok := configs[0].(map[string]any); ok {
			setStrategy(config, m)
			// The fields exist: renderWork has put them there.
			_ = unstructured.SetNestedSlice(copied.Object, configs, "spec", "manifestConfigs")
		}
	}
	_ = unstructured.SetNestedField(copied.Object, string(m.deletion), "spec", "deleteOption", "propagationPolicy")
	dropExecutor(copied, m)
	if m.removing != "" {
		annotate(copied, annotationRemoving, m.removing)
	}
	if m.held {
		annotate(copied, annotationHeld, "true")
	}
	switch {
	case m.probe:
		annotate(copied, annotationObserved, probeOfObserved)
	case m.observe:
		annotate(copied, annotationObserved, "true")
	}
	inManifests(copied, func(manifest map[string]any) {
		unstructured.RemoveNestedField(manifest, "metadata", "annotations", annotationAsked)
		if asksAgain(m.removing) {
			// metadata is there: a manifest has a name.
			_ = unstructured.SetNestedField(manifest, "again", "metadata", "annotations", annotationAsked)
		}
	})
	switch {
	case m.clean != "":
		takeMarks(copied, m.clean)
	case m.removing != "":
		dropMarks(copied)
	}
	spec, _, _ := unstructured.NestedMap(copied.Object, "spec")
	annotate(copied, annotationHash, hashOf(spec))
	return copied
}
