package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service/logging"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/localaddress"
	"muster.dev/muster/services/internal/client/overhttp"
)

// Environment variables that stand for flags.
const (
	natsURLVariable         = "MUSTER_NATS_URL"
	natsCredentialsVariable = "MUSTER_NATS_CREDENTIALS"
	natsCAVariable          = "MUSTER_NATS_CA"
	natsCertificateVariable = "MUSTER_NATS_CERTIFICATE"
	natsKeyVariable         = "MUSTER_NATS_KEY"
	serverVariable          = "MUSTER_SERVER"
	tokenVariable           = "MUSTER_TOKEN"
	serverCAVariable        = "MUSTER_SERVER_CA"
)

// connectTimeout is how long a person is kept waiting for NATS.
const connectTimeout = 2 * time.Second

// requestTimeout bounds one query.
const requestTimeout = 10 * time.Second

// server is where Muster is.
type server struct {
	natsURL, credentials string
	tls                  bus.TLS
	// refused ends the command with an error that wraps bus.ErrRefused: what NATS
	// refuses gets no other answer.
	refused func(error)
	// web is the HTTP API; it is asked instead of NATS when its URL is set.
	web       overhttp.Settings
	tokenFile string
}

func (s *server) addFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.natsURL, "nats-url", "", "`URL` of NATS (default: $"+natsURLVariable+", or that of the running muster-dev)")
	flags.StringVar(&s.credentials, "nats-credentials", "", "`file` with NATS credentials: .creds, or the seed of an nkey (default: $"+natsCredentialsVariable+")")
	flags.StringVar(&s.tls.CA, "nats-ca", "", "`file` with the certificate authorities of NATS (default: $"+natsCAVariable+")")
	flags.StringVar(&s.tls.Certificate, "nats-certificate", "", "`file` with the client certificate for NATS (default: $"+natsCertificateVariable+")")
	flags.StringVar(&s.tls.Key, "nats-key", "", "`file` with the key of that certificate (default: $"+natsKeyVariable+")")
}

func (s *server) addWebFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.web.URL, "server", "", "`URL` of the HTTP API, to ask it instead of NATS (default: $"+serverVariable+" unless --nats-url is given)")
	flags.StringVar(&s.tokenFile, "token-file", "", "`file` with the bearer token for the HTTP API (default: the token in $"+tokenVariable+")")
	flags.StringVar(&s.web.CA, "server-ca", "", "`file` with the certificate authorities of the HTTP API (default: $"+serverCAVariable+", else the system's)")
	flags.StringVar(&s.web.Certificate, "server-certificate", "", "`file` with a client certificate for the HTTP API")
	flags.StringVar(&s.web.Key, "server-key", "", "`file` with the key of that certificate")
}

// overHTTP returns a client of the HTTP API; nil when NATS is to be asked.
func (s *server) overHTTP() (*overhttp.Client, error) {
	settings := s.web
	if settings.URL == "" && s.natsURL == "" {
		settings.URL = os.Getenv(serverVariable)
	}
	switch {
	case settings.URL == "":
		return nil, nil
	case s.natsURL != "":
		return nil, exit.Usagef("--server and --nats-url are both set; want one of them")
	}
	settings.Token = os.Getenv(tokenVariable)
	if s.tokenFile != "" {
		content, err := os.ReadFile(s.tokenFile)
		if err != nil {
			return nil, exit.Usagef("read the token: %w", err)
		}
		settings.Token = strings.TrimSpace(string(content))
	}
	settings.CA = cmp.Or(settings.CA, os.Getenv(serverCAVariable))
	client, err := overhttp.New(settings)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	return client, nil
}

// url is the first that is given: flag, environment, running muster-dev.
func (s *server) url() (string, error) {
	if s.natsURL != "" {
		return s.natsURL, nil
	}
	if url := os.Getenv(natsURLVariable); url != "" {
		return url, nil
	}
	file, err := localaddress.File()
	if err != nil {
		return "", err
	}
	stack, err := localaddress.Read(file)
	if err != nil {
		return "", fmt.Errorf("%w: neither --nats-url nor %s is set, and %w", exit.ErrUnreachable, natsURLVariable, err)
	}
	return stack.NATSURL, nil
}

// connect returns a connection, which the caller closes.
func (s *server) connect(ctx context.Context) (*bus.Bus, error) {
	if web, err := s.overHTTP(); err != nil {
		return nil, err
	} else if web != nil {
		return nil, exit.Usagef("this command, or a flag of it, is not served over HTTP: use --nats-url instead of --server")
	}
	url, err := s.url()
	if err != nil {
		return nil, err
	}
	logger, err := logging.New("warn", "console")
	if err != nil {
		return nil, err
	}
	tls := bus.TLS{
		CA:          cmp.Or(s.tls.CA, os.Getenv(natsCAVariable)),
		Certificate: cmp.Or(s.tls.Certificate, os.Getenv(natsCertificateVariable)),
		Key:         cmp.Or(s.tls.Key, os.Getenv(natsKeyVariable)),
	}
	b, err := bus.Connect(ctx, bus.Options{
		URL: url, Name: "muster-cli", Logger: logger, TLS: tls,
		CredentialsFile: cmp.Or(s.credentials, os.Getenv(natsCredentialsVariable)), ConnectTimeout: connectTimeout,
		Refused: s.refused,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", exit.ErrUnreachable, err)
	}
	return b, nil
}

// ask runs a function with a query client and a bounded time.
func (s *server) ask(ctx context.Context, with func(context.Context, *query.Client) error) error {
	if web, err := s.overHTTP(); err != nil {
		return err
	} else if web != nil {
		return answered(ctx, func(ctx context.Context) error { return with(ctx, query.NewClientOver(web).Patient()) })
	}
	b, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	return answered(ctx, func(ctx context.Context) error { return with(ctx, query.NewClient(b.Conn()).Patient()) })
}

// answered bounds a question: no answer in time means that no server is there.
func answered(ctx context.Context, question func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := question(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: no answer within %s: %w", exit.ErrUnreachable, requestTimeout, err)
	}
	return err
}
