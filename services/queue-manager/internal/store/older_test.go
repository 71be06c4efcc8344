package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// lose takes the last commits away, as a standby of Postgres does that did not have
// them when it took over.
func (l ledger) lose(t *testing.T, commits int64) {
	t.Helper()
	_, err := l.connect(t).Exec(t.Context(), fmt.Sprintf(`BEGIN; SELECT assert_leader(%d);
		DELETE FROM commits WHERE version > (SELECT max(version) FROM commits) - %d; COMMIT`, l.term.Epoch, commits))
	if err != nil {
		t.Fatal(err)
	}
}

func (l ledger) sameNode(t *testing.T) book.Changes {
	t.Helper()
	stored, err := l.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := stored.Nodes[0]
	return book.Changes{Nodes: []book.NodeRow{{Node: n.Node, Version: n.Version, Present: true}}}
}

// A database that has come back older knows none of the epochs that it gave since.
func TestAnEpochThatWasForgottenIsNotGivenAgain(t *testing.T) {
	t.Parallel()
	l := open(t)
	given := l.term.Epoch
	l.term.End()
	if _, err := l.connect(t).Exec(t.Context(), `UPDATE leader SET epoch = 3`); err != nil {
		t.Fatal(err)
	}
	next, err := l.Lead(t.Context(), "successor", silence, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer next.End()
	if next.Epoch <= given {
		t.Errorf("epoch %d was given after %d", next.Epoch, given)
	}
	far := next.Epoch + int64(time.Hour/time.Microsecond) // a clock was set back meanwhile
	if err := l.Raise(t.Context(), next, far); err != nil || next.Epoch <= far {
		t.Errorf("epoch %d, %v: want one after %d", next.Epoch, err, far)
	}
	if most := int64(1) << 53; next.Epoch >= most {
		t.Errorf("epoch %d is no number that every reader of JSON has", next.Epoch)
	}
}

func TestALeaderWhoseCommitsVanishedWritesNothing(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.commit(t, l.sameNode(t))
	at := l.version(t)
	changes := admitted(1, "gang", 1, 1, 100)
	changes.Epoch, changes.Version = l.term.Epoch, at+1
	nothing := book.Changes{Epoch: l.term.Epoch, Version: at}
	if _, err := l.Commit(t.Context(), nothing); err != nil {
		t.Fatalf("before the loss: %v", err)
	}
	l.lose(t, 1)
	for name, c := range map[string]book.Changes{"a commit": changes, "a look at whether anything changed": nothing} {
		if _, err := l.Commit(t.Context(), c); !errors.Is(err, store.ErrStale) {
			t.Errorf("%s returned %v, want ErrStale", name, err)
		}
	}
	if got := l.version(t); got != at-1 {
		t.Errorf("the ledger is at version %d, want %d", got, at-1)
	}
}

func TestAFollowerNoticesThatTheDatabaseWentBack(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"and has not reached the version again": false, "and another commit has the version": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			l.commit(t, l.sameNode(t))
			follower := l.Follower()
			b, err := follower.Load(t.Context(), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := follower.Next(t.Context(), b.Version()); err != nil {
				t.Fatalf("before the loss: %v", err)
			}
			l.lose(t, 1)
			if again {
				if err := l.Raise(t.Context(), l.term, 0); err != nil {
					t.Fatal(err)
				}
				l.commit(t, l.sameNode(t))
				l.commit(t, l.sameNode(t))
			}
			if _, _, err := follower.Next(t.Context(), b.Version()); !errors.Is(err, store.ErrBehind) {
				t.Errorf("following version %d returned %v, want ErrBehind", b.Version(), err)
			}
		})
	}
}
