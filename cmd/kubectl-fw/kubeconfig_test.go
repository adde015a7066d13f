package main

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/connection"
	"github.com/fleetworkload/fleetworkload/internal/tokens"
)

// issuer is a management cluster and a backend in one. It gives tokens that last as long as is asked, a day at most.
type issuer struct {
	t *testing.T
	// renews says whether the account may ask for tokens of itself.
	renews bool
	// asked is for whom a token was asked, and written the Secret.
	asked   string
	written []byte
	token   string
}

var served = map[string]string{
	"/api":    `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/apis":   `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
	"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "secrets", "kind": "Secret", "namespaced": true, "verbs": ["patch"]}]}`,
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	as := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		i.t.Error(err)
	}
	var answer any
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/token") && as == "administrator":
		i.asked = path
		answer = i.issue(body)
	case strings.HasSuffix(path, "/selfsubjectaccessreviews") && as == i.token:
		answer = authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: i.renews}}
	case r.Method == http.MethodPatch && as == "administrator":
		i.written = body
		answer = &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
	case served[path] != "": // the client looks Secrets up
		_, _ = io.WriteString(w, served[path])
		return
	default:
		i.t.Errorf("%s %s as %q", r.Method, path, as)
	}
	raw, err := utiljson.Marshal(answer)
	if err != nil {
		i.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw)
}

func (i *issuer) issue(body []byte) authenticationv1.TokenRequest {
	var request authenticationv1.TokenRequest
	if _, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, &request); err != nil || request.Spec.ExpirationSeconds == nil {
		i.t.Errorf("%s: %v", body, err)
		return request
	}
	life := min(*request.Spec.ExpirationSeconds, 24*60*60)
	claims := fmt.Sprintf(`{"sub": "system:serviceaccount:fleetworkload-system:fleetworkload", "iat": %d, "exp": %d}`, noon.Unix(), noon.Unix()+life)
	i.token = "header." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".signature"
	request.Status.Token = i.token
	return request
}

// makeKubeconfig runs the command. Its administrator's kubeconfig is of the server.
func makeKubeconfig(t *testing.T, i *issuer, args ...string) (out, errOut string, err error) {
	t.Helper()
	server := httptest.NewTLSServer(i)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "admin.kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "admin",
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server.URL, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: "administrator"}},
		Contexts:       map[string]*clientcmdapi.Context{"admin": {Cluster: "c", AuthInfo: "u"}},
	}, file); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	root := newRoot("kubectl-fw", genericiooptions.IOStreams{In: os.Stdin, Out: &stdout, ErrOut: &stderr})
	root.SetArgs(append([]string{"kubeconfig", "karmada", "--kubeconfig", file, "--backend-kubeconfig", file}, args...))
	err = root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// taken is what the operator makes of a Secret.
func taken(t *testing.T, raw []byte, ref config.SecretRef) (*corev1.Secret, string) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := yaml.UnmarshalStrict(raw, secret); err != nil {
		t.Fatalf("%v:\n%s", err, raw)
	}
	source := connection.KubeconfigSource{Secrets: fake.NewClientBuilder().WithObjects(secret).Build(), Namespace: secret.Namespace}
	cfg, _, err := source.Load(t.Context(), config.Connection{SecretRef: &ref})
	if err != nil {
		t.Fatal(err)
	}
	return secret, cfg.Host + " " + cfg.BearerToken
}

func TestKubeconfigIsWritten(t *testing.T) {
	i := &issuer{t: t, renews: true}
	out, errOut, err := makeKubeconfig(t, i)
	if err != nil || errOut != "" {
		t.Fatal(err, errOut)
	}
	compareGolden(t, "kubeconfig.golden", out)
	if diff := cmp.Diff("/api/v1/namespaces/fleetworkload-system/serviceaccounts/fleetworkload/token", i.asked); diff != "" {
		t.Error(diff)
	}
	secret, reaches := taken(t, i.written, config.SecretRef{Name: "karmada-kubeconfig"})
	if !strings.HasPrefix(reaches, "https://127.0.0.1:") || !strings.HasSuffix(reaches, " "+i.token) || bytes.Contains(secret.Data["kubeconfig"], []byte("administrator")) {
		t.Errorf("it reaches %s", reaches)
	}
	if diff := cmp.Diff(map[string]string{tokens.AnnotationRenewAfter: "19h12m0s"}, secret.Annotations); diff != "" {
		t.Error(diff)
	}
}

// TestKubeconfigIsPrinted: nothing is written, and each flag counts.
func TestKubeconfigIsPrinted(t *testing.T) {
	i := &issuer{t: t, renews: true}
	out, _, err := makeKubeconfig(t, i, "-o", "yaml", "--secret", "hub", "--key", "admin", "--operator-namespace", "ours", "--server", "https://inside:5443",
		"--service-account", "robot", "--service-account-namespace", "robots", "--renew=false")
	if err != nil || i.written != nil {
		t.Fatal(err, string(i.written))
	}
	secret, reaches := taken(t, []byte(out), config.SecretRef{Name: "hub", Key: "admin"})
	if reaches != "https://inside:5443 "+i.token || secret.Namespace != "ours" || len(secret.Annotations) > 0 || i.asked != "/api/v1/namespaces/robots/serviceaccounts/robot/token" {
		t.Errorf("it reaches %s, of %s:\n%s", reaches, i.asked, out)
	}
}

// TestKubeconfigOfAShorterLife: the API server gives a day, whatever is asked.
func TestKubeconfigOfAShorterLife(t *testing.T) {
	i := &issuer{t: t, renews: true}
	out, _, err := makeKubeconfig(t, i, "--duration", "8760h")
	if err != nil || !strings.Contains(out, noon.Add(24*time.Hour).UTC().Format(time.RFC3339)) {
		t.Fatal(err, out)
	}
	if secret, _ := taken(t, i.written, config.SecretRef{Name: "karmada-kubeconfig"}); secret.Annotations[tokens.AnnotationRenewAfter] != "19h12m0s" {
		t.Errorf("annotations are %v", secret.Annotations)
	}
}

func TestKubeconfigThatCannotBeRenewed(t *testing.T) {
	_, errOut, err := makeKubeconfig(t, &issuer{t: t})
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "kubeconfig-warning.golden", errOut)
	if _, errOut, err := makeKubeconfig(t, &issuer{t: t}, "--renew=false"); err != nil || errOut != "" {
		t.Error(err, errOut)
	}
}

func TestKubeconfigRefuses(t *testing.T) {
	for says, args := range map[string][]string{
		"-o json: only yaml can be printed":             {"-o", "json"},
		"--duration 1m0s: a token lasts ten minutes":    {"--duration", "1m"},
		"does not verify the server http://inside":      {"--server", "http://inside"},
		`--backend-kubeconfig gone: stat gone: no such`: {"--backend-kubeconfig", "gone"},
		`context "other" does not exist`:                {"--backend-context", "other"},
	} {
		i := &issuer{t: t, renews: true}
		if out, _, err := makeKubeconfig(t, i, args...); err == nil || !strings.Contains(err.Error(), says) || out != "" || i.written != nil {
			t.Errorf("%v: %v %s", args, err, out)
		}
	}
}
