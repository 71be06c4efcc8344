package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// resized are changes that give an admitted gang a number of pods, of which a number
// have a place.
func resized(of state.Changes, pods, placed int) state.Changes {
	record, row := of.Added[0].Record, of.Reserved[0]
	record.PodSets = slices.Clone(record.PodSets)
	record.PodSets[0].Resized += pods - record.PodSets[0].Count
	record.PodSets[0].Count, row.Pods = pods, placed
	return state.Changes{Updated: []workload.Record{record}, Replaced: []state.Reservation{row}}
}

func both(first, second state.Changes) state.Changes {
	return state.Changes{Updated: append(first.Updated, second.Updated...), Replaced: append(first.Replaced, second.Replaced...)}
}

// A gang grows and shrinks in one transaction, whole: the ledger of the node
// follows, one gang may get what another gives back, and a leader that reads all of
// it finds the size that the gang has now.
func TestGangsGrowAndShrink(t *testing.T) {
	t.Parallel()
	l := open(t)
	left, right := admitted(1, "left", 2, 2, 1000), admitted(2, "right", 1, 1, 1000)
	l.commit(t, left)
	l.commit(t, right) // the node is full
	refused := func(why, constraint string, changes state.Changes) {
		t.Helper()
		changes.Epoch, changes.Version = l.term.Epoch, l.version(t)+1
		var violation *pgconn.PgError
		if _, err := l.Commit(t.Context(), changes); !errors.As(err, &violation) || violation.ConstraintName != constraint {
			t.Errorf("%s: %v, want a violation of %s", why, err, constraint)
		}
		if got := l.reserved(t, "cpu"); got != 3000 {
			t.Errorf("%s: %d millicores are reserved behind it, want 3000", why, got)
		}
	}
	refused("growth beyond the node", "no_overcommit", resized(right, 2, 2))
	refused("growth without a place for each pod", "all_or_nothing", resized(right, 3, 1))
	refused("more places than pods", "all_or_nothing", resized(left, 1, 2))
	l.commit(t, both(resized(right, 2, 2), resized(left, 1, 1))) // whichever of them comes first
	if got := l.reserved(t, "cpu"); got != 3000 {
		t.Errorf("%d millicores are reserved, want 3000", got)
	}
	stored, err := l.Load(t.Context())
	if err != nil || len(stored.Workloads) != 2 {
		t.Fatalf("stored are %+v, %v", stored.Workloads, err)
	}
	for i, pods := range []int{1, 2} {
		w := stored.Workloads[i]
		if set := w.PodSets[0]; set.Count != pods || set.Count-set.Resized != 3-pods || w.Placements[0].Pods != pods {
			t.Errorf("loaded again, %s has %+v on %+v, want %d pods", w.Name, set, w.Placements, pods)
		}
	}
}
