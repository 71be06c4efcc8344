package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/httpdoor"
)

// HTTPConfig is the settings of the HTTP door.
type HTTPConfig struct {
	// Address is host:port to listen on.
	Address string
	// TokensFile lists who may come in by a bearer token.
	TokensFile string
	// CertificateFile and KeyFile turn TLS on; ClientCAFile lets in whoever has a
	// certificate of this authority.
	CertificateFile, KeyFile, ClientCAFile string
	// Listening is called with the address once it is bound; nil for nobody.
	Listening func(net.Addr)

	tokens httpdoor.Tokens
	tls    *tls.Config
}

func (c *HTTPConfig) register(flags *flag.FlagSet) {
	flags.StringVar(&c.Address, "http-address", "", "`host:port` of the HTTP door; without it there is none")
	flags.StringVar(&c.TokensFile, "http-tokens", "", "YAML `file` with names and hashes of bearer tokens of the HTTP door")
	flags.StringVar(&c.CertificateFile, "http-certificate", "", "PEM `file` with the certificate of the HTTP door")
	flags.StringVar(&c.KeyFile, "http-key", "", "PEM `file` with the key of that certificate")
	flags.StringVar(&c.ClientCAFile, "http-client-ca", "", "PEM `file` with the authority whose client certificates are let in by the HTTP door; the common name is who it is")
}

// validate reads the files that the settings name.
func (c *HTTPConfig) validate() error {
	if c.Address == "" {
		if c.TokensFile != "" || c.CertificateFile != "" || c.KeyFile != "" || c.ClientCAFile != "" {
			return errors.New("http-address: is missing, and other settings of the HTTP door are there")
		}
		return nil
	}
	var faults []error
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil {
		faults = append(faults, fmt.Errorf("http-address: %q: want host:port: %w", c.Address, err))
	}
	if c.TokensFile == "" && c.ClientCAFile == "" {
		faults = append(faults, errors.New("http-tokens: is missing, and so is http-client-ca: nobody could come in"))
	}
	if c.TokensFile != "" {
		content, err := os.ReadFile(c.TokensFile)
		if err == nil {
			c.tokens, err = httpdoor.ReadTokens(content)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("http-tokens: %s: %w", c.TokensFile, err))
		}
	}
	faults = append(faults, c.validateTLS(host))
	return errors.Join(faults...)
}

func (c *HTTPConfig) validateTLS(host string) error {
	switch {
	case (c.CertificateFile == "") != (c.KeyFile == ""):
		return errors.New("http-certificate and http-key: want both or none")
	case c.CertificateFile == "" && c.ClientCAFile != "":
		return errors.New("http-client-ca: needs http-certificate and http-key: without TLS nobody shows a certificate")
	case c.CertificateFile == "":
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("http-address: %q is not only for this machine, and tokens must not be sent in the clear: set http-certificate and http-key, or listen on 127.0.0.1", c.Address)
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

// Times that bound a connection; what an answer may take is the door's, for some
// go on for hours.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
)

// serveHTTP binds the address, so that it is known whether that can be, and serves
// until ctx ends.
func serveHTTP(ctx context.Context, group *errgroup.Group, config *Config, b *bus.Bus, spending *budget.Budget, runtime *service.Runtime) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", config.HTTP.Address)
	if err != nil {
		return fmt.Errorf("HTTP door: %w", err)
	}
	address := listener.Addr()
	if config.HTTP.tls != nil {
		listener = tls.NewListener(listener, config.HTTP.tls)
	}
	server := &http.Server{
		Handler: httpdoor.New(httpdoor.Options{
			Bus: b, Queries: query.NewClient(b.Conn()), Operator: config.Operator, Identify: config.HTTP.tokens.Identify, Budget: spending, Logger: runtime.Logger,
		}),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    zap.NewStdLog(runtime.Logger),
	}
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("HTTP door: %w", err)
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
	runtime.Logger.Info("HTTP door is open", zap.Stringer("address", address))
	if config.HTTP.Listening != nil {
		config.HTTP.Listening(address)
	}
	return nil
}
