package dev

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/event"
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

// serviceLogin makes a login for queue-manager in the server of the URL, which has
// been migrated: a member of its role, that owns nothing.
func serviceLogin(ctx context.Context, ownerURL string) (string, error) {
	parsed, err := url.Parse(ownerURL)
	if err != nil {
		return "", fmt.Errorf("read the URL of our own Postgres: %w", err)
	}
	const name = "queue_manager"
	password := rand.Text() // of letters and digits
	if err := execute(ctx, ownerURL, "CREATE ROLE "+name+" LOGIN PASSWORD '"+password+"' IN ROLE muster_queue_manager"); err != nil {
		return "", fmt.Errorf("make a login for queue-manager: %w", err)
	}
	parsed.User = url.UserPassword(name, password)
	return parsed.String(), nil
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
