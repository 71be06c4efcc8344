package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// The old leader died, or stands still, within a transaction that holds the
// epoch: the successor does not wait until Postgres gives it up.
func TestATransactionThatStandsStillDoesNotHoldASuccessorOff(t *testing.T) {
	t.Parallel()
	old := open(t)
	conn, err := pgx.Connect(t.Context(), old.service)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(`BEGIN; SELECT assert_leader(%d)`, old.term.Epoch)); err != nil {
		t.Fatal(err)
	}
	old.term.End()
	ctx, cancel := context.WithTimeout(t.Context(), takeOver)
	defer cancel()
	began := time.Now()
	successor, err := old.Lead(ctx, "successor", silence, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer successor.End()
	if took := time.Since(began); took > 4*time.Second { // Postgres itself would end it after 5
		t.Errorf("it took %s", took)
	}
}

func TestAFollowerSeesWhatIsCommitted(t *testing.T) {
	t.Parallel()
	l := open(t)
	stored, err := l.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	follower := l.Follower()
	follow := func(version int64) state.Delta {
		t.Helper()
		delta, more, err := follower.Next(t.Context(), version)
		if err != nil || more {
			t.Fatalf("more %t, %v", more, err)
		}
		return delta
	}
	if delta := follow(stored.Version); delta.Version != stored.Version {
		t.Errorf("nothing was committed, but the version is %d after %d", delta.Version, stored.Version)
	}
	changes := admitted(1, "gang", 1, 1, 100)
	l.commit(t, changes)
	delta := follow(stored.Version)
	if delta.Version != stored.Version+1 || len(delta.Workloads) != 1 || len(delta.Workloads[0].Placements) != 1 || delta.LastOrder != 1 {
		t.Errorf("followed %+v", delta)
	}
	record := changes.Added[0].Record
	record.Phase, record.Holding, record.Times.Finished = "failed", false, time.Now()
	l.commit(t, state.Changes{Updated: append(changes.Updated, record), Freed: append(changes.Freed, record.ID)})
	delta = follow(delta.Version)
	if len(delta.Gone) != 1 || len(delta.Workloads) != 0 {
		t.Errorf("followed %+v, want the workload gone", delta)
	}
	if _, err := l.connect(t).Exec(t.Context(), fmt.Sprintf(`BEGIN; SELECT assert_leader(%d); DELETE FROM commits WHERE version < (SELECT max(version) FROM commits); COMMIT`, l.term.Epoch)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := follower.Next(t.Context(), stored.Version); !errors.Is(err, store.ErrCommitMissing) {
		t.Errorf("behind what is kept: %v, want ErrCommitMissing", err)
	}
}
