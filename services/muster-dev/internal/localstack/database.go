package localstack

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/message/event"
)

// dropTimeout bounds the removal of a database at the end.
const dropTimeout = 10 * time.Second

// freshDatabase makes an empty database beside the one of the URL, and returns
// its URL and how to drop it.
func freshDatabase(ctx context.Context, databaseURL string) (fresh string, drop func(), err error) {
	parsed, err := url.Parse(databaseURL)
	if err != nil || parsed.Scheme == "" || parsed.Host == "" && parsed.Query().Get("host") == "" {
		return "", nil, fmt.Errorf("the database URL is not of the form postgres://user:password@host/database")
	}
	name := "muster_" + strings.ReplaceAll(event.NewID(), "-", "")
	if err := execute(ctx, databaseURL, "CREATE DATABASE "+name); err != nil {
		return "", nil, fmt.Errorf("make a fresh database: %w", err)
	}
	parsed.Path = "/" + name
	return parsed.String(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
		defer cancel()
		_ = execute(ctx, databaseURL, "DROP DATABASE "+name+" WITH (FORCE)") // a server that is gone has no database to drop
	}, nil
}

func execute(ctx context.Context, databaseURL, statement string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

func (s *Stack) startDatabase(ctx context.Context) error {
	if url := s.options.DatabaseURL; url != "" {
		s.databaseURL = url
		if !s.options.FreshDatabase {
			s.options.Progress("using the Postgres database of --database-url")
			return nil
		}
		fresh, drop, err := freshDatabase(ctx, url)
		if err != nil {
			return err
		}
		s.databaseURL = fresh
		s.atStop(drop)
		s.options.Progress("using a fresh database in the Postgres of --database-url")
		return nil
	}
	started := time.Now()
	server, err := postgres.Start(ctx, postgres.Options{Dir: s.options.Dir})
	if err != nil {
		return fmt.Errorf("%w; or name a server with --database-url", err)
	}
	s.atStop(server.Stop)
	go s.watch("Postgres", server.Exited())
	if s.databaseURL, err = server.CreateDatabase(ctx, "muster", ""); err != nil {
		return err
	}
	s.options.Progress("Postgres is ready (%.1f s)", time.Since(started).Seconds())
	return nil
}
