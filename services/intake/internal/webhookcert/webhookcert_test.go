package webhookcert

import (
	"crypto/x509"
	"maps"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	registration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

var hosts = []string{"muster-intake.muster-system.svc", "127.0.0.1"}

// settle plays the steps until none is due, with each authority published.
func settle(t *testing.T, data map[string][]byte, now time.Time) (map[string][]byte, material) {
	t.Helper()
	for range mostSteps {
		m := read(data, hosts, now)
		next, err := m.next(data, hosts, now, m.signer != nil)
		if err != nil {
			t.Fatal(err)
		}
		if next == nil {
			return data, m
		}
		// Whatever was trusted before the step trusts the certificate after it.
		after := read(next, hosts, now)
		if after.server == nil {
			t.Fatal("after a step there is no certificate")
		}
		if published := m.bundle(); m.server != nil && !trustedBy(published, after.server.Leaf, now) {
			t.Fatal("a server uses a certificate of an authority that is not published yet")
		}
		data = next
	}
	t.Fatal("the steps do not end")
	return nil, material{}
}

func trustedBy(bundle []byte, leaf *x509.Certificate, now time.Time) bool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: hosts[0], CurrentTime: now})
	return err == nil
}

// TestRotation: over years no moment is without a trusted certificate, and certificates and
// authorities are renewed before they expire, each authority beside the one before.
func TestRotation(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	data, first := settle(t, nil, now)
	certificates, authorities, overlaps := 0, 0, 0
	for last := first; now.Before(time.Date(2032, 1, 1, 0, 0, 0, 0, time.UTC)); {
		now = now.Add(24 * time.Hour)
		var m material
		if data, m = settle(t, data, now); m.server == nil || !trustedBy(m.bundle(), m.server.Leaf, now) {
			t.Fatalf("on %s the server has no trusted certificate", now)
		}
		if m.server.Leaf.SerialNumber.Cmp(last.server.Leaf.SerialNumber) != 0 {
			certificates++
		}
		if !m.authorities[0].Equal(last.authorities[0]) {
			authorities++
		}
		if len(m.authorities) == 2 {
			overlaps++
		}
		last = m
	}
	if authorities < 3 || certificates < 30 || overlaps == 0 {
		t.Errorf("in six years there were %d new authorities, %d new certificates, and %d days with two authorities", authorities, certificates, overlaps)
	}
}

// TestBrokenParts: a broken part of the Secret is made again, and discards no good one.
func TestBrokenParts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	good, before := settle(t, nil, now)
	other, _ := settle(t, nil, now)
	for name, test := range map[string]struct {
		data map[string][]byte
		// keeps is whether the authority stays the newest, and trusts whether it stays
		// trusted.
		keeps, trusts bool
	}{
		"no server key":            {map[string][]byte{serverKey: nil}, true, true},
		"another server key":       {map[string][]byte{serverKey: other[serverKey]}, true, true},
		"another server":           {map[string][]byte{serverKey: other[serverKey], serverCertificate: other[serverCertificate]}, true, true},
		"no PEM for a certificate": {map[string][]byte{serverCertificate: []byte("nothing")}, true, true},
		"no authority key":         {map[string][]byte{authorityKey: nil}, false, true},
		"another authority key":    {map[string][]byte{authorityKey: other[authorityKey]}, false, true},
		"no authority":             {map[string][]byte{authorityCertificates: []byte("-----BEGIN")}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := maps.Clone(good)
			maps.Copy(data, test.data)
			_, after := settle(t, data, now)
			if keeps := after.authorities[0].Equal(before.authorities[0]); keeps != test.keeps {
				t.Errorf("%s: the authority is kept: %t, want %t", name, keeps, test.keeps)
			}
			if trusts := trustedBy(after.bundle(), before.server.Leaf, now); trusts != test.trusts {
				t.Errorf("%s: the previous certificate is trusted: %t, want %t", name, trusts, test.trusts)
			}
		})
	}
	if _, after := settle(t, good, now); after.server.Leaf.SerialNumber.Cmp(before.server.Leaf.SerialNumber) != 0 {
		t.Error("a good Secret was changed")
	}
}

// TestKeeper: the keeper fills an empty Secret and publishes its authority in the
// configurations that exist; a second one finds nothing to do and serves the same.
func TestKeeper(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "muster-system", Name: "certificates"}},
		&registration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "muster"}, Webhooks: []registration.MutatingWebhook{{Name: "a.b.c"}, {Name: "b.b.c"}}},
	)
	var served [2]string
	for i := range served {
		keeper := &Keeper{Client: client, Namespace: "muster-system", Secret: "certificates", Configuration: "muster", Hosts: hosts, Logger: zaptest.NewLogger(t)}
		if _, err := keeper.Certificate(nil); err == nil {
			t.Error("there is a certificate before there is one")
		}
		if err := keeper.Look(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		certificate, err := keeper.Certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		served[i] = certificate.Leaf.SerialNumber.String()
		configuration, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "muster", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, webhook := range configuration.Webhooks {
			if !trustedBy(webhook.ClientConfig.CABundle, certificate.Leaf, time.Now()) {
				t.Errorf("%s does not trust the server", webhook.Name)
			}
		}
	}
	if served[0] != served[1] {
		t.Error("the second keeper made another certificate")
	}
}
