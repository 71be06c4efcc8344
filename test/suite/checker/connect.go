package checker

import (
	"errors"
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
	// tryMost bounds a try to connect to a server that is slow on a busy machine, and
	// connectMost all tries.
	tryMost, connectMost = 10 * time.Second, 30 * time.Second
)

// Connect opens a connection to NATS with no code of Muster's. It tries again while servers
// cannot be reached. The caller closes the connection.
func Connect(l Login) (*nats.Conn, error) {
	options, err := l.options()
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(connectMost); ; {
		conn, err := nats.Connect(l.URL, options...)
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, nats.ErrAuthorization) || !time.Now().Add(reconnectEvery).Before(deadline) {
			return nil, fmt.Errorf("connect the checker to NATS at %q: %w", l.URL, err)
		}
		<-time.After(reconnectEvery)
	}
}

// options returns an error for a file that cannot be used: no other try would help.
func (l Login) options() ([]nats.Option, error) {
	options := []nats.Option{
		nats.Name("checker"), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectEvery), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsMissed), nats.Timeout(tryMost),
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
	var scratch nats.Options
	for _, option := range options {
		if err := option(&scratch); err != nil {
			return nil, fmt.Errorf("prepare the checker's connection to NATS at %q: %w", l.URL, err)
		}
	}
	return options, nil
}
