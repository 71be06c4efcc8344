package decisionlog_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
)

// A term begins on what Postgres has, in its order and with its times: so must the
// replay, or it decides otherwise.
func TestALedgerHasPlacesAndTimesAsPostgresReadsThem(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC)
	places := []workload.Placement{{PodSet: "workers", Node: "b", Pods: 1}, {PodSet: "workers", Node: "a", Pods: 2}, {PodSet: "head", Node: "c", Pods: 1}}
	l := decisionlog.NewReplica(0)
	l.Commit(state.Changes{Version: 1, Added: []state.Added{{Order: 1, Record: workload.Record{
		Workload: workload.Workload{ID: "w", Queue: "q"}, Phase: workload.Admitted, Holding: true, Placements: places,
		Times: workload.Times{Admitted: at},
	}}}})
	stored := l.Stored()
	if len(stored) != 1 {
		t.Fatalf("%d workloads are stored", len(stored))
	}
	want := []workload.Placement{{PodSet: "head", Node: "c", Pods: 1}, {PodSet: "workers", Node: "a", Pods: 2}, {PodSet: "workers", Node: "b", Pods: 1}}
	if diff := cmp.Diff(want, stored[0].Placements); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if got := stored[0].Times.Admitted; !got.Equal(at.Truncate(time.Microsecond)) || got.Equal(at) {
		t.Errorf("admitted at %s, want microseconds of %s", got, at)
	}
	if places[0].Node != "b" {
		t.Error("the record that was committed has been changed")
	}
}

// A term begins with the last requests of each workload, however often its record was written
// since: an older request that comes again is ignored in the replay, too.
func TestALedgerKeepsTheLastRequests(t *testing.T) {
	t.Parallel()
	l := decisionlog.NewReplica(0)
	record := workload.Record{Workload: workload.Workload{ID: "w", Queue: "q"}, Phase: workload.Queued}
	asked := workload.Asked{Hold: workload.AskedAt{Sequence: 6, Stored: time.Unix(1000, 0)}}
	l.Commit(state.Changes{Version: 1, Added: []state.Added{{Order: 1, Record: record}}})
	l.Commit(state.Changes{Version: 2, Updated: []workload.Record{record}, Asked: []state.Asked{{Workload: "w", Asked: asked}}})
	l.Commit(state.Changes{Version: 3, Updated: []workload.Record{record}})
	if stored := l.Stored(); len(stored) != 1 || stored[0].Asked == nil || *stored[0].Asked != asked {
		t.Errorf("stored are %+v, want the request %+v", stored, asked)
	}
}
