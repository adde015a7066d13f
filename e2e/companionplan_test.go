//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// What travels along waits for approval, too, and a plan says what becomes of it.
var _ = Describe("The plan of companions", Label("companions", "commandline", "law2", "law7"), func() {
	for _, backend := range backends {
		It("tells of each on "+backend+", and an approval stands for it", Label(backend), func(ctx SpecContext) {
			companionsArePlanned(ctx, backend)
		}, NodeTimeout(5*time.Minute))
	}
})

func companionsArePlanned(ctx SpecContext, backend string) {
	o, program, m := sharedOperator(ctx), buildKubectlFW(ctx), world.members
	namespace := newNamespace(ctx, "companionplan")
	settings, common, key := configMap(namespace, "settings", "one"), configMap(namespace, "common", "ours"), secret(namespace, "key", swordfish)
	settings.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	theirs := configMap(namespace, "common", "theirs")
	Expect(member(m[1]).Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	Expect(member(m[1]).Create(ctx, theirs)).To(Succeed())
	Expect(hub().Create(ctx, common)).To(Succeed())
	Expect(hub().Create(ctx, key)).To(Succeed())
	listing := func(fw *v1alpha1.FleetWorkload, value string) {
		settings.Data["value"] = value
		raw, err := json.Marshal(settings)
		Expect(err).NotTo(HaveOccurred())
		fw.Spec.Companions = []runtime.RawExtension{{Raw: raw}}
	}
	fw := workload(namespace, "web", backend, deployment, 1)
	fw.Spec.Approval, fw.Spec.Placement.Clusters, fw.Spec.Dependencies = v1alpha1.ApprovalPolicyManual, on(m[0], m[1]), v1alpha1.DependencyPolicyPropagate
	podSpec(fw, envFrom(common.Name))
	listing(fw, "one")
	create(ctx, fw)
	plan := func(args ...string) (string, int) {
		GinkgoHelper()
		out, errOut, err := commandLine(ctx, program, fw, append([]string{"plan"}, args...)...)
		Expect(out + errOut).NotTo(ContainSubstring(swordfish))
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return out + errOut, exit.ExitCode()
		}
		Expect(err).NotTo(HaveOccurred(), errOut)
		return out, 0
	}

	By("the first creation")
	needsApproval(ctx, fw, "Create on "+m[0]+", "+m[1]+"; companions: Create ConfigMap common, ConfigMap settings, Secret key")
	has(ctx, settings, false, m[0], m[1])
	out, code := plan(fw.Name, "--approve")
	Expect(code).To(Equal(0), out)
	Expect(out).To(MatchRegexp(`(?m)^Secret/key +create +` + m[0] + `, ` + m[1] + ` +-$`))
	becomesReady(ctx, fw)
	has(ctx, settings, true, m[0], m[1])
	has(ctx, theirs, true, m[1])

	By("another image, another value, and a Secret that is rotated meanwhile")
	before := specs(ctx, fw, deployment)
	edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
		setImage(fw, imageNew)
		listing(fw, "two")
	})
	update := "Update on " + m[0] + ", " + m[1] + "; companions: Update ConfigMap settings"
	needsApproval(ctx, fw, update)
	rotate := func(value string) {
		GinkgoHelper()
		key = secret(namespace, "key", value)
		Expect(hub().Update(ctx, key)).To(Succeed())
	}
	rotate(swordfish + "-2")
	needsApproval(ctx, fw, update+", Secret key")
	out, code = plan(fw.Name)
	Expect(code).To(Equal(2), out)
	Expect(out).To(And(
		MatchRegexp(`(?m)^ConfigMap/settings +update +`+m[0]+`, `+m[1]+` +-$`),
		MatchRegexp(`(?m)^Secret/key +update +`+m[0]+`, `+m[1]+` +-$`),
		MatchRegexp(`(?m)^ConfigMap/common +leave as it is +`+m[1]+` +somebody else's object is there, and is used as it is$`),
		ContainSubstring("  ConfigMap/settings: data.value one -> two\n"), ContainSubstring("  Secret/key: data.value changed\n"),
		ContainSubstring("this is the first step; what follows:\n"),
	))
	if backend == "karmada" {
		isOnPage("docs/kubectl-fw.md", "shop/web on backend karmada", strings.ReplaceAll(out, namespace, "shop"))
	}

	By("an approval of what was shown, and not of what it has become")
	stale := fw.Status.Change.Approval
	rotate(swordfish + "-3")
	edit(ctx, fw, func(fw *v1alpha1.FleetWorkload) {
		fw.Annotations = map[string]string{v1alpha1.AnnotationApproveChange: stale}
	})
	eventually(ctx, fw, readyTimeout, func(g Gomega) {
		g.Expect(fw.Status.Change).NotTo(BeNil())
		g.Expect(fw.Status.Change.Approval).NotTo(Or(BeEmpty(), Equal(stale)), describe(fw))
	})
	Consistently(func(g Gomega) {
		g.Expect(specs(ctx, fw, deployment)).To(Equal(before))
		g.Expect(onMember(ctx, m[0], secret(namespace, "key", ""))).To(Equal(swordfish))
	}).WithContext(ctx).WithTimeout(hold).Should(Succeed())
	quotesNothing(ctx, fw)

	By("the approval of what it is")
	out, code = plan(fw.Name, "--approve")
	Expect(code).To(Equal(0), out)
	becomesReady(ctx, fw)
	runs(ctx, fw, deployment, map[string]want{m[0]: {1, imageNew, "info"}, m[1]: {1, imageNew, "info"}})
	has(ctx, settings, true, m[0], m[1])
	has(ctx, key, true, m[0], m[1])
	has(ctx, theirs, true, m[1])

	By("a file with another companion, on one cluster less")
	next := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: fw.Namespace, Name: fw.Name}, Spec: *fw.Spec.DeepCopy()}
	next.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FleetWorkload"))
	settings.Name, next.Spec.Placement.Clusters = "other", on(m[0])
	listing(next, "one")
	raw, err := yaml.Marshal(next)
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(world.dir, namespace+".yaml")
	Expect(os.WriteFile(file, raw, 0o600)).To(Succeed())
	out, code = plan("-f", file, "--config", o.path("config.yaml"))
	Expect(code).To(Equal(2), out)
	Expect(out).To(And(
		MatchRegexp(`(?m)^ConfigMap/other +create +`+m[0]+` +-$`),
		MatchRegexp(`(?m)^ConfigMap/settings +delete +`+m[0]+` +it is no longer listed, nor referred to$`),
		MatchRegexp(`(?m)^ConfigMap/settings +delete +`+m[1]+` +the workload goes from there$`),
		MatchRegexp(`(?m)^Secret/key +delete +`+m[1]+` +the workload goes from there$`),
		MatchRegexp(`(?m)^ConfigMap/common +leave as it is +`+m[1]+` +somebody else's object is there, and is used as it is$`),
	))
	GinkgoWriter.Println(out)

	By("a file with a companion that another FleetWorkload has")
	another := workload(namespace, "another", backend, deployment, 1)
	another.Spec.Placement.Clusters = on(m[0])
	settings.Name = "taken"
	listing(another, "theirs")
	create(ctx, another)
	becomesReady(ctx, another)
	listing(next, "ours")
	raw, err = yaml.Marshal(next)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(file, raw, 0o600)).To(Succeed())
	out, code = plan("-f", file, "--config", o.path("config.yaml"))
	Expect(code).To(Equal(1), out)
	Expect(out).To(ContainSubstring("FleetWorkload " + namespace + "/another has ConfigMap taken on " + m[0] + " already"))
}

// onMember is the content of a member's object; empty when there is none.
func onMember(ctx context.Context, name string, obj *corev1.Secret) string {
	if err := member(name).Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return ""
	}
	return contentOf(obj)
}

// quotesNothing wants no Secret in the FleetWorkload's status, nor in the events about it.
func quotesNothing(ctx context.Context, fw *v1alpha1.FleetWorkload) {
	GinkgoHelper()
	var all corev1.EventList
	Expect(hub().List(ctx, &all, client.InNamespace(fw.Namespace))).To(Succeed())
	for _, said := range []any{fw.Status, all} {
		raw, err := json.Marshal(said)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(raw)).NotTo(ContainSubstring(swordfish))
	}
}
