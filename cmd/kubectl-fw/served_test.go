package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// kindsServed are those that an API server of this test reads, by their group and version.
var kindsServed = map[string][]metav1.APIResource{
	"v1":                           {{Name: "events", Kind: "Event", Namespaced: true}, {Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "namespaces", Kind: "Namespace"}, {Name: "secrets", Kind: "Secret", Namespaced: true}},
	"apps/v1":                      {{Name: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true}},
	v1alpha1.GroupVersion.String(): {{Name: "fleetworkloads", Kind: "FleetWorkload", Namespaced: true}},
}

// managementWith starts an API server that has these objects to read, and returns a kubeconfig for it. It answers to writes as if nothing had changed.
// What begins with one of the paths is forbidden.
func managementWith(t *testing.T, forbidden []string, objects ...client.Object) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch path := strings.Trim(r.URL.Path, "/"); {
		case slices.ContainsFunc(forbidden, func(begin string) bool { return strings.HasPrefix(r.URL.Path, begin) }):
			answer = failed(http.StatusForbidden, metav1.StatusReasonForbidden)
		case path == "api":
			answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
		case path == "apis":
			answer = groupsServed()
		default:
			name, only := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
			answer = answerTo(strings.Split(path, "/")[1:], slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool { return only && o.GetName() != name }))
		}
		if status, is := answer.(metav1.Status); is {
			w.WriteHeader(int(status.Code))
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	cfg := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"hub": {Server: server.URL}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"ops": {}},
		Contexts:       map[string]*clientcmdapi.Context{"prod": {Cluster: "hub", AuthInfo: "ops", Namespace: "shop"}, "test": {Cluster: "hub", AuthInfo: "ops"}},
		CurrentContext: "prod",
	}
	if err := clientcmd.WriteToFile(cfg, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

func failed(code int32, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: string(reason)}
}

func groupsServed() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	for at := range kindsServed {
		if group, version, named := strings.Cut(at, "/"); named {
			is := metav1.GroupVersionForDiscovery{GroupVersion: at, Version: version}
			list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{is}, PreferredVersion: is})
		}
	}
	return list
}

// answerTo answers for a path behind /api or /apis: kinds, a list, or one object.
func answerTo(path []string, objects []client.Object) any {
	at := path[0]
	if at != "v1" && len(path) > 1 {
		at, path = at+"/"+path[1], path[1:]
	}
	kinds, is := kindsServed[at]
	if path = path[1:]; !is {
		return failed(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	if len(path) == 0 {
		return metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: at, APIResources: kinds}
	}
	namespace := ""
	if path[0] == "namespaces" && len(path) > 2 {
		namespace, path = path[1], path[2:]
	}
	kind := kinds[slices.IndexFunc(kinds, func(r metav1.APIResource) bool { return r.Name == path[0] })].Kind
	found := []client.Object{}
	for _, object := range objects {
		gvk := object.GetObjectKind().GroupVersionKind()
		if gvk.Kind == kind && gvk.GroupVersion().String() == at && (namespace == "" || object.GetNamespace() == namespace) {
			found = append(found, object)
		}
	}
	if len(path) == 1 {
		return map[string]any{"apiVersion": at, "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": found}
	}
	if i := slices.IndexFunc(found, func(o client.Object) bool { return o.GetName() == path[1] }); i >= 0 {
		return found[i]
	}
	return failed(http.StatusNotFound, metav1.StatusReasonNotFound)
}

// ofKind marks an object with its kind, which API servers do and Go types do not.
func ofKind[T client.Object](apiVersion, kind string, object T) T {
	object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	return object
}

func servedFleetWorkload(namespace, name string, change func(*v1alpha1.FleetWorkload)) client.Object {
	return ofKind(v1alpha1.GroupVersion.String(), "FleetWorkload", glanced(namespace, name, change))
}

func servedNamespace(name string) client.Object {
	return ofKind("v1", "Namespace", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// asKubectlFW makes this test program do what kubectl-fw does when it is started with the variable.
const asKubectlFW = "KUBECTL_FW_OF_TESTS"

func TestMain(m *testing.M) {
	if os.Getenv(asKubectlFW) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}
