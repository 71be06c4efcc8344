package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Retention is how long what is finished is kept.
type Retention struct {
	History, Archive, Decisions time.Duration
}

const (
	// partitionsAhead is for how many days partitions are made, so that nothing
	// fails while they cannot be.
	partitionsAhead = 7
	// commitsKept is how far a standby may be behind before it loads the state again.
	commitsKept = 50_000
)

// KeepPartitions makes the partitions of the next days and drops old ones.
func (s *Store) KeepPartitions(ctx context.Context, epoch int64, keep Retention) error {
	for _, table := range []struct {
		name string
		keep time.Duration
	}{{"history", keep.History}, {"archive", keep.Archive}, {"decisions", keep.Decisions}, {"bases", keep.Decisions}} {
		err := s.transact(ctx, epoch, func(batch *pgx.Batch) {
			batch.Queue(`SELECT keep_partitions_of($1, $2, $3, $4::interval)`, epoch, table.name, partitionsAhead, table.keep)
		})
		if err != nil {
			return fmt.Errorf("keep partitions of %s: %w", table.name, err)
		}
	}
	return nil
}

// Tidy removes what is not needed any more. It must not run beside a Transaction.
func (s *Store) Tidy(ctx context.Context, epoch int64) error {
	s.forgetShapes() // what is removed now may be needed in the next commit
	for _, statement := range []string{
		fmt.Sprintf(`DELETE FROM commits WHERE version < (SELECT max(version) FROM commits) - %d`, commitsKept),
		`DELETE FROM shapes s WHERE NOT EXISTS (SELECT FROM workloads w WHERE w.shape = s.id)`,
		`DELETE FROM quarantine WHERE NOT ` + isKept,
	} {
		if err := s.transact(ctx, epoch, func(batch *pgx.Batch) { batch.Queue(statement) }); err != nil {
			return fmt.Errorf("tidy the ledger: %w", err)
		}
	}
	return nil
}
