package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

const refusedID workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746572"

// refusing is a Store that refuses something of each commit.
type refusing struct {
	ledger
	refused []store.Refusal
}

func (r refusing) Probe(context.Context, state.Changes, store.Record) ([]store.Refusal, error) {
	return r.refused, nil
}

func refusalWith(code string) error { return &pgconn.PgError{Code: code, Message: "no"} }

func messageOn(t *testing.T, subject string, payload event.Payload) bus.Delivery {
	t.Helper()
	data, err := event.Marshal("id", "test", time.Unix(1, 0), "", payload)
	if err != nil {
		t.Fatal(err)
	}
	return bus.Delivery{Subject: subject, Data: data}
}

// A diagnosis keeps out of decisions as little as lets all others go on.
func TestWhatComesOfARefusal(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0).UTC()
	submitted := messageOn(t, event.WorkloadSubject("q"), &event.WorkloadSubmitted{Workload: workload.Workload{ID: refusedID, Queue: "q"}})
	held := messageOn(t, event.WorkloadSubject("q"), &event.WorkloadHold{Workload: refusedID, By: "ann@ops"})
	status := messageOn(t, event.StatusSubject("c", refusedID), &event.GangStatus{Cluster: "c", Workload: refusedID})
	record := workload.Record{Workload: workload.Workload{ID: refusedID, Queue: "q"}, Attempt: 1}
	places := []state.Reservation{{Workload: refusedID, Attempt: 1}}
	added := state.Changes{Added: []state.Added{{Record: record}}, Reserved: places}
	admitted := state.Changes{Updated: []workload.Record{record}, Reserved: places}
	moved := state.Changes{Updated: []workload.Record{record}, Replaced: places}
	quarantined := func(level state.QuarantineLevel, after time.Duration, attempt int) []state.Quarantined {
		a := state.Quarantined{Workload: refusedID, Level: level, Attempt: attempt, Tries: 1, Why: refusalWith("XX123").Error()}
		if after > 0 {
			a.Until = now.Add(after)
		}
		return []state.Quarantined{a}
	}
	node := admission.NodeKey{Cluster: "c", Name: "n"}
	for name, c := range map[string]struct {
		changes           state.Changes
		part              store.Part
		node              admission.NodeKey
		quarantined       []state.Quarantined
		rejected, dropped int
	}{
		"a submission":                 {changes: added, part: store.PartAdded, rejected: 1},
		"a submission at once placed":  {changes: added, part: store.PartPlaces, rejected: 1},
		"a submission within no quota": {changes: added, part: store.PartCharges, quarantined: quarantined(state.QuarantineHeld, firstHeld, 0)},
		"an admission":                 {changes: admitted, part: store.PartPlaces, quarantined: quarantined(state.QuarantineFailed, 0, 0)},
		"an admission to no quota":     {changes: admitted, part: store.PartCharges, quarantined: quarantined(state.QuarantineHeld, firstHeld, 0)},
		"a move":                       {changes: moved, part: store.PartPlaces, quarantined: quarantined(state.QuarantineHeld, 0, 1)},
		"a move to no quota":           {changes: moved, part: store.PartCharges, quarantined: quarantined(state.QuarantineHeld, 0, 1)},
		"a note of a commit":           {changes: moved, part: store.PartCommit, quarantined: quarantined(state.QuarantineFrozen, 0, 0)},
		"a request":                    {changes: moved, part: store.PartAsked, dropped: 1},
		"a cluster heard again":        {changes: moved, part: store.PartHeard, quarantined: quarantined(state.QuarantineFailed, 0, 0)},
		"a node": {changes: admitted, part: store.PartPlaces, node: node,
			quarantined: []state.Quarantined{{Node: node, Tries: 1, Why: refusalWith("XX123").Error()}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusal := store.Refusal{Part: c.part, Workload: refusedID, Cause: refusalWith("XX123")}
			if c.node.Name != "" {
				refusal.Workload, refusal.Node = "", c.node
			}
			writer := NewWriter(refusing{refused: []store.Refusal{refusal}}, &Step{})
			decision := &Decision{Changes: c.changes, Batch: []bus.Delivery{submitted, held, status}}
			found, err := writer.Diagnose(t.Context(), decision, refusal.Cause, NewMemory(), now)
			if err != nil || len(found.Rejected) != c.rejected || len(found.Dropped) != c.dropped {
				t.Errorf("rejected are %d and dropped %d messages, %v; want %d and %d", len(found.Rejected), len(found.Dropped), err, c.rejected, c.dropped)
			}
			if diff := cmp.Diff(c.quarantined, found.Quarantined); diff != "" {
				t.Errorf("in quarantine (-want +got):\n%s", diff)
			}
		})
	}
}

// What the database refuses for good is no matter of patience.
func TestNothingIsToBlameForALostConnection(t *testing.T) {
	t.Parallel()
	writer := NewWriter(refusing{refused: []store.Refusal{{Part: store.PartEnd, Workload: refusedID, Cause: refusalWith("XX123")}}}, &Step{})
	for range 10 {
		found, err := writer.Diagnose(t.Context(), &Decision{}, errors.New("EOF"), NewMemory(), time.Now())
		if err != nil || !found.Empty() {
			t.Errorf("found is %+v, %v", found, err)
		}
	}
}
