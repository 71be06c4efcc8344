package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// refuseToRead has the database refuse to read the rows of workloads, for good.
func (l ledger) refuseToRead(t *testing.T, ids ...workload.ID) {
	t.Helper()
	l.refuseToReadFrom(t, "workloads", "id", ids...)
}

// refuseToReadFrom has the database refuse to read the rows of a table that have the ids.
func (l ledger) refuseToReadFrom(t *testing.T, table, column string, ids ...workload.ID) {
	t.Helper()
	list := ""
	for _, id := range ids {
		list += fmt.Sprintf(", '%s'", id)
	}
	_, err := l.connect(t).Exec(t.Context(), fmt.Sprintf(`CREATE FUNCTION unread_%[1]s_for_test(uuid) RETURNS boolean LANGUAGE plpgsql COST 100000 AS $$
		BEGIN IF $1 IN (%[3]s) THEN RAISE EXCEPTION 'refused by the test' USING ERRCODE = 'XX001'; END IF; RETURN true; END $$;
		ALTER TABLE %[1]s ENABLE ROW LEVEL SECURITY;
		CREATE POLICY all_for_test ON %[1]s FOR ALL USING (true) WITH CHECK (true);
		CREATE POLICY unread_for_test ON %[1]s AS RESTRICTIVE FOR SELECT USING (unread_%[1]s_for_test(%[2]s))`, table, column, list[2:]))
	if err != nil {
		t.Fatal(err)
	}
}

// What the database refuses to read of live workloads is known by its places, and everything else
// is read.
func TestWhatCannotBeReadIsLoadedByItsPlaces(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.withQuota(t, "10")
	l.node(t, "m", 4000)
	holds := charged(1, "holds", 2, 100)
	holds.Reserved = append(holds.Reserved, holds.Reserved[0])
	holds.Reserved[0].Pods, holds.Reserved[1].Pods, holds.Reserved[1].Node = 1, 1, "m"
	id := holds.Added[0].ID
	holds.Added[0].Manifest = []byte(`{"kind": "RayCluster", "metadata": {"name": "holds"}}`)
	holds.History = []state.HistoryRow{
		{Workload: id, At: time.Now(), Phase: workload.Dispatched, Attempt: 1, Usage: &workload.UsageStep{
			Queue: "q", Namespace: "ns", Submitter: "ann", Held: []workload.HeldResources{{Flavor: "f", Resources: resource.List{"cpu": 200}}},
		}},
		{Workload: id, At: time.Now(), Phase: workload.Dispatched, Attempt: 1},
	}
	l.commit(t, holds)
	l.commit(t, admitted(2, "good", 1, 1, 100))
	waits := admitted(3, "waits", 1, 1, 100)
	waits.Reserved, waits.Added[0].Phase, waits.Added[0].Holding, waits.Added[0].Cluster = nil, workload.Queued, false, ""
	l.commit(t, waits)
	l.refuseToRead(t, id, waits.Added[0].ID)

	loaded, err := l.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded.Workloads) != 2 || len(loaded.Unread) != 2 || loaded.LastOrder < 3 {
		t.Fatalf("loaded are %d workloads, unread are %+v, and the last one is %d", len(loaded.Workloads), loaded.Unread, loaded.LastOrder)
	}
	got, good := loaded.Workloads[0].Record, loaded.Workloads[1].Record
	got.Times = workload.Times{}
	requests := resource.List{"cpu": 100, "pods": 1}
	want := workload.Record{
		Workload: workload.Workload{
			ID: id, Queue: "q", Namespace: "ns", Kind: "RayCluster", Name: "holds", Submitter: "ann",
			PodSets: []workload.PodSet{{Name: "workers", Count: 2, Template: workload.Template{Requests: requests}}},
		},
		Phase: workload.Dispatched, Attempt: 1, Cluster: "c", Holding: true,
		Placements: []workload.Placement{{PodSet: "workers", Node: "m", Pods: 1}, {PodSet: "workers", Node: "n", Pods: 1}},
		Flavors:    []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"cpu": "f"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what holds places is loaded as (-want +got):\n%s", diff)
	}
	if good.Name != "good" || len(good.Placements) != 1 {
		t.Errorf("what can be read is %+v", good)
	}
	for _, a := range loaded.Unread {
		if a.Level != state.QuarantineFrozen || a.Workload != id && a.Workload != waits.Added[0].ID {
			t.Errorf("unread is %+v", a)
		}
	}
	if err := l.Quarantine(t.Context(), l.term.Epoch, loaded.Unread); err != nil {
		t.Fatal(err)
	}
	if kept, err := l.Quarantined(t.Context()); err != nil || len(kept) != 2 {
		t.Errorf("in quarantine are %+v, %v", kept, err)
	}
}

// A gang that has run for longer than its history is kept is loaded by its places, too, and so is
// one of which the history is refused.
func TestWhatCannotBeReadIsLoadedWithoutHistory(t *testing.T) {
	t.Parallel()
	at := time.Now().UTC().Add(-time.Hour).Truncate(time.Microsecond)
	held := &workload.UsageStep{Queue: "local", Namespace: "ns", Held: []workload.HeldResources{{Flavor: "f", Resources: resource.List{"cpu": 100}}}}
	for name, c := range map[string]struct {
		history []*workload.UsageStep
		refused bool // of the history
		queue   string
		phase   workload.Phase
		dated   bool
	}{
		"its history is dropped":                  {queue: "q", phase: workload.Dispatched},
		"no step that is kept says what it holds": {history: []*workload.UsageStep{nil}, queue: "q", phase: workload.Dispatched, dated: true},
		"a step says it":                          {history: []*workload.UsageStep{held, nil}, queue: "local", phase: workload.Running, dated: true},
		"its history is refused":                  {history: []*workload.UsageStep{held}, refused: true, queue: "q", phase: workload.Dispatched},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			l.withQuota(t, "10")
			holds := charged(1, "holds", 1, 100)
			id := holds.Added[0].ID
			for _, usage := range c.history {
				holds.History = append(holds.History, state.HistoryRow{Workload: id, At: at, Phase: workload.Running, Attempt: 1, Usage: usage})
			}
			l.commit(t, holds)
			if c.refused {
				l.refuseToReadFrom(t, "history", "workload", id)
			}
			l.refuseToRead(t, id)
			loaded, err := l.Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(loaded.Workloads) != 1 || len(loaded.Unread) != 1 || loaded.Unread[0].Workload != id {
				t.Fatalf("loaded are %d workloads, and unread are %+v", len(loaded.Workloads), loaded.Unread)
			}
			got := loaded.Workloads[0].Record
			if len(got.Placements) != 1 || !got.Holding || got.Cluster != "c" || got.Queue != c.queue || got.Phase != c.phase {
				t.Errorf("it is loaded as %+v; want one place, queue %q and phase %s", got, c.queue, c.phase)
			}
			if got.Times.Admitted.Equal(at) != c.dated || got.Times.Admitted.IsZero() {
				t.Errorf("it is admitted at %s; want the step at %s: %t", got.Times.Admitted, at, c.dated)
			}
		})
	}
}
