package lua_test

import (
	"math"
	"math/rand"
	"slices"
	"strings"

	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// generator makes objects and statuses: plausible ones, and with absent, null, wrong-typed and huge fields.
type generator struct {
	*rand.Rand
	kind *interpreter.Kind
	// wrong is the share of fields, in percent, that are not what their API says.
	wrong int
	// desired and generation are what most fields agree on, so that workloads are healthy often enough.
	desired, generation int64
	// held is true for an object of which all is well, but for how many pods are updated: its health hangs on how many
	// pods a partition keeps old, to the pod.
	held bool
}

// seeded makes the same numbers of a seed every time.
func seeded(seed int64) *rand.Rand { return rand.New(rand.NewSource(seed)) }

func newGenerator(r *rand.Rand, kind *interpreter.Kind) *generator {
	g := &generator{Rand: r, kind: kind, wrong: []int{0, 0, 0, 2, 30}[r.Intn(5)], desired: int64(r.Intn(4)), generation: int64(1 + r.Intn(2))}
	updates := slices.ContainsFunc(kind.Status, func(f interpreter.Field) bool { return strings.HasPrefix(f.Name, "updated") })
	if g.held = updates && g.percent(40); g.held {
		g.wrong, g.desired = 0, int64(r.Intn(12))
	}
	return g
}

func (g *generator) percent(n int) bool { return g.Intn(100) < n }

func pick[T any](g *generator, of ...T) T { return of[g.Intn(len(of))] }

// junk is what some API does not give a scalar. Nulls are among it: they are absence.
func (g *generator) junk() any {
	return pick[any](g, nil, "x", "", "9", int64(-1), int64(1)<<31, int64(1)<<60, 1.5, 1e300, true, []any{}, []any{int64(1)},
		map[string]any{}, map[string]any{"a": "b"})
}

func (g *generator) scalar(t interpreter.Type) any {
	if g.percent(g.wrong) {
		v := g.junk()
		if o, isObject := v.(map[string]any); isObject && len(o) == 0 && t == interpreter.TypeCount {
			v = nil // an empty object is an empty list to Lua: see byNature
		}
		return v
	}
	switch t {
	case interpreter.TypeInt:
		if g.held || g.percent(75) {
			return g.desired
		}
		if g.percent(1) {
			return int64(math.MaxInt32)
		}
		return int64(g.Intn(5))
	case interpreter.TypeCount:
		return pick[any](g, int64(1), []any{map[string]any{"kind": "Job", "name": "a"}}, []any{map[string]any{"name": "a"}, map[string]any{"kind": "Job"}})
	case interpreter.TypeLong:
		if g.held || g.percent(85) {
			return g.generation
		}
		return int64(g.Intn(4))
	case interpreter.TypeBool:
		return g.percent(20) && !g.held
	case interpreter.TypePartition:
		return pick[any](g, int64(0), int64(0), int64(1), int64(2), int64(9), int64(-1), "0%", "010%", "50%", "33.3%", "66.67%", "100%", "0100%",
			"99.999%", "150%", "abc", "50", "%", "000000000000000050%", "1.%", "0x10%", " 5%", "5%\n")
	case interpreter.TypeObject:
		return pick(g, map[string]any{}, map[string]any{"matchLabels": map[string]any{"a": "b"}})
	default:
		return pick[any](g, "True", "True", "False", "", "a", "b", "Running", "Succeeded", "Failed", "Error", "completed", "failed", "paused",
			"2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "ProgressDeadlineExceeded", "3/4", "ä\x00\"\\")
	}
}

// place writes a value at a path, making what is missing on the way.
func place(root map[string]any, path interpreter.Path, v any) {
	at := root
	for i, s := range path {
		if s.By == "" {
			if i == len(path)-1 {
				at[s.Key] = v
				return
			}
			next, ok := at[s.Key].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[s.Key] = next
			}
			at = next
			continue
		}
		list, _ := at[s.Key].([]any)
		var next map[string]any
		for _, element := range list {
			if e, ok := element.(map[string]any); ok && e[s.By] == s.Is {
				next = e
			}
		}
		if next == nil {
			next = map[string]any{s.By: s.Is}
			at[s.Key] = append(list, next)
		}
		at = next
	}
}

func placeKeys(root map[string]any, dotted string, v any) {
	var path interpreter.Path
	for _, key := range strings.Split(dotted, ".") {
		path = append(path, interpreter.Segment{Key: key})
	}
	place(root, path, v)
}

// status makes a status. Nested fields may be flat. A live object has nobody's generation of a template.
func (g *generator) status(live bool) map[string]any {
	root := map[string]any{"status": map[string]any{}}
	status := root["status"].(map[string]any)
	for _, f := range g.kind.Status {
		if f.Name == "resourceTemplateGeneration" && live {
			continue
		}
		sparse := 10
		switch {
		case f.Type == interpreter.TypeString && g.held:
			sparse = 95
		case g.held:
			sparse = 0
		case f.Type == interpreter.TypeString:
			sparse = 50
		}
		if g.percent(sparse) {
			continue
		}
		v := g.scalar(f.Type)
		if g.held && strings.HasPrefix(f.Name, "updated") && f.Type == interpreter.TypeInt {
			v = int64(g.Intn(int(g.desired) + 1))
		}
		if f.Name == "generation" || (f.Name != f.At && g.percent(30)) {
			status[f.Name] = v
			continue
		}
		place(root, f.Path, v)
	}
	if list, ok := status["conditions"].([]any); ok && g.percent(20) {
		// A type that is there twice: the first one counts.
		status["conditions"] = append(list, map[string]any{"type": list[0].(map[string]any)["type"], "status": pick(g, "True", "False"), "reason": "Again"})
	}
	if g.percent(g.wrong) {
		status["conditions"] = pick[any](g, "x", nil, []any{"x"}, map[string]any{"type": "Complete"}, []any{map[string]any{"type": int64(5)}, map[string]any{"status": "True"}})
	}
	if g.percent(g.wrong) {
		status["updateStatus"] = pick[any](g, "x", nil, int64(5), []any{"x"})
	}
	return status
}

// object makes a live object.
func (g *generator) object() map[string]any {
	metadata := map[string]any{"name": "web", "namespace": "shop", "generation": g.generation, "annotations": map[string]any{}}
	o := map[string]any{
		"apiVersion": g.kind.GVK().GroupVersion().String(), "kind": g.kind.Definition.Kind,
		"metadata": metadata, "spec": map[string]any{},
	}
	if g.kind.Replicas != "" && g.percent(90) {
		placeKeys(o, g.kind.Replicas, g.scalar(interpreter.TypeInt))
	}
	for _, in := range g.kind.Spec {
		switch {
		case in.At == "" || in.At == g.kind.Replicas:
		case in.Type == interpreter.TypePartition && g.held:
			place(o, in.Path, g.scalar(in.Type))
		case g.percent(50) || (g.held && g.percent(80)):
		case in.Name == "deletionTimestamp":
			if g.percent(4) {
				place(o, in.Path, g.scalar(interpreter.TypeString))
			}
		case in.Name == "strategy" || in.Name == "policy":
			place(o, in.Path, pick[any](g, "OnDelete", "NotUpdate", "Never", "Always", "RollingUpdate", g.junk()))
		case in.Name == "progressive" && in.Type == interpreter.TypeString:
			place(o, in.Path, pick[any](g, "true", "false", "", true))
		default:
			v := g.scalar(in.Type)
			if list, isList := v.([]any); isList && len(list) == 0 {
				v = nil // an empty list is an empty object to Lua: see byNature
			}
			place(o, in.Path, v)
		}
	}
	if g.kind.Definition.Kind == "UnitedDeployment" {
		g.united(o)
	}
	g.template(o)
	if g.percent(97) {
		o["status"] = g.status(true)
	}
	if g.percent(20) {
		metadata["annotations"] = map[string]any{
			"fleetworkload.io/revision":              pick[any](g, "r1", "", int64(5)),
			"resourcetemplate.karmada.io/generation": pick[any](g, "1", "2", "010", "x", "-1", "", "99999999999999999999", int64(5)),
		}
	}
	if g.percent(g.wrong) {
		g.damage(o)
	}
	return o
}

// damage puts something else where an object belongs.
func (g *generator) damage(o map[string]any) {
	at := pick(g, "status", "metadata.generation", "metadata.annotations", "spec", "spec.updateStrategy", "spec.updateStrategy.rollingUpdate", "spec.template", "spec.ordinals")
	v := g.junk()
	if list, isList := v.([]any); isList && len(list) == 0 || (v == nil && at == "metadata.generation") {
		v = "x" // see byNature
	}
	placeKeys(o, at, v)
}

func (g *generator) united(o map[string]any) {
	var subsets []any
	partitions := map[string]any{}
	for _, name := range []string{"a", "b", "c"}[:g.Intn(4)] {
		s := map[string]any{"name": name}
		switch g.Intn(8) { // most share what is left
		case 0:
			s["replicas"] = int64(g.Intn(3))
		case 1, 2:
			s["replicas"] = pick[any](g, "50%", "33%", "25%", "1%", "100%", "050%", "101%", "1000%", "x%", "5.5%")
		case 3:
			s["replicas"] = g.scalar(interpreter.TypeInt)
		}
		if g.percent(5) {
			s["minReplicas"] = int64(1)
		}
		if g.percent(g.wrong) {
			s["name"] = pick[any](g, nil, "", int64(1))
		}
		subsets = append(subsets, s)
		if g.percent(60) {
			partitions[name] = pick[any](g, int64(g.Intn(6)), int64(9), g.scalar(interpreter.TypeInt))
		}
	}
	if len(subsets) > 0 {
		placeKeys(o, "spec.topology.subsets", subsets)
	}
	if g.percent(g.wrong) {
		placeKeys(o, "spec.topology.subsets", pick[any](g, "x", nil, []any{"x"}, map[string]any{"a": "b"}, []any{map[string]any{"name": "a", "replicas": int64(-1)}}))
	}
	if g.held || g.percent(60) {
		placeKeys(o, "spec.updateStrategy.manualUpdate.partitions", partitions)
		if g.percent(g.wrong) {
			placeKeys(o, "spec.updateStrategy.manualUpdate.partitions", pick[any](g, "x", nil, []any{"x"}))
		}
		placeKeys(o, "spec.updateStrategy.type", pick[any](g, "Manual", "Manual", "", nil, "Other", int64(5)))
	}
}

// template gives the object a pod template, or what the kind has instead.
func (g *generator) template(o map[string]any) {
	switch g.kind.Definition.Kind {
	case "SidecarSet":
		for key, v := range g.pod() {
			placeKeys(o, "spec."+key, v)
		}
		delete(o["metadata"].(map[string]any), "namespace")
		if g.percent(80) {
			placeKeys(o, "spec.namespace", "pods")
		}
	case "Workflow":
		placeKeys(o, "spec.templates", []any{g.pod(), map[string]any{"container": g.container(), "inputs": map[string]any{"artifacts": []any{
			map[string]any{"s3": map[string]any{"accessKeySecret": g.reference("name"), "secretKeySecret": g.reference("name")}},
		}}}})
		for key, v := range g.pod() {
			placeKeys(o, "spec."+key, v)
		}
	default:
		path := g.kind.PodTemplates[g.Intn(len(g.kind.PodTemplates))]
		labels := map[string]any{"app": "web"}
		placeKeys(o, path, map[string]any{"metadata": map[string]any{"labels": labels}, "spec": g.pod()})
	}
}

func (g *generator) reference(field string) map[string]any {
	r := map[string]any{field: pick(g, "a", "b", "c", "default", "{{inputs.x}}", "")}
	if g.percent(20) {
		r["optional"] = g.percent(50)
	}
	return r
}

func (g *generator) container() map[string]any {
	c := map[string]any{"name": "main", "image": "nginx"}
	if g.percent(50) {
		c["env"] = []any{map[string]any{"name": "A", "value": "b"},
			map[string]any{"name": "B", "valueFrom": map[string]any{pick(g, "configMapKeyRef", "secretKeyRef", "fieldRef"): g.reference(pick(g, "name", "key"))}}}
	}
	if g.percent(50) {
		c["envFrom"] = []any{map[string]any{pick(g, "configMapRef", "secretRef"): g.reference("name")}}
	}
	if g.percent(30) {
		c["resources"] = map[string]any{"requests": map[string]any{"cpu": "100m"}}
	}
	return c
}

func (g *generator) pod() map[string]any {
	p := map[string]any{"containers": []any{g.container()}}
	if g.percent(30) {
		p["initContainers"] = []any{g.container(), g.container()}
	}
	if g.percent(20) {
		p["imagePullSecrets"] = []any{g.reference("name")}
	}
	if g.percent(40) && g.kind.Definition.Kind != "SidecarSet" {
		p[pick(g, "serviceAccountName", "serviceAccount")] = pick(g, "", "default", "robot", "{{x}}")
	}
	var volumes []any
	for range g.Intn(3) {
		name := pick(g, "configMap", "secret", "persistentVolumeClaim", "azureFile", "csi", "cephfs", "cinder", "flexVolume", "iscsi", "rbd",
			"scaleIO", "storageos", "projected", "emptyDir", "hostPath")
		v := map[string]any{}
		switch name {
		case "configMap":
			v = g.reference("name")
		case "secret", "azureFile":
			v = g.reference("secretName")
			delete(v, "optional")
		case "persistentVolumeClaim":
			v = g.reference("claimName")
			delete(v, "optional")
		case "csi":
			v["driver"], v["nodePublishSecretRef"] = "d", map[string]any{"name": pick(g, "a", "")}
		case "projected":
			v["sources"] = []any{map[string]any{"configMap": g.reference("name")}, map[string]any{"secret": g.reference("name")}}
		case "emptyDir", "hostPath":
		default:
			if g.percent(80) {
				v["secretRef"] = map[string]any{"name": pick(g, "a", "d")}
			}
		}
		volumes = append(volumes, map[string]any{"name": "v", name: v})
	}
	if len(volumes) > 0 {
		p["volumes"] = volumes
	}
	if g.percent(g.wrong) {
		p[pick(g, "volumes", "containers", "imagePullSecrets", "initContainers", "serviceAccountName")] = pick[any](g, "x", int64(5), true, []any{"x"}, map[string]any{"a": "b"})
	}
	return p
}
