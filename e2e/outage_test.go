//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

// Law 4: unknown is not zero, stale is not healthy.
var _ = Describe("A member that is lost", Label("laws", "law4", "karmada", "ocm"), long, func() {
	It("turns its rows stale, and only its own", func(ctx SpecContext) {
		twoReplicas(ctx, "lost")
		m := world.members
		lost := m[2]
		namespace := newNamespace(ctx, "lost")
		var workloads []*v1alpha1.FleetWorkload
		for _, backend := range backends {
			for _, k := range kinds {
				workloads = append(workloads, create(ctx, workload(namespace, backend+"-"+k.label, backend, k, 2)))
			}
		}
		becomesReady(ctx, workloads...)
		resume := func(ctx SpecContext) { Expect(world.fleet.ResumeMember(ctx, lost)).To(Succeed()) }
		DeferCleanup(resume, NodeTimeout(2*time.Minute))
		Expect(world.fleet.PauseMember(ctx, lost)).To(Succeed())
		for _, fw := range workloads {
			eventually(ctx, fw, 2*time.Minute, func(g Gomega) {
				gone := row(fw, lost)
				g.Expect(gone.Stale).To(Equal(metav1.ConditionTrue))
				g.Expect(gone.Health).NotTo(Equal(v1alpha1.HealthHealthy))
				g.Expect(gone.Message).To(ContainSubstring("last known"))
				g.Expect(gone.Ready).To(HaveValue(BeEquivalentTo(2)), "the last known number")
				g.Expect(condition(fw, v1alpha1.ConditionReady).Status).NotTo(Equal(metav1.ConditionTrue))
				g.Expect(condition(fw, v1alpha1.ConditionReady).Reason).To(Equal(v1alpha1.ReasonStale))
				g.Expect(condition(fw, v1alpha1.ConditionReady).Message).To(ContainSubstring(lost))
				for _, name := range m[:2] {
					g.Expect(row(fw, name).Stale).To(Equal(metav1.ConditionFalse))
					g.Expect(row(fw, name).Health).To(Equal(v1alpha1.HealthHealthy))
					g.Expect(row(fw, name).Ready).To(HaveValue(BeEquivalentTo(2)))
				}
			})
		}
		resume(ctx)
		becomesReady(ctx, workloads...)
		for _, fw := range workloads {
			Expect(fw.Status.Clusters).To(HaveLen(3))
		}
	}, SpecTimeout(15*time.Minute))
})

// keeps wants a FleetWorkload to show what was last known, as such, and its pods to run on.
func keeps(ctx context.Context, fw *v1alpha1.FleetWorkload, pods map[string]string) {
	GinkgoHelper()
	eventually(ctx, fw, 60*time.Second, func(g Gomega) {
		g.Expect(fw.Status.Clusters).To(HaveLen(len(world.members)))
		for _, r := range fw.Status.Clusters {
			g.Expect(r.Stale).To(Equal(metav1.ConditionTrue))
			g.Expect(r.Ready).To(HaveValue(BeEquivalentTo(2)))
		}
	})
	Expect(podUIDs(ctx, fw)).To(Equal(pods))
}

// Law 8: a lost backend costs nothing.
var _ = Describe("A backend that is lost", Label("laws", "law8", "karmada", "ocm"), long, Ordered, ContinueOnFailure, func() {
	var (
		replicas  pair
		namespace string
		fw        = map[string]*v1alpha1.FleetWorkload{}
		pods      = map[string]map[string]string{}
	)
	set := func(backend string, mode proxy.Mode) {
		for _, o := range replicas {
			at := o.ocm
			if backend == "karmada" {
				at = o.karmada
			}
			at.Set(mode)
		}
	}
	other := map[string]string{"karmada": "ocm", "ocm": "karmada"}

	// goesOn wants the other backend's workload to be changed and back while this one is lost.
	goesOn := func(ctx context.Context, lost string) {
		GinkgoHelper()
		alive := fw[other[lost]]
		edit(ctx, alive, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(3)) })
		becomesReady(ctx, alive)
		edit(ctx, alive, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(2)) })
		becomesReady(ctx, alive)
		pods[other[lost]] = podUIDs(ctx, alive)
	}

	BeforeAll(func(ctx SpecContext) {
		replicas, namespace = ownPair(ctx, "outage", operatorOptions{})
		for _, backend := range backends {
			fw[backend] = workload(namespace, "on-"+backend, backend, deployment, 2)
		}
	})

	It("does not keep the operator from starting and serving the other", func(ctx SpecContext) {
		set("karmada", proxy.Refuse)
		replicas.start(ctx)
		create(ctx, fw["karmada"])
		create(ctx, fw["ocm"])
		becomesReady(ctx, fw["ocm"])
		unavailable(ctx, fw["karmada"], `backend "karmada"`, "nothing is changed meanwhile")
		set("karmada", proxy.Forward)
		becomesReady(ctx, fw["karmada"])
		for _, backend := range backends {
			pods[backend] = podUIDs(ctx, fw[backend])
			Expect(pods[backend]).To(HaveLen(2 * len(world.members)))
		}
	})

	for _, backend := range backends {
		for _, outage := range []struct {
			text  string
			mode  proxy.Mode
			parts []string
		}{
			{"refuses connections", proxy.Refuse, nil},
			{"does not answer", proxy.Blackhole, nil},
			{"throttles", proxy.TooManyRequests, nil},
			{"refuses the operator's token", proxy.Unauthorized, []string{"Unauthorized", "renew the credentials"}},
		} {
			It("keeps everything when "+backend+" "+outage.text, func(ctx SpecContext) {
				set(backend, outage.mode)
				DeferCleanup(func() { set(backend, proxy.Forward) })
				unavailable(ctx, fw[backend], append(outage.parts, `backend "`+backend+`"`)...)
				keeps(ctx, fw[backend], pods[backend])
				goesOn(ctx, backend)
				set(backend, proxy.Forward)
				becomesReady(ctx, fw[backend])
				Expect(podUIDs(ctx, fw[backend])).To(Equal(pods[backend]))
			})
		}

		It("takes an edit and a deletion that came meanwhile, on "+backend, func(ctx SpecContext) {
			set(backend, proxy.Refuse)
			DeferCleanup(func() { set(backend, proxy.Forward) })
			edit(ctx, fw[backend], func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(1)) })
			doomed := create(ctx, workload(namespace, "doomed-"+backend, backend, deployment, 1))
			unavailable(ctx, fw[backend])
			unavailable(ctx, doomed)
			Expect(hub().Delete(ctx, doomed)).To(Succeed())
			set(backend, proxy.Forward)
			becomesReady(ctx, fw[backend])
			w := want{1, imageOld, "info"}
			m := world.members
			runs(ctx, fw[backend], deployment, map[string]want{m[0]: w, m[1]: w, m[2]: w})
			Eventually(func() error {
				return client.IgnoreNotFound(hub().Get(ctx, client.ObjectKeyFromObject(doomed), &v1alpha1.FleetWorkload{}))
			}).Should(Succeed())
			edit(ctx, fw[backend], func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(2)) })
			becomesReady(ctx, fw[backend])
			pods[backend] = podUIDs(ctx, fw[backend])
		})
	}

	It("was never mended by a restart", func() {
		for _, o := range replicas {
			Expect(o.current().ended()).To(BeFalse())
		}
	})

	for _, backend := range backends {
		It("keeps everything when the leader is lost while "+backend+" is", func(ctx SpecContext) {
			set(backend, proxy.Refuse)
			DeferCleanup(func() { set(backend, proxy.Forward) })
			unavailable(ctx, fw[backend], `backend "`+backend+`"`)
			leader, standby := replicas.roles(ctx)
			leader.kill()
			Eventually(standby.leads).WithContext(ctx).WithTimeout(withinLease).Should(BeTrue())
			goesOn(ctx, backend)
			keeps(ctx, fw[backend], pods[backend])
			set(backend, proxy.Forward)
			becomesReady(ctx, fw[backend])
			Expect(podUIDs(ctx, fw[backend])).To(Equal(pods[backend]))
			leader.start(ctx)
		})
	}
})

// mayUpdate lets the operator update a Secret that config/rbac/management does not name.
func mayUpdate(ctx context.Context, secret client.ObjectKey) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}
	for _, obj := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret.Name}, Verbs: []string{"update"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: secret.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: operatorAccount}}},
	} {
		Expect(hub().Create(ctx, obj)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hub().Delete(ctx, obj))).To(Succeed()) })
	}
}

// The connection comes from a Secret, which changes.
var _ = Describe("A kubeconfig in a Secret", Label("laws", "law8", "karmada"), func() {
	It("is read again when it changes, to garbage and back", func(ctx SpecContext) {
		key := client.ObjectKey{Namespace: operatorNamespace, Name: fmt.Sprintf("e2e-kubeconfig-%d", GinkgoRandomSeed())}
		o, namespace := ownOperator(ctx, "secret", operatorOptions{karmadaSecret: key.Name})
		good, err := clientcmd.Write(o.karmada.Kubeconfig(world.tokens["karmada"]))
		Expect(err).NotTo(HaveOccurred())
		o.start(ctx)
		fw := create(ctx, workload(namespace, "web", "karmada", deployment, 2))
		unavailable(ctx, fw, `backend "karmada"`, "read kubeconfig from Secret "+key.String(), "not found")
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Data:       map[string][]byte{"kubeconfig": good},
		}
		Expect(hub().Create(ctx, secret)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hub().Delete(ctx, secret))).To(Succeed()) })
		becomesReady(ctx, fw)
		pods := podUIDs(ctx, fw)
		Expect(pods).To(HaveLen(2 * len(world.members)))

		set := func(data map[string][]byte) {
			GinkgoHelper()
			before := secret.DeepCopy()
			secret.Data = data
			Expect(hub().Patch(ctx, secret, client.MergeFrom(before))).To(Succeed())
		}
		set(map[string][]byte{"kubeconfig": []byte("token: s3cr3t\nclusters: [}")})
		unavailable(ctx, fw, "Secret "+key.String()+", key kubeconfig, does not hold a valid kubeconfig")
		Expect(condition(fw, v1alpha1.ConditionReady).Message).NotTo(ContainSubstring("s3cr3t"))
		keeps(ctx, fw, pods)
		for says, change := range map[string]func(*clientcmdapi.Config){
			"uses an exec or auth provider plugin": func(c *clientcmdapi.Config) {
				c.AuthInfos["proxy"].Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "sh", InteractiveMode: "Never"}
			},
			"names a file in user": func(c *clientcmdapi.Config) {
				c.AuthInfos["proxy"].TokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"
			},
			"has a proxy-url": func(c *clientcmdapi.Config) { c.Clusters["proxy"].ProxyURL = "https://somewhere.example.com" },
			"does not verify the server of": func(c *clientcmdapi.Config) {
				c.Clusters["proxy"].InsecureSkipTLSVerify, c.Clusters["proxy"].CertificateAuthorityData = true, nil
			},
		} {
			cfg := o.karmada.Kubeconfig(world.tokens["karmada"])
			change(&cfg)
			raw, err := clientcmd.Write(cfg)
			Expect(err).NotTo(HaveOccurred())
			set(map[string][]byte{"kubeconfig": raw})
			unavailable(ctx, fw, says)
		}
		set(map[string][]byte{"other": good})
		unavailable(ctx, fw, "Secret "+key.String()+` has no key "kubeconfig"`)
		set(map[string][]byte{"kubeconfig": good})
		becomesReady(ctx, fw)
		Expect(podUIDs(ctx, fw)).To(Equal(pods))
		remove(ctx, fw)
	})

	It("is made by a command, with a token that the operator renews", func(ctx SpecContext) {
		const renewAfter = "fleetworkload.io/renew-token-after"
		key := client.ObjectKey{Namespace: operatorNamespace, Name: fmt.Sprintf("e2e-renewed-%d", GinkgoRandomSeed())}
		o, namespace := ownOperator(ctx, "renewed", operatorOptions{karmadaSecret: key.Name})
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hub().Delete(ctx, secret))).To(Succeed()) })
		mayUpdate(ctx, key)
		fw := workload(namespace, "web", "karmada", deployment, 2)
		said, errOut, err := commandLine(ctx, buildKubectlFW(ctx), fw, "kubeconfig", "karmada", "--backend-kubeconfig", world.fleet.Kubeconfig(lab.Karmada),
			"--secret", key.Name)
		Expect(err).NotTo(HaveOccurred(), errOut)
		Expect(said).To(MatchRegexp(`^Secret %s has a token of ServiceAccount %s/%s that holds until \S+; the operator renews it\.\n$`,
			key, operatorNamespace, operatorAccount))
		Expect(hub().Get(ctx, key, secret)).To(Succeed())
		Expect(secret.Annotations).To(HaveKeyWithValue(renewAfter, "19h12m0s"))
		first := secret.Data["kubeconfig"]

		By("it is not due, and it works")
		o.start(ctx)
		becomesReady(ctx, create(ctx, fw))
		Expect(hub().Get(ctx, key, secret)).To(Succeed())
		Expect(secret.Data["kubeconfig"]).To(Equal(first))

		By("it is due, and another one works, and the FleetWorkload stays ready")
		Expect(hub().Get(ctx, client.ObjectKeyFromObject(fw), fw)).To(Succeed())
		ready := condition(fw, v1alpha1.ConditionReady).LastTransitionTime
		before := secret.DeepCopy()
		secret.Annotations[renewAfter] = "1s"
		Expect(hub().Patch(ctx, secret, client.MergeFrom(before))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(hub().Get(ctx, key, secret)).To(Succeed())
			g.Expect(secret.Data["kubeconfig"]).NotTo(Equal(first))
			families, err := o.measures()
			g.Expect(err).NotTo(HaveOccurred())
			expires := measure(families, "fleetworkload_backend_token_expiry_timestamp_seconds", "backend", "karmada")
			g.Expect(expires).To(BeNumerically("~", float64(time.Now().Add(24*time.Hour).Unix()), 120))
		}).WithContext(ctx).WithTimeout(readyTimeout).Should(Succeed())
		before = secret.DeepCopy()
		delete(secret.Annotations, renewAfter) // it would be renewed again and again
		Expect(hub().Patch(ctx, secret, client.MergeFrom(before))).To(Succeed())
		Consistently(func(g Gomega) {
			g.Expect(hub().Get(ctx, client.ObjectKeyFromObject(fw), fw)).To(Succeed())
			g.Expect(condition(fw, v1alpha1.ConditionReady).LastTransitionTime).To(Equal(ready))
		}).WithContext(ctx).WithTimeout(10 * time.Second).Should(Succeed())
		edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) { fw.Spec.Replicas = ptr(int32(3)) })
		becomesReady(ctx, fw)
		Expect(podUIDs(ctx, fw)).To(HaveLen(3 * len(world.members)))
		remove(ctx, fw)
	})
})
