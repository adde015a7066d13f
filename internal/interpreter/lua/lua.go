// Package lua writes Karmada's interpreters (ResourceInterpreterCustomization, config.karmada.io/v1alpha1) from the
// definitions of the kinds, so that Karmada and we cannot say different things about a workload. It is pure.
//
// The scripts are for Karmada's virtual machine (pkg/resourceinterpreter/customized/declarative/luavm): Lua 5.1, states
// that are used again for other scripts, so that all but the one function is local, and a second of time. They never
// compare what may be nil: Karmada takes an error for no answer, and asks again for ever.
package lua

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// Scripts are a kind's interpreters, by the fields of spec.customizations. An empty one is not to be installed: the kind
// has nothing of it, or Karmada's own is right.
type Scripts struct {
	// Retention keeps in the object to write what the member's own controllers put there.
	Retention string
	// ReplicaResource and ReplicaRevision read and set replicas.
	ReplicaResource, ReplicaRevision string
	// StatusReflection is what of an object's status reaches Karmada: the fields of the kind in the status's own shape,
	// which Karmada's own interpreters read too, with generation, resourceTemplateGeneration, FieldRevision
	// and FieldUID.
	StatusReflection string
	// StatusAggregation makes one status of all clusters'.
	StatusAggregation string
	// HealthInterpretation is true when the workload is Healthy.
	HealthInterpretation string
	// DependencyInterpretation finds what the pods cannot start without.
	DependencyInterpretation string
}

const (
	// FieldRevision is the key in a reflected status that has our revision mark.
	FieldRevision = "fleetworkloadRevision"
	// FieldUID is the key in a reflected status that has the object's UID.
	FieldUID = "fleetworkloadUID"
	// LabelProbe is on a manifest that is only there to ask what the member object runs. No manifest with ProbeOnly as its value
	// can be written or created: API servers take it for no label.
	LabelProbe = "fleetworkload.io/probe"
	// ProbeOnly is the value of LabelProbe.
	ProbeOnly = "what runs is asked, and not changed"
	// probeAnswer and probeEnd are around the number, or a question mark, in what Retain refuses such a manifest with.
	probeAnswer, probeEnd = "fleetworkload probe: the member object has ", " replicas"
	// annotationResolution is Karmada's, on a manifest: whether it overwrites an object that is somebody else's.
	annotationResolution = "work.karmada.io/conflict-resolution"
	// labelManaged is on every object that any Karmada has put on a member.
	labelManaged = "karmada.io/managed"
	// Another is what Retain refuses to write over an object with that another Karmada has put on the member. It ends as Karmada says it
	// of an object that is nobody's.
	Another = "fleetworkload: another Karmada has put the object there, so that this Karmada will not manage this resource"
)

var probePattern = regexp.MustCompile(regexp.QuoteMeta(probeAnswer) + `(\d+|\?)` + regexp.QuoteMeta(probeEnd))

// ProbeAnswer reads what Retain has refused a manifest with that only probes. replicas is nil when the member object does not
// say; answered is false when the message is another one.
func ProbeAnswer(message string) (replicas *int32, answered bool) {
	found := probePattern.FindStringSubmatch(message)
	if found == nil {
		return nil, false
	}
	n, err := strconv.ParseInt(found[1], 10, 32)
	if err != nil {
		return nil, true
	}
	short := int32(n)
	return &short, true
}

//go:embed snippets
var snippets embed.FS

// script is a script while it is written.
type script struct {
	text strings.Builder
	err  error
}

// write adds generated Lua.
func (s *script) write(format string, args ...any) { fmt.Fprintf(&s.text, format, args...) }

// add adds snippets.
func (s *script) add(names ...string) {
	for _, name := range names {
		raw, err := snippets.ReadFile("snippets/" + name + ".lua")
		s.err = errors.Join(s.err, err)
		if s.text.Len() > 0 {
			s.text.WriteByte('\n')
		}
		s.text.Write(raw)
	}
}

// replace puts values in the place of names.
func (s *script) replace(names ...string) {
	text := strings.NewReplacer(names...).Replace(s.text.String())
	s.text.Reset()
	s.text.WriteString(text)
}

// Generate writes the scripts of a kind. One that is not built in has none for health, which is CEL or kstatus, and none
// that writes a status, since its CRD is not known; its status is reflected whole.
func Generate(kind *interpreter.Kind) (Scripts, error) {
	var out Scripts
	for _, part := range []struct {
		into *string
		make func(*interpreter.Kind, *script)
	}{
		{&out.Retention, retention}, {&out.ReplicaResource, replicaResource}, {&out.ReplicaRevision, replicaRevision},
		{&out.StatusReflection, reflection}, {&out.StatusAggregation, aggregation},
		{&out.HealthInterpretation, health}, {&out.DependencyInterpretation, dependencies},
	} {
		var s script
		part.make(kind, &s)
		if s.err != nil {
			return Scripts{}, fmt.Errorf("write Lua for %s: %w", kind.GVK(), s.err)
		}
		*part.into = s.text.String()
	}
	return out, nil
}

// isUnited tells whether replicas come from a UnitedDeployment's subsets when the manifest does not say.
func isUnited(kind *interpreter.Kind) bool {
	return slices.ContainsFunc(kind.Spec, func(in interpreter.Input) bool { return in.Derive == "unitedReplicas" })
}

// parallel are the kinds whose parallelism Karmada itself takes for replicas (pkg/resourceinterpreter/default: native
// jobReplica, thirdparty BroadcastJob and Workflow). Ours say that there are none, or Karmada's own would go on.
func parallel(kind *interpreter.Kind) bool {
	switch kind.Definition.Kind {
	case "Job", "BroadcastJob", "Workflow":
		return true
	default:
		return false
	}
}

func replicaResource(kind *interpreter.Kind, s *script) {
	if parallel(kind) {
		s.add("parallel")
		s.write("function GetReplicas()\n  return 0, nil\nend\n")
		return
	}
	if kind.Replicas == "" {
		return
	}
	s.add("read")
	if isUnited(kind) {
		s.add("unitedreplicas")
		s.write("\nlocal defaultReplicas = unitedReplicas\n")
	} else {
		s.write("\nlocal function defaultReplicas()\n  return %d\nend\n", defaultReplicas(kind))
	}
	s.write("\nlocal replicasPath = %s\n", keys(kind.Replicas))
	podTemplates(kind, s)
	s.add("replicas")
}

func defaultReplicas(kind *interpreter.Kind) int64 {
	for _, in := range kind.Spec {
		if in.Default != nil && in.At == kind.Replicas {
			return *in.Default
		}
	}
	return 1
}

func replicaRevision(kind *interpreter.Kind, s *script) {
	if parallel(kind) {
		s.add("parallel")
		s.write("function ReviseReplica(desiredObj)\n  return desiredObj\nend\n")
		return
	}
	if kind.Replicas == "" {
		return
	}
	s.add("read")
	switch {
	case isUnited(kind):
		s.add("unitedreplicas", "checkunited")
	case kind.CheckReplicas != nil:
		s.err = fmt.Errorf("no Lua for what replicas are refused")
	default:
		s.write("\nlocal function check()\nend\n")
	}
	s.write("\nlocal replicasPath = %s\n", keys(kind.Replicas))
	s.add("revise")
}

// keys writes a path of keys.
func keys(dotted string) string {
	parts := strings.Split(dotted, ".")
	for i := range parts {
		parts[i] = quote(parts[i])
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func podTemplates(kind *interpreter.Kind, s *script) {
	paths := make([]string, 0, len(kind.PodTemplates))
	for _, t := range kind.PodTemplates {
		paths = append(paths, keys(t))
	}
	s.write("\nlocal templates = {%s}\n", strings.Join(paths, ", "))
	s.add("podtemplate")
}

// retention: a BroadcastJob's controller labels its pod template (Karmada's own interpreter keeps the labels too, but
// for v1alpha1 only), and a Job's does so and chooses the selector, as Karmada's own interpreter knows. A Workflow could not be
// resumed with Karmada's own. Of all other kinds it is where a probe gets its answer (see LabelProbe). Whatever the kind, it is the
// one place in which an object on a member can be told from another Karmada's before it is written. A kind that is not built in
// and has no replicas is left alone: numbers may be in it that Lua does not keep, or Karmada may have an interpreter for it.
func retention(kind *interpreter.Kind, s *script) {
	if kind.Replicas == "" && !kind.BuiltIn() {
		return
	}
	s.add("read", "retainown")
	switch {
	case kind.Definition.Kind == "BroadcastJob":
		s.add("retainlabels")
	case kind.Definition.Kind == "Workflow":
		s.add("retainworkflow")
	case parallel(kind):
		s.add("retainjob")
	default:
		replicas := "{}"
		if kind.Replicas != "" {
			replicas = keys(kind.Replicas)
		}
		s.write("\nlocal replicasPath = %s\n", replicas)
		s.add("retainprobe")
	}
	s.replace("@probe@", LabelProbe, "@answer@", probeAnswer, "@end@", probeEnd, "@resolution@", annotationResolution,
		"@uid@", v1alpha1.LabelUID, "@managed@", labelManaged, "@another@", Another)
}

func reflection(kind *interpreter.Kind, s *script) {
	if !kind.BuiltIn() {
		s.add("read")
		extras(kind, s)
		s.add("reflectmarks", "reflectwhole")
	} else {
		s.add("read", "status")
		fields(kind, s, false)
		s.add("put", "reflectmarks", "reflect")
	}
	s.replace("@revision@", v1alpha1.AnnotationRevision)
}

// extras writes the table of what rules read outside the fields of the status.
func extras(kind *interpreter.Kind, s *script) {
	s.write("\nlocal extras = {\n")
	for _, f := range kind.Extras() {
		s.write("  {name = %s, path = %s},\n", quote(f.Name), path(f.Path))
	}
	s.write("}\n")
}

// aggregation: a Workflow has no status subresource (argo-workflows manifests/base/crds/minimal), so that Karmada's
// write of its status can never succeed.
func aggregation(kind *interpreter.Kind, s *script) {
	if kind.Definition.Kind == "Workflow" || !kind.BuiltIn() {
		return
	}
	s.add("read", "status")
	fields(kind, s, true)
	s.write("\nlocal statusOptional = %t\n", kind.StatusOptional)
	s.add("readstatus")
	s.write("\nlocal observes = %t\n", observes(kind))
	s.add("put", "aggregate")
}

func observes(kind *interpreter.Kind) bool {
	return slices.ContainsFunc(kind.Status, func(f interpreter.Field) bool { return f.Name == "observedGeneration" })
}

// fields writes the table of status fields, with how they combine when that is asked for.
func fields(kind *interpreter.Kind, s *script, combine bool) {
	s.write("\nlocal fields = {\n")
	for _, f := range kind.Status {
		s.write("  {name = %s, type = %s", quote(f.Name), quote(string(f.Type)))
		if f.At != f.Name {
			s.write(", path = %s", path(f.Path[1:]))
		}
		if combine && f.Combine != interpreter.PerCluster && f.Type != interpreter.TypeCount {
			s.write(", combine = %s", quote(string(f.Combine)))
			if f.Absent == interpreter.Zero {
				s.write(", zero = true")
			}
			if f.Required {
				s.write(", required = true")
			}
			if f.Combine == interpreter.Worst {
				ranks := make([]string, 0, len(f.Order))
				for i, word := range f.Order {
					ranks = append(ranks, fmt.Sprintf("[%s] = %d", quote(word), i+1))
				}
				s.write(", order = {%s}", strings.Join(ranks, ", "))
			}
		}
		s.write("},\n")
	}
	s.write("}\n")
}

func dependencies(kind *interpreter.Kind, s *script) {
	if len(kind.PodTemplates) == 0 && !kind.BuiltIn() {
		return
	}
	s.add("read", "references")
	switch kind.Definition.Kind {
	case "SidecarSet":
		s.add("pod", "depsidecar")
		return
	case "Workflow":
		s.add("depworkflow")
		return
	}
	if kind.Definition.Dependencies != nil {
		s.err = fmt.Errorf("no Lua for its dependencies")
	}
	s.add("pod")
	podTemplates(kind, s)
	s.add("deppod")
}
