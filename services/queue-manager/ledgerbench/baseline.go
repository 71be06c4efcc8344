package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	baselineCommits = 500
	baselineRows    = 200_000
)

// baseline is what this Postgres does at most for the same: a bare commit of one
// row, and rows by COPY.
func baseline(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `CREATE TABLE IF NOT EXISTS bare (n bigint PRIMARY KEY, t text)`); err != nil {
		return err
	}
	var times samples
	began := time.Now()
	for i := range baselineCommits {
		at := time.Now()
		if _, err := conn.Exec(ctx, `INSERT INTO bare VALUES ($1, 'x')`, i); err != nil {
			return err
		}
		times = append(times, time.Since(at))
	}
	fmt.Printf("  baseline: bare INSERT of one row  %8.0f commits/s   p50 %s p99 %s\n",
		baselineCommits/time.Since(began).Seconds(), times.quantile(0.5), times.quantile(0.99))
	began = time.Now()
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"bare"}, []string{"n", "t"}, pgx.CopyFromSlice(baselineRows, func(i int) ([]any, error) {
		return []any{int64(baselineCommits + i), "some two hundred bytes are what a row of a workload has, so let this one have as many, give or take"}, nil
	}))
	if err != nil {
		return err
	}
	fmt.Printf("  baseline: COPY, one index         %8.0f rows/s\n", baselineRows/time.Since(began).Seconds())
	_, err = conn.Exec(ctx, `DROP TABLE bare`)
	return err
}
