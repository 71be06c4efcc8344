package stack

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"

	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/local/postgres"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// Restore goes on as after the loss of everything but a backup of the database:
// all services stop, NATS comes back with nothing, and the services start on the
// given database, which its owner's URL names.
func (s *Stack) Restore(ctx context.Context, databaseURL string) error {
	for _, name := range Services() {
		if err := s.StopService(name); err != nil {
			return err
		}
	}
	if err := s.loseNATS(); err != nil {
		return err
	}
	old := s.dropLogin
	login, drop, err := postgres.Login(ctx, databaseURL, queuemanager.DatabaseRole)
	if err != nil {
		return err
	}
	s.options.DatabaseURL, s.dropLogin = login, drop
	if err := old(ctx); err != nil {
		return err
	}
	for _, name := range Services() {
		if err := s.StartService(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// StopNATS takes the NATS server away from all services.
func (s *Stack) StopNATS() { s.server.Stop() }

// StartNATS brings it back, with what it has stored.
func (s *Stack) StartNATS() error { return s.startNATS("nats") }

// loseNATS starts an empty server in the place of the present one.
func (s *Stack) loseNATS() error {
	s.server.Stop()
	return s.startNATS("nats-after-the-loss")
}

// startNATS starts a server at the address of the one that has stopped.
func (s *Stack) startNATS(dir string) error {
	parsed, err := url.Parse(s.NATSURL)
	if err != nil {
		return fmt.Errorf("read the URL of NATS: %w", err)
	}
	port, err := strconv.Atoi(parsed.Port())
	if err != nil {
		return fmt.Errorf("read the URL of NATS: %w", err)
	}
	s.server, err = natsserver.Start(filepath.Join(s.options.Dir, dir), port)
	return err
}
