//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

var (
	managedClusterGVK = schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1", Kind: "ManagedCluster"}
	manifestWorkGVK   = schema.GroupVersionKind{Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWork"}
	appliedWorkGVK    = manifestWorkGVK.GroupVersion().WithKind("AppliedManifestWork")
)

// Law 12: a hand-over ends in independence. Each of these takes a whole backend down for good, and brings it up again for whoever
// comes next.
var _ = Describe("A backend that is switched off for good", Label("laws", "law12", "sweep", "handover", "karmada", "ocm"), long, func() {
	each := oneOf("switched off", 3)

	each(0, "takes nothing with it when it was Karmada, nor when it comes back from a backup", func(ctx SpecContext) {
		s := newSwitchOff(ctx, "karmada")
		s.somebodyElses(ctx, func(namespace string) {
			karmada := controlOf("karmada")
			Expect(karmada.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
			Expect(karmada.Create(ctx, plainDeployment(namespace))).To(Succeed())
			Expect(karmada.Create(ctx, userPolicy(namespace, world.members...))).To(Succeed())
		})
		backup, err := world.fleet.Backup(ctx, lab.Karmada)
		Expect(err).NotTo(HaveOccurred())
		s.move(ctx)
		s.retire(ctx, "PropagationPolicy "+s.others+"/others")

		By("unjoining every cluster")
		unjoin := func() {
			for _, name := range world.members {
				gone(ctx, controlOf("karmada"), clusterGVK, "", name)
			}
		}
		unjoin()
		s.takeDown(ctx, "karmada")
		s.worksOn(ctx)
		s.agentsLookForADay(ctx)

		By("Karmada comes back from a backup, with all that it had before the hand-over")
		Expect(world.fleet.Restore(ctx, backup)).To(Succeed())
		s.bringUp(ctx)
		By("its controllers look at all Works, of which they have skipped those whose cluster they did not know yet")
		Expect(world.fleet.Stop(ctx, "karmada-controller-manager")).To(Succeed())
		s.bringUp(ctx)
		for i, name := range world.members {
			// A workload and what travels with it, a second one on two members, and somebody else's. Until Karmada has looked at a member, its
			// Works say what they said when the backup was made.
			works := 5
			if i == 2 {
				works = 3
			}
			karmadaRefuses(ctx, name, "namespace:"+s.namespace, works)
		}
		s.worksOn(ctx)
		By("it knows nothing of what was preserved, and is asked again")
		out, errOut, err := s.ask(ctx, "--preserve")
		Expect(err).NotTo(HaveOccurred(), out+errOut)
		unjoin()
		s.takeDown(ctx, "karmada")
		s.worksOn(ctx)
	}, SpecTimeout(15*time.Minute))

	each(1, "takes nothing with it when it was OCM", func(ctx SpecContext) {
		s := newSwitchOff(ctx, "ocm")
		s.somebodyElses(ctx, func(namespace string) {
			for _, name := range world.members {
				Expect(controlOf("ocm").Create(ctx, userWork(name, namespace))).To(Succeed())
			}
		})
		s.move(ctx)
		s.retire(ctx, "ManifestWork "+world.members[0]+"/"+s.others)

		By("detaching every cluster, and uninstalling its agent as the klusterlet's clean-up does")
		for _, name := range world.members {
			gone(ctx, hub(), managedClusterGVK, "", name)
		}
		var agents []string
		for _, name := range world.members {
			agents = append(agents, name+"-work-agent")
		}
		Expect(world.fleet.Stop(ctx, agents...)).To(Succeed())
		for _, name := range world.members {
			applied, err := list(ctx, member(name), appliedWorkGVK)
			Expect(err).NotTo(HaveOccurred())
			for i := range applied {
				before := applied[i].DeepCopy()
				applied[i].SetFinalizers(nil)
				Expect(member(name).Patch(ctx, &applied[i], client.MergeFrom(before))).To(Succeed())
				Expect(client.IgnoreNotFound(member(name).Delete(ctx, &applied[i]))).To(Succeed())
			}
		}
		s.takeDown(ctx, "ocm")
		s.worksOn(ctx)
	}, SpecTimeout(10*time.Minute))

	each(2, "writes nothing again when it was OCM, and its hub comes back from a backup while agents still reach it", func(ctx SpecContext) {
		s := newSwitchOff(ctx, "ocm")
		backup := s.worksOnHub(ctx)
		rights, err := list(ctx, hub(), manifestWorkGVK, client.MatchingLabels{"fleetworkload.io/prerequisite": "rights"})
		Expect(err).NotTo(HaveOccurred())
		for _, work := range backup {
			Expect(fmt.Sprint(work.Object["spec"])).NotTo(ContainSubstring("force:true"), work.GetName())
		}
		s.move(ctx)
		s.worksOn(ctx)
		By("taking something out of what travels along")
		without := map[string]string{"b": "2"}
		for _, r := range s.all {
			edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) {
				fw.Spec.Companions = []runtime.RawExtension{settings(fw.Name, without)}
			})
		}
		s.settingsBecome(ctx, without)

		By("the hub has the ManifestWorks again")
		restoreWorks(ctx, rights) // without which the agents could not even look
		restoreWorks(ctx, backup)
		refused := func() {
			for i := range backup {
				Eventually(ctx, func(g Gomega) {
					work := backup[i].DeepCopy()
					g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(work), work)).To(Succeed())
					g.Expect(fmt.Sprint(work.Object["status"])).To(ContainSubstring("Apply failed with"), work.GetName())
				}).WithTimeout(readyTimeout).Should(Succeed())
			}
		}
		refused()
		s.settingsBecome(ctx, without)
		s.worksOn(ctx)
		s.agentsLookForADay(ctx)
		s.unharmed(ctx)
		refused()
		s.settingsBecome(ctx, without)
	}, SpecTimeout(10*time.Minute))
})

// karmadaRefuses waits until Karmada says of all Works for a member in which that text is, and of so many at least, that it does not manage
// what it has found there.
func karmadaRefuses(ctx context.Context, name, text string, least int) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		works, err := list(ctx, controlOf("karmada"), workGVK, client.InNamespace("karmada-es-"+name))
		g.Expect(err).NotTo(HaveOccurred())
		found := 0
		for _, work := range works {
			if strings.Contains(fmt.Sprint(work.Object["spec"]), text) {
				found++
				g.Expect(work.GetDeletionTimestamp()).To(BeNil(), work.GetName())
				g.Expect(fmt.Sprint(work.Object["status"])).To(ContainSubstring("Karmada will not manage this resource"), work.GetName())
			}
		}
		g.Expect(found).To(BeNumerically(">=", least), "of "+text)
	}).WithTimeout(readyTimeout).Should(Succeed())
}

// agentsLookForADay has the members' agents look at each of the operator's ManifestWorks as often as in a day, in less than two minutes. The
// workloads stay as they are.
func (s *switchOff) agentsLookForADay(ctx SpecContext) {
	GinkgoHelper()
	const looks = 24 * 60 / 4 // manifestcontroller.ResyncInterval is 4 minutes, and up to half as much more
	By("OCM's agents look at their ManifestWorks as often as in a day")
	before := imprints(ctx, s.all)
	Expect(os.Setenv(lab.EnvAgentResync, "50ms")).To(Succeed())
	usual := func(ctx context.Context) {
		Expect(os.Unsetenv(lab.EnvAgentResync)).To(Succeed())
		restartAgents(ctx)
	}
	DeferCleanup(func(ctx SpecContext) {
		if os.Getenv(lab.EnvAgentResync) != "" {
			usual(ctx)
		}
	}, NodeTimeout(time.Minute))
	wanted := map[string]float64{}
	for _, name := range world.members {
		works, err := list(ctx, hub(), manifestWorkGVK, client.InNamespace(name), client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator})
		Expect(err).NotTo(HaveOccurred())
		Expect(works).NotTo(BeEmpty())
		wanted[name] = applies(ctx, name) + float64(looks*len(works))
	}
	restartAgents(ctx)
	Eventually(func(g Gomega) {
		for name, n := range wanted {
			g.Expect(applies(ctx, name)).To(BeNumerically(">=", n), "requests to %s", name)
		}
	}).WithContext(ctx).WithTimeout(5 * time.Minute).WithPolling(2 * time.Second).Should(Succeed())
	Expect(imprints(ctx, s.all)).To(Equal(before))
	usual(ctx)
}

// restartAgents starts the members' OCM agents anew, with the environment as it is now.
func restartAgents(ctx context.Context) {
	GinkgoHelper()
	for _, name := range world.members {
		Expect(world.fleet.Stop(ctx, name+"-work-agent")).To(Succeed())
	}
	for _, name := range world.members {
		Expect(world.fleet.Revive(ctx, name+"-work-agent")).To(Succeed())
	}
}

// applies counts the server-side applies that a member has answered. Nobody but OCM's agent sends any.
func applies(ctx context.Context, name string) float64 {
	GinkgoHelper()
	c, err := rest.HTTPClientFor(world.clusters[name].rest)
	Expect(err).NotTo(HaveOccurred())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, world.clusters[name].rest.Host+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	resp, err := c.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	return measure(families, "apiserver_request_total", "verb", "APPLY")
}

// agentLooks has the agent look at a ManifestWork at once: its labels are what it looks for, besides the spec (onUpdateFunc in ocm
// pkg/work/spoke/controllers/manifestcontroller).
func agentLooks(ctx context.Context, work *unstructured.Unstructured) {
	GinkgoHelper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"e2e.fleetworkload.io/look":"%d"}}}`, time.Now().UnixNano())
	Expect(hub().Patch(ctx, work.DeepCopy(), client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// settings are a companion.
func settings(name string, data map[string]string) runtime.RawExtension {
	GinkgoHelper()
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name + "-settings"}, "data": data,
	})
	Expect(err).NotTo(HaveOccurred())
	return runtime.RawExtension{Raw: raw}
}

// settingsBecome wants all members to have companions like these.
func (s *switchOff) settingsBecome(ctx context.Context, data map[string]string) {
	GinkgoHelper()
	for at := range s.companions {
		name, companion, _ := strings.Cut(at, "/")
		Eventually(ctx, func(g Gomega) {
			var m corev1.ConfigMap
			g.Expect(member(name).Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: companion}, &m)).To(Succeed())
			g.Expect(m.Data).To(Equal(data), at)
		}).WithTimeout(readyTimeout).Should(Succeed())
	}
}

// worksOnHub are the ManifestWorks of the workloads and their companions, as a backup has them.
func (s *switchOff) worksOnHub(ctx context.Context) (all []unstructured.Unstructured) {
	GinkgoHelper()
	for _, r := range s.all {
		works, err := list(ctx, hub(), manifestWorkGVK, client.MatchingLabels{v1alpha1.LabelUID: identity(r.fw)})
		Expect(err).NotTo(HaveOccurred())
		all = append(all, works...)
	}
	Expect(len(all)).To(BeNumerically(">=", 2*len(s.companions)))
	return all
}

// restoreWorks makes those ManifestWorks again that are no longer there. They go in the end, and what they have brought of workloads stays.
func restoreWorks(ctx context.Context, backup []unstructured.Unstructured) {
	GinkgoHelper()
	var made []unstructured.Unstructured
	DeferCleanup(func(ctx SpecContext) {
		for _, work := range made {
			gone(ctx, hub(), manifestWorkGVK, work.GetNamespace(), work.GetName())
		}
	}, NodeTimeout(2*time.Minute))
	for _, work := range backup {
		again := &unstructured.Unstructured{Object: map[string]any{"spec": work.Object["spec"]}}
		again.SetGroupVersionKind(manifestWorkGVK)
		again.SetNamespace(work.GetNamespace())
		again.SetName(work.GetName())
		again.SetLabels(work.GetLabels())
		again.SetAnnotations(work.GetAnnotations())
		err := hub().Create(ctx, again)
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		Expect(err).NotTo(HaveOccurred())
		made = append(made, work)
	}
}

// switchOff is workloads that leave a backend which goes, and a workload of somebody else there.
type switchOff struct {
	*convoy
	o *operator
	// others is the namespace of somebody else's workload, otherUIDs the objects' identities by member.
	others    string
	otherUIDs map[string]types.UID
	// companions are the identities of what travels along, by member and name.
	companions map[string]types.UID
	images     int
	program    string
}

func newSwitchOff(ctx context.Context, backend string) *switchOff {
	GinkgoHelper()
	o, namespace := ownOperator(ctx, "off-"+backend, operatorOptions{})
	o.start(ctx)
	s := &switchOff{convoy: &convoy{backend: backend, namespace: namespace}, o: o}
	m := world.members
	onTwo := func(fw *v1alpha1.FleetWorkload) {
		fw.Spec.Placement.Clusters, fw.Spec.Placement.Division = on(m[:2]...), divided()
	}
	for _, w := range []struct {
		name   string
		kind   kind
		change func(*v1alpha1.FleetWorkload)
	}{
		{"divided", cloneSet, onTwo},
		// A Karmada that comes back must not take over again what it once was told to.
		{"everywhere", deployment, func(fw *v1alpha1.FleetWorkload) { fw.Spec.ConflictPolicy = v1alpha1.ConflictPolicyAdopt }},
	} {
		fw := workload(namespace, w.name, backend, w.kind, 4)
		w.change(fw)
		fw.Spec.Companions = []runtime.RawExtension{settings(w.name, map[string]string{"a": "1"})}
		s.all = append(s.all, carried(fw, w.kind))
		create(ctx, fw)
	}
	for _, r := range s.all {
		becomesReady(ctx, r.fw)
	}
	s.setOut(ctx)
	s.companions = s.travelling(ctx)
	return s
}

// travelling are the companions that are there.
func (s *switchOff) travelling(ctx context.Context) map[string]types.UID {
	GinkgoHelper()
	found := map[string]types.UID{}
	for _, name := range world.members {
		var maps corev1.ConfigMapList
		Expect(member(name).List(ctx, &maps, client.InNamespace(s.namespace))).To(Succeed())
		for _, m := range maps.Items {
			if strings.HasSuffix(m.Name, "-settings") {
				found[name+"/"+m.Name] = m.UID
			}
		}
	}
	Expect(found).To(HaveLen(5))
	return found
}

// somebodyElses makes a Deployment "others" that is not ours, and waits until it runs on all members.
func (s *switchOff) somebodyElses(ctx context.Context, make func(namespace string)) {
	GinkgoHelper()
	s.others, s.otherUIDs = s.namespace+"-others", map[string]types.UID{}
	make(s.others)
	for _, name := range world.members {
		Eventually(ctx, func(g Gomega) {
			var d appsv1.Deployment
			g.Expect(member(name).Get(ctx, client.ObjectKey{Namespace: s.others, Name: "others"}, &d)).To(Succeed())
			g.Expect(d.Status.ReadyReplicas).To(BeEquivalentTo(1))
			s.otherUIDs[name] = d.UID
		}).WithTimeout(readyTimeout).Should(Succeed())
	}
}

func (s *switchOff) move(ctx context.Context) {
	GinkgoHelper()
	turn(ctx, s.all...)
	arrive(ctx, s.all...)
	ended(v1alpha1.MigrationPhaseCompleted, s.all...)
	for _, r := range s.all {
		Expect(condition(r.fw, v1alpha1.ConditionIndependent).Status).To(Equal(metav1.ConditionTrue), describe(r.fw))
	}
}

// retire asks whether the backend may be switched off, and makes it so. Somebody else's objects stand against it.
func (s *switchOff) retire(ctx context.Context, whose string) {
	GinkgoHelper()
	s.program = buildKubectlFW(ctx)
	By("asking whether it may be switched off")
	out, errOut, err := s.ask(ctx)
	Expect(err).To(HaveOccurred())
	Expect(errOut).To(Equal("error: backend " + s.backend + " may not be switched off yet\n"))
	Expect(out).To(MatchRegexp(`(?m)^` + world.members[0] + ` +Deployment ` + s.others + `/others +` + whose + ` +--preserve`))
	Expect(out).NotTo(ContainSubstring("FleetWorkloads that depend"))
	out, errOut, err = s.ask(ctx, "--preserve", "--dry-run")
	Expect(err).To(HaveOccurred(), errOut)
	Expect(out).To(ContainSubstring("would preserve what " + whose + " has brought"))
	By("having what others have brought stay")
	out, errOut, err = s.ask(ctx, "--preserve")
	Expect(err).NotTo(HaveOccurred(), out+errOut)
	Expect(out).To(ContainSubstring("Backend " + s.backend + " may be switched off"))
}

// ask asks whether the backend may be switched off, as its administrator.
func (s *switchOff) ask(ctx context.Context, more ...string) (out, errOut string, err error) {
	GinkgoHelper()
	control := lab.Hub
	if s.backend == "karmada" {
		control = lab.Karmada
	}
	args := append([]string{"backend", "retire", s.backend, "--config", s.o.path("config.yaml"),
		"--backend-kubeconfig", world.fleet.Kubeconfig(control)}, more...)
	return commandLine(ctx, s.program, s.all[0].fw, args...)
}

// takeDown ends all of a backend. It is brought up again at the end.
func (s *switchOff) takeDown(ctx context.Context, backend string) {
	GinkgoHelper()
	names, err := world.fleet.ComponentsOf(backend)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { s.bringUp(ctx) }, NodeTimeout(4*time.Minute))
	Expect(world.fleet.Stop(ctx, names...)).To(Succeed())
}

// bringUp starts what does not run, and joins clusters that are not joined.
func (s *switchOff) bringUp(ctx context.Context) {
	GinkgoHelper()
	_, err := lab.Up(ctx, lab.Options{Dir: world.fleet.Dir(), Members: members, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
}

// worksOn wants no pod to have noticed anything, and then changes all images: they are carried out.
func (s *switchOff) worksOn(ctx context.Context) {
	GinkgoHelper()
	s.unharmed(ctx)
	Expect(s.travelling(ctx)).To(Equal(s.companions))
	for name := range s.otherUIDs {
		var d appsv1.Deployment
		Expect(member(name).Get(ctx, client.ObjectKey{Namespace: s.others, Name: "others"}, &d)).To(Succeed())
		Expect(d.UID).To(Equal(s.otherUIDs[name]))
		Expect(d.Status.ReadyReplicas).To(BeEquivalentTo(1))
	}
	s.images++
	for _, r := range s.all {
		edit(ctx, r.fw, func(fw *v1alpha1.FleetWorkload) {
			setImage(fw, fmt.Sprintf("registry.example.com/shop/web:3.%d", s.images))
		})
	}
	for _, r := range s.all {
		becomesReady(ctx, r.fw)
	}
	s.setOut(ctx)
}

// gone deletes an object and waits until it is gone.
func gone(ctx context.Context, c *cluster, gvk schema.GroupVersionKind, namespace, name string) {
	GinkgoHelper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	Expect(client.IgnoreNotFound(c.Delete(ctx, obj))).To(Succeed())
	Eventually(ctx, func() bool { return apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(obj), obj)) }).
		WithTimeout(readyTimeout).Should(BeTrue(), "%s %s goes", gvk.Kind, name)
}

// plainDeployment is nobody's but a user's.
func plainDeployment(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "others"}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "others", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: imageOld}}},
			},
		},
	}
}

// userPolicy is a user's own way to bring that to clusters.
func userPolicy(namespace string, clusters ...string) *unstructured.Unstructured {
	policy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"resourceSelectors": []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "others"}},
		"placement":         map[string]any{"clusterAffinity": map[string]any{"clusterNames": anyOf(clusters)}},
	}}}
	policy.SetGroupVersionKind(policyGVK)
	policy.SetNamespace(namespace)
	policy.SetName("others")
	return policy
}

// userWork is the same on OCM.
func userWork(cluster, namespace string) *unstructured.Unstructured {
	work := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"workload": map[string]any{"manifests": []any{
		map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}},
		asMap(plainDeployment(namespace)),
	}}}}}
	work.SetGroupVersionKind(manifestWorkGVK)
	work.SetNamespace(cluster)
	work.SetName(namespace)
	return work
}

func anyOf(texts []string) (out []any) {
	for _, text := range texts {
		out = append(out, text)
	}
	return out
}

func asMap(obj any) map[string]any {
	GinkgoHelper()
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	Expect(err).NotTo(HaveOccurred())
	return out
}
