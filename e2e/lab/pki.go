// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// servingNames are the names under which the fleet's servers are called. The aggregator of the Karmada API server dials
// localhost, but verifies the name of the Service.
var servingNames = []string{
	"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
	"karmada-aggregated-apiserver.karmada-system.svc",
}

// pki is the fleet's one certificate authority with what it has signed, as files in one folder.
type pki struct {
	dir string
	ca  *x509.Certificate
	key *ecdsa.PrivateKey
	pem []byte
}

// openPKI loads the authority kept in dir or makes it, with the serving certificate, the front proxy's client
// certificate and the key of service account tokens.
func openPKI(dir string) (*pki, error) {
	p := &pki{dir: dir}
	if exists(p.file("ca.key")) {
		return p, p.load()
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	serving := &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, DNSNames: servingNames, IPAddresses: []net.IP{net.ParseIP(loopback)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	steps := []func() error{
		func() error { return p.write("serving", serving) },
		func() error { return p.write("front-proxy", clientTemplate("front-proxy-client")) },
		func() error { return p.writeKeyPair("service-account") },
		// Last: its presence says that everything is there.
		func() error { return p.writeAuthority() },
	}
	if err := p.newAuthority(); err != nil {
		return nil, fmt.Errorf("make the certificate authority: %w", err)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("make the certificates: %w", err)
		}
	}
	return p, nil
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

func (p *pki) newAuthority() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "fleetworkload-lab"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	p.key = key
	der, err := p.sign(template, template, key)
	if err != nil {
		return err
	}
	p.pem = encodePEM("CERTIFICATE", der)
	p.ca, err = x509.ParseCertificate(der)
	return err
}

func (p *pki) writeAuthority() error {
	if err := os.WriteFile(p.file("ca.crt"), p.pem, 0o644); err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(p.key)
	if err != nil {
		return err
	}
	return os.WriteFile(p.file("ca.key"), encodePEM("EC PRIVATE KEY", der), 0o600)
}

func (p *pki) load() error {
	var err error
	if p.pem, err = os.ReadFile(p.file("ca.crt")); err != nil {
		return err
	}
	key, err := os.ReadFile(p.file("ca.key"))
	if err != nil {
		return err
	}
	cert, keyBlock := decodePEM(p.pem), decodePEM(key)
	if p.ca, err = x509.ParseCertificate(cert); err != nil {
		return fmt.Errorf("read ca.crt: %w", err)
	}
	if p.key, err = x509.ParseECPrivateKey(keyBlock); err != nil {
		return fmt.Errorf("read ca.key: %w", err)
	}
	return nil
}

// sign fills in what all certificates share.
func (p *pki) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(1, 0, 0)
	if template.KeyUsage == 0 {
		template.KeyUsage = x509.KeyUsageDigitalSignature
	}
	return x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, p.key)
}

// issue returns a certificate and its key as PEM.
func (p *pki) issue(template *x509.Certificate) (cert, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := p.sign(template, p.ca, k)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		return nil, nil, err
	}
	return encodePEM("CERTIFICATE", der), encodePEM("EC PRIVATE KEY", keyDER), nil
}

func (p *pki) write(name string, template *x509.Certificate) error {
	cert, key, err := p.issue(template)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.file(name+".crt"), cert, 0o644); err != nil {
		return err
	}
	return os.WriteFile(p.file(name+".key"), key, 0o600)
}

func (p *pki) writeKeyPair(name string) error {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&k.PublicKey)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.file(name+".pub"), encodePEM("PUBLIC KEY", public), 0o644); err != nil {
		return err
	}
	return os.WriteFile(p.file(name+".key"), encodePEM("EC PRIVATE KEY", private), 0o600)
}

func clientTemplate(user string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// writeCertKubeconfig writes a kubeconfig with a client certificate of its own.
func (p *pki) writeCertKubeconfig(path, cluster, server, user string, groups ...string) error {
	cert, key, err := p.issue(clientTemplate(user, groups...))
	if err != nil {
		return fmt.Errorf("certificate of %s: %w", user, err)
	}
	return p.writeKubeconfig(path, cluster, server, &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

func (p *pki) writeKubeconfig(path, cluster, server string, auth *clientcmdapi.AuthInfo) error {
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{cluster: {Server: server, CertificateAuthorityData: p.pem}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{cluster: auth},
		Contexts:       map[string]*clientcmdapi.Context{cluster: {Cluster: cluster, AuthInfo: cluster}},
		CurrentContext: cluster,
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}

func randomToken() (string, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func decodePEM(data []byte) []byte {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	return block.Bytes
}
