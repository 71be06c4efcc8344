package bus

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"go.uber.org/zap"
)

// maxReplicas is the largest number of servers that keep a stream.
const maxReplicas = 5

// Settings are how a service reaches NATS, the same for all services.
type Settings struct {
	URL string
	// Credentials is a file.
	Credentials string
	TLS         TLS
	// Replicas is on how many servers of a NATS cluster each stream is kept; 0 leaves
	// it as it is, and makes a new one on one server.
	Replicas int
}

// Register declares a flag for each setting.
func (s *Settings) Register(flags *flag.FlagSet) {
	flags.StringVar(&s.URL, "nats-url", "nats://127.0.0.1:4222", "`URL` of the NATS server")
	flags.StringVar(&s.Credentials, "nats-credentials", "", "`file` with NATS credentials: .creds, or the seed of an nkey")
	s.TLS.Register(flags)
	flags.IntVar(&s.Replicas, "nats-replicas", 0, "how many servers of a NATS cluster keep each stream that this service creates, the same for all services; 0 leaves it as it is")
}

// Validate reports all faults at once.
func (s Settings) Validate() error {
	var faults []error
	if s.URL == "" {
		faults = append(faults, errors.New("nats-url: is missing"))
	}
	faults = append(faults, s.TLS.Validate())
	if s.Replicas < 0 || s.Replicas > maxReplicas {
		faults = append(faults, fmt.Errorf("nats-replicas: %d: want 0 to %d", s.Replicas, maxReplicas))
	}
	return errors.Join(faults...)
}

// Connect connects the service of that name, and waits for a server as long as it
// takes.
func (s Settings) Connect(ctx context.Context, name string, logger *zap.Logger) (*Bus, error) {
	return Connect(ctx, Options{
		URL: s.URL, Name: name, Logger: logger, CredentialsFile: s.Credentials, TLS: s.TLS, Replicas: s.Replicas, Patient: true,
	})
}
