// Package oidctest is an OpenID Connect provider for tests, with one user: discovery, keys, the
// authorization code flow with PKCE, and ID tokens of any claims.
//
// It stands in for the provider of a site, which no test machine has.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// ClientID is the only client.
const ClientID = "muster"

// Provider serves one user.
type Provider struct {
	URL string
	// Subject is the user who logs in.
	Subject string

	key   *rsa.PrivateKey
	mu    sync.Mutex
	codes map[string]grant // by code
}

// grant is a login that has no token yet.
type grant struct{ nonce, challenge, redirect string }

// Start starts a provider, which the test stops at its end.
func Start(t *testing.T, subject string) *Provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{Subject: subject, key: key, codes: map[string]grant{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Claims are those of a valid ID token of the user.
func (p *Provider) Claims() map[string]any {
	now := time.Now()
	return map[string]any{"iss": p.URL, "aud": ClientID, "sub": p.Subject, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
}

// Sign returns an ID token with claims.
func (p *Provider) Sign(claims map[string]any) string {
	encode := func(value any) string {
		content, err := json.Marshal(value)
		if err != nil {
			panic("claims cannot be encoded: " + err.Error()) // they are plain data
		}
		return base64.RawURLEncoding.EncodeToString(content)
	}
	signed := encode(map[string]string{"alg": "RS256", "kid": "k"}) + "." + encode(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	if err != nil {
		panic("a token cannot be signed: " + err.Error()) // the key is good
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "kid": "k", "alg": "RS256", "use": "sig", "n": base64.RawURLEncoding.EncodeToString(p.key.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// authorize lets the user in at once.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	if v.Get("client_id") != ClientID || v.Get("response_type") != "code" || v.Get("code_challenge_method") != "S256" {
		http.Error(w, "want the code flow of client "+ClientID+" with PKCE", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = grant{v.Get("nonce"), v.Get("code_challenge"), v.Get("redirect_uri")}
	p.mu.Unlock()
	http.Redirect(w, r, v.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {v.Get("state")}}.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	of, known := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !known || base64.RawURLEncoding.EncodeToString(sum[:]) != of.challenge || r.PostFormValue("redirect_uri") != of.redirect {
		w.WriteHeader(http.StatusBadRequest)
		reply(w, map[string]string{"error": "invalid_grant"})
		return
	}
	claims := p.Claims()
	claims["nonce"] = of.nonce
	w.Header().Set("Content-Type", "application/json")
	reply(w, map[string]any{"access_token": "unused", "token_type": "Bearer", "expires_in": 3600, "id_token": p.Sign(claims)})
}

func reply(w http.ResponseWriter, value any) { _ = json.NewEncoder(w).Encode(value) }
