package randomspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// kind is what the generator knows of a workload kind.
type kind struct {
	apiVersion, kind string
	// pod leads to the pod template; empty for kinds whose containers overrides cannot name.
	pod string
	// replicated kinds have spec.replicas.
	replicated bool
	// typed kinds are built in: API servers keep no field that their Go type lacks.
	typed bool
	// fields are put into spec, some of them.
	fields func(r random) object
}

var kinds = []kind{
	{"apps/v1", "Deployment", "spec.template", true, true, func(r random) object {
		return object{"paused": r.percent(50), "minReadySeconds": int64(r.IntN(2)), "strategy": pick[any](r, object{},
			object{"type": "RollingUpdate"}, object{"type": "RollingUpdate", "rollingUpdate": object{"maxSurge": "50%"}})}
	}},
	{"apps/v1", "StatefulSet", "spec.template", true, true, func(r random) object {
		return object{"serviceName": pick(r, "", "web"), "updateStrategy": object{
			"type": "RollingUpdate", "rollingUpdate": object{"partition": int64(r.IntN(2))}}}
	}},
	{"apps.kruise.io/v1beta1", "StatefulSet", "spec.template", true, false, func(r random) object {
		return object{"serviceName": "web", "reserveOrdinals": []any{}, "updateStrategy": object{
			"rollingUpdate": object{"partition": int64(r.IntN(2)), "unorderedUpdate": object{}}}}
	}},
	{"apps.kruise.io/v1alpha1", "CloneSet", "spec.template", true, false, func(r random) object {
		return object{"updateStrategy": pick(r, object{}, object{"partition": pick[any](r, int64(0), "20%")}), "scaleStrategy": object{
			"podsToDelete": []any{}}, "lifecycle": object{}}
	}},
	{"apps.kruise.io/v1alpha1", "DaemonSet", "spec.template", false, false, func(random) object {
		return object{"updateStrategy": object{"type": "RollingUpdate", "rollingUpdate": object{"partition": int64(0)}}}
	}},
	{"apps.kruise.io/v1alpha1", "UnitedDeployment", "spec.template.statefulSetTemplate.spec.template", true, false, func(r random) object {
		return object{"topology": object{"subsets": []any{object{"name": "a", "replicas": "30%"},
			object{"name": "b", "nodeSelectorTerm": object{"matchExpressions": []any{}}}}},
			"updateStrategy": object{"manualUpdate": object{"partitions": r.tree(0)}}}
	}},
	{"apps.kruise.io/v1alpha1", "SidecarSet", "", false, false, func(r random) object {
		return object{"containers": r.containers("c", 1+r.IntN(2)), "volumes": []any{}, "updateStrategy": object{"partition": "10%"}}
	}},
	{"apps.kruise.io/v1alpha1", "BroadcastJob", "spec.template", false, false, func(r random) object {
		return object{"parallelism": int64(r.IntN(3)), "completionPolicy": object{"type": "Always"}}
	}},
	{"batch/v1", "CronJob", "spec.jobTemplate.spec.template", false, true, func(r random) object {
		return object{"suspend": r.percent(50), "successfulJobsHistoryLimit": int64(0), "timeZone": ""}
	}},
	{"argoproj.io/v1alpha1", "Workflow", "", false, false, func(r random) object {
		return object{"entrypoint": "main", "arguments": object{}, "templates": []any{object{"name": "main", "container": r.container("c0")}}}
	}},
}

// template draws a manifest. A wild one has fields that no API has, with any JSON below; only kinds that are not typed
// may be wild.
func (r random) template(k kind) object {
	spec := object{}
	if k.kind == "CronJob" {
		spec["schedule"] = "* * * * *"
	}
	if k.pod != "" {
		place(object{"spec": spec}, r.podTemplate(), strings.Split(k.pod, ".")...)
		spec["selector"] = object{"matchLabels": object{"app": "web"}}
	}
	if k.kind == "CronJob" {
		delete(spec, "selector")
	}
	// Containers of kinds without a pod template are the whole workload.
	chance := 60
	if k.pod == "" {
		chance = 100
	}
	fields := k.fields(r)
	r.sometimes(spec, chance, fields)
	if k.replicated && r.percent(50) {
		spec["replicas"] = int64(r.IntN(4))
	}
	if !k.typed {
		r.sometimes(spec, 30, object{"wild": r.tree(3), "wild/~tilde": r.value(3)})
	}
	template := object{"apiVersion": k.apiVersion, "kind": k.kind, "spec": spec}
	metadata := object{}
	r.sometimes(metadata, 40, object{"labels": r.labels(), "annotations": r.annotations(), "creationTimestamp": nil})
	if len(metadata) > 0 {
		template["metadata"] = metadata
	}
	return template
}

func place(root object, value any, path ...string) {
	for _, key := range path[:len(path)-1] {
		next, _ := root[key].(object)
		if next == nil {
			next = object{}
			root[key] = next
		}
		root = next
	}
	root[path[len(path)-1]] = value
}

func (r random) podTemplate() object {
	metadata := object{}
	r.sometimes(metadata, 30, object{"labels": object{"app": "web"}, "annotations": r.annotations(), "creationTimestamp": nil})
	spec := object{"containers": r.containers("c", 1+r.IntN(3))}
	r.sometimes(spec, 25, object{
		"initContainers": r.containers("i", r.IntN(3)), "nodeSelector": r.labels(), "hostname": "", "hostNetwork": false,
		"securityContext": object{}, "terminationGracePeriodSeconds": int64(0), "tolerations": []any{object{"operator": "Exists"}},
		"volumes": []any{object{"name": "v", "emptyDir": object{}}}, "affinity": object{"nodeAffinity": object{}},
	})
	template := object{"spec": spec}
	if len(metadata) > 0 || r.percent(30) {
		template["metadata"] = metadata
	}
	return template
}

func (r random) containers(prefix string, n int) []any {
	containers := make([]any, n)
	for i := range containers {
		containers[i] = r.container(fmt.Sprint(prefix, i))
	}
	return containers
}

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (r random) container(name string) object {
	image := pick(r, "", "localhost/", "r.example.com:5000/") + pick(r, "nginx", "library/nginx", "a/b.c/d_e") +
		pick(r, "", ":1.29", ":1@"+digest, "@"+digest)
	container := object{"name": name, "image": image}
	r.sometimes(container, 30, object{
		"command": []any{"sh", "-c", pick(r, words...)}, "args": []any{}, "resources": r.resources(),
		"env": r.env(), "workingDir": "", "tty": false, "securityContext": object{"privileged": false, "capabilities": object{}},
		"ports":         []any{object{"containerPort": int64(80), "protocol": "TCP"}},
		"livenessProbe": object{"httpGet": object{"path": "/", "port": pick[any](r, int64(80), "http")}, "periodSeconds": int64(0)},
	})
	return container
}

func (r random) resources() object {
	resources := object{}
	r.sometimes(resources, 60, object{"requests": object{"cpu": "100m", "example.com/gpu": "1"}, "limits": object{}})
	return resources
}

func (r random) env() []any {
	env := make([]any, r.IntN(3))
	for i := range env {
		env[i] = pick(r, object{"name": fmt.Sprint("E", i), "value": pick(r, words...)},
			object{"name": fmt.Sprint("E", i), "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.name"}}})
	}
	return env
}
