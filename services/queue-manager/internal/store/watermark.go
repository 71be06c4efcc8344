package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

func queueWatermark(batch *pgx.Batch, stream string, watermark Watermark, reached int64) {
	batch.Queue(`INSERT INTO streams (name, created, last) SELECT $1::text, $2::timestamptz, $3::bigint WHERE `+lastVersion+` >= $4
		ON CONFLICT (name) DO UPDATE SET created = excluded.created, last = excluded.last`, stream, watermark.Created, int64(watermark.Last), reached)
}

// Watermark is what a stream is known to have had.
type Watermark struct {
	Created time.Time
	Last    uint64
}

// Watermarks returns the watermarks of all streams.
func (s *Store) Watermarks(ctx context.Context) (map[string]Watermark, error) {
	rows, err := s.pool.Query(ctx, `SELECT name, created, last FROM streams`)
	if err != nil {
		return nil, fmt.Errorf("read watermarks of streams: %w", err)
	}
	watermarks := map[string]Watermark{}
	var name string
	var created time.Time
	var last int64
	_, err = pgx.ForEachRow(rows, []any{&name, &created, &last}, func() error {
		watermarks[name] = Watermark{created, uint64(last)}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read watermarks of streams: %w", err)
	}
	return watermarks, nil
}

// SetWatermark stores what a stream has had. The error wraps ErrFenced and ErrCommitMissing as
// that of Sent.
func (s *Store) SetWatermark(ctx context.Context, epoch int64, stream string, watermark Watermark) error {
	reached := s.hasReached()
	err := s.transact(ctx, epoch, func(batch *pgx.Batch) {
		batch.Queue(`SELECT set_config('synchronous_commit', 'off', true)`)
		queueReached(batch, reached)
		queueWatermark(batch, stream, watermark, reached)
	})
	if err != nil {
		return fmt.Errorf("remember what stream %s has had: %w", stream, err)
	}
	return nil
}
