package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/testkit/oidctest"
	"muster.dev/muster/services/internal/client/overhttp"
)

// idTokens stands in for an HTTP API that accepts ID tokens: of everyone who has one, olga.
func idTokens(a *api) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Count(r.Header.Get("Authorization"), ".") == 2 {
			r.Header.Set("Authorization", "Bearer olga")
		}
		a.ServeHTTP(w, r)
	})
}

// loggingIn starts a console with a provider, and returns a browser that is not logged in.
func loggingIn(t *testing.T, provider *oidctest.Provider) *browser {
	t.Helper()
	return loggingInAt(t, provider.URL, false)
}

func loggingInAt(t *testing.T, issuer string, proxied bool) *browser {
	t.Helper()
	server := httptest.NewServer(idTokens(newAPI(1, 1)))
	t.Cleanup(server.Close)
	client, err := overhttp.New(overhttp.Settings{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	console := httptest.NewUnstartedServer(nil)
	handler, err := New(Options{
		API: client, Logger: zap.NewNop(), Now: time.Now, Proxied: proxied,
		OIDC: &OIDC{Issuer: issuer, ClientID: oidctest.ClientID, Redirect: "http://" + console.Listener.Addr().String() + CallbackPath},
	})
	if err != nil {
		t.Fatal(err)
	}
	console.Config.Handler = handler
	console.Start()
	t.Cleanup(console.Close)
	return stranger(t, console.URL, nil)
}

// follow opens a link that may be of the provider, and returns where it leads.
func (b *browser) follow(link string) (*http.Response, string) {
	b.t.Helper()
	answer, err := b.client.Get(link)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer, answer.Header.Get("Location")
}

// TestLoginAtAProvider: a browser comes back from the provider with a session, and goes to where
// it wanted; a code serves once, and a login serves the browser that began it alone.
func TestLoginAtAProvider(t *testing.T) {
	t.Parallel()
	b := loggingIn(t, oidctest.Start(t, "olga"))
	if _, _, content := b.get("/login?to=%2Fqueues"); !strings.Contains(content, `href="/login/oidc?to=%2Fqueues"`) {
		t.Fatalf("the login offers no provider: %s", content)
	}
	_, toProvider := b.follow(b.url + "/login/oidc?to=/queues")
	asked, err := url.Parse(toProvider)
	if err != nil || asked.Query().Get("code_challenge_method") != "S256" || asked.Query().Get("nonce") == "" || asked.Query().Get("scope") != "openid" {
		t.Fatalf("the provider is asked with %s, %v", toProvider, err)
	}
	_, back := b.follow(toProvider)
	if answer, _ := stranger(t, b.url, nil).follow(back); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a browser that began no login gets status %d", answer.StatusCode)
	}
	status, header, content := b.get(strings.TrimPrefix(back, b.url))
	if status != http.StatusOK || !strings.Contains(content, `content="0;url=/queues"`) || !strings.Contains(strings.Join(header.Values("Set-Cookie"), "; "), "SameSite=Strict") {
		t.Fatalf("back from the provider: status %d, %v: %s", status, header.Values("Set-Cookie"), content)
	}
	if status, _, content := b.get("/queues"); status != http.StatusOK || !strings.Contains(content, "olga, operator") {
		t.Errorf("logged in: status %d: %s", status, content)
	}
	if answer, _ := b.follow(back); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("the same code again: status %d", answer.StatusCode)
	}
}

// TestLoginsThatAreNotOfTheProvider: a foreign state, a foreign code and a refusal open nothing.
func TestLoginsThatAreNotOfTheProvider(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(url.Values)
		status  int
		message string
	}{
		"another state": {func(v url.Values) { v.Set("state", "mine") }, http.StatusBadRequest, "not of this browser"},
		"another code":  {func(v url.Values) { v.Set("code", "mine") }, http.StatusBadGateway, "no valid token"},
		"a refusal":     {func(v url.Values) { v.Del("code"); v.Set("error", "access_denied") }, http.StatusForbidden, "access_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := loggingIn(t, oidctest.Start(t, "olga"))
			_, toProvider := b.follow(b.url + "/login/oidc?to=https://elsewhere.example/")
			_, back := b.follow(toProvider)
			parsed, err := url.Parse(back)
			if err != nil {
				t.Fatal(err)
			}
			values := parsed.Query()
			c.change(values)
			status, header, content := b.get(CallbackPath + "?" + values.Encode())
			if status != c.status || !strings.Contains(content, c.message) || strings.Contains(strings.Join(header.Values("Set-Cookie"), ";"), "SameSite=Strict") {
				t.Errorf("status %d, %v: %s", status, header.Values("Set-Cookie"), content)
			}
		})
	}
}

// TestLoginBegunAgain: a browser has one open login, the last that it began.
func TestLoginBegunAgain(t *testing.T) {
	t.Parallel()
	b := loggingIn(t, oidctest.Start(t, "olga"))
	origin, err := url.Parse(b.url)
	if err != nil {
		t.Fatal(err)
	}
	_, toProvider := b.follow(b.url + "/login/oidc")
	_, back := b.follow(toProvider)
	first := b.client.Jar.Cookies(origin)
	b.follow(b.url + "/login/oidc")
	b.client.Jar.SetCookies(origin, first)
	if answer, _ := b.follow(back); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("the login before the last: status %d", answer.StatusCode)
	}
}
