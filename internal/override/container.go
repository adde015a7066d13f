package override

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// editor changes one container in place. It returns what is wrong and the remedy, or two empty strings.
type editor func(container map[string]any) (problem, remedy string)

// containerEntry is one entry of images, commands, args, env or resources.
type containerEntry struct {
	field     string
	container string
	// key of the container that the entry changes.
	key string
	// refusal is what is wrong with the entry in itself, or nil.
	refusal *backends.Error
	edit    editor
	// passes is how often the edit goes over what is there.
	passes int
}

// compileContainers compiles everything that changes containers.
func compileContainers(field string, o *v1alpha1.Override, paths Paths) ([]change, error) {
	changes := make([]change, 0, len(o.Images))
	for _, e := range containerEntries(field, o) {
		if e.refusal != nil {
			return nil, e.refusal
		}
		if paths.PodTemplate == nil {
			return nil, invalid(e.field, "", "the template's kind has no pod template", "change the manifest with patches instead")
		}
		changes = append(changes, containerChange(e, paths.PodTemplate))
	}
	return changes, nil
}

// containerEntries returns the entries in the order in which they apply.
func containerEntries(field string, o *v1alpha1.Override) []containerEntry {
	var entries []containerEntry
	for i, c := range o.Images {
		at := fmt.Sprintf("%s.images[%d]", field, i)
		entries = append(entries, containerEntry{at, c.Container, "image", checkImage(at, c), editImage(c), 0})
	}
	for i, c := range o.Commands {
		at := fmt.Sprintf("%s.commands[%d]", field, i)
		entries = append(entries, containerEntry{at, c.Container, "command", nil, editList("command", c.Command), 0})
	}
	for i, c := range o.Args {
		at := fmt.Sprintf("%s.args[%d]", field, i)
		entries = append(entries, containerEntry{at, c.Container, "args", nil, editList("args", c.Args), 0})
	}
	for i, c := range o.Env {
		at := fmt.Sprintf("%s.env[%d]", field, i)
		entries = append(entries, containerEntry{at, c.Container, "env", checkEnv(at, c), editEnv(c), len(c.Set) + len(c.Remove)})
	}
	for i, c := range o.Resources {
		at := fmt.Sprintf("%s.resources[%d]", field, i)
		entries = append(entries, containerEntry{at, c.Container, "resources", checkResources(at, c), editResources(c), 0})
	}
	return entries
}

// containerChange finds the container by name, wherever an earlier change may have put it, and edits one key of it.
func containerChange(e containerEntry, podTemplate []string) change {
	places := inContainers(podTemplate, e.key)
	return change{
		writes: places,
		passes: 1 + e.passes,
		apply: func(manifest map[string]any) (map[string]any, *failure) {
			container, names := findContainer(manifest, podTemplate, e.container)
			if container == nil {
				return nil, inapplicable(e.field+".container", e.container,
					"the pod template has no container of that name; it has "+orNone(names),
					"name one of the template's containers or init containers", inContainers(podTemplate, "name")...)
			}
			if problem, remedy := e.edit(container); problem != "" {
				return nil, inapplicable(e.field+".container", e.container, problem, remedy, places...)
			}
			return manifest, nil
		},
	}
}

// findContainer returns the container or init container of that name, to be changed in place, or the names there are.
func findContainer(manifest map[string]any, podTemplate []string, name string) (found map[string]any, names []string) {
	for _, list := range []string{"containers", "initContainers"} {
		value, _, err := unstructured.NestedFieldNoCopy(manifest, at(podTemplate, "spec", list)...)
		if err != nil {
			continue
		}
		containers, _ := value.([]any)
		for _, c := range containers {
			container, ok := c.(map[string]any)
			if !ok {
				continue
			}
			is, _ := container["name"].(string)
			if is == name {
				return container, nil
			}
			names = append(names, is)
		}
	}
	return nil, names
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func editImage(o v1alpha1.ImageOverride) editor {
	return func(container map[string]any) (string, string) {
		const remedy = "correct the container's image in spec.template"
		text, _ := container["image"].(string)
		if text == "" {
			return "the container has no image to change", remedy
		}
		was, err := parseImage(text)
		if err != nil {
			return fmt.Sprintf("the image %q of the container cannot be parsed: %v", shorten(text), err), remedy
		}
		// Parts that are good by themselves may not be together, such as a repository whose first part looks like a host.
		is := was.with(o)
		if again, err := parseImage(is.String()); err != nil || again != is {
			return fmt.Sprintf("the image would become %q, which does not have the parts asked for", shorten(is.String())),
				"set registry together with repository"
		}
		container["image"] = is.String()
		return "", ""
	}
}

func editList(key string, values []string) editor {
	return func(container map[string]any) (string, string) {
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = v
		}
		container[key] = list
		return "", ""
	}
}

func checkEnv(field string, o v1alpha1.EnvOverride) *backends.Error {
	for i, v := range o.Set {
		if slices.Contains(o.Remove, v.Name) {
			return invalid(fmt.Sprintf("%s.set[%d].name", field, i), v.Name, "the variable is both set and removed", "do one of the two")
		}
	}
	return nil
}

// editEnv replaces a variable where it stands, because a later one may refer to it with $(NAME), and appends new ones.
func editEnv(o v1alpha1.EnvOverride) editor {
	return func(container map[string]any) (string, string) {
		env, ok := container["env"].([]any)
		if !ok && container["env"] != nil {
			return "the container's env is not a list", "correct the container's env in spec.template"
		}
		env = slices.DeleteFunc(env, func(v any) bool { return slices.Contains(o.Remove, envName(v)) })
		for _, v := range o.Set {
			entry, err := envEntry(v)
			if err != nil {
				return fmt.Sprintf("the variable %s cannot be written: %v", v.Name, err), "correct its valueFrom"
			}
			if i := slices.IndexFunc(env, func(e any) bool { return envName(e) == v.Name }); i >= 0 {
				env[i] = entry
			} else {
				env = append(env, entry)
			}
		}
		if len(env) == 0 {
			delete(container, "env")
		} else {
			container["env"] = env
		}
		return "", ""
	}
}

func envEntry(v v1alpha1.EnvVar) (map[string]any, error) {
	entry := map[string]any{"name": v.Name}
	switch {
	case v.ValueFrom != nil:
		source, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v.ValueFrom)
		if err != nil {
			return nil, err
		}
		entry["valueFrom"] = source
	case v.Value != "": // typed API servers leave an empty value out, and so compares equal
		entry["value"] = v.Value
	}
	return entry, nil
}

func envName(v any) string {
	entry, _ := v.(map[string]any)
	name, _ := entry["name"].(string)
	return name
}

func checkResources(field string, o v1alpha1.ResourcesOverride) *backends.Error {
	for _, part := range []struct {
		name   string
		values map[corev1.ResourceName]v1alpha1.Quantity
	}{{"requests", o.Requests}, {"limits", o.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(part.values)) {
			if quantity := part.values[name]; quantity.Sign() < 0 {
				return invalid(fmt.Sprintf("%s.%s[%s]", field, part.name, name), quantity.String(), "a quantity must not be negative",
					"write a number with an optional unit, such as 1, 500m or 1Gi")
			}
		}
	}
	return nil
}

func editResources(o v1alpha1.ResourcesOverride) editor {
	return func(container map[string]any) (string, string) {
		for key, values := range map[string]map[corev1.ResourceName]v1alpha1.Quantity{"requests": o.Requests, "limits": o.Limits} {
			for name, quantity := range values {
				if err := unstructured.SetNestedField(container, quantity.String(), "resources", key, string(name)); err != nil {
					return "the container's resources are not what they should be: " + err.Error(),
						"correct the container's resources in spec.template"
				}
			}
		}
		return "", ""
	}
}
