//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// authors is the group of people who may edit FleetWorkloads and create Deployments, and nothing else.
const authors = "authors"

// overreach is something that takes a right which an author here does not have.
type overreach struct {
	what string
	// right is what is missing, in the words of RBAC.
	right string
	// args are kubectl's, and input is its standard input.
	args  []string
	input string
	// says is in the refusal; when empty, that the author may not do what the right says.
	says string
}

// mayEdit gives the authors their rights in a namespace.
func mayEdit(ctx context.Context, namespace string) {
	GinkgoHelper()
	group := []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: authors}}
	base := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: authors, Namespace: namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create"}},
	}}
	Expect(hub().Create(ctx, base)).To(Succeed())
	for kind, name := range map[string]string{"Role": authors, "ClusterRole": "fleetworkload-editor"} {
		Expect(hub().Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: authors + "-" + name, Namespace: namespace},
			Subjects: group, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}})).To(Succeed())
	}
}

// proposed is a FleetWorkload's spec, as kubectl fw plan asks about it.
func proposed(manifest string) string {
	GinkgoHelper()
	var fw struct {
		Spec json.RawMessage `json:"spec"`
	}
	Expect(json.Unmarshal([]byte(manifest), &fw)).To(Succeed())
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(fw.Spec)
	Expect(err).NotTo(HaveOccurred())
	Expect(w.Close()).To(Succeed())
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// person is somebody of the authors.
func person(name string, args ...string) []string {
	return append(args, "--as="+name, "--as-group="+authors, "--as-group=system:authenticated")
}

// as runs kubectl as that person, and returns all that it says.
func as(ctx context.Context, name, input string, args ...string) (string, error) {
	out, err := world.kubectlWith(ctx, input, lab.Hub, person(name, args...)...)
	if err != nil {
		return out + err.Error(), err
	}
	return out, nil
}

// allow gives a person a right, in the words of RBAC: a verb, a resource with its group, and perhaps a name.
func allow(ctx context.Context, namespace, who, right string) {
	GinkgoHelper()
	words := strings.Fields(right)
	resource, group, _ := strings.Cut(words[1], ".")
	rule := rbacv1.PolicyRule{Verbs: words[:1], Resources: []string{resource}, APIGroups: []string{group}, ResourceNames: words[2:]}
	meta := metav1.ObjectMeta{Name: who, Namespace: namespace}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: who}}
	if resource != "sidecarsets" {
		Expect(hub().Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}})).To(Succeed())
		Expect(hub().Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: who}})).To(Succeed())
		return
	}
	meta = metav1.ObjectMeta{Name: namespace + "-" + who}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}}
	for _, o := range []client.Object{role, binding} {
		Expect(hub().Create(ctx, o)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hub().Delete(ctx, o))).To(Succeed()) })
	}
}

// refused makes the attempts, each as another author, first without the right and then with it. What is refused is asked for in earnest; what is
// allowed is a dry run, so that nothing is shipped.
func refused(ctx context.Context, namespace string, attempts []overreach) {
	GinkgoHelper()
	for i, a := range attempts {
		who := fmt.Sprintf("author-%d-%s", i, strings.ToLower(strings.Fields(a.what)[0]))
		says := a.says
		if says == "" {
			says = "may not " + a.right
		}
		args := append([]string{"-n", namespace}, a.args...)
		out, err := as(ctx, who, a.input, args...)
		Expect(err).To(HaveOccurred(), "%s: it is allowed: %s", a.what, out)
		Expect(out).To(ContainSubstring(says), "%s: it is refused with other words", a.what)
		if a.right == "" {
			continue
		}
		allow(ctx, namespace, who, a.right)
		Eventually(func() (string, error) { return as(ctx, who, a.input, append(args, "--dry-run=server")...) }).
			WithContext(ctx).Should(Not(BeEmpty()), "%s: with the right to %s", a.what, a.right)
	}
}

// written is a suspended FleetWorkload as JSON: a Deployment, with these fields of the spec instead.
func written(name, fields string) string {
	GinkgoHelper()
	fw := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "FleetWorkload", "metadata": map[string]any{"name": name}}
	spec := map[string]any{"backend": "ocm", "suspend": true, "placement": map[string]any{"clusters": map[string]any{"names": []string{world.members[0]}}},
		"template": deploymentWith(`{containers: [{name: web, image: "registry.example.com/shop/web:1"}]}`)}
	var more map[string]any
	Expect(yaml.Unmarshal([]byte(fields), &more)).To(Succeed())
	maps.Copy(spec, more)
	fw["spec"] = spec
	raw, err := json.Marshal(fw)
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// deploymentWith is a Deployment with that pod spec.
func deploymentWith(podSpec string) map[string]any {
	GinkgoHelper()
	var out map[string]any
	Expect(yaml.Unmarshal([]byte(`{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: `+
		podSpec+`}}}`), &out)).To(Succeed())
	return out
}

// creating is an attempt to create a FleetWorkload with those fields.
func creating(what, right, fields string) overreach {
	GinkgoHelper()
	return overreach{what: what, right: right, args: []string{"create", "-f", "-"}, input: written("try", fields)}
}

// ofKind is a template of another kind.
func ofKind(apiVersion, kind, spec string) string {
	return fmt.Sprintf("{template: {apiVersion: %q, kind: %q, spec: %s}}", apiVersion, kind, spec)
}

// beside is a companion.
func beside(apiVersion, kind, more string) string {
	return fmt.Sprintf("{companions: [{apiVersion: %q, kind: %q, metadata: {name: beside}%s}]}", apiVersion, kind, more)
}

// refersTo is a pod spec that refers to something, which is to travel along.
func refersTo(podSpec string) string {
	return `{dependencies: Propagate, template: {apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: web}}, template: ` +
		`{metadata: {labels: {app: web}}, spec: ` + podSpec + `}}}}`
}

// patching is an attempt to change a FleetWorkload that is there.
func patching(what, right, patch string) overreach {
	return overreach{what: what, right: right, args: []string{"patch", "fleetworkload", "held", "--type=merge", "-p", patch}}
}

const (
	labelledPods = `{selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "registry.example.com/shop/web:1"}]}}}`
	runsOnce     = `{template: {spec: {restartPolicy: Never, containers: [{name: web, image: "registry.example.com/shop/web:1"}]}}}`
	container    = `containers: [{name: web, image: "registry.example.com/shop/web:1"`
)

var _ = Describe("Nobody ships what they may not create", Label("tenancy", "laws"), Ordered, func() {
	var namespace string

	BeforeAll(func(ctx SpecContext) {
		sharedOperator(ctx)
		namespace = makeNamespace(ctx, "authors")
		DeferCleanup(func(ctx SpecContext) {
			answering.wake(ctx)
			removeNamespace(ctx, namespace)
		}, NodeTimeout(2*time.Minute))
		mayEdit(ctx, namespace)
		_, err := world.kubectlWith(ctx, written("held", "{serviceAccountName: null}"), lab.Hub, "-n", namespace, "create", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		_, err = world.kubectlWith(ctx, written("accounted", "{serviceAccountName: deployer}"), lab.Hub, "-n", namespace, "create", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		_, err = world.kubectlWith(ctx, written("asked", "{approval: Manual}"), lab.Hub, "-n", namespace, "create", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		By("what an author may do is allowed")
		Eventually(func() (string, error) {
			return as(ctx, "somebody", written("try", "{}"), "-n", namespace, "create", "-f", "-", "--dry-run=server")
		}).WithContext(ctx).Should(ContainSubstring("created"))
	})

	It("by the workload itself", func(ctx SpecContext) {
		const kruise = "apps.kruise.io/v1alpha1"
		refused(ctx, namespace, []overreach{
			creating("CloneSet", "create clonesets.apps.kruise.io", ofKind(kruise, "CloneSet", labelledPods)),
			creating("Advanced StatefulSet", "create statefulsets.apps.kruise.io", ofKind("apps.kruise.io/v1beta1", "StatefulSet", labelledPods)),
			creating("Advanced DaemonSet", "create daemonsets.apps.kruise.io", ofKind(kruise, "DaemonSet", labelledPods)),
			creating("SidecarSet, which reaches all pods", "create sidecarsets.apps.kruise.io", ofKind(kruise, "SidecarSet",
				`{selector: {matchLabels: {app: all}}, containers: [{name: proxy, image: "registry.example.com/shop/proxy:1"}]}`)),
			creating("BroadcastJob", "create broadcastjobs.apps.kruise.io", ofKind(kruise, "BroadcastJob", runsOnce)),
			creating("StatefulSet", "create statefulsets.apps", ofKind("apps/v1", "StatefulSet", labelledPods)),
			creating("DaemonSet, on every node", "create daemonsets.apps", ofKind("apps/v1", "DaemonSet", labelledPods)),
			creating("Job", "create jobs.batch", ofKind("batch/v1", "Job", runsOnce)),
			creating("CronJob", "create cronjobs.batch", ofKind("batch/v1", "CronJob", `{schedule: "* * * * *", jobTemplate: {spec: `+runsOnce+`}}`)),
			creating("Workflow", "create workflows.argoproj.io", ofKind("argoproj.io/v1alpha1", "Workflow",
				`{entrypoint: main, templates: [{name: main, container: {image: "registry.example.com/shop/web:1"}}]}`)),
			{what: "generateName instead of a name", right: "create clonesets.apps.kruise.io", args: []string{"create", "-f", "-"},
				input: strings.Replace(written("try", ofKind(kruise, "CloneSet", labelledPods)), `"name":"try"`, `"generateName":"try-"`, 1)},
			{what: "List with one that is allowed", right: "create clonesets.apps.kruise.io", args: []string{"apply", "-f", "-"},
				input: `{"apiVersion":"v1","kind":"List","items":[` + written("fine", "{}") + `,` + written("try", ofKind(kruise, "CloneSet", labelledPods)) + `]}`},
			{what: "look-alike of a group", args: []string{"create", "-f", "-"}, input: written("try", ofKind("аpps/v1", "Deployment", labelledPods)),
				says: "FleetWorkloads may not carry this kind"},
			{what: "look-alike of a kind", args: []string{"create", "-f", "-"}, input: written("try", ofKind("apps/v1", "Dеployment", labelledPods)),
				says: "spec.template.kind: Invalid value"},
			{what: "Role, which grants rights", args: []string{"create", "-f", "-"}, input: written("try", ofKind("rbac.authorization.k8s.io/v1", "Role", "{}")),
				says: "FleetWorkloads may not carry this kind"},
		})
		kubectl(ctx, "-n", namespace, "delete", "fleetworkload", "fine")
	})

	It("by what travels along", func(ctx SpecContext) {
		refused(ctx, namespace, []overreach{
			creating("Secret", "create secrets", beside("v1", "Secret", "")),
			creating("ConfigMap", "create configmaps", beside("v1", "ConfigMap", "")),
			creating("Service", "create services", beside("v1", "Service", `, spec: {ports: [{port: 80}]}`)),
			creating("ServiceAccount", "create serviceaccounts", beside("v1", "ServiceAccount", "")),
			creating("PersistentVolumeClaim", "create persistentvolumeclaims", beside("v1", "PersistentVolumeClaim", "")),
			creating("PodDisruptionBudget", "create poddisruptionbudgets.policy", beside("policy/v1", "PodDisruptionBudget", `, spec: {maxUnavailable: 1}`)),
			creating("Ingress", "create ingresses.networking.k8s.io", beside("networking.k8s.io/v1", "Ingress", "")),
			creating("NetworkPolicy", "create networkpolicies.networking.k8s.io", beside("networking.k8s.io/v1", "NetworkPolicy", `, spec: {podSelector: {}}`)),
			creating("Secret that pods read", "get secrets key", refersTo(`{`+container+`, envFrom: [{secretRef: {name: key}}]}]}`)),
			creating("ConfigMap in a volume", "get configmaps settings", refersTo(`{`+container+`}], volumes: [{name: v, configMap: {name: settings}}]}`)),
			creating("Secret in a projected volume", "get secrets deep",
				refersTo(`{`+container+`}], volumes: [{name: v, projected: {sources: [{secret: {name: deep}}]}}]}`)),
			creating("Secret to pull images", "get secrets pull", refersTo(`{`+container+`}], imagePullSecrets: [{name: pull}]}`)),
			creating("PersistentVolumeClaim of pods", "get persistentvolumeclaims data",
				refersTo(`{`+container+`}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}`)),
			creating("ServiceAccount of pods", "get serviceaccounts runner", refersTo(`{serviceAccountName: runner, `+container+`}]}`)),
			creating("override that refers to a Secret", "get secrets other", `{dependencies: Propagate, overrides: [{name: eu, clusters: {names: [nowhere]}, `+
				`env: [{container: web, set: [{name: A, valueFrom: {secretKeyRef: {name: other, key: k}}}]}]}]}`),
			creating("patch that refers to one", "get secrets patched", `{dependencies: Propagate, overrides: [{name: eu, patches: [{op: add, `+
				`path: /spec/template/spec/imagePullSecrets, value: [{name: patched}]}]}]}`),
			creating("patches that do so only together", "get secrets together", `{dependencies: Propagate, overrides: [{name: one, patches: [{op: add, `+
				`path: /spec/template/spec/imagePullSecrets, value: [{}]}]}, {name: two, patches: [{op: add, path: /spec/template/spec/imagePullSecrets/0/name, value: together}]}]}`),
			{what: "look-alike of a Secret", args: []string{"create", "-f", "-"}, input: written("try", beside("v1", "Sеcret", "")), says: "spec.companions[0]"},
			{what: "companion in another namespace", args: []string{"create", "-f", "-"}, says: "spec.companions[0]",
				input: written("try", `{companions: [{apiVersion: v1, kind: ConfigMap, metadata: {name: beside, namespace: kube-system}}]}`)},
		})
	})

	It("by an edit of one that is there", func(ctx SpecContext) {
		cloneSet := `{"spec":{"companions":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"beside"}}]}}`
		raw := written("held", beside("v1", "Service", `, spec: {ports: [{port: 80}]}`))
		without := func(what, of, account, patch string) overreach { // an author who may not use the account
			return overreach{what: what, right: "use serviceaccounts " + account, says: "you may not use this ServiceAccount",
				args: []string{"patch", "fleetworkload", of, "--type=merge", "-p", patch}}
		}
		refused(ctx, namespace, []overreach{
			patching("merge patch", "create secrets", cloneSet),
			{what: "JSON patch", right: "create configmaps", args: []string{"patch", "fleetworkload", "held", "--type=json", "-p",
				`[{"op":"add","path":"/spec/companions","value":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"beside"}}]}]`}},
			{what: "apply", right: "create services", args: []string{"apply", "-f", "-"}, input: raw},
			{what: "server-side apply of another manager", right: "create services", input: raw,
				args: []string{"apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-"}},
			{what: "replace", right: "create services", args: []string{"replace", "-f", "-"}, input: raw},
			patching("dependencies", "get secrets pull", `{"spec":{"dependencies":"Propagate","overrides":[{"name":"eu","patches":[{"op":"add",`+
				`"path":"/spec/template/spec/imagePullSecrets","value":[{"name":"pull"}]}]}]}}`),
			without("account", "held", "admin", `{"spec":{"serviceAccountName":"admin"}}`),
			without("template of an account's", "accounted", "deployer", `{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`),
			without("clusters of an account's", "accounted", "deployer", `{"spec":{"placement":{"clusters":{"names":["`+world.members[1]+`"]}}}}`),
			without("backend of an account's", "accounted", "deployer", `{"spec":{"backend":"karmada"}}`),
			without("take-over by an account's", "accounted", "deployer", `{"spec":{"conflictPolicy":"Adopt"}}`),
			{what: "confirmation of a removal", right: "approve fleetworkloads.apps.fleetworkload.io", says: "you may not approve",
				args: []string{"annotate", "fleetworkload", "held", v1alpha1.AnnotationConfirmRemoval + "=all"}},
			{what: "approval of a migration", right: "approve fleetworkloads.apps.fleetworkload.io held", says: "you may not approve",
				args: []string{"annotate", "fleetworkload", "held", v1alpha1.AnnotationApproveMigration + "=pass-wave-1"}},
			{what: "approval of a change", right: "approve fleetworkloads.apps.fleetworkload.io asked", says: "metadata.annotations: you may not approve",
				args: []string{"annotate", "fleetworkload", "asked", v1alpha1.AnnotationApproveChange + "=all"}},
			{what: "changes without approval", right: "approve fleetworkloads.apps.fleetworkload.io asked", says: "spec.approval: you may not approve",
				args: []string{"patch", "fleetworkload", "asked", "--type=merge", "-p", `{"spec":{"approval":null}}`}},
			{what: "approval while it is made", right: "approve fleetworkloads.apps.fleetworkload.io", says: "you may not approve",
				args: []string{"create", "-f", "-"}, input: strings.Replace(written("try", "{}"), `"metadata":{`,
					`"metadata":{"annotations":{"`+v1alpha1.AnnotationConfirmRemoval+`":"all"},`, 1)},
			{what: "question about what they may not ship", right: "create secrets", args: []string{"annotate", "fleetworkload", "held",
				v1alpha1.AnnotationPropose + "=" + proposed(written("held", beside("v1", "Secret", "")))}},
			without("question about an account's", "accounted", "deployer", `{"metadata":{"annotations":{"`+v1alpha1.AnnotationPropose+`":"`+proposed(written("accounted", "{}"))+`"}}}`),
			{what: "status", says: `resource "fleetworkloads/status"`,
				args: []string{"patch", "fleetworkload", "held", "--subresource=status", "--type=merge", "-p", `{"status":{"backend":"karmada"}}`}},
			{what: "another namespace", args: []string{"delete", "fleetworkload", "held", "-n", "kube-system"}, says: "forbidden"},
		})
	})

	// The API server takes them, and the operator refuses: only a backend's driver knows its options.
	It("by options of a backend", func(ctx SpecContext) {
		config := func(text string) string { return `manifestWork: {manifestConfigs: [` + text + `]}` }
		refusals := map[string]map[string]string{
			"ocm": {
				"manifestWork.workload":        `manifestWork: {workload: {manifests: []}}`,
				"manifestWork.deleteOption":    `manifestWork: {deleteOption: {propagationPolicy: Foreground}}`,
				"manifestWork.executor":        `manifestWork: {executor: {subject: {type: ServiceAccount, serviceAccount: {namespace: kube-system, name: admin}}}}`,
				"resourceIdentifier":           config(`{resourceIdentifier: {group: "", resource: secrets, namespace: kube-system, name: any}}`),
				"updateStrategy.type":          config(`{updateStrategy: {type: Update}}`),
				"serverSideApply.force":        config(`{updateStrategy: {type: ServerSideApply, serverSideApply: {force: true}}}`),
				"serverSideApply.ignoreFields": config(`{updateStrategy: {serverSideApply: {ignoreFields: [{jsonPaths: [.metadata.labels]}]}}}`),
				"feedbackScrapeType":           config(`{feedbackScrapeType: Poll}`),
				"manifestConfigs":              `manifestWork: {manifestConfigs: [{}, {}]}`,
				"placement.predicates":         `placement: {predicates: []}`,
				"placement.tolerations":        `placement: {tolerations: []}`,
				"placement.numberOfClusters":   `placement: {numberOfClusters: 1}`,
				"placement.spreadPolicy":       `placement: {spreadPolicy: {}}`,
				"placement.PrioritizerPolicy":  `placement: {PrioritizerPolicy: {}}`,
			},
			"karmada": {
				"resourceSelectors":           `propagationPolicy: {resourceSelectors: [{apiVersion: v1, kind: Secret}]}`,
				"propagationPolicy.placement": `propagationPolicy: {placement: {}}`,
				"propagateDeps":               `propagationPolicy: {propagateDeps: true}`,
				"association":                 `propagationPolicy: {association: true}`,
				"schedulerName":               `propagationPolicy: {schedulerName: mine}`,
				"priority":                    `propagationPolicy: {priority: 100}`,
				"preemption":                  `propagationPolicy: {preemption: Always}`,
				"conflictResolution":          `propagationPolicy: {conflictResolution: Overwrite}`,
				"preserveResourcesOnDeletion": `propagationPolicy: {preserveResourcesOnDeletion: true}`,
				"suspension":                  `propagationPolicy: {suspension: {dispatching: true}}`,
				"failover":                    `propagationPolicy: {failover: {}}`,
				"dependentOverrides":          `propagationPolicy: {dependentOverrides: [any]}`,
			},
		}
		all := map[string]*v1alpha1.FleetWorkload{}
		for backend, options := range refusals {
			for says, fields := range options {
				name := fmt.Sprintf("option-%d", len(all))
				out, err := as(ctx, "somebody", written(name, fmt.Sprintf("{suspend: false, backend: %s, backendOptions: {%s: {%s}}}", backend, backend, fields)),
					"-n", namespace, "create", "-f", "-")
				Expect(err).NotTo(HaveOccurred(), out)
				all[says] = &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			}
		}
		for says, fw := range all {
			Expect(becomesStalled(ctx, fw, v1alpha1.ReasonInvalidOptions)).To(And(ContainSubstring("spec.backendOptions."), ContainSubstring(says)))
		}
		for _, fw := range all {
			for _, name := range world.members {
				obj, err := object(ctx, member(name), deployment, client.ObjectKeyFromObject(fw))
				Expect(err).NotTo(HaveOccurred())
				Expect(obj).To(BeNil(), "%s on %s", fw.Name, name)
			}
			remove(ctx, fw)
		}
	})

	It("by marks and by size", func(ctx SpecContext) {
		nested := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
		long := strings.Repeat("x", 1_100_000)
		refused(ctx, namespace, []overreach{
			{what: "object that is nested ten thousand deep", args: []string{"create", "-f", "-"}, says: "exceeded max depth",
				input: strings.Replace(written("try", "{}"), `"template":{`, `"template":{"deep":`+nested(10_000)+`,`, 1)},
			{what: "template that no backend takes", args: []string{"create", "-f", "-"}, says: "it is too large",
				input: written("try", refersTo(`{`+container+`, env: [{name: A, value: `+long+`}]}]}`))},
			{what: "companions that are too large together", args: []string{"create", "-f", "-"}, says: "they are too large together",
				input: written("try", `{companions: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: `+long[:550_000]+`}}, `+
					`{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {a: `+long[:550_000]+`}}]}`)},
			{what: "FleetWorkload in the operator's own namespace", says: "forbidden",
				args: []string{"create", "-n", operatorNamespace, "-f", "-"}, input: written("try", "{dependencies: Propagate}")},
			{what: "kubeconfig of the operator", args: []string{"get", "secrets", "-n", operatorNamespace}, says: "forbidden"},
			{what: "companion that every cluster makes for itself", args: []string{"create", "-f", "-"}, says: "every cluster makes this ConfigMap for itself",
				input: written("try", `{companions: [{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}]}`)},
			{what: "token of another account", args: []string{"create", "-f", "-"}, says: "spec.companions[0].type",
				input: written("try", `{companions: [{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, `+
					`metadata: {name: any, annotations: {kubernetes.io/service-account.name: admin}}}]}`)},
		})

		By("marks that an author writes are not what is sent")
		marked := strings.Replace(written("marked", "{suspend: false, replicas: 1}"), `"kind":"Deployment",`, `"kind":"Deployment","metadata":{`+
			`"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"kube-root-ca.crt","uid":"1"}],"finalizers":["example.com/stays"],`+
			`"labels":{"fleetworkload.io/uid":"another","fleetworkload.io/managed-by":"me"},"annotations":{"fleetworkload.io/installation":"another","fleetworkload.io/owner":"a/b"}},`, 1)
		out, err := as(ctx, "somebody", marked, "-n", namespace, "create", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "marked"}}
		becomesReady(ctx, fw)
		obj, err := object(ctx, member(world.members[0]), deployment, client.ObjectKeyFromObject(fw))
		Expect(err).NotTo(HaveOccurred())
		Expect(obj.GetFinalizers()).To(BeEmpty())
		Expect(obj.GetOwnerReferences()).NotTo(ContainElement(HaveField("Kind", "ConfigMap")))
		Expect(obj.GetLabels()).To(And(HaveKeyWithValue(v1alpha1.LabelUID, identity(fw)), HaveKeyWithValue(v1alpha1.LabelManagedBy, v1alpha1.ManagedByOperator)))
		Expect(obj.GetAnnotations()).NotTo(HaveKeyWithValue(v1alpha1.AnnotationOwner, "a/b"))

		By("the subresource scale scales, and nothing else")
		before := fw.Spec.Template.String()
		out, err = as(ctx, "somebody", "", "-n", namespace, "patch", "fleetworkload", "marked", "--subresource=scale", "--type=merge", "-p",
			`{"spec":{"replicas":2,"template":{"kind":"CloneSet"},"serviceAccountName":"admin"}}`)
		Expect(err).NotTo(HaveOccurred(), out)
		refresh(ctx, fw)
		Expect(fw.Spec.Replicas).To(HaveValue(Equal(int32(2))))
		Expect(fw.Spec.Template.String()).To(Equal(before))
		Expect(fw.Spec.ServiceAccountName).To(BeEmpty())
		remove(ctx, fw)
	})

	It("and whoever may edit may always scale, suspend and delete", func(ctx SpecContext) {
		_, err := world.kubectlWith(ctx, written("stays", ofKind("apps.kruise.io/v1alpha1", "CloneSet", labelledPods)), lab.Hub, "-n", namespace, "create", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		may := func(name string) {
			GinkgoHelper()
			for _, args := range [][]string{
				{"scale", "fleetworkload", name, "--replicas=3"},
				{"patch", "fleetworkload", name, "--type=merge", "-p", `{"spec":{"suspend":true}}`},
				{"patch", "fleetworkload", name, "--type=merge", "-p", `{"spec":{"deletionPolicy":"Orphan"}}`},
				{"label", "fleetworkload", name, "a=b", "--overwrite"},
				{"delete", "fleetworkload", name, "--wait=false"},
			} {
				out, err := as(ctx, "somebody", "", append([]string{"-n", namespace}, args...)...)
				Expect(err).NotTo(HaveOccurred(), out)
			}
		}
		asked := []string{"-n", namespace, "patch", "fleetworkload", "held", "--type=merge", "-p", `{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`, "--dry-run=server"}
		refusedBecause := func(says string) {
			GinkgoHelper()
			Eventually(func() string {
				out, err := as(ctx, "somebody", "", asked...)
				if err == nil {
					return ""
				}
				return out
			}).WithContext(ctx).Should(ContainSubstring(says))
		}
		answersAgain := func() {
			GinkgoHelper()
			Eventually(func() error {
				_, err := as(ctx, "somebody", "", asked...)
				return err
			}).WithContext(ctx).WithTimeout(readyTimeout).Should(Succeed())
		}
		another := func(name string) {
			GinkgoHelper()
			_, err := world.kubectlWith(ctx, written(name, "{}"), lab.Hub, "-n", namespace, "create", "-f", "-")
			Expect(err).NotTo(HaveOccurred())
		}
		may("stays")

		By("also while nobody can tell what authors may do")
		another("untold")
		answering.management.HideGroups("authorization.k8s.io")
		refusedBecause("ask the management cluster whether you may")
		may("untold")
		answering.management.HideGroups()
		answersAgain()

		By("also while the webhook answers too late")
		another("slow")
		Expect(answering.current().cmd.Process.Signal(syscall.SIGSTOP)).To(Succeed())
		refusedBecause("failed calling webhook")
		may("slow")
		Expect(answering.current().cmd.Process.Signal(syscall.SIGCONT)).To(Succeed())
		answersAgain()

		By("also while nobody answers; what the API server asks itself holds")
		another("down")
		another("expired")
		answering.stop(ctx)
		refusedBecause("failed calling webhook")
		may("down")
		out, err := as(ctx, "somebody", "", "-n", namespace, "annotate", "fleetworkload", "held", v1alpha1.AnnotationConfirmRemoval+"=all")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("you may not approve"))

		By("also while its certificate has expired, which somebody else should have renewed")
		answering.opts.webhookCertificate = GinkgoT().TempDir()
		trustWebhook(ctx, expiredCertificate(answering.opts.webhookCertificate))
		answering.start(ctx)
		refusedBecause("certificate has expired")
		may("expired")
		answering.stop(ctx)
		answering.opts.webhookCertificate = ""

		By("and the operator's own is trusted at once, made anew where its Secret is lost")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "fleetworkload-webhook"}}
		Expect(hub().Delete(ctx, secret)).To(Succeed())
		answering.start(ctx)
		answersAgain()

		By("and where it is spoiled")
		answering.stop(ctx)
		Expect(hub().Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		secret.Data = map[string][]byte{"tls.crt": []byte("nonsense")}
		Expect(hub().Update(ctx, secret)).To(Succeed())
		answering.start(ctx)
		answersAgain()
		Eventually(func() string { return kubectl(ctx, "-n", namespace, "get", "fleetworkloads", "-o", "name") }).WithContext(ctx).WithTimeout(deleteTimeout).
			ShouldNot(Or(ContainSubstring("stays"), ContainSubstring("untold"), ContainSubstring("slow"), ContainSubstring("down"), ContainSubstring("expired")))
	})
})
