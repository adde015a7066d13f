package interpreter

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// genericDefinition are the fields that kstatus reads of any kind (cli-utils pkg/kstatus/status/generic.go).
func genericDefinition() Definition {
	return Definition{
		Status: []Field{
			{Name: "observed", At: fieldObservedGeneration, Type: TypeLong},
			conditionField("Ready", All), conditionReason("Ready"),
			conditionField("Reconciling", Any), conditionField("Stalled", Any), conditionReason("Stalled"),
		},
		Rules: []Rule{{Health: v1alpha1.HealthUnknown, Reason: ReasonNoHealthSignal}},
	}
}

// genericState asks kstatus. kstatus takes an object that says nothing for a healthy one; here that is Unknown, because
// an object that says nothing is no evidence.
func (k *Kind) genericState(report Report, env *[maxSlots]value) (State, error) {
	if k.generic == genericVersion {
		return State{Health: v1alpha1.HealthUnknown, Reason: ReasonUnknownVersion, Message: fmt.Sprintf(
			"applied; %s %s is known, but not in version %s: describe it under kinds in the operator's configuration",
			k.Group, k.Definition.Kind, k.Version)}, nil
	}
	s, err := k.evaluate(env)
	switch {
	case err != nil || s.Reason == ReasonDeleting:
		return s, err
	case s.Reason == ReasonWaitingForStatus:
		return noSignal(), nil
	}
	at := func(name string) value { return env[k.vars[name].slot] }
	object := k.object(report, env)
	result, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		return malformed(fmt.Errorf("kstatus: %w", err))
	}
	signal := at("conditionReady").set || (at("observed").set && at(fieldGeneration).set)
	s = State{Reason: ReasonKstatus, Message: shorten(result.Message)}
	switch result.Status {
	case status.FailedStatus:
		s.Health = v1alpha1.HealthDegraded
	case status.InProgressStatus, status.TerminatingStatus:
		s.Health = v1alpha1.HealthProgressing
	case status.CurrentStatus:
		s.Health, s.Message = v1alpha1.HealthHealthy, ""
		if !signal {
			return noSignal(), nil
		}
	default:
		s.Health = v1alpha1.HealthUnknown
	}
	return s, nil
}

func noSignal() State {
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
		if _, flat := report.Status[f.Name]; flat || f.Name == fieldGeneration {
			put(f.Path, plain(v, f.Type))
		}
	}
	if k.described == nil {
		return object
	}
	for _, f := range k.described.extra {
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
	case TypeInt, TypeLong:
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
