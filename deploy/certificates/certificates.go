// Package certificates makes a certificate authority and certificates of servers and
// clients and keeps them as files, for a local stack, for tests and for installations
// without an authority.
//
// It issues for Muster's servers and services only, and is not for installations that
// have an authority: it revokes nothing.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Validity of certificates, and the time before their end at which they are renewed.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	life          = 2 * 365 * 24 * time.Hour
	renewBefore   = 60 * 24 * time.Hour
)

// authority is the name of the authority's files.
const authority = "ca"

// CA returns the file with the certificate of the authority in dir.
func CA(dir string) string { return Certificate(dir, authority) }

// Certificate returns the file with the certificate of the given name in dir.
func Certificate(dir, name string) string { return filepath.Join(dir, name+".crt") }

// Key returns the file with the key of the certificate.
func Key(dir, name string) string { return filepath.Join(dir, name+".key") }

// Wanted describes a certificate.
type Wanted struct {
	Name string
	// Hosts are the names and addresses of a server; a client has none.
	Hosts []string
}

// Ensure makes the authority, and the certificates that are missing in dir, near their
// end, or not as wanted. The files are readable by all, because containers read them
// under other user ids; the directory protects them.
func Ensure(dir string, wanted ...Wanted) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of certificates: %w", err)
	}
	ca, err := ensureAuthority(dir)
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	for _, w := range wanted {
		if err := ca.ensure(dir, w); err != nil {
			return fmt.Errorf("certificate of %q: %w", w.Name, err)
		}
	}
	return nil
}

// pair is a certificate with its key.
type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func ensureAuthority(dir string) (pair, error) {
	present, err := load(dir, authority)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return present, err
	}
	return issue(dir, authority, &x509.Certificate{
		Subject: pkix.Name{CommonName: "Muster local authority"}, NotAfter: time.Now().Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
}

func (ca pair) ensure(dir string, w Wanted) error {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: w.Name}, NotAfter: time.Now().Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(w.Hosts) > 0 {
		// NATS servers are clients of each other.
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range w.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip.To16())
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	present, err := load(dir, w.Name)
	if err == nil && ca.serves(present.certificate, template) {
		return nil // an unreadable certificate is replaced like a missing one
	}
	_, err = issue(dir, w.Name, template, &ca)
	return err
}

// serves reports whether a certificate is as wanted and valid for a while.
func (ca pair) serves(present, wanted *x509.Certificate) bool {
	return present.CheckSignatureFrom(ca.certificate) == nil && time.Until(present.NotAfter) > renewBefore &&
		slices.Equal(present.ExtKeyUsage, wanted.ExtKeyUsage) && slices.Equal(present.DNSNames, wanted.DNSNames) &&
		slices.EqualFunc(present.IPAddresses, wanted.IPAddresses, net.IP.Equal)
}

func load(dir, name string) (pair, error) {
	read, err := tls.LoadX509KeyPair(Certificate(dir, name), Key(dir, name))
	if err != nil {
		return pair{}, err
	}
	key, ok := read.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return pair{}, fmt.Errorf("%s is not a key of this package", Key(dir, name))
	}
	return pair{read.Leaf, key}, nil
}

// issue signs the template, with its own key if there is no authority, and writes the
// files. The key goes first, so that no certificate is left without its key.
func issue(dir, name string, template *x509.Certificate, ca *pair) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	template.NotBefore = time.Now().Add(-time.Hour) // clocks differ
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return pair{}, err
	}
	signer := pair{template, key}
	if ca != nil {
		signer = *ca
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.certificate, &key.PublicKey, signer.key)
	if err != nil {
		return pair{}, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return pair{}, err
	}
	for _, file := range []struct {
		path  string
		block pem.Block
	}{
		{Key(dir, name), pem.Block{Type: "PRIVATE KEY", Bytes: encoded}},
		{Certificate(dir, name), pem.Block{Type: "CERTIFICATE", Bytes: der}},
	} {
		if err := os.WriteFile(file.path, pem.EncodeToMemory(&file.block), 0o644); err != nil {
			return pair{}, err
		}
	}
	return pair{certificate, key}, nil
}
