package certificates_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"muster.dev/muster/deploy/certificates"
)

func read(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certificates.Certificate(dir, name), certificates.Key(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func TestEnsure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := certificates.Wanted{Name: "nats", Hosts: []string{"nats", "127.0.0.1"}}
	client := certificates.Wanted{Name: "client"}
	ensure := func(wanted ...certificates.Wanted) {
		t.Helper()
		if err := certificates.Ensure(dir, wanted...); err != nil {
			t.Fatal(err)
		}
	}
	ensure(server, client)
	first := read(t, dir, "nats")
	roots := x509.NewCertPool()
	roots.AddCert(read(t, dir, "ca"))
	for host, valid := range map[string]bool{"nats": true, "127.0.0.1": true, "postgres": false} {
		t.Run(host, func(t *testing.T) {
			if _, err := first.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); (err == nil) != valid {
				t.Errorf("the server's certificate for %s: %v, want valid %v", host, err, valid)
			}
		})
	}
	if _, err := read(t, dir, "client").Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("the client's certificate serves for a server")
	}
	late := x509.VerifyOptions{Roots: roots, CurrentTime: time.Now().Add(3 * 365 * 24 * time.Hour)}
	if _, err := first.Verify(late); err == nil {
		t.Error("the server's certificate never ends")
	}

	ensure(server, client)
	if !read(t, dir, "nats").Equal(first) {
		t.Error("a valid certificate was replaced")
	}
	server.Hosts = append(server.Hosts, "localhost")
	ensure(server)
	if got := read(t, dir, "nats"); got.Equal(first) || got.VerifyHostname("localhost") != nil {
		t.Error("a certificate for other hosts was kept")
	}
	if err := os.WriteFile(certificates.Certificate(dir, "nats"), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	ensure(server)
	read(t, dir, "nats")
}
