package localpg

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Login makes a login that is a member of the role and nothing else, in the
// server of an administrator's URL, and returns the same URL for it. Remove drops
// it again, which a server that is thrown away does not need.
func Login(ctx context.Context, admin, role string) (login string, remove func(context.Context) error, err error) {
	parsed, err := url.Parse(admin)
	if err != nil {
		return "", nil, fmt.Errorf("make a login of role %q: the database URL cannot be read", role) // it has a password
	}
	// Made of letters and digits, so they need no quotes.
	name, password := "login_"+strings.ToLower(rand.Text()), rand.Text()
	statement := fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s' IN ROLE %s", name, password, pgx.Identifier{role}.Sanitize())
	if err := execute(ctx, admin, statement); err != nil {
		return "", nil, fmt.Errorf("make a login of role %q: %w", role, err)
	}
	parsed.User = url.UserPassword(name, password)
	return parsed.String(), func(ctx context.Context) error {
		if err := execute(ctx, admin, "DROP ROLE "+name); err != nil {
			return fmt.Errorf("drop login %q: %w", name, err)
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
