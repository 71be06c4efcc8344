package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// parts takes everything out of a list, part by part.
func (r *resends) parts(t *testing.T) (sent []string, parts int) {
	t.Helper()
	for ; r.left() != nil; parts++ {
		part := r.next()
		if len(part) == 0 || len(part) > resendLimit {
			t.Fatalf("a part has %d commands; want 1 to %d", len(part), resendLimit)
		}
		sent = append(sent, part...)
	}
	return sent, parts
}

func manySubjects() (all []string) {
	for i := range 2*resendLimit + 3 {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

// TestCommandsAreSentAgainInParts: no decision has all commands of a stream that was lost, and
// each is sent again once.
func TestCommandsAreSentAgainInParts(t *testing.T) {
	t.Parallel()
	all := manySubjects()
	var r resends
	if r.left() != nil {
		t.Error("an empty list is ready")
	}
	r.replace(all, nil)
	if sent, parts := r.parts(t); parts != 3 || !slices.Equal(sent, all) {
		t.Errorf("%d commands in %d parts; want %d in 3, in their order", len(sent), parts, len(all))
	}
	r.replace(all[:1], nil)
	r.replace(all[1:3], nil)
	if got := r.next(); !slices.Equal(got, all[1:3]) {
		t.Errorf("after another comparison %v are sent again; want %v", got, all[1:3])
	}
}

// TestDistrustedCommandsOutlastAComparison: a stream that has the subject of a command may have an
// old one, so a later comparison takes none out of the list.
func TestDistrustedCommandsOutlastAComparison(t *testing.T) {
	t.Parallel()
	all, over := manySubjects(), 0
	var r resends
	r.replace(all, func() { over = 1 })
	r.next()
	r.replace([]string{all[len(all)-1], "new"}, nil)
	if r.over() != nil {
		t.Error("it is over while commands are left")
	}
	if sent, _ := r.parts(t); !slices.Equal(sent, append(slices.Clone(all[resendLimit:]), "new")) {
		t.Errorf("after another comparison %d are sent again; want the other %d and a new one", len(sent), len(all)-resendLimit)
	}
	r.replace(all[:1], func() { over = 2 }) // the stream was lost once more
	if sent, _ := r.parts(t); !slices.Equal(sent, all[:1]) {
		t.Errorf("after another loss %v are sent again; want %v", sent, all[:1])
	}
	if committed := r.over(); committed == nil {
		t.Error("it is not over")
	} else if committed(); over != 2 {
		t.Errorf("what is over is find %d", over)
	}
	if r.over() != nil {
		t.Error("it is over twice")
	}
}

// counting is a Store that counts the commands of commits, and fails with an error.
type counting struct {
	ledger
	commands map[string]int
	commits  int
}

func (c *counting) Prepare(changes state.Changes, record store.Record) (store.Transaction, error) {
	write, err := c.ledger.Prepare(changes, record)
	return func(ctx context.Context) ([]store.Outgoing, error) {
		out, err := write(ctx)
		if err == nil && len(changes.Messages) > 0 {
			c.commits++
			for _, m := range changes.Messages {
				c.commands[m.Subject]++
			}
		}
		return out, err
	}, err
}

// TestALostStreamIsResentThroughAnotherComparison: the leader sends each command again once although
// another comparison finds in between that the stream has all of them, and the loss is over when
// the last one is committed, and not before.
func TestALostStreamIsResentThroughAnotherComparison(t *testing.T) {
	t.Parallel()
	const gangs = 2*resendLimit + 100
	away := errors.New("Postgres is away")
	for name, refused := range map[string]error{"it is committed": nil, "it is not committed": away} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := &counting{ledger: ledger{write: refused}, commands: map[string]int{}}
			l := resendingLeader(gangs, stored)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- l.commits.run(ctx); cancel() }()
			defer func() { cancel(); <-ended }()
			committed := false
			all := map[string]bool{}
			for _, subject := range l.state.CommandSubjects(func(string) bool { return true }) {
				all[subject] = true
			}
			found := relay.CommandsFound{Present: all, Distrust: true, Committed: func() { committed = true }}
			l.resends.replace(l.state.CommandSubjects(found.Lacks), found.Committed)
			var err error
			for part := 0; l.resends.left() != nil && err == nil; part++ {
				if committed {
					t.Fatalf("it is over before part %d", part)
				}
				l.sendAgain()
				err = l.runStep(ctx, nil)
				l.resends.replace(l.state.CommandSubjects(relay.CommandsFound{Present: all}.Lacks), nil)
			}
			if refused != nil {
				if err == nil || committed {
					t.Errorf("it ends with %v, and is over: %t", err, committed)
				}
				return
			}
			if err != nil || !committed {
				t.Fatalf("it ends with %v, and is over: %t", err, committed)
			}
			if len(stored.commands) != gangs || stored.commits != 3 {
				t.Errorf("%d commands are sent again in %d commits; want %d in 3", len(stored.commands), stored.commits, gangs)
			}
			for subject, n := range stored.commands {
				if n != 1 {
					t.Errorf("%s is sent %d times", subject, n)
				}
			}
		})
	}
}

// TestALossLastsWhileCommandsAreWithheld: of a gang in quarantine nothing is sent, so the stream may
// have an old command of it. The loss is not over before a term that sends it, too.
func TestALossLastsWhileCommandsAreWithheld(t *testing.T) {
	t.Parallel()
	const gangs = 3
	id := event.WorkloadID("test", "1")
	for name, c := range map[string]struct {
		quarantined state.Quarantined
		sent        int
		over        bool
	}{
		"none is in quarantine":     {state.Quarantined{Workload: "another", Level: state.QuarantineFrozen}, gangs, true},
		"the places of one stay":    {state.Quarantined{Workload: id, Level: state.QuarantineHeld, Attempt: 1}, gangs, true},
		"nothing is written of one": {state.Quarantined{Workload: id, Level: state.QuarantineFrozen}, gangs - 1, false},
		"one cannot be changed":     {state.Quarantined{Workload: id, Level: state.QuarantineFailed}, gangs - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := &counting{commands: map[string]int{}}
			l := resendingLeader(gangs, stored)
			l.state.Quarantine(c.quarantined, l.clock.now())
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- l.commits.run(ctx) }()
			defer func() { cancel(); <-ended }()
			over := false
			found := relay.CommandsFound{Distrust: true, Committed: func() { over = true }}
			l.resends.replace(l.state.CommandSubjects(found.Lacks), found.Committed)
			l.sendAgain()
			if err := l.runStep(ctx, nil); err != nil {
				t.Fatal(err)
			}
			if len(stored.commands) != c.sent || over != c.over {
				t.Errorf("%d commands are sent again, and the loss is over: %t; want %d and %t", len(stored.commands), over, c.sent, c.over)
			}
		})
	}
}

// resendingLeader leads gangs that run.
func resendingLeader(gangs int, to Store) *leader {
	queues := state.Stored{MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "q", Namespaces: []string{"ns"}}}}
	for i := range gangs {
		id := event.WorkloadID("test", fmt.Sprint(i))
		queues.Workloads = append(queues.Workloads, state.StoredWorkload{Order: int64(i + 1), Record: workload.Record{
			Workload: workload.Workload{ID: id, Queue: "q", Name: fmt.Sprint(i), Namespace: "ns", Kind: "RayCluster"},
			Phase:    workload.Dispatched, Attempt: 1, Cluster: "c", Holding: true,
		}})
	}
	s := state.New(1, queues)
	step := &Step{State: s, Archive: nothingKnown{}, Logger: zap.NewNop()}
	l := &leader{
		Options: Options{Logger: zap.NewNop(), Metrics: NewMetrics(prometheus.NewRegistry())}, epoch: 1, clock: clock{time.Now()},
		state: s, step: step, writer: NewWriter(to, step), inputs: &inputs{capacity: &bus.Following{}, status: &bus.Following{}},
	}
	l.commits = &commitQueue{writer: l.writer, handToRelay: func([]store.Outgoing) {}, observe: l.Metrics.observe, waiting: make(chan commit, inFlight)}
	return l
}
