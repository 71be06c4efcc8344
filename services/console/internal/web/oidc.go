package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"go.uber.org/zap"
	"golang.org/x/oauth2"

	"muster.dev/muster/pkg/service/inflight"
	"muster.dev/muster/services/console/internal/page"
)

// OIDC is how users log in at an OpenID Connect provider: the authorization code flow with PKCE.
// The ID token is the token with which the console asks the HTTP API, which verifies it again.
type OIDC struct {
	Issuer, ClientID, ClientSecret string
	// Redirect is the URL of the console's callback, as the provider knows it.
	Redirect string
	Scopes   []string
}

// CallbackPath is where the provider sends browsers back to.
const CallbackPath = "/login/oidc/callback"

// Bounds of logins at a provider.
const (
	providerTimeout = 10 * time.Second
	providerPause   = 5 * time.Second
	loginMost       = 10 * time.Minute
)

// oidcLogins are the logins at the provider. Its methods may be called concurrently.
type oidcLogins struct {
	OIDC
	now  func() time.Time
	open *openLogins

	turn     chan struct{} // holds one value while a request has provider and failed
	provider *oidc.Provider
	failed   time.Time // when the last attempt to find the provider ended
}

func newOIDCLogins(o OIDC, open *openLogins, now func() time.Time) *oidcLogins {
	return &oidcLogins{OIDC: o, now: now, open: open, turn: make(chan struct{}, 1)}
}

// find finds the provider once it is needed, so that the console starts without it. One request
// asks at a time, and the others wait until ctx ends.
func (o *oidcLogins) find(ctx context.Context) (*oidc.Provider, *oauth2.Config, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("wait for the login provider: %w", ctx.Err())
	}
	if o.provider == nil {
		if o.now().Sub(o.failed) < providerPause {
			return nil, nil, errors.New("the login provider does not answer")
		}
		found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), &http.Client{Timeout: providerTimeout}), o.Issuer)
		if err != nil {
			o.failed = o.now()
			return nil, nil, fmt.Errorf("find the login provider: %w", err)
		}
		o.provider = found
	}
	return o.provider, &oauth2.Config{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, RedirectURL: o.Redirect, Endpoint: o.provider.Endpoint(), Scopes: append([]string{oidc.ScopeOpenID}, o.Scopes...),
	}, nil
}

// loginCookie is sent along when the provider sends the browser back from its own site.
func (s *Server) loginCookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(s.Secure) + "-login", Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteLaxMode,
	}
}

// beginOIDC sends a browser to the provider.
func (s *Server) beginOIDC(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), providerTimeout)
	defer cancel()
	_, config, err := s.oidc.find(ctx)
	if err != nil {
		s.Logger.Warn("login failed", zap.Error(err))
		s.writeLogin(w, r, http.StatusBadGateway, loginForm{To: own(r.URL.Query().Get("to")), Problem: "The login provider does not answer. Try again, or use a token."})
		return
	}
	if previous, err := r.Cookie(cookieName(s.Secure) + "-login"); err == nil {
		s.oidc.open.drop(previous.Value)
	}
	cookie, login := s.oidc.open.begin(inflight.Host(r.RemoteAddr), own(r.URL.Query().Get("to")))
	http.SetCookie(w, s.loginCookie(cookie, int(loginMost.Seconds())))
	http.Redirect(w, r, config.AuthCodeURL(login.state, oidc.Nonce(login.nonce), oauth2.S256ChallengeOption(login.verifier)), http.StatusSeeOther)
}

// finishOIDC takes a browser back from the provider.
func (s *Server) finishOIDC(w http.ResponseWriter, r *http.Request) {
	cookie, err := r.Cookie(cookieName(s.Secure) + "-login")
	values := r.URL.Query()
	var login openLogin
	known := err == nil
	if known {
		login, known = s.oidc.open.consume(cookie.Value, values.Get("state"))
	}
	http.SetCookie(w, s.loginCookie("", -1))
	if !known {
		s.writeLogin(w, r, http.StatusBadRequest, loginForm{Problem: "This login is not of this browser, or took too long. Log in again."})
		return
	}
	form := loginForm{To: login.to}
	if refused := values.Get("error"); refused != "" {
		form.Problem = fmt.Sprintf("The login provider refuses: %.200s", refused)
		s.writeLogin(w, r, http.StatusForbidden, form)
		return
	}
	host := inflight.Host(r.RemoteAddr)
	if !s.redeems.Acquire(host) {
		form.Problem = tooManyLogins
		s.writeLogin(w, r, http.StatusTooManyRequests, form)
		return
	}
	defer s.redeems.Release(host)
	token, err := s.redeem(r.Context(), login, values.Get("code"))
	if err != nil {
		s.Logger.Warn("login refused", zap.String("remote", r.RemoteAddr), zap.Error(err))
		form.Problem = "The login provider has given no valid token; the log of the console has more."
		s.writeLogin(w, r, http.StatusBadGateway, form)
		return
	}
	if !s.open(w, r, token, form) {
		return
	}
	// A page, not a redirection: the session's cookie is of this site alone, and a redirection
	// would still count as coming from the provider's.
	region, err := s.region("entered", login.to)
	if err != nil {
		s.problem(w, r, nil, http.StatusInternalServerError, "The console failed; its log has more.")
		return
	}
	s.write(w, r, nil, http.StatusOK, page.Frame{Title: "Logged in", Region: region, To: login.to})
}

// redeem exchanges the code for the ID token, and verifies it.
func (s *Server) redeem(ctx context.Context, login openLogin, code string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	provider, config, err := s.oidc.find(ctx)
	if err != nil {
		return "", err
	}
	ctx = oidc.ClientContext(ctx, &http.Client{Timeout: providerTimeout})
	tokens, err := config.Exchange(ctx, code, oauth2.VerifierOption(login.verifier))
	if err != nil {
		return "", fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	verified, err := provider.Verifier(&oidc.Config{ClientID: s.oidc.ClientID}).Verify(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("verify the ID token: %w", err)
	}
	if verified.Nonce != login.nonce {
		return "", errors.New("verify the ID token: it is of another login")
	}
	return raw, nil
}
