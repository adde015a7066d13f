// Package tokens makes the kubeconfigs by which the operator reaches backends, of tokens that do not last, and renews them.
package tokens

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// AnnotationRenewAfter is on Secrets whose token the operator renews: how long after it was issued, as a duration such as 19h12m.
const AnnotationRenewAfter = "fleetworkload.io/renew-token-after"

// RenewAfter is when a token of that lifetime is to be renewed: with a fifth of it left, as kubelets do (kubernetes pkg/kubelet/token, requiresRefresh).
func RenewAfter(life time.Duration) time.Duration { return (life * 4 / 5).Truncate(time.Second) }

// Token is one of a ServiceAccount.
type Token struct {
	// Text is what is sent. It is never logged.
	Text    string
	Account types.NamespacedName
	// Issued and Expires are by the clock of the API server that issued it.
	Issued, Expires time.Time
}

// Life is how long it lasts from its beginning.
func (t Token) Life() time.Duration { return t.Expires.Sub(t.Issued) }

const userPrefix = "system:serviceaccount:"

// Read reads what a token says of itself. Nothing is verified: that is for the API server that it is sent to. Only a ServiceAccount's token that
// expires can be read.
func Read(text string) (Token, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Token{}, errors.New("it is no JWT")
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Token{}, errors.New("it is no JWT") // err would quote it
	}
	var claims struct {
		Subject string `json:"sub"`
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
	}
	if err := utiljson.Unmarshal(raw, &claims); err != nil {
		return Token{}, errors.New("it is no JWT")
	}
	namespace, name, is := strings.Cut(strings.TrimPrefix(claims.Subject, userPrefix), ":")
	switch {
	case !is || !strings.HasPrefix(claims.Subject, userPrefix):
		return Token{}, errors.New("it is not a ServiceAccount's")
	case claims.Expires <= claims.Issued || claims.Issued <= 0:
		return Token{}, errors.New("it does not expire")
	}
	return Token{
		Text: text, Account: types.NamespacedName{Namespace: namespace, Name: name},
		Issued: time.Unix(claims.Issued, 0), Expires: time.Unix(claims.Expires, 0),
	}, nil
}

// Request asks an API server for a token of one of its accounts. The API server may give it a shorter life, and none below ten minutes.
func Request(ctx context.Context, cfg *rest.Config, account types.NamespacedName, life time.Duration) (Token, error) {
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return Token{}, fmt.Errorf("connect to %s: %w", cfg.Host, err)
	}
	seconds := int64(life / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := clients.CoreV1().ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, request, metav1.CreateOptions{})
	if err != nil {
		return Token{}, fmt.Errorf("request a token of ServiceAccount %s on %s: %w", account, cfg.Host, err)
	}
	token, err := Read(answer.Status.Token)
	if err != nil {
		return Token{}, fmt.Errorf("the token that %s gave for ServiceAccount %s: %w", cfg.Host, account, err)
	}
	return token, nil
}

// Kubeconfig reaches the API server of cfg with a token. It is data only. Of cfg its address and its certificate authority are used; an error says
// that it has no such.
func Kubeconfig(cfg *rest.Config, token Token) ([]byte, error) {
	with := rest.CopyConfig(cfg)
	if err := rest.LoadTLSFiles(with); err != nil {
		return nil, fmt.Errorf("read the certificate authority of %s: %w", cfg.Host, err)
	}
	if with.Insecure || !strings.HasPrefix(with.Host, "https://") {
		return nil, fmt.Errorf("the kubeconfig does not verify the server %s: name an https address and its certificate-authority-data", with.Host)
	}
	const name = "backend"
	user := token.Account.Name
	raw, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: name,
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: with.Host, TLSServerName: with.ServerName, CertificateAuthorityData: with.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{user: {Token: token.Text}},
		Contexts:  map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
	})
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig: %w", err)
	}
	return raw, nil
}

// of is the token of a kubeconfig's current context.
func of(raw []byte) (*clientcmdapi.Config, *clientcmdapi.AuthInfo, error) {
	cfg, err := clientcmd.Load(raw)
	if err != nil {
		return nil, nil, errors.New("it is no valid kubeconfig") // err would quote it
	}
	current := cfg.Contexts[cfg.CurrentContext]
	if current == nil || cfg.AuthInfos[current.AuthInfo] == nil {
		return nil, nil, fmt.Errorf("its current context %q has no user", cfg.CurrentContext)
	}
	return cfg, cfg.AuthInfos[current.AuthInfo], nil
}

// with is a kubeconfig with another token for the user of its current context. All else stays, byte for byte where the token of before stands in one
// piece and first: people's comments and order are theirs.
func with(raw []byte, token Token) ([]byte, error) {
	cfg, user, err := of(raw)
	if err != nil {
		return nil, err
	}
	replaced := bytes.Replace(raw, []byte(user.Token), []byte(token.Text), 1)
	user.Token = token.Text
	if got, err := clientcmd.Load(replaced); err == nil && equality.Semantic.DeepEqual(got, cfg) {
		return replaced, nil
	}
	return clientcmd.Write(*cfg)
}
