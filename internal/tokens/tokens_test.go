package tokens

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/connection"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// jwt is a token with these claims.
func jwt(claims string) string {
	return "header." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".signature"
}

// issued is a token of a day.
func issued(t *testing.T, at time.Time) Token {
	t.Helper()
	token, err := Read(jwt(fmt.Sprintf(`{"sub": "system:serviceaccount:fleetworkload-system:fleetworkload", "iat": %d, "exp": %d}`,
		at.Unix(), at.Add(24*time.Hour).Unix())))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestRead(t *testing.T) {
	token := issued(t, began)
	want := types.NamespacedName{Namespace: "fleetworkload-system", Name: "fleetworkload"}
	if token.Account != want || !token.Issued.Equal(began) || token.Life() != 24*time.Hour {
		t.Errorf("read: %+v", token)
	}
	for name, text := range map[string]string{
		"nothing":           "",
		"a plain word":      "s3cr3t",
		"two dots":          "s3cr3t.s3cr3t.s3cr3t",
		"no JSON":           jwt(`s3cr3t`),
		"a person":          jwt(`{"sub": "jane", "iat": 1, "exp": 2}`),
		"half a name":       jwt(`{"sub": "system:serviceaccount:s3cr3t", "iat": 1, "exp": 2}`),
		"one without end":   jwt(`{"sub": "system:serviceaccount:a:b", "iat": 1}`),
		"one without start": jwt(`{"sub": "system:serviceaccount:a:b", "exp": 1}`),
		"one that is over":  jwt(`{"sub": "system:serviceaccount:a:b", "iat": 2, "exp": 2}`),
	} {
		if token, err := Read(text); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %+v, %v", name, token, err)
		}
	}
}

// TestTheOperatorTakesWhatIsMade: a kubeconfig from a Secret must be data only.
func TestTheOperatorTakesWhatIsMade(t *testing.T) {
	admin := &rest.Config{
		Host: "https://karmada.example.com:5443", BearerToken: "an administrator's",
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), CertData: []byte("cert"), KeyData: []byte("key"), ServerName: "karmada"},
	}
	token := issued(t, began)
	raw, err := Kubeconfig(admin, token)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "administrator") {
		t.Errorf("it has the administrator's token:\n%s", raw)
	}
	secret := secretWith(raw, "")
	source := connection.KubeconfigSource{Secrets: fake.NewClientBuilder().WithObjects(secret).Build(), Namespace: secret.Namespace}
	got, _, err := source.Load(t.Context(), config.Connection{SecretRef: &config.SecretRef{Name: secret.Name}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Host != admin.Host || got.BearerToken != token.Text || string(got.CAData) != "ca" || got.ServerName != "karmada" || got.CertData != nil {
		t.Errorf("it reaches %+v", got)
	}
	for name, change := range map[string]func(*rest.Config){
		"plain HTTP":             func(c *rest.Config) { c.Host = "http://karmada" },
		"without verification":   func(c *rest.Config) { c.Insecure = true },
		"a file that is not one": func(c *rest.Config) { c.CAData, c.CAFile = nil, "/does/not/exist" },
	} {
		other := rest.CopyConfig(admin)
		change(other)
		if _, err := Kubeconfig(other, token); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// byHand is what a person has written: with a comment, an order of their own and a second user.
const byHand = `# ours
kind: Config
apiVersion: v1
current-context: b
contexts:
- {name: a, context: {cluster: c, user: other}}
- {name: b, context: {cluster: c, user: operator}}
users:
- name: other
  user: {token: OTHER}
- name: operator
  user:
    token: TOKEN # renewed
clusters:
- {name: c, cluster: {server: "https://example.test"}}
`

// TestAllElseStays: byte for byte where that is possible, and the same in any case.
func TestAllElseStays(t *testing.T) {
	for name, test := range map[string]struct {
		raw, token string
		stays      bool
	}{
		"it stands in its place":    {raw: strings.Replace(byHand, "TOKEN", "old", 1), token: "new", stays: true},
		"two have the same":         {raw: strings.NewReplacer("OTHER", "old", "TOKEN", "old").Replace(byHand), token: "new"},
		"it stands over two lines":  {raw: strings.Replace(byHand, "TOKEN # renewed", "old\n      old", 1), token: "new"},
		"its text stands elsewhere": {raw: strings.NewReplacer("# ours", "# old", "TOKEN", `"o\x6cd"`).Replace(byHand), token: "new"},
		"there was none":            {raw: strings.Replace(byHand, "TOKEN", "", 1), token: "new"},
		"YAML must quote it":        {raw: strings.Replace(byHand, "TOKEN", "old", 1), token: "{[ #"},
	} {
		got, err := with([]byte(test.raw), Token{Text: test.token})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := clientcmd.Load([]byte(test.raw))
		if err != nil {
			t.Fatal(err)
		}
		want.AuthInfos["operator"].Token = test.token
		read, err := clientcmd.Load(got)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, got)
		}
		if diff := cmp.Diff(want, read); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if stays := string(got) == strings.Replace(byHand, "TOKEN", test.token, 1); stays != test.stays {
			t.Errorf("%s: stays byte for byte: %v\n%s", name, stays, got)
		}
	}
}
