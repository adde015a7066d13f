//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// belongings are what one workload of a hand-over takes along.
type belongings struct {
	settings *corev1.ConfigMap
	key      *corev1.Secret
	account  *corev1.ServiceAccount
	claim    *corev1.PersistentVolumeClaim
	// service and extra are spec.companions.
	service *corev1.Service
	extra   *corev1.ConfigMap
}

func newBelongings(namespace string) belongings {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	b := belongings{
		settings: configMap(namespace, "settings", "one"), key: secret(namespace, "key", swordfish),
		account: &corev1.ServiceAccount{ObjectMeta: meta("runner")},
		claim: &corev1.PersistentVolumeClaim{ObjectMeta: meta("data"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		}},
		service: &corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: meta("web"),
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
		},
		extra: configMap(namespace, "extra", "own"),
	}
	b.extra.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	return b
}

// dependencies are read from the management cluster; the claim is left out.
func (b belongings) dependencies() []client.Object {
	return []client.Object{b.settings, b.key, b.account}
}

func (b belongings) all() []client.Object {
	return append(b.dependencies(), b.claim, b.service, b.extra)
}

// using makes a workload need them.
func (b belongings) using(fw *v1alpha1.FleetWorkload) {
	GinkgoHelper()
	fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
	podSpec(fw, envFrom(b.settings.Name))
	podSpec(fw, func(spec map[string]any) {
		spec["serviceAccountName"] = b.account.Name
		spec["volumes"] = []any{map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": b.claim.Name}}}
	})
	for _, obj := range []client.Object{b.service, b.extra} {
		raw, err := json.Marshal(obj)
		Expect(err).NotTo(HaveOccurred())
		fw.Spec.Companions = append(fw.Spec.Companions, runtime.RawExtension{Raw: raw})
	}
}

// uidsOn are the objects' UIDs by member.
func uidsOn(ctx context.Context, members []string, objects ...client.Object) map[string]string {
	GinkgoHelper()
	uids := map[string]string{}
	for _, name := range members {
		for _, obj := range objects {
			live := obj.DeepCopyObject().(client.Object)
			Expect(member(name).Get(ctx, client.ObjectKeyFromObject(obj), live)).To(Succeed())
			uids[fmt.Sprintf("%s %T %s", name, obj, obj.GetName())] = string(live.GetUID())
		}
	}
	return uids
}

// unmarkedBy waits until nothing of a backend is left on the objects.
func unmarkedBy(ctx context.Context, backend string, members []string, objects ...client.Object) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for _, name := range members {
			for _, obj := range objects {
				live := obj.DeepCopyObject().(client.Object)
				g.Expect(member(name).Get(ctx, client.ObjectKeyFromObject(obj), live)).To(Succeed())
				for _, marks := range []map[string]string{live.GetLabels(), live.GetAnnotations()} {
					for _, key := range slices.Sorted(maps.Keys(marks)) {
						g.Expect(backend == "karmada" && strings.Contains(key, "karmada.io/")).To(BeFalse(), "%s: %T %s: %s", name, obj, obj.GetName(), key)
					}
				}
				if backend == "ocm" {
					g.Expect(live.GetOwnerReferences()).To(BeEmpty(), "%s: %T %s", name, obj, obj.GetName())
				}
			}
		}
	}).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
}

// carriers are a backend's objects for companions of a namespace.
func carriers(ctx context.Context, backend, namespace string) []string {
	GinkgoHelper()
	all, err := labelled(ctx, controlOf(backend), "fleetworkload.io/companion")
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(all, func(line string) bool { return !strings.Contains(line, namespace) })
}

// deletions sees every ConfigMap of a namespace that goes from a member.
func deletions(ctx context.Context, namespace string, members []string) (stop func() []string) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	var (
		mu   sync.Mutex
		done sync.WaitGroup
		gone []string
	)
	for _, name := range members {
		events, err := member(name).Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace))
		Expect(err).NotTo(HaveOccurred())
		done.Add(1)
		go func() {
			defer done.Done()
			for e := range events.ResultChan() {
				if obj, is := e.Object.(*corev1.ConfigMap); is && e.Type == watch.Deleted {
					mu.Lock()
					gone = append(gone, name+"/"+obj.Name)
					mu.Unlock()
				}
			}
		}()
	}
	return func() []string {
		cancel()
		done.Wait()
		return gone
	}
}

// sends changes an object's content on the management cluster, and waits until members have it.
func sends(ctx context.Context, settings *corev1.ConfigMap, value string, members ...string) {
	GinkgoHelper()
	settings.Data["value"] = value
	Expect(hub().Update(ctx, settings)).To(Succeed())
	has(ctx, settings, true, members...)
}

var _ = Describe("A hand-over with companions", Label("companions", "handover"), func() {
	for _, backend := range backends {
		Describe("from "+backend, Label(backend), func() {
			It("takes them along, there and back", func(ctx SpecContext) { takesAlong(ctx, backend) })
			It("leaves what others share to them, and takes it with the last", func(ctx SpecContext) { takesWithTheLast(ctx, backend) })
			It("loses nothing that is shared when those who stay go", func(ctx SpecContext) { losesNothing(ctx, backend) })
			It("loses nothing that is shared when what moved goes", func(ctx SpecContext) { losesNothingBehind(ctx, backend) })
		})
	}
})

// moves has a FleetWorkload change its backend, and waits until nothing of the migration is left to do.
func moves(ctx context.Context, fw *v1alpha1.FleetWorkload, backend string) {
	GinkgoHelper()
	edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = backend })
	becomesMoved(ctx, fw, backend)
}

// becomesMoved waits for the end of a hand-over.
func becomesMoved(ctx context.Context, fw *v1alpha1.FleetWorkload, backend string) {
	GinkgoHelper()
	eventually(ctx, fw, readyTimeout, func(g Gomega) {
		g.Expect(fw.Status.Backend).To(Equal(backend))
		g.Expect(fw.Status.Migration).NotTo(BeNil())
		g.Expect(fw.Status.Migration.Phase).To(BeEmpty())
		g.Expect(isReady(fw)).To(BeTrue())
		var kept appsv1.ControllerRevisionList
		g.Expect(hub().List(ctx, &kept, client.InNamespace(fw.Namespace), client.MatchingLabels{v1alpha1.LabelUID: string(fw.UID)})).To(Succeed())
		g.Expect(kept.Items).To(BeEmpty(), "the spec is kept for the time of a migration")
	})
}

func takesAlong(ctx SpecContext, backend string) {
	sharedOperator(ctx)
	m := world.members[:2]
	namespace := newNamespace(ctx, "belong")
	b := newBelongings(namespace)
	for _, obj := range append(b.dependencies(), b.claim) {
		Expect(hub().Create(ctx, obj)).To(Succeed())
	}
	fw := workload(namespace, "web", backend, cloneSet, 0) // its claim is bound by nobody
	fw.Spec.Placement.Clusters = on(m...)
	b.using(fw)
	create(ctx, fw)
	becomesReady(ctx, fw)
	has(ctx, b.settings, true, m...)
	uids := uidsOn(ctx, m, b.all()...)
	for i, to := range []string{otherBackend(backend), backend} {
		moves(ctx, fw, to)
		Expect(uidsOn(ctx, m, b.all()...)).To(Equal(uids))
		unmarkedBy(ctx, otherBackend(to), m, b.all()...)
		Expect(carriers(ctx, otherBackend(to), namespace)).To(BeEmpty())
		sends(ctx, b.settings, fmt.Sprintf("moved %d", i), m...)
		becomesReady(ctx, fw)
		Eventually(func() string { return kubectl(ctx, "events", "-n", namespace, "--for", "fleetworkload/web") }).WithContext(ctx).Should(
			ContainSubstring("the migration from backend %s to %s has ended", otherBackend(to), to))
	}
	remove(ctx, fw)
	for _, obj := range append(b.dependencies(), b.service, b.extra) {
		has(ctx, obj, false, m...)
	}
	for _, name := range m {
		live := b.claim.DeepCopy()
		Expect(member(name).Get(ctx, client.ObjectKeyFromObject(b.claim), live)).To(Succeed())
		Expect(live.DeletionTimestamp).To(BeNil())
		Expect(live.Labels).NotTo(HaveKey("karmada.io/managed"))
		Expect(live.OwnerReferences).To(BeEmpty())
	}
}

// sharing are two workloads on one member that use the same ConfigMap.
func sharing(ctx SpecContext, backend string) (web, api *v1alpha1.FleetWorkload, settings *corev1.ConfigMap) {
	GinkgoHelper()
	sharedOperator(ctx)
	namespace := newNamespace(ctx, "share")
	settings = configMap(namespace, "settings", "one")
	Expect(hub().Create(ctx, settings)).To(Succeed())
	using := func(name string) *v1alpha1.FleetWorkload {
		fw := workload(namespace, name, backend, cloneSet, 1)
		fw.Spec.Placement.Clusters = on(world.members[0])
		fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
		podSpec(fw, func(spec map[string]any) {
			spec["containers"].([]any)[0].(map[string]any)["envFrom"] = []any{
				map[string]any{"configMapRef": map[string]any{"name": "settings"}},
			}
		})
		return create(ctx, fw)
	}
	web, api = using("web"), using("api")
	becomesReady(ctx, web, api)
	return web, api, settings
}

func takesWithTheLast(ctx SpecContext, backend string) {
	m := world.members[:1]
	web, api, settings := sharing(ctx, backend)
	stop := deletions(ctx, web.Namespace, m)
	uids := uidsOn(ctx, m, settings)
	moves(ctx, web, otherBackend(backend))
	sends(ctx, settings, "while they are apart", m...)
	moves(ctx, api, otherBackend(backend))
	Expect(carriers(ctx, backend, web.Namespace)).To(BeEmpty())
	unmarkedBy(ctx, backend, m, settings)
	sends(ctx, settings, "together again", m...)
	becomesReady(ctx, web, api)
	Expect(uidsOn(ctx, m, settings)).To(Equal(uids))
	Expect(stop()).To(BeEmpty())
	remove(ctx, web)
	has(ctx, settings, true, m...)
	remove(ctx, api)
	has(ctx, settings, false, m...)
}

func losesNothing(ctx SpecContext, backend string) {
	m := world.members[:1]
	web, api, settings := sharing(ctx, backend)
	stop := deletions(ctx, web.Namespace, m)
	moves(ctx, web, otherBackend(backend))
	remove(ctx, api)
	sends(ctx, settings, "alone", m...)
	becomesReady(ctx, web)
	unmarkedBy(ctx, backend, m, settings)
	Expect(carriers(ctx, backend, web.Namespace)).To(BeEmpty())
	Expect(stop()).To(BeEmpty())
	remove(ctx, web)
}

func losesNothingBehind(ctx SpecContext, backend string) {
	m := world.members[:1]
	web, api, settings := sharing(ctx, backend)
	stop := deletions(ctx, web.Namespace, m)
	moves(ctx, web, otherBackend(backend))
	remove(ctx, web)
	sends(ctx, settings, "still here", m...)
	becomesReady(ctx, api)
	unmarkedBy(ctx, otherBackend(backend), m, settings)
	Expect(stop()).To(BeEmpty())
	remove(ctx, api)
}
