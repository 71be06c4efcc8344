package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestTermsComeSlowerWhileTheDatabaseRefuses: when a term ends again and again because
// the database refuses what it reads or writes, the pauses grow; what passes by waiting,
// and what has been found to blame, costs no more than a short one.
func TestTermsComeSlowerWhileTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	refusal := func(code string) error {
		return fmt.Errorf("term of epoch 1: load nodes: %w", &pgconn.PgError{Code: code, Message: "no"})
	}
	const short = retryTermAfter
	for name, c := range map[string]struct {
		err    error
		lasted time.Duration
		single int
		want   []time.Duration
	}{
		"a refused read":         {err: refusal("42501"), want: []time.Duration{short, 2 * short, 4 * short, 8 * short}},
		"a damaged table":        {err: refusal("XX001"), want: []time.Duration{short, 2 * short, 4 * short, 8 * short}},
		"a refused commit":       {err: &commitError{cause: refusal("42501")}, single: batchLimit, want: []time.Duration{short, 2 * short, 4 * short}},
		"a commit, blamed":       {err: &commitError{cause: refusal("42501"), blamed: true}, want: []time.Duration{short, short, short}},
		"a read, blamed":         {err: &refusedReadError{cause: refusal("XX001")}, want: []time.Duration{short, short, short}},
		"a shutdown":             {err: refusal("57P01"), want: []time.Duration{short, short, short}},
		"a lost connection":      {err: errors.New("EOF"), want: []time.Duration{short, short, short}},
		"a read in a long term":  {err: refusal("XX001"), lasted: time.Hour, want: []time.Duration{short, short, short}},
		"terms that were to end": {err: errReleased, want: []time.Duration{short, short}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := NewMemory()
			for i, want := range c.want {
				if single, pause := memory.after(c.err, c.lasted); pause != want || single != c.single {
					t.Errorf("failure %d: after %s, %d one by one; want %s, %d", i+1, pause, single, want, c.single)
				}
			}
		})
	}
}

// TestTermsThatBeginAndFailComeSlower: a term that begins costs an epoch and reads everything,
// whatever it fails for. An attempt that does not come to lead costs little.
func TestTermsThatBeginAndFailComeSlower(t *testing.T) {
	t.Parallel()
	memory, epoch := NewMemory(), int64(0)
	for i, step := range []struct {
		begins bool
		lasted time.Duration
		want   time.Duration
	}{
		{true, 0, retryTermAfter}, {true, 0, 2 * retryTermAfter}, {false, 0, retryTermAfter}, {false, 0, retryTermAfter},
		{true, 0, 4 * retryTermAfter}, {true, 0, longestTermPause}, {true, 0, longestTermPause},
		{true, time.Hour, retryTermAfter}, {true, 0, retryTermAfter},
	} {
		if step.begins {
			memory.StartTerm(epoch, epoch+1)
			epoch++
		}
		if _, pause := memory.after(ErrNewDatabase, step.lasted); pause != step.want {
			t.Errorf("failure %d: after %s, want %s", i+1, pause, step.want)
		}
	}
}
