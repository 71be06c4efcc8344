package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// clock advances with each look at it.
func clock() func() time.Time {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	return func() time.Time {
		at = at.Add(time.Millisecond)
		return at
	}
}

// TestOpenLogins: at a bound the oldest login gives way, that of the same address first, and no
// login is refused.
func TestOpenLogins(t *testing.T) {
	t.Parallel()
	o := newOpenLogins(openOfAddress(false), clock())
	cookie, login := o.begin("10.0.0.1", "/")
	first, flood := "", ""
	for i := range 2 * mostOpenOfAddress {
		flood, _ = o.begin("10.0.0.2", "/")
		if i == 0 {
			first = flood
		}
	}
	if _, known := o.byCookie[first]; known || len(o.byCookie) != mostOpenOfAddress+1 {
		t.Errorf("%d logins are open, the first of the address: %v", len(o.byCookie), known)
	}
	if _, known := o.byCookie[flood]; !known {
		t.Error("the newest login of a flooding address is not open")
	}
	if _, known := o.consume(cookie, login.state); !known {
		t.Error("the login of another address has ended")
	}
	for i := range mostOpenLogins {
		flood, _ = o.begin(fmt.Sprint("10.1.", i/mostOpenOfAddress), "/")
	}
	if _, known := o.byCookie[flood]; !known || len(o.byCookie) != mostOpenLogins {
		t.Errorf("%d logins are open, the newest: %v; want %d", len(o.byCookie), known, mostOpenLogins)
	}
	if all := openOfAddress(true); all != mostOpenLogins {
		t.Errorf("behind a proxy %d logins may be open", all)
	}
}

// TestSilentLoginProvider: while one login waits for the provider, another one ends when its
// browser leaves, logins that are open go on, and the pause begins when the attempt has failed.
func TestSilentLoginProvider(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-answer
		http.Error(w, "away", http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	o := newOIDCLogins(OIDC{Issuer: server.URL}, newOpenLogins(mostOpenOfAddress, time.Now), time.Now)
	first := make(chan error, 1)
	go func() {
		_, _, err := o.find(t.Context())
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := o.find(ctx); err == nil {
		t.Error("a silent provider is found")
	}
	cookie, login := o.open.begin("10.0.0.1", "/")
	if _, known := o.open.consume(cookie, login.state); !known {
		t.Error("an open login does not go on")
	}
	released := time.Now()
	close(answer)
	if err := <-first; err == nil || o.failed.Before(released) {
		t.Errorf("%v, failed at %v, before %v", err, o.failed, released)
	}
	if _, _, err := o.find(t.Context()); err == nil || len(asked) > 0 {
		t.Errorf("in the pause: %v, and the provider is asked", err)
	}
}

// slowProvider is a provider that does not answer when a code is exchanged; asked gets a value
// then.
func slowProvider(t *testing.T) (issuer string, asked <-chan struct{}) {
	t.Helper()
	codes, mux := make(chan struct{}), http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"issuer": server.URL, "authorization_endpoint": server.URL + "/authorize", "token_endpoint": server.URL + "/token", "jwks_uri": server.URL + "/keys"})
	})
	mux.HandleFunc("POST /token", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client leaves
		codes <- struct{}{}
		<-r.Context().Done()
	})
	return server.URL, codes
}

// TestLoginsBehindASlowProvider: logins that wait for the provider keep no one from logging in
// with a token, and behind a proxy one browser's do not count for all.
func TestLoginsBehindASlowProvider(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		proxied bool
		most    int
	}{"browsers": {false, mostLogins}, "a proxy": {true, mostAllLogins}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer, asked := slowProvider(t)
			b := loggingInAt(t, issuer, test.proxied)
			// comesBack is a login of a browser of its own, after the provider has sent it back.
			comesBack := func() (status <-chan int) {
				began, done := stranger(t, b.url, nil), make(chan int, 1)
				_, toProvider := began.follow(b.url + "/login/oidc")
				parsed, err := url.Parse(toProvider)
				if err != nil {
					t.Fatal(err)
				}
				back := url.Values{"state": {parsed.Query().Get("state")}, "code": {"any"}}
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+CallbackPath+"?"+back.Encode(), nil)
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					if response, err := began.client.Do(request); err == nil {
						response.Body.Close()
						done <- response.StatusCode
					}
				}()
				return done
			}
			for range test.most {
				select {
				case <-asked:
				case status := <-comesBack():
					t.Fatalf("a login that has room ends with status %d", status)
				}
			}
			select {
			case <-asked:
				t.Error("one login more asks the provider")
			case status := <-comesBack():
				if status != http.StatusTooManyRequests {
					t.Errorf("one login more: status %d", status)
				}
			}
			if status, _, content := b.post("/login", url.Values{"token": {"alice"}}); status != http.StatusSeeOther {
				t.Errorf("a login with a token: status %d: %s", status, content)
			}
		})
	}
}
