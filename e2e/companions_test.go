//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// swordfish must be nowhere but in Secrets and in what carries them.
const swordfish = "swordfish-4711"

// podSpec edits the pods' spec in a template.
func podSpec(fw *v1alpha1.FleetWorkload, change func(spec map[string]any)) {
	GinkgoHelper()
	var manifest map[string]any
	Expect(json.Unmarshal(fw.Spec.Template.Raw, &manifest)).To(Succeed())
	change(manifest["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any))
	raw, err := json.Marshal(manifest)
	Expect(err).NotTo(HaveOccurred())
	fw.Spec.Template.Raw = raw
}

// envFrom is the list that reads a ConfigMap and a Secret whole.
func envFrom(configMap string) func(spec map[string]any) {
	return func(spec map[string]any) {
		spec["containers"].([]any)[0].(map[string]any)["envFrom"] = []any{
			map[string]any{"configMapRef": map[string]any{"name": configMap}},
			map[string]any{"secretRef": map[string]any{"name": "key"}},
		}
	}
}

func configMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"value": value}}
}

func secret(namespace, name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"value": value}}
}

// has waits until members have an object like obj, or do not have it.
func has(ctx context.Context, obj client.Object, there bool, members ...string) {
	GinkgoHelper()
	for _, name := range members {
		live := obj.DeepCopyObject().(client.Object)
		if !there {
			Eventually(func() error { return member(name).Get(ctx, client.ObjectKeyFromObject(obj), live) }).
				WithContext(ctx).WithTimeout(readyTimeout).Should(MatchError(ContainSubstring("not found")), "%T %s on %s", obj, obj.GetName(), name)
			continue
		}
		Eventually(func(g Gomega) {
			g.Expect(member(name).Get(ctx, client.ObjectKeyFromObject(obj), live)).To(Succeed())
			g.Expect(contentOf(live)).To(Equal(contentOf(obj)))
		}).WithContext(ctx).WithTimeout(readyTimeout).Should(Succeed(), "%T %s on %s", obj, obj.GetName(), name)
	}
}

func contentOf(obj client.Object) string {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		return obj.Data["value"]
	case *corev1.Secret:
		return obj.StringData["value"] + string(obj.Data["value"])
	case *corev1.Service:
		return obj.Spec.Selector["app"]
	default:
		return ""
	}
}

// R13 on the fleet, from the management cluster to the members.
var _ = Describe("What travels along", Label("companions"), func() {
	for _, backend := range backends {
		Describe("on "+backend, Label(backend), Ordered, func() { travelsAlong(backend) })
	}
})

func travelsAlong(backend string) {
	var (
		o         *operator
		namespace string
		fw, other *v1alpha1.FleetWorkload
		m         []string
		settings  *corev1.ConfigMap
		key, pull *corev1.Secret
		account   *corev1.ServiceAccount
		service   *corev1.Service
	)

	BeforeAll(func(ctx SpecContext) {
		o, namespace = ownOperator(ctx, "along", operatorOptions{})
		o.start(ctx)
		m = world.members
		settings, key, pull = configMap(namespace, "settings", "one"), secret(namespace, "key", swordfish), secret(namespace, "pull", "p")
		account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "runner"}}
		service = &corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		using := func(name string) *v1alpha1.FleetWorkload {
			fw := workload(namespace, name, backend, cloneSet, 1)
			fw.Spec.Placement.Clusters = on(m[0], m[1])
			fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
			podSpec(fw, envFrom("settings"))
			podSpec(fw, func(spec map[string]any) {
				spec["serviceAccountName"] = "runner"
				spec["imagePullSecrets"] = []any{map[string]any{"name": "pull"}}
			})
			return fw
		}
		fw, other = using("web"), using("other")
		raw, err := json.Marshal(service)
		Expect(err).NotTo(HaveOccurred())
		fw.Spec.Companions = []runtime.RawExtension{{Raw: raw}}
	})

	It("is awaited while it is missing", func(ctx SpecContext) {
		for _, obj := range []client.Object{settings, pull, account} {
			Expect(hub().Create(ctx, obj)).To(Succeed())
		}
		create(ctx, fw)
		message := becomesStalled(ctx, fw, v1alpha1.ReasonDependencyMissing)
		Expect(message).To(And(ContainSubstring("Secret key"), ContainSubstring(namespace), ContainSubstring(m[0])))
		for _, name := range m {
			eventuallyAbsent(ctx, member(name), cloneSet, client.ObjectKeyFromObject(fw))
		}
	})

	It("comes before the workload", func(ctx SpecContext) {
		Expect(hub().Create(ctx, key)).To(Succeed())
		becomesReady(ctx, fw)
		for _, obj := range []client.Object{settings, key, pull, account, service} {
			has(ctx, obj, true, m[0], m[1])
			has(ctx, obj, false, m[2])
		}
		runs(ctx, fw, cloneSet, map[string]want{m[0]: {1, imageOld, "info"}, m[1]: {1, imageOld, "info"}})
	})

	It("is changed without touching the workload", func(ctx SpecContext) {
		pods, before := podUIDs(ctx, fw), specs(ctx, fw, cloneSet)
		settings.Data["value"] = "two"
		Expect(hub().Update(ctx, settings)).To(Succeed())
		has(ctx, settings, true, m[0], m[1])
		Expect(podUIDs(ctx, fw)).To(Equal(pods))
		Expect(specs(ctx, fw, cloneSet)).To(Equal(before))
	})

	It("is put back when somebody deletes or edits it on a member", func(ctx SpecContext) {
		live := settings.DeepCopy()
		Expect(member(m[0]).Get(ctx, client.ObjectKeyFromObject(settings), live)).To(Succeed())
		live.Data["value"] = "by hand"
		Expect(member(m[0]).Update(ctx, live)).To(Succeed())
		Expect(member(m[1]).Delete(ctx, settings.DeepCopy())).To(Succeed())
		if backend == "ocm" { // its agent looks every four to six minutes
			for _, name := range m[:2] {
				works, err := list(ctx, hub(), manifestWorkGVK, client.InNamespace(name))
				Expect(err).NotTo(HaveOccurred())
				for i := range works {
					if strings.HasPrefix(works[i].GetName(), "fwc-"+namespace+"-configmap-"+settings.Name) {
						agentLooks(ctx, &works[i])
					}
				}
			}
		}
		has(ctx, settings, true, m[0], m[1])
		becomesReady(ctx, fw)
	})

	It("means no write when there is nothing to do, also after a restart", func(ctx SpecContext) {
		becomesReady(ctx, fw)
		converged(ctx, o)
		o.stop(ctx)
		o.journal.Reset()
		o.start(ctx)
		o.reaches(ctx, true, backends...)
		Eventually(func(g Gomega) {
			n, err := o.calls(backend, "Apply")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(n).To(BeNumerically(">", 0))
		}).WithContext(ctx).WithTimeout(30 * time.Second).Should(Succeed())
		Consistently(o.journal.Entries).WithContext(ctx).WithTimeout(hold).Should(BeEmpty(), "writes of a restarted operator")
	})

	It("is shared", func(ctx SpecContext) {
		create(ctx, other)
		becomesReady(ctx, other)
		settings.Data["value"] = "three"
		Expect(hub().Update(ctx, settings)).To(Succeed())
		has(ctx, settings, true, m[0], m[1])
		becomesReady(ctx, fw, other)
	})

	It("goes from a cluster after the last workload there that needs it", func(ctx SpecContext) {
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters = on(m[0]) })
		eventuallyAbsent(ctx, member(m[1]), cloneSet, client.ObjectKeyFromObject(fw))
		has(ctx, service, false, m[1])
		becomesReady(ctx, fw)
		has(ctx, settings, true, m[0], m[1])
		edit(ctx, other, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters = on(m[0]) })
		for _, obj := range []client.Object{settings, key, pull, account} {
			has(ctx, obj, false, m[1])
		}
	})

	It("goes when pods no longer refer to it", func(ctx SpecContext) {
		remove(ctx, other)
		has(ctx, settings, true, m[0])
		replacement := configMap(namespace, "replacement", "new")
		Expect(hub().Create(ctx, replacement)).To(Succeed())
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { podSpec(fw, envFrom("replacement")) })
		has(ctx, replacement, true, m[0])
		has(ctx, settings, false, m[0])
		becomesReady(ctx, fw)
		has(ctx, key, true, m[0])
	})

	It("does not tell what is in Secrets", func(ctx SpecContext) {
		Expect(o.logTail(1 << 20)).NotTo(ContainSubstring(swordfish))
		Expect(kubectl(ctx, "get", "fw,events", "-n", namespace, "-o", "yaml")).NotTo(ContainSubstring(swordfish))
	})

	It("goes with the workload", func(ctx SpecContext) {
		remove(ctx, fw)
		for _, obj := range []client.Object{configMap(namespace, "replacement", "new"), key, pull, account, service} {
			has(ctx, obj, false, m...)
		}
		marked, err := labelled(ctx, controlOf(backend), "fleetworkload.io/companion")
		Expect(err).NotTo(HaveOccurred())
		for _, line := range marked {
			Expect(line).NotTo(ContainSubstring(namespace))
		}
	})

	It("leaves a claim where its data is", func(ctx SpecContext) {
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
			},
		}
		Expect(hub().Create(ctx, claim.DeepCopy())).To(Succeed())
		fw := workload(namespace, "store", backend, cloneSet, 0)
		fw.Spec.Placement.Clusters = on(m[0])
		fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
		podSpec(fw, func(spec map[string]any) {
			spec["volumes"] = []any{map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data"}}}
		})
		create(ctx, fw)
		becomesReady(ctx, fw)
		has(ctx, claim, true, m[0])
		remove(ctx, fw)
		live := claim.DeepCopy()
		Expect(member(m[0]).Get(ctx, client.ObjectKeyFromObject(claim), live)).To(Succeed())
		Expect(live.DeletionTimestamp).To(BeNil())
		Expect(live.Labels).NotTo(HaveKey("karmada.io/managed"))
		Expect(live.OwnerReferences).To(BeEmpty())
	})
}

// The operator may write Works, which could bring anything to members: an admission policy bounds that.
var _ = Describe("The right to write Works", Label("companions", "karmada", "laws", "law7"), func() {
	It("is for companions of known kinds", func(ctx SpecContext) {
		write := func(label, manifest string) error {
			work := fmt.Sprintf(`{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {generateName: e2e-, namespace: %s, labels: {%s}},
  spec: {workload: {manifests: [%s]}}}`, "karmada-es-"+world.members[0], label, manifest)
			account := "--as=system:serviceaccount:" + operatorNamespace + ":" + operatorAccount
			_, err := world.kubectlWith(ctx, work, lab.Karmada, account, "create", "--dry-run=server", "-f", "-")
			return err
		}
		const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}`
		const binding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}}`
		Expect(write("fleetworkload.io/companion: own", configMap)).To(Succeed())
		Expect(write("fleetworkload.io/companion: own", binding)).To(MatchError(ContainSubstring("companions may not be of this kind")))
		Expect(write("team: shop", configMap)).To(MatchError(ContainSubstring("no Works but those of companions")))
	})
})
