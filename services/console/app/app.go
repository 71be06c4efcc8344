// Package app composes the console from its parts. It is not the process, which is the main
// package or `muster-dev up`.
package app

import (
	"cmp"
	"context"
	"crypto/tls"
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
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/service/inflight"
	"muster.dev/muster/services/console/internal/page"
	"muster.dev/muster/services/console/internal/web"
	"muster.dev/muster/services/internal/client/overhttp"
)

// Config is the console's settings.
type Config struct {
	// Address is host:port for browsers.
	Address string
	// CertificateFile and KeyFile turn TLS on.
	CertificateFile, KeyFile string
	// BehindTLS: a proxy in the same pod ends TLS, so that browsers send cookies over TLS only.
	BehindTLS bool
	// Server is the URL of the HTTP API, and ServerCAFile has its authority; empty for those of
	// the system.
	Server, ServerCAFile string
	// ConnectionsPerAddress is how many connections one address of a browser may have open; all
	// browsers behind a proxy have the proxy's. 0 is 256, or with BehindTLS as many as all.
	ConnectionsPerAddress int
	// Actions lets callers change what they may.
	Actions bool
	// RackLabel is the label of nodes with their rack; empty for none.
	RackLabel string
	// DashboardURL and LogsURL are templates of the addresses of the Ray dashboard and of the logs
	// of a workload, as page.ParseTemplate reads them; empty for none.
	DashboardURL, LogsURL string
	// OIDCIssuer is the URL of an OpenID Connect provider at which users may log in, as
	// OIDCClientID; OIDCSecretFile has the client's secret, if it has one, and OIDCURL is the
	// URL of the console for browsers. OIDCScopes are asked for beside openid.
	OIDCIssuer, OIDCClientID, OIDCSecretFile, OIDCURL, OIDCScopes string
	// Listening, unless nil, is called with the address once it is bound.
	Listening func(net.Addr)

	api  *overhttp.Client
	tls  *tls.Config
	oidc *web.OIDC

	elsewhere page.Elsewhere
}

// Register implements service.Config.
func (c *Config) Register(flags *flag.FlagSet) {
	flags.StringVar(&c.Address, "address", "127.0.0.1:8081", "`host:port` for browsers")
	flags.StringVar(&c.CertificateFile, "certificate", "", "PEM `file` with the certificate for browsers")
	flags.StringVar(&c.KeyFile, "key", "", "PEM `file` with the key of that certificate")
	flags.BoolVar(&c.BehindTLS, "behind-tls", false, "a proxy on this machine, or in this pod, ends TLS")
	flags.StringVar(&c.Server, "server", "", "`URL` of the HTTP API (intake's --http-address)")
	flags.StringVar(&c.ServerCAFile, "server-ca", "", "PEM `file` with the authority of the HTTP API; without it those of the system")
	flags.IntVar(&c.ConnectionsPerAddress, "connections-per-address", 0, "open connections per address of a browser; 0 is 256, or with --behind-tls 4096, which is the limit of all; raise it behind a proxy elsewhere, whose browsers share its address")
	flags.BoolVar(&c.Actions, "actions", false, "let users make the changes that their tokens permit; without it the console is read-only")
	flags.StringVar(&c.OIDCIssuer, "oidc-issuer", "", "`URL` of an OpenID Connect provider at which users may log in; intake must accept its ID tokens (--http-oidc-issuer)")
	flags.StringVar(&c.OIDCClientID, "oidc-client-id", "", "the console's `client` at the provider")
	flags.StringVar(&c.OIDCSecretFile, "oidc-client-secret", "", "`file` with the client's secret; none for a public client")
	flags.StringVar(&c.OIDCURL, "oidc-url", "", "`URL` of the console for browsers; the provider sends them to its path "+web.CallbackPath)
	flags.StringVar(&c.OIDCScopes, "oidc-scopes", "", "`scopes`, separated by commas, to ask for beside openid, such as email")
	flags.StringVar(&c.DashboardURL, "dashboard-url", "", "`URL` of the Ray dashboard of a workload, with {cluster}, {namespace}, {name} and {workload} (its id) in their places; pages of workloads link to it")
	flags.StringVar(&c.LogsURL, "logs-url", "", "`URL` of the logs of a workload, with the same places")
	flags.StringVar(&c.RackLabel, "rack-label", "", "`label` of nodes that names their rack, for the map of nodes")
}

// Validate implements service.Config. It reads the files that the settings name.
func (c *Config) Validate() error {
	var faults []error
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil {
		faults = append(faults, fmt.Errorf("address: %q: want host:port: %w", c.Address, err))
	}
	switch {
	case (c.CertificateFile == "") != (c.KeyFile == ""):
		faults = append(faults, errors.New("certificate and key: want both or none"))
	case c.CertificateFile != "":
		certificate, err := tls.LoadX509KeyPair(c.CertificateFile, c.KeyFile)
		if err != nil {
			faults = append(faults, fmt.Errorf("certificate: %w", err))
		}
		c.tls = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}}
	case err == nil && !isLoopback(host):
		faults = append(faults, fmt.Errorf("address: %q is not a loopback address, and tokens must not be sent in the clear: set certificate and key, or listen on 127.0.0.1", c.Address))
	}
	if c.ConnectionsPerAddress < 0 || c.ConnectionsPerAddress > mostConnections {
		faults = append(faults, fmt.Errorf("connections-per-address: %d: want at most %d, or 0 for the default", c.ConnectionsPerAddress, mostConnections))
	}
	if c.Server == "" {
		faults = append(faults, errors.New("server: is missing; want the URL of the HTTP API, such as https://muster.example.org"))
	} else if c.api, err = overhttp.New(overhttp.Settings{URL: c.Server, CA: c.ServerCAFile}); err == nil {
		_, err = c.api.As("a token") // refused in the clear
	}
	if c.Server != "" && err != nil {
		faults = append(faults, fmt.Errorf("server: %w", err))
	}
	faults = append(faults, c.validateTemplates())
	if c.OIDCIssuer != "" {
		faults = append(faults, c.validateOIDC())
	}
	return errors.Join(faults...)
}

// validateTemplates reads the addresses of pages elsewhere.
func (c *Config) validateTemplates() error {
	var faults [2]error
	if c.elsewhere.Dashboard, faults[0] = page.ParseTemplate(c.DashboardURL); faults[0] != nil {
		faults[0] = fmt.Errorf("dashboard-url: %w", faults[0])
	}
	if c.elsewhere.Logs, faults[1] = page.ParseTemplate(c.LogsURL); faults[1] != nil {
		faults[1] = fmt.Errorf("logs-url: %w", faults[1])
	}
	return errors.Join(faults[:]...)
}

// validateOIDC reads the secret of the client.
func (c *Config) validateOIDC() error {
	var faults []error
	for name, text := range map[string]string{"oidc-issuer": c.OIDCIssuer, "oidc-url": c.OIDCURL} {
		parsed, err := url.Parse(text)
		if err != nil || parsed.Host == "" || parsed.Scheme != "https" && !(parsed.Scheme == "http" && isLoopback(parsed.Hostname())) {
			faults = append(faults, fmt.Errorf("%s: %q: want a URL such as https://muster.example.org", name, text))
		}
	}
	if c.OIDCClientID == "" {
		faults = append(faults, errors.New("oidc-client-id: is missing; want the console's client at the provider"))
	}
	c.oidc = &web.OIDC{Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, Redirect: strings.TrimSuffix(c.OIDCURL, "/") + web.CallbackPath}
	c.oidc.Scopes = strings.FieldsFunc(c.OIDCScopes, func(r rune) bool { return r == ',' || r == ' ' })
	if c.OIDCSecretFile != "" {
		secret, err := os.ReadFile(c.OIDCSecretFile)
		if err != nil {
			faults = append(faults, fmt.Errorf("oidc-client-secret: %w", err))
		}
		c.oidc.ClientSecret = strings.TrimSpace(string(secret))
	}
	return errors.Join(faults...)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// connectionsOfEach is how many connections one address may have open.
func (c *Config) connectionsOfEach() int {
	if c.BehindTLS {
		return cmp.Or(c.ConnectionsPerAddress, mostConnections)
	}
	return cmp.Or(c.ConnectionsPerAddress, defaultConnections)
}

// Limits of connections. Package web bounds pages and streams itself, because streams may last
// for hours.
const (
	headerTimeout   = 5 * time.Second
	readTimeout     = 30 * time.Second
	idleTimeout     = 2 * time.Minute
	mostConnections = 4096
	// defaultConnections allows 16 users behind one address with all their live pages open.
	defaultConnections = 256
	stopTimeout        = 2 * time.Second
)

// Run serves browsers until ctx ends.
func Run(ctx context.Context, config *Config, runtime *service.Runtime) error {
	ready := runtime.Health.Await("listening")
	handler, err := web.New(web.Options{
		API: config.api, Actions: config.Actions, Secure: config.tls != nil || config.BehindTLS, Proxied: config.BehindTLS, RackLabel: config.RackLabel, Elsewhere: config.elsewhere, OIDC: config.oidc,
		Logger: runtime.Logger, Now: time.Now,
	})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", config.Address)
	if err != nil {
		return fmt.Errorf("listen for browsers on %s: %w", config.Address, err)
	}
	address := listener.Addr()
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    service.HTTPErrorLog(runtime.Logger),
		TLSConfig:   config.tls,
	}
	listener = netutil.LimitListener(inflight.Listen(listener, config.connectionsOfEach()), mostConnections)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		serve := server.Serve
		if config.tls != nil {
			serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
		}
		if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve browsers on %s: %w", address, err)
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
	runtime.Logger.Info("serving browsers", zap.Stringer("address", address), zap.Bool("actions", config.Actions))
	if config.Listening != nil {
		config.Listening(address)
	}
	ready()
	return group.Wait()
}
