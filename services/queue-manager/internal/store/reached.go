package store

import (
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The epoch does not show that a database was restored to an older state within a term:
// the epoch may be older than that state. A commit is then refused by its version. What a
// relay writes outside of commits is refused by reached. A watermark that moved there would
// hide from the next term what was published in the lost time.

// reach notes that the database has a commit.
func (s *Store) reach(version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached = max(s.reached, version)
}

// hasReached is the last commit that the database is known to have had in this term.
func (s *Store) hasReached() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached
}

// forget forgets what holds for a term.
func (s *Store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shapes, s.reached = shapeMemory{}, 0
}

// lastVersion is the last commit of the database.
const lastVersion = `(SELECT max(version) FROM commits)`

// queueReached finds out whether the database was restored to a state older than the commit.
// The statements of the transaction that must not be done there ask themselves.
func queueReached(batch *pgx.Batch, reached int64) {
	batch.Queue(`SELECT ` + lastVersion).QueryRow(func(row pgx.Row) error {
		var last int64
		if err := row.Scan(&last); err != nil {
			return err
		}
		return checkReached(last, reached)
	})
}

func checkReached(last, reached int64) error {
	if last < reached {
		return fmt.Errorf("it is at version %d, and has been at %d: %w", last, reached, ErrCommitMissing)
	}
	return nil
}
