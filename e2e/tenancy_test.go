//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// chosenBy gives a namespace the label by which rules of the scenarios below choose; empty takes it away.
func chosenBy(ctx context.Context, namespace, rule string) {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	Expect(hub().Get(ctx, client.ObjectKeyFromObject(ns), ns)).To(Succeed())
	before := ns.DeepCopy()
	delete(ns.Labels, "tenancy")
	if rule != "" {
		metav1.SetMetaDataLabel(&ns.ObjectMeta, "tenancy", rule)
	}
	Expect(hub().Patch(ctx, ns, client.MergeFrom(before))).To(Succeed())
}

// grantDeployments gives a ServiceAccount verbs on Deployments of a namespace, which is made where it is missing.
func grantDeployments(ctx context.Context, c *cluster, namespace, account string, verbs ...string) *rbacv1.RoleBinding {
	GinkgoHelper()
	Expect(client.IgnoreAlreadyExists(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))).To(Succeed())
	named := metav1.ObjectMeta{Namespace: namespace, Name: account}
	Expect(c.Create(ctx, &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: verbs},
	}})).To(Succeed())
	binding := &rbacv1.RoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}
	Expect(c.Create(ctx, binding)).To(Succeed())
	return binding
}

var _ = Describe("What a namespace may use", Label("tenancy", "laws", "karmada", "ocm"), Ordered, func() {
	var (
		namespace string
		o         *operator
	)
	sidecarSets := kind{gvk: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "SidecarSet"}}

	BeforeAll(func(ctx SpecContext) {
		type object = map[string]any
		labelled := func(rule string) object { return object{"matchLabels": object{"tenancy": rule}} }
		o, namespace = ownOperator(ctx, "tenancy", operatorOptions{everywhere: true, guardedMetrics: true, tenancy: object{"rules": []any{
			object{
				"name": "platform", "namespaceSelector": labelled("platform"),
				"clusterScopedKinds": []any{object{"group": "apps.kruise.io", "kind": "SidecarSet"}},
			},
			object{
				"name": "bound", "namespaceSelector": labelled("bound"), "backends": []any{"karmada"}, "dependencies": "Refused",
				"kinds": []any{object{"group": "apps", "kind": "Deployment"}},
			},
			object{"name": "accounts", "namespaceSelector": labelled("accounts"), "serviceAccountName": "Required"},
		}}})
		o.start(ctx)
	})

	onMembers := func(ctx context.Context, name string) int {
		GinkgoHelper()
		found := 0
		for _, member := range world.members {
			obj, err := object(ctx, world.clusters[member], sidecarSets, client.ObjectKey{Name: name})
			Expect(err).NotTo(HaveOccurred())
			if obj != nil {
				found++
			}
		}
		return found
	}

	for _, backend := range backends {
		It("keeps cluster-scoped kinds to namespaces that a rule lets have them, on "+backend, func(ctx SpecContext) {
			chosenBy(ctx, namespace, "")
			fw := workload(namespace, "sidecar-"+backend, backend, deployment, 1)
			name := fmt.Sprintf("tenancy-%s-%s", backend, namespace)
			fw.Spec.Replicas, fw.Spec.Template.Raw = nil, []byte(fmt.Sprintf(`{"apiVersion":"apps.kruise.io/v1alpha1","kind":"SidecarSet","metadata":{"name":%q},`+
				`"spec":{"namespace":%q,"selector":{"matchLabels":{"app":"nobody"}},"containers":[{"name":"proxy","image":"registry.example.com/shop/proxy:1"}]}}`,
				name, namespace))
			create(ctx, fw)
			Expect(becomesStalled(ctx, fw, v1alpha1.ReasonNotAllowed)).To(And(
				ContainSubstring(`spec.template.kind "SidecarSet.apps.kruise.io" is not allowed in namespace %q`, namespace),
				ContainSubstring("ask an administrator to allow it under tenancy")))
			Expect(fw.Status.Backend).To(BeEmpty())
			Expect(onMembers(ctx, name)).To(BeZero())

			By("an administrator lets the namespace have them: nothing else has to change")
			chosenBy(ctx, namespace, "platform")
			becomesReady(ctx, fw)
			Expect(onMembers(ctx, name)).To(Equal(len(world.members)))

			By("and takes that back: what is there stays, edits are not carried out, and it can be deleted")
			chosenBy(ctx, namespace, "")
			becomesStalled(ctx, fw, v1alpha1.ReasonNotAllowed)
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
				fw.Spec.Template.Raw = []byte(strings.Replace(string(fw.Spec.Template.Raw), "proxy:1", "proxy:2", 1))
			})
			becomesStalled(ctx, fw, v1alpha1.ReasonNotAllowed)
			Expect(fw.Status.Clusters).To(HaveLen(len(world.members)), "what runs is still shown")
			for _, member := range world.members {
				obj, err := object(ctx, world.clusters[member], sidecarSets, client.ObjectKey{Name: name})
				Expect(err).NotTo(HaveOccurred())
				containers, _, err := unstructured.NestedSlice(obj.Object, "spec", "containers")
				Expect(err).NotTo(HaveOccurred())
				Expect(containers[0]).To(HaveKeyWithValue("image", "registry.example.com/shop/proxy:1"))
			}
			remove(ctx, fw)
			Expect(onMembers(ctx, name)).To(BeZero())
		})
	}

	It("holds what runs on a backend that is not allowed any more, until it moves away", func(ctx SpecContext) {
		chosenBy(ctx, namespace, "")
		fw := create(ctx, workload(namespace, "web", "ocm", deployment, 1))
		becomesReady(ctx, fw)
		pods := podUIDs(ctx, fw)
		chosenBy(ctx, namespace, "bound")
		Expect(becomesStalled(ctx, fw, v1alpha1.ReasonNotAllowed)).To(ContainSubstring(`tenancy rule "bound" chooses this namespace, with backends: karmada`))
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters = on(world.members[0]) })
		becomesStalled(ctx, fw, v1alpha1.ReasonNotAllowed)
		Expect(podUIDs(ctx, fw)).To(Equal(pods))

		By("it moves to the one that is allowed, with the same pods")
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
			fw.Spec.Placement.Clusters, fw.Spec.Backend = &v1alpha1.ClusterSelector{}, "karmada"
		})
		eventually(ctx, fw, readyTimeout, func(g Gomega) {
			g.Expect(fw.Status.Backend).To(Equal("karmada"))
			g.Expect(isReady(fw)).To(BeTrue(), describe(fw))
		})
		Expect(podUIDs(ctx, fw)).To(Equal(pods))

		By("and not back")
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "ocm" })
		Expect(becomesStalled(ctx, fw, v1alpha1.ReasonMigrationNotPossible)).To(ContainSubstring(`spec.backend "ocm" is not allowed`))
		Expect(podUIDs(ctx, fw)).To(Equal(pods))
		remove(ctx, fw)
	})

	It("is what the ServiceAccount that is named may create, as long as it may", func(ctx SpecContext) {
		chosenBy(ctx, namespace, "accounts")
		const account = "deployer"
		var all []*v1alpha1.FleetWorkload
		for _, backend := range backends {
			fw := workload(namespace, "accounted-"+backend, backend, deployment, 1)
			fw.Spec.Companions = []runtime.RawExtension{{Raw: []byte(
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings-` + backend + `"},"data":{"a":"1"}}`)}}
			all = append(all, create(ctx, fw))
		}
		for _, fw := range all {
			Expect(becomesStalled(ctx, fw, v1alpha1.ReasonNotAllowed)).To(ContainSubstring("with serviceAccountName: Required"))
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.ServiceAccountName = account })
			Expect(becomesStalled(ctx, fw, v1alpha1.ReasonServiceAccountForbidden)).To(ContainSubstring(
				"%q: this ServiceAccount may not create configmaps, create deployments.apps. Nothing is changed", account))
		}

		By("a right is given: it is seen without an edit")
		named := metav1.ObjectMeta{Namespace: namespace, Name: account}
		Expect(hub().Create(ctx, &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
		}})).To(Succeed())
		binding := &rbacv1.RoleBinding{
			ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
		}
		Expect(hub().Create(ctx, binding)).To(Succeed())
		becomesReady(ctx, all...)
		pods := map[string]map[string]string{}
		for _, fw := range all {
			pods[fw.Name] = podUIDs(ctx, fw)
			Expect(pods[fw.Name]).To(HaveLen(len(world.members)))
		}

		By("and is taken away: edits wait, what runs stays, and it can be deleted")
		Expect(hub().Delete(ctx, binding)).To(Succeed())
		for _, fw := range all {
			Eventually(func(g Gomega) {
				edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
					metav1.SetMetaDataAnnotation(&fw.ObjectMeta, "example.com/looked", time.Now().String())
				})
				g.Expect(condition(fw, v1alpha1.ConditionStalled).Reason).To(Equal(v1alpha1.ReasonServiceAccountForbidden))
			}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(Succeed())
			edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
			becomesStalled(ctx, fw, v1alpha1.ReasonServiceAccountForbidden)
			Expect(podUIDs(ctx, fw)).To(Equal(pods[fw.Name]))
			remove(ctx, fw)
		}
	}, SpecTimeout(6*time.Minute))

	It("is, on members, what the account may write there, when agents write as it", func(ctx SpecContext) {
		const account = "executor"
		chosenBy(ctx, namespace, "")
		grantDeployments(ctx, hub(), namespace, account, "create")
		fw := workload(namespace, "executed", "ocm", deployment, 1)
		fw.Spec.Placement.Clusters = on(world.members[:2]...)
		fw.Spec.ServiceAccountName = account
		fw.Spec.BackendOptions = &v1alpha1.BackendOptions{OCM: &v1alpha1.OCMOptions{Executor: v1alpha1.ExecutorServiceAccount}}
		create(ctx, fw)
		refused := fmt.Sprintf("not allowed to apply the resource apps deployments, %s %s", namespace, fw.Name)
		for _, name := range world.members[:2] {
			eventually(ctx, fw, readyTimeout, func(g Gomega) { g.Expect(row(fw, name).Message).To(ContainSubstring(refused)) })
			eventuallyAbsent(ctx, member(name), deployment, client.ObjectKeyFromObject(fw))
		}

		By("a member gives it the right: the agent asks again within a minute")
		var given []*rbacv1.RoleBinding
		for _, name := range world.members[:2] {
			given = append(given, grantDeployments(ctx, member(name), namespace, account, "get", "create", "update", "patch"))
		}
		becomesReady(ctx, fw)
		pods := podUIDs(ctx, fw)
		Expect(pods).To(HaveLen(2))

		By("and takes it away: an edit is not carried out there, and it can be deleted")
		Expect(member(world.members[0]).Delete(ctx, given[0])).To(Succeed())
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { setImage(fw, imageNew) })
		eventually(ctx, fw, readyTimeout, func(g Gomega) {
			g.Expect(row(fw, world.members[0]).Message).To(ContainSubstring(refused))
			g.Expect(of(world.members[1], podUIDs(ctx, fw))).NotTo(Or(BeEmpty(), Equal(of(world.members[1], pods))))
		})
		Expect(of(world.members[0], podUIDs(ctx, fw))).To(Equal(of(world.members[0], pods)))
		remove(ctx, fw)
	}, SpecTimeout(6*time.Minute))

	It("is, on members, held to the Pod Security of the management cluster", func(ctx SpecContext) {
		for _, backend := range backends {
			const level = "pod-security.kubernetes.io/enforce"
			secure := newNamespace(ctx, "secure")
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: secure}}
			Expect(hub().Patch(ctx, ns, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+level+`":"baseline","team":"shop"}}}`)))).To(Succeed())
			becomesReady(ctx, create(ctx, workload(secure, "web", backend, deployment, 1)))
			for _, name := range world.members {
				Expect(member(name).Get(ctx, client.ObjectKey{Name: secure}, ns)).To(Succeed())
				Expect(ns.Labels).To(HaveKeyWithValue(level, "baseline"), "on %s", name)
				Expect(ns.Labels).NotTo(HaveKey("team"), "on %s", name)
			}
		}
	})

	It("does not show the operator's metrics to everybody", func(ctx SpecContext) {
		insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // its certificate is its own
		get := func(token string) int {
			GinkgoHelper()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+o.metrics+"/metrics", http.NoBody)
			Expect(err).NotTo(HaveOccurred())
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			resp, err := insecure.Do(req)
			Expect(err).NotTo(HaveOccurred())
			defer resp.Body.Close()
			return resp.StatusCode
		}
		reader := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prometheus"}}
		Expect(hub().Create(ctx, reader)).To(Succeed())
		request := &authenticationv1.TokenRequest{}
		Expect(hub().SubResource("token").Create(ctx, reader, request)).To(Succeed())
		Expect(get("")).To(Equal(http.StatusUnauthorized))
		Expect(get(request.Status.Token)).To(Equal(http.StatusForbidden))
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "fleetworkload-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: reader.Name}},
		}
		Expect(hub().Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(hub().Delete(ctx, binding)).To(Succeed()) })
		Eventually(func() int { return get(request.Status.Token) }).WithContext(ctx).WithTimeout(time.Minute).Should(Equal(http.StatusOK))
	})

	It("refuses other kinds, dependencies and namespaces of systems", func(ctx SpecContext) {
		chosenBy(ctx, namespace, "bound")
		clone := create(ctx, workload(namespace, "clone", "karmada", cloneSet, 1))
		dependent := workload(namespace, "dependent", "karmada", deployment, 1)
		dependent.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
		create(ctx, dependent)
		system := create(ctx, workload(metav1.NamespaceSystem, "web", "karmada", deployment, 1))
		DeferCleanup(func(ctx SpecContext) { remove(ctx, system) })
		Expect(becomesStalled(ctx, clone, v1alpha1.ReasonNotAllowed)).To(ContainSubstring(`with kinds: Deployment.apps`))
		Expect(becomesStalled(ctx, dependent, v1alpha1.ReasonNotAllowed)).To(ContainSubstring(`spec.dependencies "Propagate"`))
		Expect(becomesStalled(ctx, system, v1alpha1.ReasonNotAllowed)).To(ContainSubstring("it belongs to a system (kube-*)"))
		for _, member := range world.members {
			obj, err := object(ctx, world.clusters[member], deployment, client.ObjectKeyFromObject(system))
			Expect(err).NotTo(HaveOccurred())
			Expect(obj).To(BeNil())
		}
	})
})
