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

func (r refusing) Probe(context.Context, state.Changes, store.Record, string) ([]store.Refusal, error) {
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
	quota := []state.Quarantined{{Scope: "clusterQueue q", Level: state.QuarantineHeld, Tries: 1, Until: now.Add(firstHeld), Why: refusalWith("XX123").Error()}}
	for name, c := range map[string]struct {
		changes           state.Changes
		part              store.Part
		node              admission.NodeKey
		scope             string
		quarantined       []state.Quarantined
		rejected, dropped int
	}{
		"a submission":                               {changes: added, part: store.PartAdded, rejected: 1},
		"a submission at once placed":                {changes: added, part: store.PartPlaces, rejected: 1},
		"a submission within no quota":               {changes: added, part: store.PartCharges, quarantined: quarantined(state.QuarantineHeld, firstHeld, 0)},
		"an admission":                               {changes: admitted, part: store.PartPlaces, quarantined: quarantined(state.QuarantineFailed, 0, 0)},
		"an admission to no quota":                   {changes: admitted, part: store.PartCharges, quarantined: quarantined(state.QuarantineHeld, firstHeld, 0)},
		"a submission to a quota that takes nothing": {changes: added, part: store.PartCharges, scope: "clusterQueue q", quarantined: quota},
		"an admission to such a quota":               {changes: admitted, part: store.PartCharges, scope: "clusterQueue q", quarantined: quota},
		"a move within such a quota":                 {changes: moved, part: store.PartCharges, scope: "clusterQueue q", quarantined: quarantined(state.QuarantineHeld, 0, 1)},
		"a move":                                     {changes: moved, part: store.PartPlaces, quarantined: quarantined(state.QuarantineHeld, 0, 1)},
		"a move to no quota":                         {changes: moved, part: store.PartCharges, quarantined: quarantined(state.QuarantineHeld, 0, 1)},
		"a note of a commit":                         {changes: moved, part: store.PartCommit, quarantined: quarantined(state.QuarantineFrozen, 0, 0)},
		"a request":                                  {changes: moved, part: store.PartAsked, dropped: 1},
		"a cluster heard again":                      {changes: moved, part: store.PartHeard, quarantined: quarantined(state.QuarantineFailed, 0, 0)},
		"a node": {changes: admitted, part: store.PartPlaces, node: node,
			quarantined: []state.Quarantined{{Node: node, Tries: 1, Why: refusalWith("XX123").Error()}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusal := store.Refusal{Part: c.part, Workload: refusedID, Scope: c.scope, Cause: refusalWith("XX123")}
			if c.node.Name != "" {
				refusal.Workload, refusal.Node = "", c.node
			}
			writer := NewWriter(refusing{refused: []store.Refusal{refusal, refusal}}, &Step{})
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

// What should pass by waiting is looked for when waiting does not help, and when the database
// takes a commit of nothing. It is kept out of decisions for a while only.
func TestWhatDoesNotPassIsLookedFor(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0).UTC()
	record := workload.Record{Workload: workload.Workload{ID: refusedID, Queue: "q"}, Attempt: 1}
	admitted := state.Changes{Version: 7, Updated: []workload.Record{record}, Reserved: []state.Reservation{{Workload: refusedID, Attempt: 1}}}
	changed := state.Changes{Version: 7, Updated: []workload.Record{record}}
	away := errors.New("Postgres is away")
	for name, c := range map[string]struct {
		code    string
		ledger  ledger
		changes state.Changes
		part    store.Part
		after   int // failures
		level   state.QuarantineLevel
	}{
		"an admission":       {code: "57014", changes: admitted, part: store.PartPlaces, after: patience + 1, level: state.QuarantineHeld},
		"a state":            {code: "58030", changes: changed, part: store.PartPlaces, after: patience + 1, level: state.QuarantineFrozen},
		"an end":             {code: "40001", changes: changed, part: store.PartEnd, after: patience + 1, level: state.QuarantineFrozen},
		"no commit is taken": {code: "57014", changes: changed, part: store.PartEnd, ledger: ledger{write: away}},
		"refused for good":   {code: "XX123", changes: changed, part: store.PartEnd, after: 1, level: state.QuarantineFrozen},
		"a lost connection":  {code: "", changes: changed, part: store.PartEnd},
		"a replaced leader":  {code: "MUFEN", changes: changed, part: store.PartEnd},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cause := refusalWith(c.code)
			writer := NewWriter(refusing{c.ledger, []store.Refusal{{Part: c.part, Workload: refusedID, Cause: cause}}}, &Step{})
			memory, found := NewMemory(), Diagnosis{}
			failures := 0
			for found.Empty() && failures < 3*patience {
				failures++
				var err error
				if found, err = writer.Diagnose(t.Context(), &Decision{Changes: c.changes}, cause, memory, now); err != nil {
					t.Fatal(err)
				}
				memory.BackOff(cause, !found.Empty(), 0)
			}
			if c.after == 0 {
				if !found.Empty() {
					t.Errorf("after %d failures it finds %+v", failures, found)
				}
				return
			}
			if failures != c.after || len(found.Quarantined) != 1 || found.Quarantined[0].Level != c.level {
				t.Fatalf("after %d failures it finds %+v", failures, found)
			}
			if a := found.Quarantined[0]; a.Until.IsZero() != (store.Passing(cause) == "") {
				t.Errorf("it is kept until %s", a.Until)
			}
			memory.Remember(found)
			memory.afterWholeTerm()
			later := now.Add(time.Minute)
			if again, err := writer.Diagnose(t.Context(), &Decision{Changes: c.changes}, cause, memory, later); err != nil || again.Empty() {
				t.Errorf("what was kept and is refused again at once is %+v, %v", again, err)
			}
		})
	}
}

// A term that lasts begins the count again.
func TestATermThatLastsIsPatientAgain(t *testing.T) {
	t.Parallel()
	cause, memory := refusalWith("57014"), NewMemory()
	for i, lasted := range []time.Duration{0, 0, 0, 2 * longTerm, 0, 0, 0} {
		if code := memory.persisting(cause, state.Changes{}, time.Now()); code != "" && lasted == 0 {
			t.Errorf("failure %d: it is looked for %s", i+1, code)
		}
		memory.BackOff(cause, false, lasted)
	}
	if code := memory.persisting(cause, state.Changes{}, time.Now()); code != "57014" {
		t.Errorf("after %d failures it is looked for %q", patience+1, code)
	}
}

// What is kept out of decisions for a while makes one term end when that is over.
func TestWhatIsKeptForAWhileIsDueOnce(t *testing.T) {
	t.Parallel()
	begun := time.Unix(1_800_000_000, 0)
	memory := NewMemory()
	memory.Remember(Diagnosis{Quarantined: []state.Quarantined{
		{Workload: refusedID, Level: state.QuarantineFrozen, Until: begun.Add(time.Minute)},
		{Workload: "held", Level: state.QuarantineHeld, Until: begun.Add(time.Second)},
		{Workload: "for good", Level: state.QuarantineFrozen},
	}})
	for name, c := range map[string]struct {
		begun, now time.Duration
		due        bool
	}{
		"before":               {0, 59 * time.Second, false},
		"then":                 {0, time.Minute, true},
		"later":                {0, time.Hour, true},
		"in the term after it": {2 * time.Minute, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if due := memory.Due(begun.Add(c.begun), begun.Add(c.now)); due != c.due {
				t.Errorf("due is %t, want %t", due, c.due)
			}
		})
	}
}
