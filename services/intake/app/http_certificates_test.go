package app_test

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
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/services/intake/app"
)

// TestHTTPAPIAcceptsClientCertificates: a client certificate identifies the
// caller; a request without one and without a token is refused.
func TestHTTPAPIAcceptsClientCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority := newAuthority(t)
	certificate, key := authority.issue(t, "127.0.0.1")
	files := map[string][]byte{"server.crt": certificate, "server.key": key, "ca.crt": authority.pem}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := newAPIWorld(t, func(c *app.HTTPConfig) {
		c.TokensFile = ""
		c.CertificateFile, c.KeyFile, c.ClientCAFile = filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), filepath.Join(dir, "ca.crt")
	})
	d.url = strings.Replace(d.url, "http:", "https:", 1)
	client := func(certificates ...tls.Certificate) *http.Client {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority.pem)
		return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates}}}
	}
	d.client = client()
	d.ask("GET", "/v1/workloads", "", http.StatusUnauthorized, nil)
	pair, err := tls.X509KeyPair(authority.issue(t, "carol"))
	if err != nil {
		t.Fatal(err)
	}
	d.client = client(pair)
	var submitted httpapi.Submission
	d.ask("POST", "/v1/queues/default/workloads", fmt.Sprintf(manifest, "hers"), http.StatusCreated, &submitted)
	if submitted.Record == nil || submitted.Record.Submitter != "http/carol" {
		t.Errorf("submitted as %+v", submitted)
	}
	other := newAuthority(t)
	stranger, err := tls.X509KeyPair(other.issue(t, "carol"))
	if err != nil {
		t.Fatal(err)
	}
	d.client = client(stranger)
	if _, err := d.client.Get(d.url + "/v1/workloads"); err == nil {
		t.Error("a certificate of another authority is let in")
	}
}

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{template, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue returns a certificate for the name and its key.
func (a *authority) issue(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	var certificates, keys bytes.Buffer
	_ = pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	_ = pem.Encode(&keys, &pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
	return certificates.Bytes(), keys.Bytes()
}
