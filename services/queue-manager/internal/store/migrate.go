package store

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"muster.dev/muster/migrations"
)

// Migrate applies the migrations that are missing and returns their names. Any
// number of processes may do it at once; one does the work. The role must own
// the tables, which queue-manager's own role does not.
func Migrate(ctx context.Context, url string) (applied []string, err error) {
	return migrateTo(ctx, url, math.MaxInt64)
}

// migrateTo applies the migrations up to a version.
func migrateTo(ctx context.Context, url string, version int64) (applied []string, err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("parse database URL: %w", err) // pgx leaves the password out
	}
	(&lineages{latest: map[string]int64{}}).require(&config.Config)
	db := stdlib.OpenDB(*config)
	defer func() { _ = db.Close() }()
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, fmt.Errorf("prepare the migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files, goose.WithSessionLocker(locker))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	results, err := provider.UpTo(ctx, version)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	for _, result := range results {
		applied = append(applied, result.Source.Path)
	}
	return applied, nil
}
