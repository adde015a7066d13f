//go:build api

package install

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// trial is the namespace of the first hour.
const trial = "fw-trial"

const crdName = "fleetworkloads.apps.fleetworkload.io"

func (a *administrator) create(tb testing.TB, object client.Object) {
	tb.Helper()
	if err := a.api.Create(tb.Context(), object); err != nil {
		tb.Fatal(err)
	}
}

func (a *administrator) get(tb testing.TB, name string, object client.Object) {
	tb.Helper()
	key := client.ObjectKey{Name: name}
	if namespaced, err := a.api.IsObjectNamespaced(object); err != nil {
		tb.Fatal(err)
	} else if namespaced {
		key.Namespace = namespace
	}
	if err := a.api.Get(tb.Context(), key, object); err != nil {
		tb.Fatal(err)
	}
}

func same(tb testing.TB, what string, got, want []string) {
	tb.Helper()
	if !slices.Equal(got, want) {
		tb.Errorf("%s\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// hasMore wants what there was, untouched by those who would make it anew, and these. Helm's own records do not count.
func (a *administrator) hasMore(tb testing.TB, before inventory, more ...string) {
	tb.Helper()
	isRecord := func(name string) bool { return strings.HasPrefix(name, "secrets sh.helm.release.") }
	got, want := a.inventory(tb), maps.Clone(before)
	maps.DeleteFunc(got, func(name string, _ types.UID) bool { return isRecord(name) })
	maps.DeleteFunc(want, func(name string, _ types.UID) bool { return isRecord(name) })
	for _, name := range more {
		want[name] = got[name]
	}
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, name := range all.names() {
		if got[name] != want[name] || got[name] == "" {
			tb.Errorf("%s has the UID %q, want %q", name, got[name], want[name])
		}
	}
}

// isInstalled wants what all ways to install have in common to be there, and to be sound in the API server's eyes.
func (a *administrator) isInstalled(tb testing.TB, image string) {
	tb.Helper()
	a.isServed(tb)
	deployment := a.runs(tb, image, "--leader-elect", "--webhook-bind-address=:9443")
	pod := deployment.Spec.Template
	if *deployment.Spec.Replicas != 2 || pod.Spec.ServiceAccountName != "fleetworkload" {
		tb.Errorf("%d replicas run as %s", *deployment.Spec.Replicas, pod.Spec.ServiceAccountName)
	}
	a.get(tb, "fleetworkload", &corev1.ServiceAccount{})
	hook := a.webhook(tb).Webhooks[0]
	if *hook.FailurePolicy != admissionregistrationv1.Fail || *hook.SideEffects != admissionregistrationv1.SideEffectClassNone || *hook.TimeoutSeconds != 10 ||
		len(hook.MatchConditions) != 1 {
		tb.Errorf("the webhook is %+v", hook)
	}
	service := &corev1.Service{}
	a.get(tb, hook.ClientConfig.Service.Name, service)
	for key, value := range service.Spec.Selector {
		if pod.Labels[key] != value {
			tb.Errorf("the webhook's Service chooses %v, and the pods have %v", service.Spec.Selector, pod.Labels)
		}
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	a.get(tb, "fleetworkload-authors", policy)
	a.get(tb, policy.Name, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{})
	if *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
		tb.Errorf("the policy for authors fails %s", *policy.Spec.FailurePolicy)
	}
	a.mayDoItsWork(tb)
}

// isServed waits for the CRD, whose schema has to be structural.
func (a *administrator) isServed(tb testing.TB) {
	tb.Helper()
	eventually(tb, "the CRD", func(ctx context.Context) string {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := a.api.Get(ctx, client.ObjectKey{Name: crdName}, crd); err != nil {
			return err.Error()
		}
		conditions := map[apiextensionsv1.CustomResourceDefinitionConditionType]apiextensionsv1.ConditionStatus{}
		for _, c := range crd.Status.Conditions {
			conditions[c.Type] = c.Status
		}
		want := map[apiextensionsv1.CustomResourceDefinitionConditionType]apiextensionsv1.ConditionStatus{
			apiextensionsv1.Established: apiextensionsv1.ConditionTrue, apiextensionsv1.NamesAccepted: apiextensionsv1.ConditionTrue,
		}
		if !maps.Equal(conditions, want) {
			return fmt.Sprintf("the conditions are %v", conditions)
		}
		if err := a.api.List(ctx, &v1alpha1.FleetWorkloadList{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// runs wants the operator's Deployment to have an image and arguments.
func (a *administrator) runs(tb testing.TB, image string, args ...string) *appsv1.Deployment {
	tb.Helper()
	deployment := &appsv1.Deployment{}
	a.get(tb, "fleetworkload", deployment)
	container := deployment.Spec.Template.Spec.Containers[0]
	if container.Image != image {
		tb.Errorf("the image is %s, want %s", container.Image, image)
	}
	for _, arg := range args {
		if !slices.Contains(container.Args, arg) {
			tb.Errorf("%s is not among the arguments %v", arg, container.Args)
		}
	}
	return deployment
}

// isConfigured wants the operator's configuration to have these lines, and no other backend.
func (a *administrator) isConfigured(tb testing.TB, lines ...string) {
	tb.Helper()
	config := &corev1.ConfigMap{}
	a.get(tb, "fleetworkload-config", config)
	text := config.Data["config.yaml"]
	backends := 0
	for _, line := range lines {
		if strings.HasPrefix(line, "name: ") {
			backends++
		}
		if !strings.Contains(text, line) {
			tb.Errorf("the configuration lacks %q:\n%s", line, text)
		}
	}
	if strings.Count(text, "type: ") != backends {
		tb.Errorf("the configuration has other backends than %v:\n%s", lines, text)
	}
}

// mayDoItsWork asks the API server what the operator's account may do.
func (a *administrator) mayDoItsWork(tb testing.TB) {
	tb.Helper()
	for _, right := range []struct {
		group, resource, verb, namespace, name string
		allowed                                bool
	}{
		{v1alpha1.GroupVersion.Group, "fleetworkloads", "watch", "", "", true},
		{"coordination.k8s.io", "leases", "create", namespace, "", true},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "update", "", "fleetworkload", true},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "update", "", "other", false},
		{"", "secrets", "update", namespace, "fleetworkload-webhook", true},
		{"", "secrets", "update", trial, "fleetworkload-webhook", false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + namespace + ":fleetworkload",
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: right.group, Resource: right.resource, Verb: right.verb, Namespace: right.namespace, Name: right.name,
			},
		}}
		eventually(tb, fmt.Sprintf("%+v", right), func(ctx context.Context) string {
			review.ResourceVersion = ""
			if err := a.api.Create(ctx, review); err != nil {
				return err.Error()
			}
			if review.Status.Allowed != right.allowed {
				return "allowed: " + fmt.Sprint(review.Status.Allowed)
			}
			return ""
		})
	}
}

func (a *administrator) webhook(tb testing.TB) *admissionregistrationv1.ValidatingWebhookConfiguration {
	tb.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	a.get(tb, "fleetworkload", configuration)
	return configuration
}

// actsAsOperator writes what an operator does in its namespace, and has the webhook trusted.
func (a *administrator) actsAsOperator(tb testing.TB) {
	tb.Helper()
	a.create(tb, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fleetworkload-webhook"}})
	a.create(tb, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fleetworkload.fleetworkload.io"}})
	configuration := a.webhook(tb)
	configuration.Webhooks[0].ClientConfig.CABundle = authority()
	if err := a.api.Update(tb.Context(), configuration); err != nil {
		tb.Fatal(err)
	}
}

// authority is a certificate.
func authority() []byte {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// authors has the API server ask about authors as the chart says, and returns a FleetWorkload that the operator carries out.
func (a *administrator) authors(tb testing.TB) *v1alpha1.FleetWorkload {
	tb.Helper()
	a.create(tb, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: trial}})
	for user, role := range map[string]string{"jane": "fleetworkload-editor", "joe": "fleetworkload-viewer"} {
		a.create(tb, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: trial, Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	}
	const onBehalf = `metadata.annotations: you may not approve on behalf of FleetWorkload fw-trial/web`
	for _, c := range []struct {
		user, want string
		spoil      func(*v1alpha1.FleetWorkload)
	}{
		{"joe", `User "joe" cannot create resource "fleetworkloads"`, func(*v1alpha1.FleetWorkload) {}},
		{"jane", "set exactly one of clusters and groups", func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters = nil }},
		{"jane", `spec.serviceAccountName "other": you may not use this ServiceAccount`, func(fw *v1alpha1.FleetWorkload) { fw.Spec.ServiceAccountName = "other" }},
		{"jane", onBehalf, func(fw *v1alpha1.FleetWorkload) {
			fw.Annotations = map[string]string{v1alpha1.AnnotationConfirmRemoval: "x"}
		}},
		{"jane", `failed calling webhook "authors.fleetworkload.io"`, func(*v1alpha1.FleetWorkload) {}},
	} {
		fw := a.written(tb)
		c.spoil(fw)
		a.isRefused(tb, c.user, fw, c.want)
	}
	fw := a.written(tb)
	fw.Finalizers = []string{v1alpha1.Finalizer}
	a.answered(tb, func() {
		if err := a.as(tb, "jane").Create(tb.Context(), fw); err != nil {
			tb.Fatal(err)
		}
	})
	return fw
}

// written is the FleetWorkload of the first hour.
func (a *administrator) written(tb testing.TB) *v1alpha1.FleetWorkload {
	tb.Helper()
	fw := &v1alpha1.FleetWorkload{}
	if err := yaml.UnmarshalStrict([]byte(a.files(tb, "web.yaml", 1)[0]), fw); err != nil {
		tb.Fatal(err)
	}
	return fw
}

// isRefused waits until somebody is refused with a message: API servers learn of a policy a moment after it was made.
func (a *administrator) isRefused(tb testing.TB, user string, fw *v1alpha1.FleetWorkload, want string) {
	tb.Helper()
	api := client.NewDryRunClient(a.as(tb, user))
	eventually(tb, user+" is to be refused", func(ctx context.Context) string {
		if err := api.Create(ctx, fw.DeepCopy()); err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Sprintf("%v, want %q", err, want)
		}
		return ""
	})
}

// answered has the API server go on without an answer of the webhook, which no pod gives here, while something is done.
func (a *administrator) answered(tb testing.TB, do func()) {
	tb.Helper()
	set := func(policy admissionregistrationv1.FailurePolicyType, timeout int32) {
		configuration := a.webhook(tb)
		configuration.Webhooks[0].FailurePolicy, configuration.Webhooks[0].TimeoutSeconds = &policy, &timeout
		if err := a.api.Update(tb.Context(), configuration); err != nil {
			tb.Fatal(err)
		}
	}
	set(admissionregistrationv1.Ignore, 1)
	eventually(tb, "the webhook may be left out", func(ctx context.Context) string {
		if err := client.NewDryRunClient(a.api).Create(ctx, a.written(tb)); err != nil {
			return err.Error()
		}
		return ""
	})
	do()
	set(admissionregistrationv1.Fail, 10)
}

// isTrusted wants the webhook to have the authority that the operator has written.
func (a *administrator) isTrusted(tb testing.TB) {
	tb.Helper()
	if len(a.webhook(tb).Webhooks[0].ClientConfig.CABundle) == 0 {
		tb.Error("API servers do not trust the webhook any more")
	}
}

// isUntouched wants nobody to have changed the FleetWorkload.
func (a *administrator) isUntouched(tb testing.TB, fw *v1alpha1.FleetWorkload) {
	tb.Helper()
	now := &v1alpha1.FleetWorkload{}
	if err := a.api.Get(tb.Context(), client.ObjectKeyFromObject(fw), now); err != nil {
		tb.Fatal(err)
	}
	if now.UID != fw.UID || now.Generation != fw.Generation || now.ResourceVersion != fw.ResourceVersion || now.DeletionTimestamp != nil {
		tb.Errorf("the FleetWorkload was\n%+v\nand is\n%+v", fw.ObjectMeta, now.ObjectMeta)
	}
}

// isDeleted types the command that deletes the FleetWorkload, which ends once the operator's finalizer is gone.
func (a *administrator) isDeleted(tb testing.TB, command string, fw *v1alpha1.FleetWorkload) {
	tb.Helper()
	var out bytes.Buffer
	deleting := a.command(tb, command, &out)
	if err := deleting.Start(); err != nil {
		tb.Fatal(err)
	}
	a.letsGo(tb, fw)
	if err := deleting.Wait(); err != nil {
		tb.Fatalf("%s: %v\n%s", command, err, &out)
	}
}

// letsGo waits until the FleetWorkload is being deleted, and takes the operator's finalizer off.
func (a *administrator) letsGo(tb testing.TB, fw *v1alpha1.FleetWorkload) {
	tb.Helper()
	eventually(tb, "the FleetWorkload", func(ctx context.Context) string {
		if err := a.api.Get(ctx, client.ObjectKeyFromObject(fw), fw); err != nil {
			return err.Error()
		}
		if fw.DeletionTimestamp == nil {
			return "it is not being deleted"
		}
		return ""
	})
	if err := a.api.Patch(tb.Context(), fw, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		tb.Fatal(err)
	}
}

// asksInAPod types the command that has a pod ask for the operator, whose end is written here: no node runs it. The API server takes the pod, in
// a namespace that is for restricted ones.
func (a *administrator) asksInAPod(tb testing.TB) {
	tb.Helper()
	before := a.inventory(tb)
	var out bytes.Buffer
	asking := a.command(tb, helmTest, &out)
	if err := asking.Start(); err != nil {
		tb.Fatal(err)
	}
	pod := &corev1.Pod{}
	eventually(tb, "the pod of helm test", func(ctx context.Context) string {
		if err := a.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "fleetworkload-test"}, pod); err != nil {
			return err.Error()
		}
		return ""
	})
	for _, kind := range []client.Object{&corev1.Service{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		a.get(tb, pod.Name, kind)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if err := a.api.Status().Update(tb.Context(), pod); err != nil {
		tb.Fatal(err)
	}
	if err := asking.Wait(); err != nil {
		tb.Fatalf("%s: %v\n%s", helmTest, err, &out)
	}
	a.hasMore(tb, before, "pods "+pod.Name)
}
