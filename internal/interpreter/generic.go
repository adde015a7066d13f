package interpreter

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// genericMode is how a kind without rules is treated.
type genericMode int

const (
	// genericNone is for kinds with rules.
	genericNone genericMode = iota
	// genericKstatus leaves health to kstatus.
	genericKstatus
	// genericVersion is for a version that is not known of a kind that is.
	genericVersion
)

// generic is what kstatus reads of a kind without rules of ours (cli-utils pkg/kstatus/status/core.go and generic.go). What
// it does not find it takes for well, so that Current counts only with evidence: a report may be no more than a part.
type generic struct {
	// status are the fields that it reads there, extras what it reads elsewhere.
	status []Field
	extras []Extra
	// rules come before kstatus is asked.
	rules []Rule
	// evidence are paths from the object's root. Current counts when all of one line are there.
	evidence [][]Path
	// known is true for kinds of which kstatus knows more than conditions.
	known bool
}

// observation is a field of the kinds whose controllers report what they have observed. It has not the name that makes
// others wait for it, since not all such kinds have it.
func observation() Field { return Field{Name: "observed", At: fieldObservedGeneration, Type: TypeLong} }

var (
	statusKey      = Segment{Key: "status"}
	generationPath = Path{{Key: "metadata"}, {Key: fieldGeneration}}
	observedPath   = Path{statusKey, {Key: fieldObservedGeneration}}
	phasePath      = Path{statusKey, {Key: "phase"}}
	clusterIPPath  = Path{{Key: "spec"}, {Key: "clusterIP"}}
)

func conditionPath(kind string) Path {
	return Path{statusKey, {Key: "conditions", By: "type", Is: kind}, {Key: "status"}}
}

// genericOf is what kstatus reads of the kind.
func genericOf(kind schema.GroupKind) generic {
	switch kind {
	case schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Kind: "Secret"}:
		return generic{known: true, evidence: [][]Path{{}}} // to be there is all that they can do
	case schema.GroupKind{Kind: "Service"}:
		return generic{
			known: true, extras: []Extra{{Name: "clusterIP", Path: clusterIPPath}},
			evidence: [][]Path{{clusterIPPath}, {Path{{Key: "spec"}, {Key: "externalName"}}}},
		}
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return generic{known: true, status: []Field{stringField("phase", PerCluster)}, evidence: [][]Path{{phasePath}}}
	case schema.GroupKind{Kind: "Pod"}:
		return generic{
			known: true, evidence: [][]Path{{phasePath}},
			status: []Field{
				observation(), stringField("phase", PerCluster), stringField("reason", PerCluster), conditionField("Ready", All),
				conditionField("PodScheduled", All), conditionReason("PodScheduled"),
				{Name: "crashLooping", At: "containerStatuses[state.waiting.reason=CrashLoopBackOff].name", Type: TypeString},
			},
			// kstatus takes a Pod for Current that has ended, in whichever way.
			rules: []Rule{{When: `phase == "Failed"`, Health: v1alpha1.HealthDegraded, Reason: ReasonFailed,
				Message: "the pod has failed: {reason}"}},
		}
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}:
		return generic{
			known: true, evidence: [][]Path{{generationPath, observedPath, Path{statusKey, {Key: "replicas"}}}},
			status: append([]Field{observation(), conditionField("ReplicaFailure", Any), told("replicas")},
				fields(counter, "fullyLabeledReplicas", "readyReplicas", "availableReplicas")...),
		}
	case schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}:
		return generic{known: true, evidence: [][]Path{{generationPath, observedPath}}, status: []Field{observation()}}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return generic{
			known: true, evidence: [][]Path{{conditionPath("NamesAccepted"), conditionPath("Established")}},
			status: []Field{
				observation(), conditionField("NamesAccepted", All), conditionReason("NamesAccepted"),
				conditionField("Established", All), conditionReason("Established"),
			},
		}
	default:
		return generic{
			evidence: [][]Path{{conditionPath("Ready")}, {generationPath, observedPath}},
			status: []Field{
				observation(), conditionField("Ready", All), conditionReason("Ready"),
				conditionField("Reconciling", Any), conditionField("Stalled", Any), conditionReason("Stalled"),
			},
		}
	}
}

// genericState asks kstatus, which takes an object that says nothing for a healthy one. Here that is no evidence.
func (k *Kind) genericState(report Report, env *[maxSlots]value) (State, error) {
	if k.generic == genericVersion {
		return State{Health: v1alpha1.HealthUnknown, Reason: ReasonUnknownVersion, Message: fmt.Sprintf(
			"applied; %s %s is known, but not in version %s: describe it under kinds in the operator's configuration",
			k.Group, k.Definition.Kind, k.Version)}, nil
	}
	s, err := k.evaluate(env)
	if err != nil || (s.Reason != ReasonKstatus && s.Reason != ReasonWaitingForStatus) {
		return s, err
	}
	s = State{Reason: ReasonKstatus}
	object := k.object(report, env)
	result, err := compute(object)
	if err != nil {
		return malformed(fmt.Errorf("kstatus: %w", err))
	}
	s.Message = result.Message
	if s.Message == "" && len(result.Conditions) > 0 {
		s.Message = result.Conditions[0].Reason
	}
	s.Message = shorten(s.Message)
	switch result.Status {
	case status.FailedStatus:
		s.Health = v1alpha1.HealthDegraded
	case status.InProgressStatus, status.TerminatingStatus:
		s.Health = v1alpha1.HealthProgressing
	case status.CurrentStatus:
		if !k.evident(object) {
			return k.noSignal(), nil
		}
		s.Health, s.Message = v1alpha1.HealthHealthy, ""
	default:
		s.Health = v1alpha1.HealthUnknown
	}
	return s, nil
}

// compute is kstatus. It trusts that container statuses have their types, and the clock for how long a pod has not been
// scheduled: without a time of creation it is one that cannot be.
func compute(object map[string]any) (result *status.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the status has not the types of its kind: %v", p)
		}
	}()
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	return status.Compute(&unstructured.Unstructured{Object: object})
}

// evident tells whether all that kstatus reads of a healthy object is there.
func (k *Kind) evident(object map[string]any) bool {
	return slices.ContainsFunc(k.evidence, func(line []Path) bool {
		return !slices.ContainsFunc(line, func(p Path) bool {
			v, err := p.lookup(object)
			return err != nil || v == nil
		})
	})
}

func (k *Kind) noSignal() State {
	if k.knownToKstatus {
		return State{Health: v1alpha1.HealthProgressing, Reason: ReasonWaitingForStatus, Message: "waiting for a status"}
	}
	return State{Health: v1alpha1.HealthUnknown, Reason: ReasonNoHealthSignal,
		Message: "applied; this kind gives no sign of health: describe it under kinds in the operator's configuration"}
}

// object puts a report together again as the object that it speaks about: the manifest, and the status in its own shape.
func (k *Kind) object(report Report, env *[maxSlots]value) map[string]any {
	object := map[string]any{}
	if report.Manifest != nil {
		for key, v := range report.Manifest.Object {
			object[key] = v
		}
	}
	object["apiVersion"], object["kind"] = k.GVK().GroupVersion().String(), k.Definition.Kind
	metadata, _ := object["metadata"].(map[string]any)
	object["metadata"] = copied(metadata)
	nested := copied(report.Status)
	delete(nested, fieldGeneration)
	object["status"] = nested
	own := map[string]bool{"metadata": true, "status": true}
	put := func(path Path, v any) {
		if root := path[0].Key; !own[root] {
			object[root], own[root] = copiedValue(object[root]), true
		}
		path.put(object, v)
	}
	for i, f := range k.Status {
		v := env[i]
		if !v.set || f.Name == fieldTemplateGeneration {
			continue
		}
		_, flat := report.Status[f.Name]
		if nested, err := f.Path.lookup(object); flat || f.Name == fieldGeneration || (err == nil && nested != nil) {
			// What is in its place already is put there as an int64 at least: kstatus takes a float64 for no number.
			put(f.Path, plain(v, f.Type))
		}
	}
	for _, f := range k.extras {
		if v, flat := report.Status[f.Name]; flat {
			put(f.Path, v)
		}
	}
	return object
}

// copied is a deep copy: reports, and the manifests that are sent, are not to be changed.
func copied(m map[string]any) map[string]any {
	out := make(map[string]any, len(m)+1)
	for key, v := range m {
		out[key] = copiedValue(v)
	}
	return out
}

func copiedValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return copied(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copiedValue(v[i])
		}
		return out
	default:
		return v
	}
}

// plain is the JSON value of a variable.
func plain(v value, t Type) any {
	switch t {
	case TypeInt, TypeLong, TypeCount:
		return v.i
	case TypeBool:
		return v.i == 1
	case TypePartition:
		if v.s == "" {
			return v.i
		}
		return v.s
	default:
		return v.s
	}
}
