package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Login creates a login that is a member of the role and of no other, on the server of an
// administrator's URL, and returns that URL for the login. Remove ends the login's
// sessions and drops it, which a throwaway server does not need.
func Login(ctx context.Context, admin, role string) (login string, remove func(context.Context) error, err error) {
	parsed, err := url.Parse(admin)
	if err != nil {
		return "", nil, fmt.Errorf("make a login of role %q: the database URL cannot be read", role) // without the cause, which may show the password
	}
	// Letters and digits need no quotes.
	name, password := "login_"+strings.ToLower(rand.Text()), rand.Text()
	statement := fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s' IN ROLE %s", name, password, pgx.Identifier{role}.Sanitize())
	if err := execute(ctx, admin, statement); err != nil {
		return "", nil, fmt.Errorf("make a login of role %q: %w", role, err)
	}
	parsed.User = url.UserPassword(name, password)
	return parsed.String(), func(ctx context.Context) error {
		// A session that ends has its temporary tables a moment longer than its client.
		ended := fmt.Sprintf("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '%s'", name)
		for _, statement := range []string{ended, "DROP ROLE " + name} {
			if err := execute(ctx, admin, statement); err != nil {
				return fmt.Errorf("drop login %q: %w", name, err)
			}
		}
		return nil
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
