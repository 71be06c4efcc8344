package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// leadershipLock is the key of the advisory lock that the leader's session
// holds: who waits for it is a standby.
const leadershipLock = 0x6d7573746572

// The leader speaks every beat, and takes beatTimeout without an answer for the
// end of its term.
const (
	beat        = 500 * time.Millisecond
	beatTimeout = 2 * time.Second
)

// waitSlice is how long a standby waits in one statement: Postgres may be cut
// off from it, and then no answer ever comes.
const (
	waitSlice   = 5 * time.Second
	waitTimeout = waitSlice + 2*time.Second
)

// lockNotAvailable is Postgres' SQLSTATE for a lock that was not had in time.
const lockNotAvailable = "55P03"

// Leadership is a term as leader: it ends when its connection ends.
type Leadership struct {
	mu       sync.Mutex // one statement at a time on conn
	conn     *pgx.Conn
	lineages *lineages
	Epoch    int64
	Before   int64 // the epoch that this one has followed
}

// Lead waits until no other queue-manager holds the lock and takes a new epoch;
// it calls standby if it has to wait. The lock only spares useless attempts;
// what fences an old leader is the epoch.
//
// A leader that is paused or cut off cannot report it: Postgres ends its session,
// and with it the lock, when it has been silent for the given time.
func (s *Store) Lead(ctx context.Context, holder string, silence time.Duration, standby func()) (*Leadership, error) {
	config := s.pool.Config().ConnConfig.Copy()
	config.RuntimeParams["statement_timeout"] = "0"
	config.RuntimeParams["lock_timeout"] = fmt.Sprint(waitSlice.Milliseconds())
	config.RuntimeParams["idle_session_timeout"] = fmt.Sprint(silence.Milliseconds())
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to wait for leadership: %w", err)
	}
	term := &Leadership{conn: conn, lineages: s.lineages}
	if err = term.lock(ctx, standby); err == nil {
		err = s.takeEpoch(ctx, term, holder)
		s.forget() // a database restored to an older state may repeat an epoch
	}
	if err != nil {
		term.End()
		return nil, fmt.Errorf("acquire leadership: %w", err)
	}
	return term, nil
}

// unblockEach is how often it is looked whether the new epoch is held off.
const unblockEach = 250 * time.Millisecond

// takeEpoch begins a new epoch. A transaction of the old leader that goes on
// holds it off, and is over soon; one whose client stands still is ended.
func (s *Store) takeEpoch(ctx context.Context, term *Leadership, holder string) error {
	taking, done := context.WithCancel(ctx)
	defer done()
	go func() {
		ticker := time.NewTicker(unblockEach)
		defer ticker.Stop()
		for looks := 0; ; looks++ {
			select {
			case <-taking.Done():
				return
			case <-ticker.C:
			}
			if looks > 0 { // it had its time
				_, _ = s.pool.Exec(taking, `SELECT pg_terminate_backend(pid) FROM unnest(pg_blocking_pids($1)) AS pid`,
					int32(term.conn.PgConn().PID()))
			}
		}
	}()
	least, step := LeastEpochAndStep(time.Now(), 0, rand.Uint64())
	// Only who holds the lock changes the epoch, so what is read of it here is the last.
	return term.conn.QueryRow(ctx, `UPDATE leader SET epoch = greatest(leader.epoch, $2) + $3, holder = $1, since = now()
		FROM (SELECT epoch FROM leader) AS before RETURNING leader.epoch, before.epoch`,
		holder, least, step).Scan(&term.Epoch, &term.Before)
}

// epochSteps bounds the random part of an epoch.
const epochSteps = 1000

// LeastEpochAndStep returns how an epoch follows the stored one: it is the larger of that
// and least, plus step. A database restored to an older state has forgotten epochs, and the
// names of messages that were made of them; so an epoch is a time in microseconds,
// which is larger than what is forgotten, with a random part, for clocks that were
// set back. known is the largest epoch that was seen elsewhere. Epochs stay below
// 2^53, which every reader of JSON can hold.
func LeastEpochAndStep(now time.Time, known int64, random uint64) (least, step int64) {
	return max(now.UnixMicro(), known), 1 + int64(random%epochSteps)
}

// Raise acquires another epoch, larger than the given one, which was seen elsewhere:
// the database has forgotten it.
func (s *Store) Raise(ctx context.Context, term *Leadership, known int64) error {
	least, step := LeastEpochAndStep(time.Now(), known, rand.Uint64())
	var raised int64
	term.mu.Lock()
	defer term.mu.Unlock()
	// In the session that holds the lock: the database lets no other change the epoch.
	err := term.conn.QueryRow(ctx, `UPDATE leader SET epoch = greatest(epoch, $2) + $3, since = now() WHERE epoch = $1 RETURNING epoch`,
		term.Epoch, least, step).Scan(&raised)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("take a larger epoch than %d: %w", known, ErrFenced)
	}
	if err != nil {
		return fmt.Errorf("take a larger epoch than %d: %w", known, err)
	}
	term.Before, term.Epoch = term.Epoch, raised
	return nil
}

func (l *Leadership) lock(ctx context.Context, standby func()) error {
	var free bool
	err := l.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, leadershipLock).Scan(&free)
	if err != nil || free {
		return err
	}
	standby()
	for {
		slice, cancel := context.WithTimeout(ctx, waitTimeout)
		_, err := l.conn.Exec(slice, `SELECT pg_advisory_lock($1)`, leadershipLock)
		cancel()
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != lockNotAvailable {
			return err
		}
	}
}

// Keep holds the leadership until ctx ends or the session is lost, and returns
// why; ErrOldPrimary when its server is found to have been replaced. Without it
// Postgres ends the session.
func (l *Leadership) Keep(ctx context.Context) error {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		answer, cancel := context.WithTimeout(ctx, beatTimeout)
		l.mu.Lock()
		err := l.conn.Ping(answer)
		l.mu.Unlock()
		cancel()
		if err != nil {
			return fmt.Errorf("leadership of epoch %d: the session that holds it is lost: %w", l.Epoch, err)
		}
		if err := l.Check(); err != nil {
			return err
		}
	}
}

// Check returns ErrOldPrimary when the server of the session is known to have been
// replaced.
func (l *Leadership) Check() error {
	if err := l.lineages.check(l.Lineage()); err != nil {
		return fmt.Errorf("leadership of epoch %d: %w", l.Epoch, err)
	}
	return nil
}

// End releases the leadership.
func (l *Leadership) End() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = l.conn.Close(ctx) // the server frees the lock when it notices in any case
}
