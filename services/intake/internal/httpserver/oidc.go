package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"go.uber.org/zap"
)

// OIDCOptions are the settings of an OIDC.
type OIDCOptions struct {
	// Issuer is the URL of the provider, and ClientID the audience of tokens.
	Issuer, ClientID string
	// Claim is the one that names the caller, and Prefix is before its value, so that no
	// user of the provider has the name of a token or of a client certificate.
	Claim, Prefix string
	// Known are asked first.
	Known  Tokens
	Logger *zap.Logger
}

// OIDC accepts ID tokens of an OpenID Connect provider as bearer tokens, beside Known. Its
// methods may be called concurrently.
type OIDC struct {
	OIDCOptions

	turn     chan struct{} // holds one value while a request has verifier and failed
	verifier *oidc.IDTokenVerifier
	failed   time.Time // when the last attempt to find the provider ended
}

// NewOIDC returns an OIDC that asks its provider once it is needed.
func NewOIDC(o OIDCOptions) *OIDC { return &OIDC{OIDCOptions: o, turn: make(chan struct{}, 1)} }

// Bounds of what the provider is asked.
const (
	providerTimeout = 5 * time.Second
	providerPause   = 5 * time.Second // between two attempts to find it
	longestIDToken  = 16 << 10
)

// keysMissing begins the text of go-oidc's error, which wraps no other, when the provider does
// not give its keys.
const keysMissing = "failed to verify signature: fetching keys"

// Identify returns the name in the client certificate or of the bearer token, or that in the ID
// token with the token's end.
func (o *OIDC) Identify(r *http.Request) (name string, until time.Time, err error) {
	name, until, err = o.Known.Identify(r)
	if err == nil && strings.HasPrefix(name, o.Prefix) {
		return "", until, fmt.Errorf("the name %.80q begins with %q, as those in ID tokens do: want another in the client certificate", name, o.Prefix)
	}
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !errors.Is(err, errUnknown) || !isBearer || strings.Count(token, ".") != 2 || len(token) > longestIDToken {
		return name, until, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), providerTimeout)
	defer cancel()
	verifier, err := o.provider(ctx)
	if err != nil {
		return "", until, err
	}
	verified, err := verifier.Verify(ctx, strings.TrimSpace(token))
	if err != nil && strings.HasPrefix(err.Error(), keysMissing) {
		o.Logger.Warn("cannot get the keys of the OpenID Connect provider", zap.String("issuer", o.Issuer), zap.Error(err))
		return "", until, fail(http.StatusServiceUnavailable, "the OpenID Connect provider %s does not give its keys, which ID tokens are verified with", o.Issuer)
	}
	if err != nil {
		return "", until, fmt.Errorf("the ID token is not accepted: %w", err)
	}
	name, err = o.nameIn(verified)
	return name, verified.Expiry, err
}

func (o *OIDC) nameIn(token *oidc.IDToken) (string, error) {
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return "", fmt.Errorf("the claims of the ID token cannot be read: %w", err)
	}
	value, _ := claims[o.Claim].(string)
	if verified, _ := claims["email_verified"].(bool); o.Claim == "email" && !verified {
		return "", fmt.Errorf("the e-mail address %.80q in the ID token is not verified by the provider: want the claim email_verified with the value true", value)
	}
	name := o.Prefix + value
	if value == "" || !ValidName(name) {
		return "", fmt.Errorf("the claim %s of the ID token is %.80q: want at most 100 letters, digits, dots, underscores, dashes and @, with the prefix", o.Claim, value)
	}
	return name, nil
}

// provider finds the provider once it is needed, so that intake starts without it. One request
// asks at a time, and the others wait no longer than for an answer of their own.
func (o *OIDC) provider(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	away := fail(http.StatusServiceUnavailable, "the OpenID Connect provider %s does not answer, and ID tokens cannot be verified without it", o.Issuer)
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, away
	}
	if o.verifier != nil {
		return o.verifier, nil
	}
	if time.Since(o.failed) < providerPause {
		return nil, away
	}
	// Its keys are asked for later, too, by requests of others.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), &http.Client{Timeout: providerTimeout}), o.Issuer)
	if err != nil {
		o.failed = time.Now()
		o.Logger.Warn("cannot find the OpenID Connect provider", zap.String("issuer", o.Issuer), zap.Error(err))
		return nil, away
	}
	o.verifier = found.Verifier(&oidc.Config{ClientID: o.ClientID})
	return o.verifier, nil
}
