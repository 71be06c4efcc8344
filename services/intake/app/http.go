package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/service/inflight"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/httpserver"
)

// HTTPConfig is the settings of the HTTP API.
type HTTPConfig struct {
	// Address is host:port to listen on.
	Address string
	// TokensFile lists the accepted bearer tokens.
	TokensFile string
	// CertificateFile and KeyFile turn TLS on; ClientCAFile is the authority of
	// accepted client certificates.
	CertificateFile, KeyFile, ClientCAFile string
	// ConnectionsPerAddress is how many connections one client address may have open.
	// All clients behind a proxy have the proxy's address. 0 is 256.
	ConnectionsPerAddress int
	// Operators are the names, separated by commas, of callers that may see and change what
	// is of others.
	Operators string
	// OIDCIssuer is the URL of an OpenID Connect provider whose ID tokens are accepted, for
	// OIDCClientID; OIDCClaim names the caller, after OIDCPrefix.
	OIDCIssuer, OIDCClientID, OIDCClaim, OIDCPrefix string
	// Listening, unless nil, is called with the address once it is bound.
	Listening func(net.Addr)

	tokens httpserver.Tokens
	tls    *tls.Config
	limits httpLimits
}

func (c *HTTPConfig) register(flags *flag.FlagSet) {
	flags.StringVar(&c.Address, "http-address", "", "`host:port` of the HTTP API; empty turns it off")
	flags.StringVar(&c.TokensFile, "http-tokens", "", "YAML `file` with names and hashes of bearer tokens of the HTTP API")
	flags.StringVar(&c.CertificateFile, "http-certificate", "", "PEM `file` with the certificate of the HTTP API")
	flags.StringVar(&c.KeyFile, "http-key", "", "PEM `file` with the key of that certificate")
	flags.StringVar(&c.ClientCAFile, "http-client-ca", "", "PEM `file` with the authority of client certificates that the HTTP API accepts; the common name is the caller's name")
	flags.StringVar(&c.Operators, "http-operators", "", "`names`, separated by commas, of callers of the HTTP API that see and change everything, as operators")
	flags.StringVar(&c.OIDCIssuer, "http-oidc-issuer", "", "`URL` of an OpenID Connect provider whose ID tokens the HTTP API accepts as bearer tokens")
	flags.StringVar(&c.OIDCClientID, "http-oidc-client-id", "", "`client` of the provider for which the ID tokens are")
	flags.StringVar(&c.OIDCClaim, "http-oidc-claim", "sub", "`claim` of an ID token that names the caller; with email, the provider must have verified the address")
	flags.StringVar(&c.OIDCPrefix, "http-oidc-prefix", "oidc.", "`text` before the claim in the caller's name: with oidc. the user ann is http/oidc.ann in queues")
	flags.IntVar(&c.ConnectionsPerAddress, "http-connections-per-address", defaultConnections, "open connections to the HTTP API per client address; raise it behind a proxy, whose clients share one address")
}

// defaultConnections allows eight callers on one machine with all their streams open.
const defaultConnections = 256

// validate reads the files that the settings name.
func (c *HTTPConfig) validate() error {
	if c.Address == "" {
		if c.TokensFile != "" || c.CertificateFile != "" || c.KeyFile != "" || c.ClientCAFile != "" || c.OIDCIssuer != "" {
			return errors.New("http-address: is missing, but other settings of the HTTP API are set")
		}
		return nil
	}
	var faults []error
	if c.ConnectionsPerAddress < 0 || c.ConnectionsPerAddress > 1<<20 {
		faults = append(faults, fmt.Errorf("http-connections-per-address: %d: want at most %d, or 0 for the default", c.ConnectionsPerAddress, 1<<20))
	}
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil {
		faults = append(faults, fmt.Errorf("http-address: %q: want host:port: %w", c.Address, err))
	}
	if c.TokensFile == "" && c.ClientCAFile == "" && c.OIDCIssuer == "" {
		faults = append(faults, errors.New("http-tokens, http-client-ca and http-oidc-issuer: all are missing; want at least one, or no caller can authenticate"))
	}
	if c.TokensFile != "" {
		content, err := os.ReadFile(c.TokensFile)
		if err == nil {
			c.tokens, err = httpserver.ReadTokens(content)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("http-tokens: %s: %w", c.TokensFile, err))
		}
	}
	faults = append(faults, c.validateOIDC())
	for _, name := range c.operators() {
		if !httpserver.ValidName(name) {
			faults = append(faults, fmt.Errorf("http-operators: %.80q: want names of callers, separated by commas", name))
		}
	}
	faults = append(faults, c.validateTLS(host))
	return errors.Join(faults...)
}

func (c *HTTPConfig) validateOIDC() error {
	if c.OIDCIssuer == "" {
		return nil
	}
	issuer, err := url.Parse(c.OIDCIssuer)
	switch {
	case err != nil || issuer.Host == "" || issuer.Scheme != "https" && issuer.Scheme != "http":
		return fmt.Errorf("http-oidc-issuer: %q: want a URL such as https://login.example.org", c.OIDCIssuer)
	case issuer.Scheme == "http" && !isLoopback(issuer.Hostname()):
		return fmt.Errorf("http-oidc-issuer: %q: its keys must not come in the clear: want https", c.OIDCIssuer)
	case c.OIDCClientID == "":
		return errors.New("http-oidc-client-id: is missing; want the client for which the provider makes the tokens")
	case c.OIDCPrefix == "" || !httpserver.ValidName(c.OIDCPrefix+"a"):
		return fmt.Errorf("http-oidc-prefix: %.80q: want letters, digits, dots, underscores, dashes and @, so that no user of the provider has the name of another caller", c.OIDCPrefix)
	}
	for _, token := range c.tokens {
		if strings.HasPrefix(token.Name, c.OIDCPrefix) {
			return fmt.Errorf("http-tokens: %q: begins with http-oidc-prefix %q, as the names of the provider's users do: want another name", token.Name, c.OIDCPrefix)
		}
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// identify returns how callers are known.
func (c *HTTPConfig) identify(logger *zap.Logger) func(*http.Request) (string, time.Time, error) {
	if c.OIDCIssuer == "" {
		return c.tokens.Identify
	}
	of := httpserver.NewOIDC(httpserver.OIDCOptions{Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, Claim: cmp.Or(c.OIDCClaim, "sub"), Prefix: c.OIDCPrefix, Known: c.tokens, Logger: logger})
	return of.Identify
}

func (c *HTTPConfig) validateTLS(host string) error {
	switch {
	case (c.CertificateFile == "") != (c.KeyFile == ""):
		return errors.New("http-certificate and http-key: want both or none")
	case c.CertificateFile == "" && c.ClientCAFile != "":
		return errors.New("http-client-ca: needs http-certificate and http-key: without TLS clients send no certificate")
	case c.CertificateFile == "":
		if !isLoopback(host) {
			return fmt.Errorf("http-address: %q is not a loopback address, and tokens must not be sent in the clear: set http-certificate and http-key, or listen on 127.0.0.1", c.Address)
		}
		return nil
	}
	certificate, err := tls.LoadX509KeyPair(c.CertificateFile, c.KeyFile)
	if err != nil {
		return fmt.Errorf("http-certificate: %w", err)
	}
	c.tls = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	if c.ClientCAFile == "" {
		return nil
	}
	content, err := os.ReadFile(c.ClientCAFile)
	if err != nil {
		return fmt.Errorf("http-client-ca: %w", err)
	}
	c.tls.ClientCAs, c.tls.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !c.tls.ClientCAs.AppendCertsFromPEM(content) {
		return fmt.Errorf("http-client-ca: %s: has no PEM certificate", c.ClientCAFile)
	}
	return nil
}

// operators are the names of the callers that are operators.
func (c *HTTPConfig) operators() []string {
	return strings.FieldsFunc(c.Operators, func(r rune) bool { return r == ',' || r == ' ' })
}

// httpLimits bound connections. The API bounds its answers itself, because streams of
// events may last for hours.
type httpLimits struct {
	header, body, idle time.Duration
	api                httpserver.Limits
}

func defaultHTTPLimits() httpLimits {
	return httpLimits{header: 5 * time.Second, body: 30 * time.Second, idle: 2 * time.Minute, api: httpserver.DefaultLimits()}
}

// serveHTTP binds the address, so that a failure is reported at once, and serves until
// ctx ends.
func serveHTTP(ctx context.Context, group *errgroup.Group, config *Config, b *bus.Bus, spending *budget.Budget, runtime *service.Runtime) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", config.HTTP.Address)
	if err != nil {
		return fmt.Errorf("listen for the HTTP API on %s: %w", config.HTTP.Address, err)
	}
	limits := config.HTTP.limits
	if limits == (httpLimits{}) {
		limits = defaultHTTPLimits()
	}
	address := listener.Addr()
	listener = inflight.Listen(listener, cmp.Or(config.HTTP.ConnectionsPerAddress, defaultConnections))
	if config.HTTP.tls != nil {
		listener = tls.NewListener(listener, config.HTTP.tls)
	}
	server := &http.Server{
		Handler: httpserver.New(httpserver.Options{
			Bus: b, Queries: query.NewClient(b.Conn()), Operator: config.Operator, Identify: config.HTTP.identify(runtime.Logger), Budget: spending,
			Operators: config.HTTP.operators(), Limits: limits.api, Logger: runtime.Logger,
		}),
		ReadHeaderTimeout: limits.header, ReadTimeout: limits.body, IdleTimeout: limits.idle, MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    service.HTTPErrorLog(runtime.Logger),
	}
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the HTTP API on %s: %w", address, err)
		}
		return ctx.Err()
	})
	group.Go(func() error {
		<-ctx.Done()
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		_ = server.Shutdown(stopping) // streams end with ctx
		return ctx.Err()
	})
	runtime.Logger.Info("serving the HTTP API", zap.Stringer("address", address))
	if config.HTTP.Listening != nil {
		config.HTTP.Listening(address)
	}
	return nil
}
