//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// parityCase is one spec that must come to the same on both backends.
type parityCase struct {
	name string
	// template is a name in parityTemplates, CloneSet when empty.
	template string
	// spec is everything else, as YAML; without placement it is on two members.
	spec string
	// want is what the members run: replicas of member1, member2 and member3, "-" where there is nothing. Empty: 0 0 -.
	want string
	// not is the reason for which it is not ready; empty when it is.
	not string
}

const parityContainers = `{initContainers: [{name: setup, image: "registry.example.com/shop/setup:1"}],
  containers: [{name: web, image: "registry.example.com/shop/web:1", command: [serve], args: [--port, "80"],
    env: [{name: MODE, value: a}, {name: COLOR, value: blue}], resources: {requests: {cpu: 10m}}},
   {name: log, image: "registry.example.com/shop/log:1"}]}`

// parityTemplates are manifests by name; APP is the FleetWorkload's name, NAMESPACE its namespace. Most run no pods unless the spec
// says so: pods are no part of what is compared, and cost the most.
var parityTemplates = map[string]string{
	"CloneSet": `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {labels: {team: shop, old: "1"}, annotations: {owner: shop}},
  spec: {replicas: 0, selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: PODS}}}`,
	"Deployment": `{apiVersion: apps/v1, kind: Deployment,
  spec: {replicas: 0, selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: PODS}}}`,
	"StatefulSet": `{apiVersion: apps/v1, kind: StatefulSet,
  spec: {replicas: 0, serviceName: none, selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: PODS}}}`,
	"AdvancedStatefulSet": `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet,
  spec: {replicas: 0, serviceName: none, selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: PODS}}}`,
	"AdvancedDaemonSet": `{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet,
  spec: {selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: PODS}}}`,
	"UnitedDeployment": `{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment,
  spec: {selector: {matchLabels: {app: APP}}, topology: {subsets: [{name: a, nodeSelectorTerm: {matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]}}]},
   template: {cloneSetTemplate: {metadata: {labels: {app: APP}}, spec: {selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: PODS}}}}}}`,
	"SidecarSet": `{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: APP-NAMESPACE},
  spec: {namespace: NAMESPACE, selector: {matchLabels: {app: nobody}}, containers: [{name: web, image: "registry.example.com/shop/proxy:1"}]}}`,
	"CronJob": `{apiVersion: batch/v1, kind: CronJob,
  spec: {schedule: "0 0 29 2 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: web, image: "registry.example.com/shop/web:1"}]}}}}}}`,
	"Renamed": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: APP-other},
  spec: {replicas: 2, selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: PODS}}}`,
	"Referring": `{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: APP}},
  template: {metadata: {labels: {app: APP}}, spec: {serviceAccountName: missing, containers: [{name: web, image: "registry.example.com/shop/web:1"}]}}}}`,
	// It asks for memory alone: other scenarios have pods that wait for more processors than there are, and Karmada counts these.
	"Asking": `{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: APP}},
  template: {metadata: {labels: {app: APP}}, spec: {containers: [{name: web, image: "registry.example.com/shop/web:1", resources: {requests: {memory: 64Mi}}}]}}}}`,
}

// parityCases has every field of the spec that both backends carry out. Of the members, member1 and member2 are in eu-west
// on aws, in two zones, and member3 is in us-east on gcp; member1 and member3 are of tier a.
var parityCases = []parityCase{
	{name: "duplicated"},
	{name: "replicas", spec: `replicas: 3`, want: "3 3 -"},
	{name: "replicas-of-template", template: "Renamed", want: "2 2 -"},
	{name: "zero", template: "Renamed", spec: `replicas: 0`, want: "0 0 -"},
	{name: "divided", spec: `{replicas: 5, placement: {clusters: {}, division: {type: Divided}}}`, want: "2 2 1"},
	{name: "weights", spec: `{replicas: 8, placement: {clusters: {}, division: {type: Divided, weights: [{clusters: {names: [member1]}, weight: 2}, {clusters: {}, weight: 1}]}}}`, want: "4 2 2"},
	{name: "weights-by-label", spec: `{replicas: 6, placement: {clusters: {}, division: {type: Divided, preference: Weighted, weights: [{clusters: {selector: {matchLabels: {tier: a}}}, weight: 1}]}}}`, want: "3 - 3"},
	{name: "at-least-one", spec: `{replicas: 5, placement: {clusters: {}, division: {type: Divided, weights: [{clusters: {names: [member3]}, weight: 100}, {clusters: {}, weight: 1}]}}}`, want: "1 1 3"},
	{name: "own-number", spec: `{replicas: 8, placement: {clusters: {}, division: {type: Divided}}, overrides: [{clusters: {names: [member1]}, replicas: 5}]}`, want: "5 2 1"},
	{name: "own-number-duplicated", spec: `{replicas: 2, placement: {clusters: {}}, overrides: [{clusters: {names: [member2]}, replicas: 3}, {clusters: {names: [member3]}, replicas: 0}]}`, want: "2 3 0"},
	{name: "fewer-than-clusters", spec: `{replicas: 2, placement: {clusters: {}, division: {type: Divided}}}`, want: "1 1 -"},
	{name: "divided-zero", spec: `{replicas: 0, placement: {clusters: {}, division: {type: Divided}}}`, want: "0 0 0"},
	{name: "aggregated", template: "Asking", spec: `{replicas: 4, placement: {clusters: {names: [member2]}, division: {type: Divided, preference: Aggregated}}}`, want: "- 4 -"},
	{name: "capacity", template: "Asking", spec: `{replicas: 4, placement: {clusters: {names: [member1, member2]}, division: {type: Divided, preference: AvailableCapacity}}}`, want: "2 2 -"},
	{name: "too-much", template: "Asking", spec: `{replicas: 999999, placement: {clusters: {}, division: {type: Divided, preference: AvailableCapacity}}}`, want: "- - -", not: v1alpha1.ReasonInsufficientCapacity},

	{name: "all-clusters", spec: `placement: {clusters: {}}`, want: "0 0 0"},
	{name: "names", spec: `placement: {clusters: {names: [member3]}}`, want: "- - 0"},
	{name: "exclude", spec: `placement: {clusters: {exclude: [member1]}}`, want: "- 0 0"},
	{name: "labels", spec: `placement: {clusters: {selector: {matchLabels: {tier: a}}}}`, want: "0 - 0"},
	{name: "expressions", spec: `placement: {clusters: {selector: {matchExpressions: [{key: env, operator: NotIn, values: [staging]}]}}}`, want: "0 0 -"},
	{name: "region", spec: `placement: {clusters: {attributes: [{key: Region, operator: In, values: [us-east]}]}}`, want: "- - 0"},
	{name: "provider", spec: `placement: {clusters: {attributes: [{key: Provider, operator: NotIn, values: [gcp]}]}}`, want: "0 0 -"},
	{name: "zone", spec: `placement: {clusters: {attributes: [{key: Zone, operator: In, values: [eu-west-1b, us-east-1a]}]}}`, want: "- 0 0"},
	{name: "number", spec: `placement: {clusters: {}, numberOfClusters: 2}`, want: "0 0 -"},
	{name: "first-group", spec: `placement: {groups: [{name: a, clusters: {names: [member2]}}, {name: b, clusters: {}}]}`, want: "- 0 -"},
	{name: "second-group", spec: `placement: {groups: [{name: a, clusters: {selector: {matchLabels: {tier: none}}}}, {name: b, clusters: {names: [member3]}}]}`, want: "- - 0"},
	{name: "group-too-small", spec: `placement: {groups: [{name: a, clusters: {names: [member1]}}, {name: b, clusters: {}}], spread: [{by: Cluster, minGroups: 2}]}`, want: "0 0 0"},
	{name: "one-region", spec: `placement: {clusters: {}, spread: [{by: Region, maxGroups: 1}]}`, want: "0 0 -"},
	{name: "two-regions", spec: `placement: {clusters: {}, numberOfClusters: 2, spread: [{by: Region, minGroups: 2}]}`, want: "0 - 0"},
	{name: "two-zones", spec: `placement: {clusters: {}, spread: [{by: Zone, maxGroups: 2}]}`, want: "0 0 -"},
	{name: "one-provider", spec: `placement: {clusters: {}, spread: [{by: Provider, maxGroups: 1}]}`, want: "0 0 -"},
	{name: "by-label", spec: `placement: {clusters: {}, spread: [{by: Label, label: tier, minGroups: 1, maxGroups: 1}]}`, want: "0 - 0"},
	{name: "too-many-regions", spec: `placement: {clusters: {}, spread: [{by: Region, minGroups: 3}]}`, want: "- - -", not: v1alpha1.ReasonPlacementNotMet},
	{name: "no-cluster", spec: `placement: {clusters: {selector: {matchLabels: {tier: none}}}}`, want: "- - -", not: v1alpha1.ReasonNoClusterSelected},
	{name: "tolerations", spec: `placement: {clusters: {names: [member1, member2]}, tolerations: [{key: gone, operator: Exists, tolerationSeconds: 5}], failover: {tolerationSeconds: 60, purge: Never}}`},

	{name: "image-tag", spec: `overrides: [{clusters: {names: [member1]}, images: [{container: web, tag: "2"}]}]`},
	{name: "image-parts", spec: `overrides: [{images: [{container: web, registry: "mirror.example.com:5000", repository: copy/web}]}, {clusters: {names: [member2]}, images: [{container: log, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}]}]`},
	{name: "image-of-init", spec: `overrides: [{clusters: {names: [member1]}, images: [{container: setup, tag: "2"}]}]`},
	{name: "image-of-cronjob", template: "CronJob", spec: `overrides: [{clusters: {names: [member1]}, images: [{container: web, tag: "2"}]}]`, want: "x x -"},
	{name: "image-of-united", template: "UnitedDeployment", spec: `{replicas: 2, overrides: [{clusters: {names: [member1]}, images: [{container: web, tag: "2"}]}]}`, want: "2 2 -"},
	{name: "image-of-sidecarset", template: "SidecarSet", spec: `overrides: [{clusters: {names: [member1]}, patches: [{op: replace, path: /spec/containers/0/image, value: "registry.example.com/shop/proxy:2"}]}]`, want: "x x -"},
	{name: "command", template: "Deployment", spec: `overrides: [{clusters: {names: [member1]}, commands: [{container: web, command: [run, now]}]}]`},
	{name: "args", template: "AdvancedStatefulSet", spec: `overrides: [{clusters: {names: [member2]}, args: [{container: web, args: [--port, "8080"]}]}]`},
	{name: "env", template: "AdvancedDaemonSet", spec: `overrides: [{clusters: {names: [member1]}, env: [{container: web, set: [{name: MODE, value: b}, {name: NEW, value: ""}], remove: [COLOR]}]}]`, want: "x x -"},
	{name: "env-from", template: "Deployment", spec: `overrides: [{clusters: {names: [member1]}, env: [{container: web, set: [{name: MODE, valueFrom: {configMapKeyRef: {name: settings, key: mode, optional: true}}}, {name: KEY, valueFrom: {secretKeyRef: {name: keys, key: a, optional: true}}}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}]`},
	{name: "pod-labels", spec: `overrides: [{clusters: {names: [member1]}, podLabels: {set: {residency: eu}}, podAnnotations: {set: {"example.com/a": b}}}]`},
	{name: "resources", template: "StatefulSet", spec: `overrides: [{clusters: {names: [member1]}, resources: [{container: web, requests: {cpu: 20m, memory: 1Mi}, limits: {cpu: 1}}]}]`},
	{name: "labels-set", spec: `overrides: [{clusters: {names: [member1]}, labels: {set: {team: other, new: "1"}, remove: [old]}, annotations: {set: {"example.com/a": "b/c~d"}, remove: [owner]}}]`},
	{name: "partition-percent", spec: `{replicas: 4, overrides: [{clusters: {names: [member1]}, partition: 50%}, {clusters: {names: [member2]}, partition: 1}]}`, want: "4 4 -"},
	{name: "partition-ordinal", template: "StatefulSet", spec: `{replicas: 4, overrides: [{clusters: {names: [member1]}, partition: 50%}]}`, want: "4 4 -"},
	{name: "partition-advanced", template: "AdvancedStatefulSet", spec: `{replicas: 3, overrides: [{clusters: {names: [member2]}, partition: 2}]}`, want: "3 3 -"},
	{name: "patches", spec: `overrides: [{clusters: {names: [member1]}, patches: [{op: add, path: /spec/minReadySeconds, value: 1}, {op: remove, path: /spec/template/spec/containers/1}, {op: replace, path: /spec/template/spec/containers/0/env/1/value, value: "red"}, {op: add, path: /metadata/annotations/example.com~1a, value: b}]}]`},
	{name: "later-wins", spec: `overrides: [{images: [{container: web, tag: "2"}]}, {clusters: {selector: {matchLabels: {tier: a}}}, images: [{container: web, tag: "3"}]}, {clusters: {attributes: [{key: Zone, operator: In, values: [eu-west-1b]}]}, env: [{container: web, remove: [MODE]}]}]`},
	{name: "selects-nothing", spec: `overrides: [{clusters: {names: [member3]}, images: [{container: web, tag: "2"}]}]`},

	{name: "renamed", template: "Renamed", spec: `{replicas: 1, deletionPolicy: Orphan, conflictPolicy: Adopt, dependencies: Ignore}`, want: "1 1 -"},
	{name: "companion", spec: `companions: [{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {a: b}}]`},
	{name: "dependency-missing", template: "Referring", spec: `dependencies: Propagate`, want: "- - -", not: v1alpha1.ReasonDependencyMissing},
	{name: "dependency-ignored", template: "Referring", spec: `{dependencies: Ignore, replicas: 0}`, want: "0 0 -"},
	{name: "suspended", spec: `suspend: true`, want: "- - -", not: v1alpha1.ReasonSuspended},
	{name: "options", spec: `backendOptions: {karmada: {propagationPolicy: {schedulePriority: {priorityClassSource: KubePriorityClass, priorityClassName: system-cluster-critical}}}, ocm: {manifestWork: {manifestConfigs: [{conditionRules: [{condition: Busy, type: CEL, celExpressions: ["false"], message: idle}]}]}}}`},
}

func (c parityCase) fleetWorkload(namespace, backend string) *v1alpha1.FleetWorkload {
	GinkgoHelper()
	fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.name}}
	fw.Spec.Placement.Clusters = on(world.members[:2]...)
	spec := c.spec
	if strings.Contains(spec, "placement:") {
		fw.Spec.Placement.Clusters = nil
	}
	Expect(yaml.UnmarshalStrict([]byte(spec), &fw.Spec)).To(Succeed(), c.name)
	for i := range fw.Spec.Overrides {
		fw.Spec.Overrides[i].Name = fmt.Sprint("o", i)
	}
	fw.Spec.Backend = backend
	text := parityTemplates["CloneSet"]
	if c.template != "" {
		text = parityTemplates[c.template]
	}
	Expect(text).NotTo(BeEmpty(), c.name)
	text = strings.NewReplacer("APP", c.name, "NAMESPACE", namespace, "PODS", parityContainers).Replace(text)
	raw, err := yaml.YAMLToJSON([]byte(text))
	Expect(err).NotTo(HaveOccurred())
	fw.Spec.Template = runtime.RawExtension{Raw: raw}
	return fw
}

// memberObject is what a member has of a FleetWorkload, without the marks and defaults in which backends must differ.
func memberObject(ctx context.Context, fw *v1alpha1.FleetWorkload, cluster string) (*unstructured.Unstructured, error) {
	var manifest map[string]any
	if err := json.Unmarshal(fw.Spec.Template.Raw, &manifest); err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{Object: manifest}
	at := types.NamespacedName{Namespace: fw.Namespace, Name: fw.Name}
	if name := obj.GetName(); name != "" {
		at.Name = name
	}
	if obj.GetKind() == "SidecarSet" {
		at.Namespace = ""
	}
	return object(ctx, member(cluster), kind{gvk: schema.FromAPIVersionAndKind(obj.GetAPIVersion(), obj.GetKind())}, at)
}

// plainObject leaves what the template and the overrides decide.
func plainObject(obj *unstructured.Unstructured, namespace string) string {
	if obj == nil {
		return "-"
	}
	ours := func(key string) bool {
		return strings.Contains(key, "karmada.io") || strings.HasPrefix(key, "fleetworkload.io/") || strings.Contains(key, "open-cluster-management.io")
	}
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	maps.DeleteFunc(labels, func(key, _ string) bool { return ours(key) })
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		// OpenKruise and Kubernetes write hashes and revisions, which depend on the namespace.
		return ours(key) || strings.Contains(key, "kruise.io/") || key == "deployment.kubernetes.io/revision"
	})
	// Some writers leave out what others write as an empty object.
	spec := obj.DeepCopy().Object["spec"]
	dropEmpty(spec)
	raw, err := json.MarshalIndent(map[string]any{"labels": labels, "annotations": annotations, "spec": spec}, "", " ")
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(raw), namespace, "NAMESPACE")
}

func dropEmpty(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			dropEmpty(below)
			if object, ok := below.(map[string]any); ok && len(object) == 0 {
				delete(v, key)
			}
		}
	case []any:
		for _, below := range v {
			dropEmpty(below)
		}
	}
}

// replicasOf tells how many replicas members were asked to run; x for kinds without.
func replicasOf(objects []*unstructured.Unstructured) string {
	var all []string
	for _, obj := range objects {
		if obj == nil {
			all = append(all, "-")
			continue
		}
		n, found, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
		if !found {
			all = append(all, "x")
			continue
		}
		all = append(all, fmt.Sprint(n))
	}
	return strings.Join(all, " ")
}

// Law 9: a spec means the same wherever it runs.
var _ = Describe("A spec on both backends", Label("parity", "sweep"), long, Ordered, ContinueOnFailure, func() {
	cases, made := halves("parity", parityCases)[0], map[string][]*v1alpha1.FleetWorkload{}

	BeforeAll(func(ctx SpecContext) {
		sharedOperator(ctx)
		for _, b := range backends {
			namespace := newNamespace(ctx, "parity-"+b)
			for _, c := range cases {
				made[c.name] = append(made[c.name], create(ctx, c.fleetWorkload(namespace, b)))
			}
		}
		// Both namespaces are cleared at once, not one after the other.
		DeferCleanup(func(ctx SpecContext) {
			for _, both := range made {
				for _, fw := range both {
					Expect(client.IgnoreNotFound(hub().Delete(ctx, fw))).To(Succeed())
				}
			}
		})
	}, NodeTimeout(2*time.Minute))

	for _, c := range cases {
		It("is the same: "+c.name, func(ctx SpecContext) {
			for _, fw := range made[c.name] {
				eventually(ctx, fw, 2*readyTimeout, func(g Gomega) { g.Expect(c.missing(fw)).To(BeEmpty()) })
			}
			Eventually(func(g Gomega) {
				var statuses, objects [2]string
				for i, fw := range made[c.name] {
					g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(fw), fw)).To(Succeed())
					var all []*unstructured.Unstructured
					for _, name := range world.members[:3] {
						obj, err := memberObject(ctx, fw, name)
						g.Expect(err).NotTo(HaveOccurred())
						objects[i] += name + ": " + plainObject(obj, fw.Namespace) + "\n"
						all = append(all, obj)
					}
					g.Expect(replicasOf(all)).To(Equal(c.wants()), fw.Spec.Backend)
					statuses[i] = plainStatus(fw)
				}
				g.Expect(gocmp.Diff(objects[0], objects[1])).To(BeEmpty(), "members have different objects")
				g.Expect(gocmp.Diff(statuses[0], statuses[1])).To(BeEmpty(), "different status")
			}).WithContext(ctx).WithTimeout(30 * time.Second).Should(Succeed())
		})
	}
})

// plainStatus is a status without the backend's name and what its clusters have room for, of which backends know different
// things (docs/placement.md).
func plainStatus(fw *v1alpha1.FleetWorkload) string {
	plain := fw.DeepCopy()
	for i := range plain.Status.Conditions {
		m := &plain.Status.Conditions[i].Message
		*m = strings.ReplaceAll(*m, fmt.Sprintf("%q", fw.Spec.Backend), `"BACKEND"`)
		*m = strings.ReplaceAll(room.ReplaceAllString(*m, "have room for N"), fw.Namespace, "NAMESPACE")
	}
	return comparable(plain)
}

var room = regexp.MustCompile(`have room for \d+`)

func (c parityCase) wants() string {
	if c.want == "" {
		return "0 0 -"
	}
	return c.want
}

// missing says what is not yet as the case wants it.
func (c parityCase) missing(fw *v1alpha1.FleetWorkload) string {
	ready := condition(fw, v1alpha1.ConditionReady)
	switch {
	case !isObserved(fw):
		return "not observed"
	case c.not == "" && !isReady(fw), c.not != "" && ready.Reason != c.not:
		return ready.Reason + ": " + ready.Message
	default:
		return ""
	}
}
