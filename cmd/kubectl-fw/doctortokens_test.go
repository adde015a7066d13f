package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/tokens"
)

// tokenOf is one of the operator's account on a backend, as far as anybody reads it.
func tokenOf(issued time.Time, life time.Duration) string {
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:theirs:operator","iat":%d,"exp":%d}`, issued.Unix(), issued.Add(life).Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".e30"
}

// said is what findings print, a section for each of the tests, in their order.
func said(t *testing.T, golden string, sections []section) {
	t.Helper()
	remedied(t, sections)
	var out bytes.Buffer
	writeFindings(&out, sections)
	compareGolden(t, golden, out.String())
}

// TestDoctorOnTokens: a token that is not renewed in time is found before it ends, with who lacks which right.
func TestDoctorOnTokens(t *testing.T) {
	const theirs, ours = "create serviceaccounts/token theirs/operator", "update secrets ops/karmada-kubeconfig"
	var sections []section
	for _, test := range []struct {
		name    string
		age     time.Duration
		renewed bool
		may     []string
	}{
		{"that the operator renews", time.Hour, true, []string{theirs, ours}},
		{"that it is about to renew", 20 * time.Hour, true, []string{theirs, ours}},
		{"that it has not renewed", 22 * time.Hour, true, []string{theirs, ours}},
		{"that has ended", 25 * time.Hour, true, nil},
		{"of which it may not ask for another one", time.Hour, true, []string{ours}},
		{"that it may not write", 22 * time.Hour, true, []string{theirs}},
		{"that nobody renews, and that is new", time.Hour, false, nil},
		{"that nobody renews, and that ends", 20 * time.Hour, false, nil},
	} {
		backend := &backendServer{elsewhere: test.may}
		server := httptest.NewServer(backend)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "karmada-kubeconfig"}}
		if test.renewed {
			secret.Annotations = map[string]string{tokens.AnnotationRenewAfter: "19h12m"}
		}
		d := backendDoctor{Backend: config.Backend{Name: "karmada", Type: config.TypeKarmada}, now: func() time.Time { return noon }}
		d.Connection.SecretRef = &config.SecretRef{Name: secret.Name}
		api := newEndpoint(&rest.Config{Host: server.URL, BearerToken: tokenOf(noon.Add(-test.age), 24*time.Hour)})
		d.management = managementCluster{fake.NewClientBuilder().WithObjects(secret).Build(), "ops", api.asksFor("ops/operator")}
		sections = append(sections, section{"a token " + test.name, d.lookAtToken(t.Context(), api)})
		server.Close()
	}
	said(t, "doctor/tokens.golden", sections)
}

// TestDoctorOnPods: where the operator is to count restarts, each cluster that is ready is asked as the operator asks it.
func TestDoctorOnPods(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("the account may not list them"))
	var sections []section
	for _, test := range []struct {
		name  string
		wants bool
		fails map[string]error
		asked int
	}{
		{"nobody wants", false, map[string]error{"member1": forbidden}, 0},
		{"may be counted", true, nil, 2},
		{"may not be counted", true, map[string]error{"member1": backends.Classify("list pods of cluster member1", forbidden), "member2": forbidden}, 2},
		{"may not be counted on one", true, map[string]error{"member2": errors.New("list pods of cluster member2: EOF")}, 2},
	} {
		asked := make(chan string, 3)
		b := backend{restarts: func(_ context.Context, cluster, namespace string) error {
			asked <- cluster + "/" + namespace
			return test.fails[cluster]
		}}
		for i, ready := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse} {
			b.fleet.Clusters = append(b.fleet.Clusters, backends.Cluster{Name: fmt.Sprintf("member%d", i+1), Ready: ready})
		}
		fw := glanced("shop", "web", func(fw *v1alpha1.FleetWorkload) { fw.Spec.Backend = "karmada" }).(*v1alpha1.FleetWorkload)
		d := backendDoctor{Backend: config.Backend{Name: "karmada", Karmada: &config.Karmada{PodEvidence: test.wants}}, workloads: []v1alpha1.FleetWorkload{*fw}}
		sections = append(sections, section{"restarts that " + test.name, d.lookAtPods(t.Context(), b)})
		if len(asked) != test.asked {
			t.Errorf("%s: %d clusters are asked", test.name, len(asked))
		}
		for range len(asked) {
			if at := <-asked; at != "member1/shop" && at != "member2/shop" {
				t.Errorf("%s: %s is asked", test.name, at)
			}
		}
	}
	said(t, "doctor/pods.golden", sections)
}
