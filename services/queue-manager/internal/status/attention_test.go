package status

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// What is silent is named within a minute, and what has nothing to say is not.
func TestAttentionNamesWhatIsSilent(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	healthy := func() query.ClusterStatus {
		return query.ClusterStatus{Name: "c", Nodes: 3, ReadyNodes: 3, Live: 2, LiveSince: ago(900), WatcherHeard: ago(2), DispatcherHeard: ago(2)}
	}
	for name, test := range map[string]struct {
		change  func(*query.ClusterStatus)
		waiting int // seconds that a submission waits
		want    []string
	}{
		"all is well":               {func(*query.ClusterStatus) {}, 5, nil},
		"a takeover":                {func(c *query.ClusterStatus) { c.WatcherHeard, c.DispatcherHeard = ago(30), ago(30) }, 0, nil},
		"the dispatcher is silent":  {func(c *query.ClusterStatus) { c.DispatcherHeard = ago(60) }, 0, []string{"the dispatcher of cluster c has been silent for 1m0s: 2 workloads wait for it; check that it runs and reaches NATS and its API server"}},
		"the watcher is silent":     {func(c *query.ClusterStatus) { c.WatcherHeard = ago(60) }, 0, []string{"the capacity-watcher of cluster c has been silent for 1m0s: what happens to its 3 nodes is not seen; check that it runs and reaches NATS and its API server"}},
		"no workload since a day":   {func(c *query.ClusterStatus) { c.Live, c.LiveSince, c.DispatcherHeard = 0, time.Time{}, ago(86400) }, 0, nil},
		"the first since a day":     {func(c *query.ClusterStatus) { c.Live, c.LiveSince, c.DispatcherHeard = 1, ago(3), ago(86400) }, 0, nil},
		"the dispatcher never came": {func(c *query.ClusterStatus) { c.Live, c.LiveSince, c.DispatcherHeard = 1, ago(50), time.Time{} }, 0, []string{"the dispatcher of cluster c has been silent for 50s: 1 workload waits for it; check that it runs and reaches NATS and its API server"}},
		"it is not known":           {func(c *query.ClusterStatus) { c.DispatcherHeard, c.Silent = time.Time{}, "no answer" }, 0, []string{"when the watcher and dispatcher of cluster c reported last is not known: no answer"}},
		"it has not confirmed": {func(c *query.ClusterStatus) {
			c.Live, c.LiveSince, c.DispatcherHeard, c.FailedOver = 0, time.Time{}, ago(400), ago(200)
		}, 0, []string{"cluster c is back after its gangs failed over, and gets none until its dispatcher confirms that nothing is left there; check that it runs and reaches NATS and its API server"}},
		"it is not back": {func(c *query.ClusterStatus) {
			c.Live, c.LiveSince, c.DispatcherHeard, c.WatcherHeard, c.FailedOver = 0, time.Time{}, ago(400), ago(300), ago(200)
		}, 0, []string{"the capacity-watcher of cluster c has been silent for 5m0s: what happens to its 3 nodes is not seen; check that it runs and reaches NATS and its API server"}},
		"no node":        {func(c *query.ClusterStatus) { c.Nodes, c.ReadyNodes, c.WatcherHeard = 0, 0, ago(86400) }, 0, nil},
		"intake is away": {func(*query.ClusterStatus) {}, 31, []string{"intake has not read 2 submissions for 31s: check that it runs and reaches NATS; its log names those that it tries again"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := healthy()
			test.change(&c)
			answer := query.StatusAnswer{At: now, Clusters: []query.ClusterStatus{c}}
			if test.waiting > 0 {
				answer.NATS.Streams = []query.StreamStatus{{Name: bus.SubmitStream, Messages: 2, Oldest: ago(test.waiting)}}
			}
			if got, _ := attention(answer); !slices.Equal(got, test.want) {
				t.Errorf("needs attention: %q, want %q", got, test.want)
			}
		})
	}
}

// What keeps all from being admitted comes first, then the clusters, and what can be read later
// last.
func TestTheMostSeriousComesFirst(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	answer := query.StatusAnswer{
		At: now, Leader: &query.LeaderStatus{Holder: "a"}, Budgets: []string{"budget of queue b is used up"}, Inactive: []query.InactiveQueue{{Name: "c", Why: "queue c has no flavor", Waiting: 3}},
		Clusters: []query.ClusterStatus{{Name: "d", Nodes: 3, ReadyNodes: 3, WatcherHeard: now.Add(-time.Minute)}},
	}
	answer.Postgres.Silent, answer.Postgres.Undelivered, answer.Postgres.Quarantined = "away", 1, 1
	answer.NATS.Silent = "away"
	answer.NATS.Streams = []query.StreamStatus{{Name: bus.DeadStream, Messages: 7}, {Name: bus.WorkloadStream, Silent: "away"}}
	gang := query.GangToSee{ID: "s", Namespace: "a", Name: "big", Queue: "q", Phase: workload.Queued, Since: now.Add(-2 * time.Hour), Why: "no node has 16 GPUs"}
	answer.Stuck = query.GangsToSee{Gangs: []query.GangToSee{gang}, InAll: 7}
	gang.ID, gang.Phase, gang.Why = "m", workload.Running, "1 of 2 pods are on other nodes than planned"
	answer.Misplaced = query.GangsToSee{Gangs: []query.GangToSee{gang}, InAll: 1}
	got, about := attention(answer)
	want := []string{
		"Postgres is silent", "no queue-manager leads", "NATS does not say", "stream " + bus.WorkloadStream,
		"workload a/big of queue q is queued for 2h0m0s: no node has 16 GPUs; see `muster explain big -n a`", "6 more gangs are stuck", "the capacity-watcher of cluster d",
		"7 messages could not be processed", "workload a/big of queue q is running for 2h0m0s: 1 of 2 pods", "1 workloads or nodes are in quarantine", "1 messages are in the table", "budget of queue b", "queue c has no flavor",
	}
	if len(got) != len(want) {
		t.Fatalf("needs attention: %q, want %q", got, want)
	}
	for i, begin := range want {
		if !strings.HasPrefix(got[i], begin) {
			t.Errorf("line %d is %q, want that it begins %q", i, got[i], begin)
		}
	}
	wantAbout := make([]query.About, len(want))
	wantAbout[4], wantAbout[6], wantAbout[7], wantAbout[8] = query.About{Workload: "s"}, query.About{Cluster: "d"}, query.About{DeadLetters: true}, query.About{Workload: "m"}
	if !slices.Equal(about, wantAbout) {
		t.Errorf("the lines are about %+v, want %+v", about, wantAbout)
	}
}

// What waits because a person wants it so is noted.
func TestNotes(t *testing.T) {
	t.Parallel()
	got := notes(query.StatusAnswer{
		Clusters: []query.ClusterStatus{{Name: "c", Nodes: 3, ReadyNodes: 2}, {Name: "d", Nodes: 3, ReadyNodes: 3}},
		Held:     []string{"queue a is held"}, HeldWorkloads: 2, TrustedPlaces: query.GangsToSee{InAll: 3},
	})
	for i, want := range []string{
		"not ready in cluster c: 1 of 3 nodes; see", "held, stopped or inactive: 1 queue; see", "2 workloads on hold", "misplaced pods in queues whose scheduler places them: 3 workloads",
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("notes are %q, want one of %q", got, want)
		}
	}
	if none := notes(query.StatusAnswer{Clusters: []query.ClusterStatus{{Name: "d", Nodes: 3, ReadyNodes: 3}}}); len(none) != 0 {
		t.Errorf("without anything to note, notes are %q", none)
	}
}

// lastOf is a NATS whose last message is given.
type lastOf struct {
	last *bus.Delivery
	err  error
}

func (l lastOf) Condition(context.Context) bus.Condition { return bus.Condition{} }

func (l lastOf) LastMessage(context.Context, string, string) (*bus.Delivery, error) {
	return l.last, l.err
}

// A cluster has failed over gangs until the last message on its permission grants something.
func TestFailedOver(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for name, test := range map[string]struct {
		payload event.Payload
		err     error
		want    time.Time
	}{
		"its gangs have failed over": {payload: &event.PermissionGranted{Cluster: "c"}, want: now},
		"it has a permission":        {payload: &event.PermissionGranted{Cluster: "c", For: workload.Duration(time.Minute)}},
		"of another cluster":         {payload: &event.PermissionGranted{Cluster: "d"}},
		"a command":                  {payload: &event.GangCommand{Cluster: "c"}},
		"NATS does not answer":       {payload: &event.PermissionGranted{Cluster: "c"}, err: errors.New("away")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			encoded, err := event.Marshal("1", "test", now, "", test.payload)
			if err != nil {
				t.Fatal(err)
			}
			if got := failedOver(t.Context(), lastOf{&bus.Delivery{Data: encoded, Stored: now}, test.err}, "c"); !got.Equal(test.want) {
				t.Errorf("its gangs have failed over since %s, want %s", got, test.want)
			}
		})
	}
}

// Only what the part itself publishes counts as hearing it.
func TestLastReport(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	id := event.WorkloadID("test", "gang")
	status := func(cluster string, workload workload.ID, session int64) []byte {
		encoded, err := event.Marshal("1", "test", now, "", &event.GangStatus{Workload: workload, Cluster: cluster, Attempt: 1, Session: session})
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	foreign, err := json.Marshal("junk")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		subject string
		data    []byte
		heard   bool
	}{
		"a status":            {event.StatusSubject("c", id), status("c", id, 1), true},
		"junk":                {"muster.status.c.x", foreign, false},
		"of another workload": {"muster.status.c.x", status("c", id, 1), false},
		"of another cluster":  {event.StatusSubject("c", id), status("d", id, 1), false},
		"from the far future": {event.StatusSubject("c", id), status("c", id, 1<<62), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard, err := lastReport(t.Context(), lastOf{last: &bus.Delivery{Subject: test.subject, Data: test.data, Stored: now}}, bus.StatusStream, "", now)
			if test.heard && (err != nil || !heard.Equal(now)) || !test.heard && (err == nil || !heard.IsZero()) {
				t.Errorf("heard at %s, %v; want it heard: %v", heard, err, test.heard)
			}
		})
	}
	if heard, err := lastReport(t.Context(), lastOf{err: errors.New("away")}, "", "", now); err == nil || !heard.IsZero() {
		t.Errorf("heard at %s, %v; want the error of NATS", heard, err)
	}
	if heard, err := lastReport(t.Context(), lastOf{}, "", "", now); err != nil || !heard.IsZero() {
		t.Errorf("heard at %s, %v; want nothing heard", heard, err)
	}
}
