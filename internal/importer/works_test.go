package importer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/importer"
)

const (
	deploymentYAML = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop},
		spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.27"}]}}}}`
	serviceYAML = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}`
)

// work is a ManifestWork that carries manifests, with the rest of its spec as YAML.
func work(t *testing.T, cluster, name, rest string, manifests ...string) *unstructured.Unstructured {
	t.Helper()
	objects, err := read([]byte(fmt.Sprintf("apiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\nmetadata: {name: %s, namespace: %s}\nspec: {workload: {manifests: [%s]}%s}\n",
		name, cluster, strings.Join(manifests, ", "), rest)))
	if err != nil {
		t.Fatal(err)
	}
	return objects[0]
}

func toldOf(result importer.Result) (fields []string) {
	for _, u := range result.Unexpressed {
		fields = append(fields, u.Field)
	}
	return fields
}

// The options of a ManifestWork become the FleetWorkload's, as far as they are the workload's and say something.
func TestWorkOptions(t *testing.T) {
	const identifier = "resourceIdentifier: {group: apps, resource: deployments, name: web, namespace: shop}"
	config := func(rest string) string { return ", manifestConfigs: [{" + identifier + rest + "}]" }
	const leaves = ", deleteOption: {propagationPolicy: SelectivelyOrphan, selectivelyOrphans: {orphaningRules: [%s]}}"
	const rule, other = "{group: apps, resource: deployments, name: web, namespace: shop}", `{group: "", resource: services, name: web, namespace: shop}`
	for name, tc := range map[string]struct {
		rest    string
		service bool
		// want is the deletion policy and the option for ManifestWorks; told are fields.
		want string
		told []string
	}{
		"none":                                   {"", false, "", nil},
		"its own status alone":                   {config(", feedbackRules: [{type: WellKnownStatus}]"), false, "", nil},
		"more of its status":                     {config(", feedbackRules: [{type: WellKnownStatus}, {type: JSONPaths, jsonPaths: [{name: a, path: .b}]}]"), false, ` {"manifestConfigs":[{"feedbackRules":[{"jsonPaths":[{"name":"a","path":".b"}],"type":"JSONPaths"}]}]}`, nil},
		"it is only made":                        {config(", updateStrategy: {type: CreateOnly}"), false, "", []string{"spec.manifestConfigs.updateStrategy.type"}},
		"it is only read":                        {config(", updateStrategy: {type: ReadOnly}"), false, "", []string{"spec.manifestConfigs.updateStrategy.type"}},
		"it is updated":                          {config(", updateStrategy: {type: Update}"), false, "", nil},
		"it is applied":                          {config(", updateStrategy: {type: ServerSideApply, serverSideApply: {force: true}}"), false, "", nil},
		"it is applied, except for a field":      {config(", updateStrategy: {type: ServerSideApply, serverSideApply: {ignoreFields: [{condition: OnSpokePresent, jsonPaths: [.a]}]}}"), false, ` {"manifestConfigs":[{"updateStrategy":{"serverSideApply":{"ignoreFields":[{"condition":"OnSpokePresent","jsonPaths":[".a"]}]}}}]}`, nil},
		"the same of another object":             {", manifestConfigs: [{resourceIdentifier: {group: apps, resource: deployments, name: api, namespace: shop}, updateStrategy: {type: Update}}]", false, "", []string{"spec.manifestConfigs"}},
		"it is left":                             {", deleteOption: {propagationPolicy: Orphan}", true, "Orphan", nil},
		"it goes":                                {", deleteOption: {propagationPolicy: Foreground}", true, "", nil},
		"it is left, and is all there is":        {fmt.Sprintf(leaves, rule), false, "Orphan", nil},
		"it is left, and what came with it goes": {fmt.Sprintf(leaves, rule), true, "Orphan", []string{"spec.deleteOption.selectivelyOrphans"}},
		"it goes, and what came with it is left": {fmt.Sprintf(leaves, other), true, "", []string{"spec.deleteOption.selectivelyOrphans"}},
		"nothing is left, of all that might be":  {fmt.Sprintf(leaves, ""), true, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			manifests := []string{deploymentYAML}
			if tc.service {
				manifests = append(manifests, serviceYAML)
			}
			result, err := importer.OCM(request(t), []*unstructured.Unstructured{work(t, "member1", "web", tc.rest, manifests...)})
			if err != nil {
				t.Fatal(err)
			}
			got := string(result.FleetWorkload.Spec.DeletionPolicy)
			if o := result.FleetWorkload.Spec.BackendOptions; o != nil {
				got += " " + inYAML(t, o.OCM.ManifestWork)
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if diff := cmp.Diff(tc.told, toldOf(result)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// ManifestWorks of several clusters: what runs is what they carry, and what differs between them is told, once.
func TestSeveralWorks(t *testing.T) {
	executor := ", executor: {subject: {type: ServiceAccount, serviceAccount: {namespace: a, name: b}}}"
	for name, tc := range map[string]struct {
		works []*unstructured.Unstructured
		told  []string
	}{
		"alike":              {[]*unstructured.Unstructured{work(t, "member1", "web", "", deploymentYAML), work(t, "member2", "web", "", deploymentYAML)}, nil},
		"of other options":   {[]*unstructured.Unstructured{work(t, "member1", "web", "", deploymentYAML), work(t, "member2", "web", executor, deploymentYAML)}, []string{"spec"}},
		"two of one cluster": {[]*unstructured.Unstructured{work(t, "member1", "web", "", deploymentYAML), work(t, "member1", "web2", "", deploymentYAML), work(t, "member2", "web", "", deploymentYAML)}, []string{"spec.workload"}},
	} {
		result, err := importer.OCM(request(t), tc.works)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.told, toldOf(result)); diff != "" {
			t.Errorf("%s: told (-want +got):\n%s", name, diff)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(result.Running)), " "); got != "member1 member2" {
			t.Errorf("%s: runs on %q", name, got)
		}
	}
}

// A ManifestWorkReplicaSet whose ManifestWorks are not at hand is enough where its Placement can be said. What runs is not known then.
func TestReplicaSetAlone(t *testing.T) {
	set := func(name, manifest string) string {
		return "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\nmetadata: {name: " + name + ", namespace: fleet}\n" +
			"spec: {placementRefs: [{name: prod}], manifestWorkTemplate: {workload: {manifests: [" + manifest + "]}}}\n---\n"
	}
	const claim = "claimSelector: {matchExpressions: [{key: region.open-cluster-management.io, operator: In, values: [eu-west]}]}"
	for name, tc := range map[string]struct{ placement, want, sets, told string }{
		"everywhere":     {"{}", `{"clusters":{}}`, "every set that is bound there", ""},
		"two sets":       {"{clusterSets: [eu, us]}", `{"clusters":{}}`, "the sets eu, us", ""},
		"labels":         {"{predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {env: prod}}}}]}", `{"clusters":{"selector":{"matchLabels":{"env":"prod"}}}}`, "", ""},
		"an expression":  {"{predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: env, operator: Exists}]}}}]}", `{"clusters":{"selector":{"matchExpressions":[{"key":"env","operator":"Exists"}]}}}`, "", ""},
		"both":           {"{predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {env: prod}, matchExpressions: [{key: tier, operator: Exists}]}}}]}", `{"clusters":{"selector":{"matchExpressions":[{"key":"tier","operator":"Exists"}],"matchLabels":{"env":"prod"}}}}`, "", ""},
		"a region":       {"{predicates: [{requiredClusterSelector: {" + claim + "}}]}", `{"clusters":{"attributes":[{"key":"Region","operator":"In","values":["eu-west"]}]}}`, "", ""},
		"two of them":    {"{numberOfClusters: 2}", `{"clusters":{},"numberOfClusters":2}`, "", ""},
		"none of them":   {"{numberOfClusters: 0}", `{"clusters":{},"numberOfClusters":1}`, "", "spec.numberOfClusters"},
		"all, by number": {"{numberOfClusters: 1000}", `{"clusters":{},"numberOfClusters":1000}`, "", ""},
		"too many":       {"{numberOfClusters: 1001}", `{"clusters":{},"numberOfClusters":1000}`, "", "spec.numberOfClusters"},
		"a toleration":   {"{tolerations: [{key: gpu, operator: Exists}]}", `{"clusters":{},"tolerations":[{"key":"gpu","operator":"Exists"}]}`, "", ""},
	} {
		text := set("a-config", `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}}`) + set("web", deploymentYAML) +
			"apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: prod, namespace: fleet}\nspec: " + tc.placement + "\n"
		objects, err := read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		result, err := importer.OCM(request(t), objects)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := inYAML(t, result.FleetWorkload.Spec.Placement); got != tc.want {
			t.Errorf("%s: placement %s\nwant %s", name, got, tc.want)
		}
		if told := strings.Join(toldOf(result), " "); result.Running != nil || told != tc.told {
			t.Errorf("%s: runs %v, told %q, want %q", name, result.Running, told, tc.told)
		}
		if !strings.HasPrefix(result.Notes[0], "Placement fleet/prod chooses from "+tc.sets) {
			t.Errorf("%s: notes %v", name, result.Notes)
		}
		if got := result.TakeOver[1].Commands; len(got) != 1 || !strings.HasPrefix(got[0], "kubectl patch manifestworkreplicaset web ") {
			t.Errorf("%s: released by %v", name, got)
		}
	}
}

// What clusters have differently becomes one override for each group of clusters that are alike.
func TestMembersThatDiffer(t *testing.T) {
	many := request(t)
	many.Fleet = backends.Fleet{}
	for _, name := range strings.Fields("c1 c2 c3 c4 c5 c6") {
		many.Fleet.Clusters = append(many.Fleet.Clusters, backends.Cluster{Name: name, Ready: "True"})
	}
	with := func(kind, init, label string) []*unstructured.Unstructured {
		obj := workload(2)
		obj.SetKind(kind)
		if kind == "DaemonSet" {
			unstructured.RemoveNestedField(obj.Object, "spec", "replicas")
		}
		if err := unstructured.SetNestedSlice(obj.Object, []any{map[string]any{"name": "init", "image": init}}, "spec", "template", "spec", "initContainers"); err != nil {
			t.Fatal(err)
		}
		obj.SetLabels(map[string]string{"app": label})
		return []*unstructured.Unstructured{obj}
	}
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		result, err := importer.Plain(many, map[string][]*unstructured.Unstructured{
			"c1": with(kind, "busybox:1", "web"), "c2": with(kind, "busybox:2", "web"), "c3": with(kind, "busybox:1", "web"), "c4": with(kind, "busybox:1", "api"),
			"c5": with(kind, "busybox:2", "web"), "c6": with(kind, "busybox:1", "web"),
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []v1alpha1.Override{
			{Name: "c2-and-1-more", Clusters: &v1alpha1.ClusterSelector{Names: []string{"c2", "c5"}}, Images: []v1alpha1.ImageOverride{{Container: "init", Tag: "2"}}},
			{Name: "c4", Clusters: &v1alpha1.ClusterSelector{Names: []string{"c4"}}, Labels: &v1alpha1.MetadataOverride{Set: map[string]string{"app": "api"}}},
		}
		if diff := cmp.Diff(want, result.FleetWorkload.Spec.Overrides); diff != "" || len(result.Unexpressed) > 0 {
			t.Errorf("%s: told %v, overrides (-want +got):\n%s", kind, result.Unexpressed, diff)
		}
		if replicas := result.FleetWorkload.Spec.Replicas; (replicas == nil) != (kind == "DaemonSet") {
			t.Errorf("%s: replicas %v", kind, replicas)
		}
	}
}
