package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/services/queue-manager/internal/store"
)

var testServer *pgtest.Server

func TestMain(m *testing.M) {
	os.Exit(pgtest.Run(m, &testServer, func(ctx context.Context, url string) error {
		_, err := store.Migrate(ctx, url)
		return err
	}))
}

// silence is how long a leader may say nothing.
const silence = 2 * time.Second

// ledger is an open store under a leader, with a queue and one node of 4 CPUs.
type ledger struct {
	*store.Store
	term    *store.Leadership
	url     string // of the owner
	service string // URL of the same as the service
}

func open(t testing.TB) ledger {
	t.Helper()
	return openAt(t, testServer.Database(t))
}

func openAt(t testing.TB, url string) ledger {
	t.Helper()
	service := testServer.As(t, url, "muster_queue_manager")
	s, err := store.Open(t.Context(), service, store.DefaultTimeouts())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	term, err := s.Lead(t.Context(), "test", silence, func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(term.End)
	if err := s.SetQueues(t.Context(), term.Epoch, []state.Queue{
		{Name: "q", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO},
	}, quota.Config{}); err != nil {
		t.Fatal(err)
	}
	l := ledger{s, term, url, service}
	l.commit(t, state.Changes{Nodes: []state.NodeRow{{
		Node:    capacity.Node{Cluster: "c", Name: "n", Ready: true, Allocatable: resource.List{"cpu": 4000, "pods": 10}},
		Version: event.Version{Session: 1, Seq: 1}, Present: true, Used: resource.List{"cpu": 1000},
	}}})
	return l
}

func (l ledger) commit(t testing.TB, changes state.Changes) {
	t.Helper()
	changes.Epoch = l.term.Epoch
	changes.Version = l.version(t) + 1
	if _, err := l.Commit(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
}

// admitted are the changes that admit a gang of a number of pods of which a number
// have a place.
func admitted(order int64, name string, pods, placed int, cpu int64) state.Changes {
	id := event.WorkloadID("test", name)
	requests := resource.List{"cpu": cpu, "pods": 1}
	record := workload.Record{
		Workload: workload.Workload{
			ID: id, Queue: "q", Namespace: "ns", Kind: "RayCluster", Name: name,
			PodSets: []workload.PodSet{{Name: "workers", Count: pods, Template: workload.Template{Requests: requests}}},
		},
		Phase: workload.Admitted, Attempt: 1, Cluster: "c", Holding: true, Times: workload.Times{Submitted: time.Now()},
	}
	return state.Changes{
		Added: []state.Added{{Record: record, Order: order, Manifest: []byte(`{}`)}},
		Reserved: []state.Reservation{{
			Workload: id, Attempt: 1, Cluster: "c", Requests: requests,
			Placement: workload.Placement{PodSet: "workers", Node: "n", Pods: placed},
		}},
	}
}

// sameObject has two workloads whose objects of one name are made with kubectl in clusters.
func sameObject(homes ...string) state.Changes {
	first, second := admitted(1, "same", 1, 1, 100), admitted(2, "other", 1, 1, 100)
	second.Added[0].Name = "same"
	first.Added[0].Submitter, second.Added[0].Submitter = workload.ByKubernetes+"/"+homes[0]+"/ana", workload.ByKubernetes+"/"+homes[1]+"/ana"
	return state.Changes{Added: append(first.Added, second.Added...), Reserved: append(first.Reserved, second.Reserved...)}
}

// Objects of one name that users made in two clusters are two workloads.
func TestTheDatabaseTakesOneNameInTwoClusters(t *testing.T) {
	t.Parallel()
	l, changes := open(t), sameObject("east", "west")
	changes.Epoch, changes.Version = l.term.Epoch, l.version(t)+1
	if _, err := l.Commit(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	if stored, err := l.Load(t.Context()); err != nil || len(stored.Workloads) != 2 {
		t.Errorf("there are %+v, %v; want both", stored.Workloads, err)
	}
}

func TestTheDatabaseRefusesWhatMustNotBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changes    state.Changes
		constraint string
	}{
		"more CPU than is left beside unmanaged pods": {admitted(1, "big", 1, 1, 3001), "no_overcommit"},
		"a resource that the node does not have": {func() state.Changes {
			changes := admitted(1, "gpu", 1, 1, 1)
			changes.Reserved[0].Requests = resource.List{"nvidia.com/gpu": 1}
			return changes
		}(), "no_overcommit"},
		"half a gang": {admitted(1, "half", 2, 1, 100), "all_or_nothing"},
		"a started gang without any place": {func() state.Changes {
			changes := admitted(1, "none", 1, 1, 100)
			changes.Reserved = nil
			return changes
		}(), "all_or_nothing"},
		"a queued workload that holds places": {func() state.Changes {
			changes := admitted(1, "queued", 1, 1, 100)
			changes.Added[0].Phase, changes.Added[0].Holding = workload.Queued, false
			return changes
		}(), "all_or_nothing"},
		"two live workloads for one object": {func() state.Changes {
			changes, other := admitted(1, "same", 1, 1, 100), admitted(2, "other", 1, 1, 100)
			other.Added[0].Name = "same"
			return state.Changes{
				Added: append(changes.Added, other.Added...), Reserved: append(changes.Reserved, other.Reserved...),
			}
		}(), "workloads_live_object"},
		"two live workloads for one object that was made with kubectl": {sameObject("east", "east"), "workloads_live_object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			c.changes.Epoch, c.changes.Version = l.term.Epoch, l.version(t)+1
			_, err := l.Commit(t.Context(), c.changes)
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || refused.ConstraintName != c.constraint {
				t.Fatalf("commit returned %v, want a violation of %s", err, c.constraint)
			}
			stored, err := l.Load(t.Context())
			if err != nil || len(stored.Workloads) != 0 {
				t.Errorf("after the refusal there are %+v, %v", stored.Workloads, err)
			}
		})
	}
}

func TestReservationsChargeTheNodeAndGiveBack(t *testing.T) {
	t.Parallel()
	l := open(t)
	changes := admitted(1, "gang", 3, 3, 1000)
	l.commit(t, changes)
	if got := l.reserved(t, "cpu"); got != 3000 {
		t.Errorf("%d millicores are reserved, want 3000", got)
	}
	changes.Added[0].Phase, changes.Added[0].Holding = workload.Failed, false
	l.commit(t, state.Changes{Updated: []workload.Record{changes.Added[0].Record}, Freed: []workload.ID{changes.Added[0].ID}})
	if got := l.reserved(t, "cpu"); got != 0 {
		t.Errorf("%d millicores are reserved after the gang was freed", got)
	}
}

func (l ledger) version(t testing.TB) int64 {
	t.Helper()
	stored, err := l.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stored.Version
}

func (l ledger) reserved(t *testing.T, name string) (amount int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), l.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(t.Context(), `SELECT reserved FROM node_resources WHERE resource = $1`, name).Scan(&amount); err != nil {
		t.Fatal(err)
	}
	return amount
}

func TestAReplacedLeaderCanWriteNothing(t *testing.T) {
	t.Parallel()
	old := open(t)
	stood := make(chan struct{})
	led := make(chan *store.Leadership)
	go func() {
		successor, err := old.Lead(context.Background(), "successor", silence, func() { close(stood) })
		if err != nil {
			t.Error(err)
		}
		led <- successor
	}()
	<-stood // the lock is held, so the successor stands by
	old.term.End()
	successor := <-led
	defer successor.End()
	changes := admitted(1, "late", 1, 1, 100)
	changes.Epoch, changes.Version = old.term.Epoch, old.version(t)+1
	if _, err := old.Commit(t.Context(), changes); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the replaced leader's commit returned %v, want ErrFenced", err)
	}
	changes.Epoch = successor.Epoch
	if _, err := old.Commit(t.Context(), changes); err != nil {
		t.Errorf("the successor's commit: %v", err)
	}
}

func TestMessagesLeaveInTheOrderOfTheirCommits(t *testing.T) {
	t.Parallel()
	l := open(t)
	var want []string
	for i := range 3 {
		var changes state.Changes
		for j := range 50 {
			id := fmt.Sprintf("%d-%d", i, j)
			want = append(want, id)
			changes.Messages = append(changes.Messages, state.Message{
				ID: id, Subject: "s", At: time.Now(), Payload: &event.WorkloadCancel{Workload: "w"},
			})
		}
		l.commit(t, changes)
	}
	unsent, err := l.Unsent(t.Context(), []string{""}, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var seqs []int64
	for _, o := range unsent {
		got, seqs = append(got, o.EventID), append(seqs, o.Seq)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("order in the outbox is %v", got)
	}
	if err := l.Sent(t.Context(), l.term.Epoch, seqs, "MUSTER_EVENTS", store.Watermark{}); err != nil {
		t.Fatal(err)
	}
	if left, err := l.Unsent(t.Context(), []string{""}, 0, 1); err != nil || len(left) != 0 {
		t.Errorf("%d messages left, %v", len(left), err)
	}
}

func TestANodeThatIsGoneStaysWhileItIsReserved(t *testing.T) {
	t.Parallel()
	l := open(t)
	changes := admitted(1, "gang", 1, 1, 1000)
	l.commit(t, changes)
	gone := state.NodeRow{Node: capacity.Node{Cluster: "c", Name: "n"}, Version: event.Version{Session: 1, Seq: 2}}
	l.commit(t, state.Changes{Nodes: []state.NodeRow{gone}})
	changes.Added[0].Phase, changes.Added[0].Holding = workload.Failed, false
	gone.Drop = true
	l.commit(t, state.Changes{
		Nodes:   []state.NodeRow{gone},
		Updated: []workload.Record{changes.Added[0].Record}, Freed: []workload.ID{changes.Added[0].ID},
	})
	stored, err := l.Load(t.Context())
	if err != nil || len(stored.Nodes) != 0 || len(stored.Workloads) != 0 {
		t.Errorf("left over: %+v, %v", stored, err)
	}
}

// What a workload asks of its life, its back-off and its announced end are read
// as they were written, and so are the queue's rules.
func TestLivesAndRulesAreKept(t *testing.T) {
	t.Parallel()
	l := open(t)
	requeues := 3
	rules := workload.Rules{Life: workload.Life{ReadyDeadline: workload.Duration(time.Minute)}, Requeues: &requeues, Placement: workload.Trusted}
	if err := l.SetQueues(t.Context(), l.term.Epoch, []state.Queue{
		{Name: "q", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO, Rules: rules},
	}, quota.Config{}); err != nil {
		t.Fatal(err)
	}
	changes := admitted(1, "gang", 1, 1, 1000)
	record := &changes.Added[0].Record
	record.Life = workload.Life{OnPodLoss: workload.EvictOnLoss, MaxRunTime: workload.Duration(time.Hour)}
	l.commit(t, changes)
	record.Requeues, record.NotBefore = 2, time.UnixMicro(1_700_000_000_000_001).UTC()
	record.EvictAt = record.NotBefore.Add(time.Second)
	heard := record.NotBefore.Add(time.Minute)
	record.SetSaved(&workload.Saved{Attempt: 1, At: time.Unix(1_700_000_100, 0).UTC(), Count: 3, Longest: workload.Duration(time.Minute), Reported: time.Unix(1_700_000_101, 0).UTC(), Future: time.Unix(1_700_000_900, 0).UTC()})
	l.commit(t, state.Changes{Updated: []workload.Record{*record}, HeardAgain: []state.HeardAgain{{Workload: record.ID, At: heard}}})
	stored, err := l.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := stored.Workloads[0].HeardAgain; !got.Equal(heard) {
		t.Errorf("its cluster was heard again at %s, written %s", got, heard)
	}
	got := stored.Workloads[0].Record
	if got.Life != record.Life || got.Requeues != 2 || !got.NotBefore.Equal(record.NotBefore) || !got.EvictAt.Equal(record.EvictAt) {
		t.Errorf("read %+v, %d, %s, %s; written %+v", got.Life, got.Requeues, got.NotBefore, got.EvictAt, record)
	}
	if diff := cmp.Diff(record.Saved(), got.Saved()); diff != "" {
		t.Errorf("checkpoints (-written +read):\n%s", diff)
	}
	if diff := cmp.Diff(rules, stored.Queues[0].Rules); diff != "" {
		t.Errorf("rules (-written +read):\n%s", diff)
	}
}
