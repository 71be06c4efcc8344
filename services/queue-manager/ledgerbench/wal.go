package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// reportWAL prints how much Postgres adds to its write-ahead log for each gang that is
// accepted and admitted meanwhile. A standby receives as much.
func reportWAL(ctx context.Context, url string, gangs int, admit func() error) error {
	before, err := walPosition(ctx, url)
	if err != nil {
		return err
	}
	if err := admit(); err != nil {
		return err
	}
	after, err := walPosition(ctx, url)
	if err != nil {
		return err
	}
	fmt.Printf("        write-ahead log of a gang, accepted and admitted: %.1f kB\n", float64(after-before)/1000/float64(gangs))
	return nil
}

// walPosition returns how many bytes of write-ahead log there have been.
func walPosition(ctx context.Context, url string) (bytes int64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := conn.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint`).Scan(&bytes); err != nil {
		return 0, fmt.Errorf("read the position of the write-ahead log: %w", err)
	}
	return bytes, nil
}
