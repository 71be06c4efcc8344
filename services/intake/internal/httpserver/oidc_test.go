package httpserver

import (
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
	good := provider.Sign(provider.Claims())
	for name, c := range map[string]struct{ claim, token, want, says string }{
		"a user":              {"sub", good, "oidc.ann", ""},
		"an address":          {"email", with("email", "ann@example.org"), "oidc.ann@example.org", ""},
		"an unverified one":   {"email", provider.Sign(map[string]any{"iss": provider.URL, "aud": oidctest.ClientID, "sub": "x", "exp": time.Now().Add(time.Hour).Unix(), "email": "ann@example.org", "email_verified": false}), "", "is not verified"},
		"no such claim":       {"email", good, "", "the claim email"},
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
			o := &OIDC{Issuer: provider.URL, ClientID: oidctest.ClientID, Claim: c.claim, Prefix: "oidc.", Known: known, Logger: zap.NewNop()}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Authorization", "Bearer "+c.token)
			got, err := o.Identify(r)
			if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q, %v; want %q and an error with %q", got, err, c.want, c.says)
			}
		})
	}
	away := &OIDC{Issuer: "http://127.0.0.1:1", ClientID: oidctest.ClientID, Claim: "sub", Prefix: "oidc.", Logger: zap.NewNop()}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+good)
	if name, err := away.Identify(r); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("without a provider: %q, %v", name, err)
	}
}
