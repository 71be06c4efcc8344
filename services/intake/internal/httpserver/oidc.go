package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"go.uber.org/zap"
)

// OIDC accepts ID tokens of an OpenID Connect provider as bearer tokens, beside Tokens. Its
// methods may be called concurrently.
type OIDC struct {
	// Issuer is the URL of the provider, and ClientID the audience of tokens.
	Issuer, ClientID string
	// Claim is the one that names the caller, and Prefix is before its value, so that no
	// user of the provider has the name of a token or of a client certificate.
	Claim, Prefix string
	// Known are asked first.
	Known  Tokens
	Logger *zap.Logger

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier
	asked    time.Time // when the provider was asked last
}

// Bounds of what the provider is asked.
const (
	providerTimeout = 5 * time.Second
	providerPause   = 5 * time.Second // between two attempts to find it
	longestIDToken  = 16 << 10
)

// Identify returns the name in the client certificate or of the bearer token, or that in the ID
// token.
func (o *OIDC) Identify(r *http.Request) (string, error) {
	name, err := o.Known.Identify(r)
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !errors.Is(err, errUnknown) || !isBearer || strings.Count(token, ".") != 2 || len(token) > longestIDToken {
		return name, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), providerTimeout)
	defer cancel()
	verifier, err := o.provider(ctx)
	if err != nil {
		return "", err
	}
	verified, err := verifier.Verify(ctx, strings.TrimSpace(token))
	if err != nil {
		return "", fmt.Errorf("the ID token is not accepted: %w", err)
	}
	return o.nameIn(verified)
}

func (o *OIDC) nameIn(token *oidc.IDToken) (string, error) {
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return "", fmt.Errorf("the claims of the ID token cannot be read: %w", err)
	}
	value, _ := claims[o.Claim].(string)
	if verified, has := claims["email_verified"].(bool); o.Claim == "email" && has && !verified {
		return "", fmt.Errorf("the e-mail address %.80q in the ID token is not verified by the provider", value)
	}
	name := o.Prefix + value
	if value == "" || !ValidName(name) {
		return "", fmt.Errorf("the claim %s of the ID token is %.80q: want at most 100 letters, digits, dots, underscores, dashes and @, with the prefix", o.Claim, value)
	}
	return name, nil
}

// provider finds the provider once it is needed, so that intake starts without it.
func (o *OIDC) provider(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.verifier != nil {
		return o.verifier, nil
	}
	if time.Since(o.asked) < providerPause {
		return nil, fmt.Errorf("the OpenID Connect provider %s does not answer", o.Issuer)
	}
	o.asked = time.Now()
	// Its keys are asked for later, too, by requests of others.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), &http.Client{Timeout: providerTimeout}), o.Issuer)
	if err != nil {
		o.Logger.Warn("cannot find the OpenID Connect provider", zap.String("issuer", o.Issuer), zap.Error(err))
		return nil, fmt.Errorf("the OpenID Connect provider %s does not answer", o.Issuer)
	}
	o.verifier = found.Verifier(&oidc.Config{ClientID: o.ClientID})
	return o.verifier, nil
}
