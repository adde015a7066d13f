// Package serving keeps the certificate that the webhook serves with: made by the operator itself, kept in a Secret that all replicas share, and
// renewed so that whoever trusts it never meets one that they do not trust yet.
package serving

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// How long certificates are good for, and how long before their end they are renewed. A new CA is trusted for a while before it signs: API
// servers learn of it within seconds, and whoever copies it by hand has a day.
const (
	authorityLife  = 2 * 365 * 24 * time.Hour
	authorityRenew = 365 * 24 * time.Hour
	certLife       = 90 * 24 * time.Hour
	certRenew      = 45 * 24 * time.Hour
	trustedBefore  = 24 * time.Hour
	// clocks may be behind ours.
	clockSkew = time.Hour
)

// Keys of the Secret. Those of the certificate are as in Secrets of type kubernetes.io/tls.
const (
	keyAuthorities    = "ca.crt"
	keyAuthoritiesKey = "ca.key"
	keyCertificate    = "tls.crt"
	keyCertificateKey = "tls.key"
)

// signed is a certificate with its key.
type signed struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// bundle is what the Secret holds.
type bundle struct {
	// authorities are trusted, the oldest first.
	authorities []signed
	// serving is signed by one of them.
	serving signed
}

// renewed is the bundle as it must be at that time for those names; changed tells whether it is another one.
func (b bundle) renewed(now time.Time, hosts []string) (out bundle, changed bool, err error) {
	out = bundle{serving: b.serving}
	for _, a := range b.authorities {
		if now.Before(a.cert.NotAfter) && !now.Before(a.cert.NotBefore) {
			out.authorities = append(out.authorities, a)
		}
	}
	changed = len(out.authorities) != len(b.authorities)
	if n := len(out.authorities); n == 0 || out.authorities[n-1].cert.NotAfter.Sub(now) < authorityRenew {
		authority, err := sign(now, authorityLife, nil, signed{})
		if err != nil {
			return b, false, err
		}
		out.authorities, changed = append(out.authorities, authority), true
	}
	if out.serves(now, hosts) {
		return out, changed, nil
	}
	out.serving, err = sign(now, certLife, hosts, out.signer(now))
	return out, true, err
}

// signer is the newest authority that is trusted for long enough, or else the oldest.
func (b bundle) signer(now time.Time) signed {
	for _, a := range slices.Backward(b.authorities) {
		if now.Sub(a.cert.NotBefore) >= clockSkew+trustedBefore {
			return a
		}
	}
	return b.authorities[0]
}

// serves tells whether the serving certificate is good for the names, and for long enough.
func (b bundle) serves(now time.Time, hosts []string) bool {
	cert := b.serving.cert
	if cert == nil || now.Before(cert.NotBefore) || cert.NotAfter.Sub(now) < certRenew || !slices.Equal(cert.DNSNames, hosts) {
		return false
	}
	return slices.ContainsFunc(b.authorities, func(a signed) bool { return cert.CheckSignatureFrom(a.cert) == nil })
}

// sign makes a certificate for names, or an authority when it has none, which signs itself.
func sign(now time.Time, life time.Duration, hosts []string, by signed) (signed, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return signed{}, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return signed{}, fmt.Errorf("make a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(life), DNSNames: hosts, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if by.cert == nil {
		template.Subject = pkix.Name{CommonName: fmt.Sprintf("fleetworkload-webhook-ca@%d", now.Unix())}
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
		by = signed{cert: template, key: key}
	} else {
		template.Subject = pkix.Name{CommonName: hosts[0]}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		return signed{}, fmt.Errorf("sign a certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		return signed{}, fmt.Errorf("read the signed certificate: %w", err)
	}
	return signed{cert: cert, key: key}, nil
}

// trust are the authorities as PEM.
func (b bundle) trust() []byte {
	var out bytes.Buffer
	for _, a := range b.authorities {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
	}
	return out.Bytes()
}

// data is the bundle as the Secret's data.
func (b bundle) data() (map[string][]byte, error) {
	var keys bytes.Buffer
	for _, a := range b.authorities {
		block, err := encodeKey(a.key)
		if err != nil {
			return nil, err
		}
		keys.Write(block)
	}
	key, err := encodeKey(b.serving.key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		keyAuthorities: b.trust(), keyAuthoritiesKey: keys.Bytes(), keyCertificateKey: key,
		keyCertificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.serving.cert.Raw}),
	}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("write a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), nil
}

// parse reads a Secret's data. Data that is empty or spoiled gives an error; then all is made anew.
func parse(data map[string][]byte) (bundle, error) {
	authorities, err := parsePairs(data[keyAuthorities], data[keyAuthoritiesKey])
	if err != nil {
		return bundle{}, fmt.Errorf("%s: %w", keyAuthorities, err)
	}
	serving, err := parsePairs(data[keyCertificate], data[keyCertificateKey])
	if err != nil {
		return bundle{}, fmt.Errorf("%s: %w", keyCertificate, err)
	}
	if len(serving) != 1 {
		return bundle{}, fmt.Errorf("%s: want one certificate, got %d", keyCertificate, len(serving))
	}
	return bundle{authorities: authorities, serving: serving[0]}, nil
}

// parsePairs reads certificates, and their keys in the same order.
func parsePairs(certs, keys []byte) ([]signed, error) {
	var list []signed
	for {
		var cert, key *pem.Block
		cert, certs = pem.Decode(certs)
		key, keys = pem.Decode(keys)
		if cert == nil && key == nil {
			return list, nil
		}
		if cert == nil || key == nil {
			return nil, errors.New("there are not as many keys as certificates")
		}
		parsed, err := x509.ParseCertificate(cert.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		private, err := x509.ParseECPrivateKey(key.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read key: %w", err)
		}
		if !private.PublicKey.Equal(parsed.PublicKey) {
			return nil, errors.New("a key is another certificate's")
		}
		list = append(list, signed{cert: parsed, key: private})
	}
}

// certificate is what a server serves.
func (b bundle) certificate() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{b.serving.cert.Raw}, PrivateKey: b.serving.key, Leaf: b.serving.cert}
}
