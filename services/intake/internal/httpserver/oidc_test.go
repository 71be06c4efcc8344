package httpserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/testkit/oidctest"
)

// TestIDTokens: a valid ID token names its user with the prefix; all others are refused, and
// tokens of the file count as before.
func TestIDTokens(t *testing.T) {
	t.Parallel()
	provider, another := oidctest.Start(t, "ann"), oidctest.Start(t, "ann")
	known, err := ReadTokens([]byte("- {name: robot, sha256: " + strings.Repeat("2b", 32) + "}"))
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string, value any) string {
		claims := provider.Claims()
		claims[name] = value
		return provider.Sign(claims)
	}
	address := func(verified any) string {
		claims := provider.Claims()
		claims["email"], claims["email_verified"] = "ann@example.org", verified
		return provider.Sign(claims)
	}
	good := provider.Sign(provider.Claims())
	for name, c := range map[string]struct{ claim, token, want, message string }{
		"a user":              {"sub", good, "oidc.ann", ""},
		"an address":          {"email", address(true), "oidc.ann@example.org", ""},
		"an unverified one":   {"email", address(false), "", "is not verified"},
		"verified in text":    {"email", address("true"), "", "is not verified"},
		"not said verified":   {"email", with("email", "ann@example.org"), "", "is not verified"},
		"no such claim":       {"email", with("email_verified", true), "", "the claim email"},
		"a name of two lines": {"sub", with("sub", "a\nb"), "", "the claim sub"},
		"a name too long":     {"sub", with("sub", strings.Repeat("a", 100)), "", "the claim sub"},
		"for another client":  {"sub", with("aud", "other"), "", "not accepted"},
		"expired":             {"sub", with("exp", time.Now().Add(-time.Minute).Unix()), "", "expired"},
		"of another provider": {"sub", another.Sign(another.Claims()), "", "not accepted"},
		"signed by another":   {"sub", another.Sign(provider.Claims()), "", "not accepted"},
		"changed":             {"sub", strings.Replace(good, ".", ".e", 1), "", "not accepted"},
		"without a signature": {"sub", good[:strings.LastIndex(good, ".")+1], "", "not accepted"},
		"no ID token":         {"sub", "secret", "", "unknown caller"},
		"too long a token":    {"sub", "a.b." + strings.Repeat("c", longestIDToken), "", "unknown caller"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := NewOIDC(OIDCOptions{Issuer: provider.URL, ClientID: oidctest.ClientID, Claim: c.claim, Prefix: "oidc.", Known: known, Logger: zap.NewNop()})
			got, until, err := o.Identify(bearer(c.token))
			if got != c.want || (err == nil) != (c.message == "") || err != nil && !strings.Contains(err.Error(), c.message) {
				t.Errorf("%q, %v; want %q and an error with %q", got, err, c.want, c.message)
			}
			if err == nil && (time.Until(until) < 59*time.Minute || time.Until(until) > time.Hour) {
				t.Errorf("valid until %v, want the end of the token", until)
			}
		})
	}
}

// TestProviderAway: an ID token that cannot be verified now is no unknown caller.
func TestProviderAway(t *testing.T) {
	t.Parallel()
	provider := oidctest.Start(t, "ann")
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]any{"issuer": server.URL, "authorization_endpoint": server.URL, "token_endpoint": server.URL, "jwks_uri": server.URL + "/keys"})
	})
	for issuer, message := range map[string]string{"http://127.0.0.1:1": "does not answer", server.URL: "does not give its keys"} {
		o := NewOIDC(OIDCOptions{Issuer: issuer, ClientID: oidctest.ClientID, Claim: "sub", Prefix: "oidc.", Logger: zap.NewNop()})
		s := &Server{Options: Options{Identify: o.Identify, Logger: zap.NewNop()}}
		for range 2 { // the second time in the pause
			r, w := bearer(provider.Sign(provider.Claims())), httptest.NewRecorder()
			s.authenticated(func(http.ResponseWriter, *http.Request, string) error { return nil })(w, r)
			refused(t, w.Result(), w.Body.String(), http.StatusServiceUnavailable, issuer, message)
		}
	}
}

// TestSilentProvider: while one request waits for the provider, another ends when its caller
// leaves, and the pause begins when the attempt has failed.
func TestSilentProvider(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-answer
		http.Error(w, "away", http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	o := NewOIDC(OIDCOptions{Issuer: server.URL, ClientID: oidctest.ClientID, Claim: "sub", Prefix: "oidc.", Logger: zap.NewNop()})
	first := make(chan error, 1)
	go func() {
		_, _, err := o.Identify(bearer("a.b.c"))
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := o.Identify(bearer("a.b.c").WithContext(ctx)); err == nil {
		t.Error("a token is verified without a provider")
	}
	select {
	case err := <-first:
		t.Fatalf("the first request has ended: %v", err)
	default:
	}
	released := time.Now()
	close(answer)
	if err := <-first; err == nil || o.failed.Before(released) {
		t.Errorf("%v, failed at %v, before %v", err, o.failed, released)
	}
	if _, _, err := o.Identify(bearer("a.b.c")); err == nil || len(asked) > 0 {
		t.Errorf("in the pause: %v, and the provider is asked", err)
	}
}

// TestCertificateWithThePrefix: a certificate does not name a user of the provider.
func TestCertificateWithThePrefix(t *testing.T) {
	t.Parallel()
	o := NewOIDC(OIDCOptions{Prefix: "oidc.", Logger: zap.NewNop()})
	for name, want := range map[string]bool{"carol": true, "oidc.carol": false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: name}}}}}
		if got, _, err := o.Identify(r); (err == nil) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestStreamEndsWithItsToken: a quiet stream ends when its token does.
func TestStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	s := &Server{Options: Options{
		Limits: DefaultLimits(), Logger: zap.NewNop(),
		Identify: func(*http.Request) (string, time.Time, error) {
			return "oidc.ann", time.Now().Add(50 * time.Millisecond), nil
		},
	}}
	server := httptest.NewServer(s.authenticated(func(w http.ResponseWriter, r *http.Request, _ string) error { return s.send(w, r, stream{}) }))
	t.Cleanup(server.Close)
	answer, err := (&http.Client{Timeout: 20 * time.Second}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if content, err := io.ReadAll(answer.Body); err != nil || len(content) > 0 {
		t.Errorf("%q, %v; want an end before the first heartbeat", content, err)
	}
}

func bearer(token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}
