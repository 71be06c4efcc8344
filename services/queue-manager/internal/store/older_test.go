package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/state"
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

func (l ledger) sameNode(t *testing.T) state.Changes {
	t.Helper()
	stored, err := l.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := stored.Nodes[0]
	return state.Changes{Nodes: []state.NodeRow{{Node: n.Node, Version: n.Version, Present: true}}}
}

// A database restored to an older state knows none of the epochs that it gave since.
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
	nothing := state.Changes{Epoch: l.term.Epoch, Version: at}
	if _, err := l.Commit(t.Context(), nothing); err != nil {
		t.Fatalf("before the loss: %v", err)
	}
	l.lose(t, 1)
	for name, c := range map[string]state.Changes{"a commit": changes, "a look at whether anything changed": nothing} {
		t.Run(name, func(t *testing.T) {
			if _, err := l.Commit(t.Context(), c); !errors.Is(err, store.ErrStale) {
				t.Errorf("%s returned %v, want ErrStale", name, err)
			}
		})
	}
	if got := l.version(t); got != at-1 {
		t.Errorf("the ledger is at version %d, want %d", got, at-1)
	}
}

// A term of the same epoch that goes on, on a database restored to an older state, says of no
// stream that it had what the database does not know: the next term looks for that
// behind the watermarks.
func TestALeaderWhoseCommitsVanishedChangesNoWatermark(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]bool{"that it has written itself": false, "of which it has read, and not heard that they are written": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			changes := l.sameNode(t)
			changes.Messages = []state.Message{{ID: "m", Subject: "muster.events.q.w", At: time.Now(), Payload: &event.WorkloadCancel{Workload: "w"}}}
			relay := l.Store // of the term that goes on
			if read {
				relay = l.again(t)
			}
			l.commit(t, changes)
			unsent, err := relay.Unsent(t.Context(), []string{"muster.events."}, 0, 10)
			if err != nil || len(unsent) != 1 {
				t.Fatalf("the outbox has %+v, %v", unsent, err)
			}
			epoch, watermark := l.term.Epoch, store.Watermark{Created: time.Unix(1_800_000_000, 0).UTC(), Last: 7}
			if err := relay.SetWatermark(t.Context(), epoch, "EVENTS", watermark); err != nil {
				t.Fatalf("before the loss: %v", err)
			}
			l.lose(t, 1)
			later := store.Watermark{Created: watermark.Created, Last: 9}
			for what, err := range map[string]error{
				"a mark":                     relay.SetWatermark(t.Context(), epoch, "EVENTS", later),
				"a message that was sent":    relay.Sent(t.Context(), epoch, []int64{unsent[0].Seq}, "EVENTS", later),
				"a message that is to leave": relay.CheckEpochAndAddManifests(t.Context(), epoch, unsent),
			} {
				t.Run(what, func(t *testing.T) {
					if !errors.Is(err, store.ErrCommitMissing) {
						t.Errorf("%s: %v, want ErrCommitMissing", what, err)
					}
				})
			}
			if watermarks, err := l.Watermarks(t.Context()); err != nil || !watermarks["EVENTS"].Created.Equal(watermark.Created) || watermarks["EVENTS"].Last != watermark.Last {
				t.Errorf("the stream is known to have had %+v, %v; want %+v", watermarks["EVENTS"], err, watermark)
			}
			if left, err := l.Unsent(t.Context(), []string{"muster.events."}, 0, 10); err != nil || len(left) != 1 {
				t.Errorf("the outbox has %+v, %v; want the one message", left, err)
			}
		})
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
			loaded, err := follower.Load(t.Context(), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := follower.Next(t.Context(), loaded.Version()); err != nil {
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
			if _, _, err := follower.Next(t.Context(), loaded.Version()); !errors.Is(err, store.ErrCommitMissing) {
				t.Errorf("following version %d returned %v, want ErrCommitMissing", loaded.Version(), err)
			}
		})
	}
}
