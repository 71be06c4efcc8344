package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// fenced is the SQLSTATE with which the database refuses a replaced leader.
const fenced = "MUFEN"

// transact executes the statements in one transaction of the leader of the
// epoch, in one round trip: what is pipelined up to one sync is a transaction
// (PostgreSQL, "Pipelining" in the frontend protocol).
func (s *Store) transact(ctx context.Context, epoch int64, fill func(*pgx.Batch)) error {
	batch := newBatch(epoch)
	fill(batch)
	return s.send(ctx, batch)
}

// newBatch begins a transaction of the leader. Plans are made once and kept, when a
// table may still be so small that it is read whole for each statement; what is
// written is always found by an index.
func newBatch(epoch int64) *pgx.Batch {
	batch := &pgx.Batch{}
	batch.Queue(`SELECT assert_leader($1), set_config('enable_seqscan', 'off', true)`, epoch)
	return batch
}

func (s *Store) send(ctx context.Context, batch *pgx.Batch) error {
	err := execute(s.pool.SendBatch(ctx, batch), batch)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == fenced {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return err
}

// shownOfStatement is how much of a statement an error shows, in bytes.
const shownOfStatement = 60

// execute reads the result of each statement, and names the one that failed: a statement that
// takes too long has an error that does not.
func execute(results pgx.BatchResults, batch *pgx.Batch) error {
	for i, query := range batch.QueuedQueries {
		var err error
		if query.Fn != nil {
			err = query.Fn(results)
		} else {
			_, err = results.Exec()
		}
		if err != nil {
			results.Close() // it has the same error
			if i == 0 {     // or the whole batch was not sent
				return err
			}
			statement := strings.Join(strings.Fields(query.SQL), " ")
			return fmt.Errorf("statement %q: %w", statement[:min(len(statement), shownOfStatement)], err)
		}
	}
	return results.Close()
}
