package checker

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Login is how the checker reaches NATS. Empty fields are left out.
type Login struct {
	URL  string // of all servers, separated by commas
	Seed string // file with the seed of an nkey
	// CA, Certificate and Key are the files of an encrypted connection.
	CA, Certificate, Key string
}

const (
	reconnectEvery = 200 * time.Millisecond
	// pingEvery and pingsMissed bound the time until a server that is cut off is given up.
	pingEvery   = 3 * time.Second
	pingsMissed = 2
)

// Connect opens a connection to NATS with no code of Muster's. The caller closes it.
func Connect(l Login) (*nats.Conn, error) {
	options := []nats.Option{
		nats.Name("checker"), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectEvery), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsMissed),
	}
	if l.Seed != "" {
		key, err := nats.NkeyOptionFromSeed(l.Seed)
		if err != nil {
			return nil, fmt.Errorf("read the seed of an nkey from %q: %w", l.Seed, err)
		}
		options = append(options, key)
	}
	if l.CA != "" {
		options = append(options, nats.RootCAs(l.CA))
	}
	if l.Certificate != "" {
		options = append(options, nats.ClientCert(l.Certificate, l.Key))
	}
	conn, err := nats.Connect(l.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("connect the checker to NATS at %q: %w", l.URL, err)
	}
	return conn, nil
}
