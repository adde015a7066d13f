// Package proxy stands between the operator and an API server: it counts what is written, and it can cut the operator
// off, end it at a chosen write, or answer in the API server's place. Streams such as watches pass through.
package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Mode is how a Proxy treats requests.
type Mode int

const (
	// Forward passes everything on.
	Forward Mode = iota
	// Refuse ends all connections and accepts none.
	Refuse
	// Blackhole keeps connections, takes new ones, and lets nothing through in either direction.
	Blackhole
	// TooManyRequests answers everything with 429.
	TooManyRequests
	// Unauthorized answers everything with 401.
	Unauthorized
)

// Proxy is one API server's stand-in.
type Proxy struct {
	name    string
	journal *Journal
	target  *url.URL
	cert    *Certificate
	server  *http.Server
	gate    *gate
	forward *httputil.ReverseProxy

	mu       sync.Mutex
	mode     Mode
	hidden   []string
	answered func(method string, u *url.URL, status int)
}

// New starts a proxy in front of the API server of cfg. The client's own bearer token is passed on; of cfg, only the
// address and the certificate authority are used. Writes go into journal under name.
func New(name string, cfg *rest.Config, journal *Journal) (*Proxy, error) {
	target, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("address of %s: %w", name, err)
	}
	anonymous := rest.AnonymousClientConfig(cfg)
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("transport to %s: %w", name, err)
	}
	cert, err := NewCertificate()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{name: name, journal: journal, target: target, cert: cert, gate: newGate(listener)}
	quiet := log.New(io.Discard, "", 0)
	p.forward = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      quiet,
		ModifyResponse: func(r *http.Response) error {
			p.mu.Lock()
			tell := p.answered
			p.mu.Unlock()
			if tell != nil {
				tell(r.Request.Method, r.Request.URL, r.StatusCode)
			}
			return p.hide(r)
		},
	}
	p.server = &http.Server{
		Handler: p, ErrorLog: quiet,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert.Server}, MinVersion: tls.VersionTLS12},
	}
	go func() { _ = p.server.ServeTLS(p.gate, "", "") }()
	return p, nil
}

// Close ends the proxy and every connection.
func (p *Proxy) Close() error {
	p.gate.set(Refuse)
	return p.server.Close()
}

// URL is where clients reach the proxy.
func (p *Proxy) URL() string { return "https://" + p.gate.Addr().String() }

// Kubeconfig reaches the API server through the proxy, with a bearer token.
func (p *Proxy) Kubeconfig(token string) clientcmdapi.Config {
	const name = "proxy"
	return clientcmdapi.Config{
		CurrentContext: name,
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: p.URL(), CertificateAuthorityData: p.cert.Authority}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
	}
}

// Set changes how requests are treated.
func (p *Proxy) Set(mode Mode) {
	p.mu.Lock()
	p.mode = mode
	p.mu.Unlock()
	p.gate.set(mode)
}

// Tell has f told what the API server answers to each request.
func (p *Proxy) Tell(f func(method string, u *url.URL, status int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = f
}

// HideGroups makes the API server look as if it did not have these API groups.
func (p *Proxy) HideGroups(groups ...string) {
	p.mu.Lock()
	p.hidden = groups
	p.mu.Unlock()
}

func (p *Proxy) isHidden(group string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.hidden, group)
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	mode, hiding := p.mode, len(p.hidden) > 0
	p.mu.Unlock()
	switch mode {
	case TooManyRequests:
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusTooManyRequests, "TooManyRequests", "Too many requests, please try again later.")
		return
	case Unauthorized:
		answer(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
		return
	case Forward, Refuse, Blackhole:
	}
	if parts := strings.Split(r.URL.Path, "/"); len(parts) > 2 && parts[1] == "apis" && p.isHidden(parts[2]) {
		answer(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return
	}
	if hiding && r.URL.Path == "/apis" {
		// Plain discovery is easier to edit than the aggregated form.
		r.Header.Set("Accept", "application/json")
		r.Header.Del("Accept-Encoding")
	}
	if !Mutates(r.Method, r.URL) {
		p.forward.ServeHTTP(w, r)
		return
	}
	answered := &recorder{header: http.Header{}}
	err := p.journal.write(Entry{Server: p.name, Method: r.Method, Path: r.URL.Path}, func() int {
		p.forward.ServeHTTP(answered, r)
		return answered.status
	})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answered.copyTo(w)
}

// Mutates tells whether a request changes something that counts. Leases, events, reviews and dry runs do not.
func Mutates(method string, u *url.URL) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	if len(u.Query()["dryRun"]) > 0 {
		return false
	}
	for _, part := range strings.Split(u.Path, "/") {
		switch part {
		case "leases", "events", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews",
			"localsubjectaccessreviews", "selfsubjectreviews":
			return false
		}
	}
	return true
}

// answer says what an API server would say.
func answer(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
}
