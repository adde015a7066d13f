package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/importer"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/jsondiff"
)

// importReport is what is to be known about an import.
type importReport struct {
	Name        string                 `json:"name"`
	Namespace   string                 `json:"namespace"`
	Backend     string                 `json:"backend"`
	Unexpressed []importer.Unexpressed `json:"unexpressed"`
	Changes     []importer.Change      `json:"changes"`
	// Compared are the clusters whose present manifests were held against the targets'.
	Compared int `json:"compared"`
	// Refused is what the operator would say instead of carrying it out; empty when it would.
	Refused  string          `json:"refused,omitempty"`
	Notes    []string        `json:"notes"`
	TakeOver []importer.Step `json:"takeOver"`
	WayBack  []importer.Step `json:"wayBack"`

	fw      *v1alpha1.FleetWorkload
	targets int
}

// newImportReport asks the operator's own code what would become of the FleetWorkload, and compares that with what runs.
func newImportReport(result importer.Result, b backend, kinds *interpreter.Registry) importReport {
	fw := result.FleetWorkload
	r := importReport{
		Name: fw.Name, Namespace: fw.Namespace, Backend: fw.Spec.Backend, Unexpressed: result.Unexpressed, Notes: result.Notes,
		TakeOver: result.TakeOver, WayBack: result.WayBack, Compared: len(result.Running), fw: fw,
	}
	asked := fw.DeepCopy()
	asked.UID = placeholderUID
	asked.Spec.Suspend = nil // what it would come to once it goes on
	for _, c := range b.fleet.Clusters {
		if result.Running[c.Name] != nil && c.Ready != metav1.ConditionTrue {
			r.Notes = append(r.Notes, fmt.Sprintf("cluster %s cannot be reached now: the operator takes nothing over before it can, on any cluster", c.Name))
		}
	}
	kind := kindOf(fw, kinds)
	d, err := b.releasing(result.Running, kind).decide(asked, kinds)
	if err != nil {
		r.Refused = err.Error()
	} else if _, err := b.rendered(*d.Orders[0].Apply); err != nil {
		r.Refused = err.Error()
	}
	if d == nil {
		return r
	}
	targets := d.Targets()
	r.targets = len(targets)
	if result.Running != nil && (err == nil || len(targets) > 0) {
		r.Changes = importer.Compare(result.Running, targets, kind)
	}
	return r
}

func kindOf(fw *v1alpha1.FleetWorkload, kinds *interpreter.Registry) *interpreter.Kind {
	obj := &unstructured.Unstructured{}
	_ = json.Unmarshal(fw.Spec.Template.Raw, &obj.Object) //nolint:forbidigo // only apiVersion and kind are read
	return kinds.For(obj.GroupVersionKind())
}

// releasing is the backend as the operator will find it once whoever carries the workload now has let go of it: it has nothing of it, and
// the clusters tell that they run what they run.
func (b backend) releasing(running map[string]*unstructured.Unstructured, kind *interpreter.Kind) backend {
	b.fleet.Clusters = slices.Clone(b.fleet.Clusters)
	for i := range b.fleet.Clusters {
		if c := &b.fleet.Clusters[i]; running[c.Name] != nil {
			c.Ready = metav1.ConditionTrue // until then the operator would only wait for it
		}
	}
	b.observe = func(query backends.Query) (observed backends.Observation, err error) {
		offline := b
		offline.observe = nil
		if observed, err = offline.observed(query); err != nil {
			return observed, err
		}
		for i := range observed.Clusters {
			manifest := running[observed.Clusters[i].Cluster]
			if manifest == nil {
				continue
			}
			n, given, err := interpreter.Replicas(kind, manifest)
			if err == nil && !given && len(kind.ReplicasPath()) > 0 {
				n, err = interpreter.DefaultReplicas(kind, manifest)
			}
			probe := &backends.ProbeResult{Answered: true, Exists: true}
			if err == nil {
				probe.Replicas = &n
			}
			observed.Clusters[i].Probe, observed.Clusters[i].Applied = probe, metav1.ConditionUnknown
		}
		return observed, nil
	}
	return b
}

// problems words what keeps the import from being taken as it is; empty when nothing does.
func (r importReport) problems() string {
	var parts []string
	if n := len(r.Unexpressed); n > 0 {
		parts = append(parts, count(n, "thing cannot be said", "things cannot be said"))
	}
	if r.Refused != "" {
		parts = append(parts, "the operator would refuse it")
	}
	if n := len(r.Changes); n > 0 {
		parts = append(parts, count(n, "cluster would change", "clusters would change"))
	}
	if r.Compared == 0 {
		parts = append(parts, "what runs was not among what was read, so that nothing could be compared")
	}
	return strings.Join(parts, ", ")
}

func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// writeFleetWorkload prints it for kubectl apply, under what it does not say.
func (r importReport) writeFleetWorkload(out io.Writer) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.fw)
	if err != nil {
		return fmt.Errorf("encode the FleetWorkload: %w", err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	raw, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the FleetWorkload: %w", err)
	}
	for _, u := range r.Unexpressed {
		if _, err := fmt.Fprintf(out, "# not said here: %s\n", oneLine(u.String())); err != nil {
			return err
		}
	}
	_, err = out.Write(raw)
	return err
}

func (r importReport) writeJSON(out io.Writer) error {
	for _, list := range []*[]importer.Step{&r.TakeOver, &r.WayBack} {
		if *list == nil {
			*list = []importer.Step{}
		}
	}
	if r.Unexpressed == nil {
		r.Unexpressed = []importer.Unexpressed{}
	}
	if r.Changes == nil {
		r.Changes = []importer.Change{}
	}
	if r.Notes == nil {
		r.Notes = []string{}
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// writeText prints the report for people.
func (r importReport) writeText(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "FleetWorkload %s/%s on backend %s\n", r.Namespace, r.Name, r.Backend)
	if len(r.Unexpressed) > 0 {
		fmt.Fprintf(&b, "\nCannot be said:\n")
		for _, u := range r.Unexpressed {
			fmt.Fprintf(&b, "- %s: %s\n", u.Object, oneLine(u.Field+" "+u.Value))
			fmt.Fprintf(&b, "  why      %s\n  instead  %s\n", oneLine(u.Reason), oneLine(u.Instead))
		}
	}
	fmt.Fprintf(&b, "\nWhat would change once it is taken over:\n%s", r.changesText())
	if len(r.Notes) > 0 {
		fmt.Fprintf(&b, "\nNotes:\n")
		for _, note := range r.Notes {
			fmt.Fprintf(&b, "- %s\n", oneLine(note))
		}
	}
	writeSteps(&b, "To take it over, by hand, since an import writes nothing", r.TakeOver)
	writeSteps(&b, "The way back", r.WayBack)
	_, err := io.WriteString(out, b.String())
	return err
}

func writeSteps(b *strings.Builder, title string, steps []importer.Step) {
	if len(steps) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for i, step := range steps {
		fmt.Fprintf(b, "%d. %s\n", i+1, step.What)
		for _, command := range step.Commands {
			fmt.Fprintf(b, "   %s\n", command)
		}
	}
}

// changesText says what would become another.
func (r importReport) changesText() string {
	var b strings.Builder
	if r.Refused != "" {
		fmt.Fprintf(&b, "- the operator would not carry it out: %s\n", oneLine(r.Refused))
	}
	switch {
	case r.Compared == 0:
		fmt.Fprintf(&b, "- not known: what runs is not among what was read\n")
	case len(r.Changes) == 0 && r.targets > 0:
		fmt.Fprintf(&b, "- nothing: the target manifests of %s are what runs there now\n", count(r.targets, "cluster", "clusters"))
	}
	for _, c := range r.Changes {
		if c.What != "" {
			fmt.Fprintf(&b, "- %s: %s\n", c.Cluster, c.What)
			continue
		}
		pods := ""
		if c.Pods {
			pods = ", of the pods too, which most kinds make anew for it"
		}
		fmt.Fprintf(&b, "- %s: %s%s\n", c.Cluster, count(len(c.Differences), "difference", "differences"), pods)
		for _, op := range c.Differences {
			fmt.Fprintf(&b, "  %s %s%s\n", op.Op, op.Path, valueText(op))
		}
	}
	return b.String()
}

func valueText(op jsondiff.Op) string {
	if op.Op == jsondiff.OpRemove {
		return ""
	}
	raw, err := json.Marshal(op.Value)
	if err != nil {
		return ""
	}
	const limit = 120
	text := []rune(string(raw))
	if len(text) > limit {
		return " " + string(text[:limit]) + "..."
	}
	return " " + string(text)
}
