// Package webhookcert makes and rotates the certificates with which the API server knows
// intake's webhooks. They are in one Secret, which all intakes share:
//
//	authority.crt  authorities, the newest first; the API server trusts all of them
//	authority.key  the key of the newest
//	tls.crt tls.key  the server's certificate, of one of the authorities
//
// A new authority is published before a server uses a certificate of it, and the one before
// stays trusted until it expires, so that at each moment every server is trusted:
//
//	new authority --> Secret --> webhook configurations --> new server certificate --> Secret
//
// Each intake takes the same steps. A step is an update of the Secret at the version that was
// read, so that one of several wins and the others read again.
//
// It is not for serving (package policywebhook).
package webhookcert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// Keys of the Secret.
const (
	authorityCertificates = "authority.crt"
	authorityKey          = "authority.key"
	serverCertificate     = "tls.crt"
	serverKey             = "tls.key"
)

const (
	authorityLife = 2 * 365 * 24 * time.Hour
	serverLife    = 90 * 24 * time.Hour
	// earlier covers clocks that differ.
	earlier = time.Hour
	// mostAuthorities bounds those that are trusted at a time: the newest and the one
	// before.
	mostAuthorities = 2
)

// due reports whether a third of a certificate's life or less is left.
func due(certificate *x509.Certificate, now time.Time) bool {
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	return certificate.NotAfter.Sub(now) <= life/3
}

// material is the content of the Secret that can be used.
type material struct {
	authorities []*x509.Certificate // the newest first, none expired
	signer      *ecdsa.PrivateKey   // of the newest; nil if it cannot be used
	server      *tls.Certificate    // nil if it cannot be used
}

// read takes what can be used of a Secret: a part that is broken discards no other.
func read(data map[string][]byte, hosts []string, now time.Time) material {
	var m material
	for rest := data[authorityCertificates]; len(m.authorities) < mostAuthorities; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && certificate.IsCA && now.Before(certificate.NotAfter) {
			m.authorities = append(m.authorities, certificate)
		}
	}
	if block, _ := pem.Decode(data[authorityKey]); block != nil && len(m.authorities) > 0 {
		key, err := x509.ParseECPrivateKey(block.Bytes)
		if err == nil && key.PublicKey.Equal(m.authorities[0].PublicKey) {
			m.signer = key
		}
	}
	if pair, err := tls.X509KeyPair(data[serverCertificate], data[serverKey]); err == nil && m.trusts(pair.Leaf, hosts, now) {
		m.server = &pair
	}
	return m
}

// trusts reports whether one of the authorities vouches for the certificate and all hosts.
func (m material) trusts(leaf *x509.Certificate, hosts []string, now time.Time) bool {
	pool := x509.NewCertPool()
	for _, authority := range m.authorities {
		pool.AddCert(authority)
	}
	for _, host := range hosts {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host, CurrentTime: now}); err != nil {
			return false
		}
	}
	return true
}

// bundle is what the API server is to trust.
func (m material) bundle() []byte {
	var bundle []byte
	for _, authority := range m.authorities {
		bundle = append(bundle, encode("CERTIFICATE", authority.Raw)...)
	}
	return bundle
}

// next returns the Secret's content after the next step, or nil if none is due. published
// reports whether the API server trusts the newest authority.
func (m material) next(data map[string][]byte, hosts []string, now time.Time, published bool) (map[string][]byte, error) {
	made := map[string][]byte{}
	for key, value := range data {
		made[key] = value
	}
	switch {
	case m.signer == nil || due(m.authorities[0], now):
		certificate, key, err := newAuthority(now)
		if err != nil {
			return nil, err
		}
		m.authorities = slices.Insert(m.authorities, 0, certificate)
		m.authorities = m.authorities[:min(len(m.authorities), mostAuthorities)]
		m.signer = key
		encoded, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			return nil, fmt.Errorf("encode the key of the authority: %w", err)
		}
		made[authorityCertificates], made[authorityKey] = m.bundle(), encode("EC PRIVATE KEY", encoded)
		if m.server != nil && m.trusts(m.server.Leaf, hosts, now) {
			return made, nil // the server's certificate follows when the authority is published
		}
	case m.server == nil, published && (due(m.server.Leaf, now) || m.server.Leaf.CheckSignatureFrom(m.authorities[0]) != nil):
	default:
		return nil, nil
	}
	var err error
	made[serverCertificate], made[serverKey], err = newServer(m.authorities[0], m.signer, hosts, now)
	return made, err
}

func newAuthority(now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of the authority: %w", err)
	}
	template, err := template("muster-intake-webhook-authority", now, authorityLife)
	if err != nil {
		return nil, nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("make the authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("read the new authority: %w", err)
	}
	return certificate, key, nil
}

func newServer(authority *x509.Certificate, signer *ecdsa.PrivateKey, hosts []string, now time.Time) (certificate, privateKey []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of the server: %w", err)
	}
	template, err := template(hosts[0], now, serverLife)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames, template.IPAddresses = namesOf(hosts)
	der, err := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, fmt.Errorf("make the server's certificate: %w", err)
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the key of the server: %w", err)
	}
	return encode("CERTIFICATE", der), encode("EC PRIVATE KEY", encoded), nil
}

func template(name string, now time.Time, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-earlier), NotAfter: now.Add(life)}, nil
}

func encode(kind string, der []byte) []byte {
	return bytes.Clone(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
