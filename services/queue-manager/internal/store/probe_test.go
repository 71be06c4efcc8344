package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// refuse has the database refuse, for good and with the SQLSTATE, rows of a table
// for which the condition holds.
func (l ledger) refuse(t *testing.T, table, events, condition, state string) {
	t.Helper()
	_, err := l.connect(t).Exec(t.Context(), fmt.Sprintf(`CREATE FUNCTION refuse_%[1]s_for_test() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = '%[4]s'; END $$;
		CREATE TRIGGER refuse_for_test BEFORE %[2]s ON %[1]s FOR EACH ROW WHEN (%[3]s) EXECUTE FUNCTION refuse_%[1]s_for_test()`,
		table, events, condition, state))
	if err != nil {
		t.Fatal(err)
	}
}

// life is a commit in which one gang starts, one ends and one moves, besides a
// node and the events about them.
func life(t *testing.T, l ledger) (changes state.Changes, bad, good workload.ID) {
	t.Helper()
	l.node(t, "m", 4000)
	for i, name := range []string{"ends", "moves"} {
		l.commit(t, admitted(int64(i+1), name, 1, 1, 100))
	}
	changes = admitted(3, "starts", 1, 1, 100)
	other := admitted(4, "other", 1, 1, 100)
	changes.Added, changes.Reserved = append(changes.Added, other.Added...), append(changes.Reserved, other.Reserved...)
	ended := admitted(1, "ends", 1, 1, 100).Added[0].Record
	ended.Phase, ended.Holding, ended.Times.Finished = workload.Failed, false, time.Now()
	move := replaced(admitted(2, "moves", 1, 1, 100), place{"workers", "m", 1})
	changes.Asked = []state.Asked{{Workload: changes.Added[0].ID}}
	changes.HeardAgain = []state.HeardAgain{{Workload: event.WorkloadID("test", "moves"), At: time.Now()}}
	changes.PastUsage = []quota.PastUsage{{Queue: "default", History: quota.History{At: time.Now().UTC(), Used: map[resource.Name]float64{"cpu": 1}}}}
	changes.Learned = []admission.Learned{{LearnedKey: admission.LearnedKey{Queue: "default", Kind: "RayCluster", Size: 1}, Starts: admission.Mean{Count: 1, Mean: time.Second}}}
	changes.Freed, changes.Replaced = []workload.ID{ended.ID}, move.Replaced
	changes.Updated = append(move.Updated, ended)
	changes.Nodes = []state.NodeRow{{
		Node:    capacity.Node{Cluster: "c", Name: "o", Ready: true, Allocatable: resource.List{"cpu": 1}},
		Version: event.Version{Session: 1, Seq: 1}, Present: true,
	}}
	for _, a := range changes.Added {
		changes.History = append(changes.History, state.HistoryRow{Workload: a.ID, At: time.Now(), Phase: a.Phase, Attempt: 1})
		changes.Messages = append(changes.Messages, state.Message{
			ID: string(a.ID), Subject: "s." + string(a.ID), At: time.Now(), Payload: &event.WorkloadChanged{Record: a.Record},
		})
	}
	changes.Epoch, changes.Version = l.term.Epoch, l.version(t)+1
	return changes, changes.Added[0].ID, other.Added[0].ID
}

// Whatever the database refuses of one workload, with whatever SQLSTATE, is found,
// and nothing else is taken for it.
func TestWhatCannotBeStoredIsFound(t *testing.T) {
	t.Parallel()
	starts, ends, moves := event.WorkloadID("test", "starts"), event.WorkloadID("test", "ends"), event.WorkloadID("test", "moves")
	of := func(column string, id workload.ID) string { return fmt.Sprintf("%s = '%s'", column, id) }
	for name, c := range map[string]struct {
		table, events, condition, state string
		part                            store.Part
		workload                        workload.ID
	}{
		"manifest":     {"manifests", "INSERT", of("NEW.workload", starts), "XX123", store.PartAdded, starts},
		"submission":   {"workloads", "INSERT", of("NEW.id", starts), "54000", store.PartAdded, starts},
		"admission":    {"workloads", "INSERT OR UPDATE", "NEW.phase = 'admitted' AND " + of("NEW.id", starts), "23514", store.PartPlaces, starts},
		"reservation":  {"reservations", "INSERT", of("NEW.workload", starts), "P0001", store.PartPlaces, starts},
		"move":         {"reservations", "INSERT", of("NEW.workload", moves), "23514", store.PartPlaces, moves},
		"give-back":    {"reservations", "DELETE", of("OLD.workload", moves), "22021", store.PartRelease, moves},
		"archive":      {"archive_rest", "INSERT", of("NEW.id", ends), "22P05", store.PartEnd, ends},
		"request":      {"workloads", "UPDATE OF asked", of("NEW.id", starts), "XX123", store.PartAsked, starts},
		"heard again":  {"workloads", "UPDATE OF heard_again", of("NEW.id", moves), "XX123", store.PartHeard, moves},
		"note":         {"commits", "INSERT", fmt.Sprintf("'%s' = ANY (NEW.workloads)", moves), "XX123", store.PartCommit, moves},
		"note of node": {"commits", "INSERT", "'o' = ANY (NEW.nodes)", "XX123", store.PartCommit, ""},
		"history":      {"history_rest", "INSERT", of("NEW.workload", starts), "22001", store.PartHistory, starts},
		"message":      {"outbox", "INSERT", of("NEW.event_id", starts), "0A000", store.PartMessage, starts},
		"node":         {"nodes", "INSERT OR UPDATE", "NEW.name = 'o'", "23502", store.PartNode, ""},
		"past usage":   {"past_usage", "INSERT", "NEW.queue = 'default'", "XX000", store.PartPastUsage, ""},
		"record":       {"decisions_rest", "INSERT", "NEW.number = 7", "42804", store.PartRecord, ""},
		"learned":      {"learned", "INSERT", "NEW.queue = 'default'", "XX000", store.PartLearned, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			changes, _, _ := life(t, l)
			record := store.Record{Number: 7, Version: changes.Version, At: time.Now(), Inputs: []byte("inputs")}
			if refused, err := l.Probe(t.Context(), changes, record, ""); err != nil || len(refused) != 0 {
				t.Fatalf("before anything is refused the probe finds %+v, %v", refused, err)
			}
			l.refuse(t, c.table, c.events, c.condition, c.state)
			write, err := l.Prepare(changes, record)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = write(t.Context()); !store.Suspect(err) {
				t.Fatalf("the commit returned %v, which suspects nothing", err)
			}
			refused, err := l.Probe(t.Context(), changes, record, "")
			if err != nil || len(refused) != 1 || refused[0].Part != c.part || refused[0].Workload != c.workload {
				t.Fatalf("the probe finds %+v, %v; want %s of %s", refused, err, c.part, c.workload)
			}
			var state *pgconn.PgError
			if !errors.As(refused[0].Cause, &state) || state.Code != c.state {
				t.Errorf("the cause is %v, want SQLSTATE %s", refused[0].Cause, c.state)
			}
			if about := c.part == store.PartNode || c.part == store.PartCommit && c.workload == ""; about != (refused[0].Node.Name == "o") {
				t.Errorf("the node is %v", refused[0].Node)
			}
			if version := l.version(t); version != changes.Version-1 {
				t.Errorf("the probe has written: the ledger is at %d", version)
			}
		})
	}
}

// When the database refuses everything, no workload is to blame.
func TestNoWorkloadIsToBlameForWhatIsRefusedToAll(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"commits", "workloads", "reservations", "manifests", "archive_rest", "history_rest", "outbox", "nodes"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			changes, _, _ := life(t, l)
			l.refuse(t, table, "INSERT", "true", "XX000")
			if refused, err := l.Probe(t.Context(), changes, store.Record{}, ""); !errors.Is(err, store.ErrEverything) {
				t.Errorf("the probe finds %+v, %v", refused, err)
			}
		})
	}
}

// What passes by waiting is no fault of a workload.
func TestWhatPassesSuspectsNothing(t *testing.T) {
	t.Parallel()
	for state, suspect := range map[string]bool{
		"08006": false, "25006": false, "40001": false, "40P01": false, "53100": false, "55P03": false, "57014": false, "57P01": false,
		"58030": false, "MUFEN": false,
		"22001": true, "22021": true, "22P05": true, "23514": true, "23505": true, "42501": true, "54000": true, "P0001": true, "XX000": true,
	} {
		t.Run(state, func(t *testing.T) {
			if got := store.Suspect(fmt.Errorf("commit: %w", &pgconn.PgError{Code: state})); got != suspect {
				t.Errorf("%s: suspects %t, want %t", state, got, suspect)
			}
		})
	}
	if store.Suspect(errors.New("connection reset")) {
		t.Error("a lost connection suspects a workload")
	}
}

// Quarantine is kept over terms until it is released, by the operator of the database.
func TestQuarantineIsKeptAndReleased(t *testing.T) {
	t.Parallel()
	l := open(t)
	gang := admitted(1, "gang", 1, 1, 100)
	l.commit(t, gang)
	id := gang.Added[0].ID
	want := state.Quarantined{Workload: id, Level: state.QuarantineFrozen, Attempt: 1, Tries: 2, Why: "it says no"}
	node := state.Quarantined{Why: "no node"}
	node.Node.Cluster, node.Node.Name = "c", "n"
	if err := l.Quarantine(t.Context(), l.term.Epoch, []state.Quarantined{want, node}); err != nil {
		t.Fatal(err)
	}
	if err := l.Quarantine(t.Context(), l.term.Epoch-1, []state.Quarantined{want}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a replaced leader sets aside: %v", err)
	}
	quarantined, err := l.Quarantined(t.Context())
	if err != nil || len(quarantined) != 2 || quarantined[0] != node || quarantined[1] != want {
		t.Fatalf("in quarantine are %+v, %v", quarantined, err)
	}
	for _, what := range []string{string(id), "c/n"} {
		if was, err := l.again(t).Unquarantine(t.Context(), what); !was || err != nil {
			t.Errorf("release %s: %t, %v", what, was, err)
		}
		if was, _ := l.Unquarantine(t.Context(), what); was {
			t.Errorf("%s is released twice", what)
		}
	}
	if quarantined, err := l.Quarantined(t.Context()); err != nil || len(quarantined) != 0 {
		t.Errorf("after the release there are %+v, %v", quarantined, err)
	}
}
