package bus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
)

// TLS names the files of an encrypted connection. All are read again at each
// connection, so that certificates can be replaced while a service runs.
type TLS struct {
	// CA holds the authorities that may have signed the server's certificate; empty
	// for those of the system.
	CA string
	// Certificate and Key are shown to a server that asks who connects.
	Certificate, Key string
}

// Register declares the flags.
func (t *TLS) Register(flags *flag.FlagSet) {
	flags.StringVar(&t.CA, "nats-ca", "", "`file` with the certificate authorities of NATS servers; with it the connection must be encrypted")
	flags.StringVar(&t.Certificate, "nats-certificate", "", "`file` with the certificate that is shown to NATS servers")
	flags.StringVar(&t.Key, "nats-key", "", "`file` with the key of nats-certificate")
}

// Validate reads the files and reports all faults at once.
func (t TLS) Validate() error {
	var faults []error
	if t.CA != "" {
		content, err := os.ReadFile(t.CA)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("nats-ca: %w", err))
		case !x509.NewCertPool().AppendCertsFromPEM(content):
			faults = append(faults, fmt.Errorf("nats-ca: %q holds no certificate in PEM", t.CA))
		}
	}
	switch {
	case t.Certificate == "" && t.Key == "":
	case t.Certificate == "":
		faults = append(faults, errors.New("nats-certificate: is missing; nats-key is of no use without it"))
	case t.Key == "":
		faults = append(faults, errors.New("nats-key: is missing; nats-certificate is of no use without it"))
	default:
		if _, err := tls.LoadX509KeyPair(t.Certificate, t.Key); err != nil {
			faults = append(faults, fmt.Errorf("nats-certificate: %q with key %q: %w", t.Certificate, t.Key, err))
		}
	}
	return errors.Join(faults...)
}

func (t TLS) options() []nats.Option {
	var options []nats.Option
	if t.CA != "" {
		options = append(options, nats.RootCAs(t.CA))
	}
	if t.Certificate != "" {
		options = append(options, nats.ClientCert(t.Certificate, t.Key))
	}
	return options
}
