package localstack

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

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
