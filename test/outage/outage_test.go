// Package outage tests what happens to gangs while a part of Kubernetes hangs.
// It has a dev cluster to itself, because its parts are paused.
package outage

import (
	"encoding/json"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/clustertest"
	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/test/stack"
	"muster.dev/muster/test/stack/stacktest"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

var (
	shared    = clustertest.Shared{Name: "outage", Prepare: stacktest.Install}
	databases *pgtest.Server
)

func TestMain(m *testing.M) { stacktest.Main(m, &databases, &shared) }

// world is a stack as a test uses it.
type world struct {
	*stack.Stack
	*testing.T
}

func newWorld(t *testing.T, deadline time.Duration) *world {
	t.Helper()
	w := newWorldOn(t, databases.Database(t), deadline)
	if err := w.AddNodes(t.Context(), "gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2"); err != nil {
		t.Fatal(err)
	}
	return w
}

// newWorldOn is newWorld on a given database, without nodes.
func newWorldOn(t *testing.T, databaseURL string, deadline time.Duration) *world {
	t.Helper()
	once := 0 // a gang that is at fault would fail at once
	s, err := stack.Start(t.Context(), stack.Options{
		Cluster: shared.Use(t).Cluster, Installed: true, DatabaseURL: databaseURL, Dir: t.TempDir(), NodeGrace: time.Second,
		Logger: zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)),
		Rules: workload.Rules{
			Life: workload.Life{ReadyDeadline: workload.Duration(deadline)}, Requeues: &once, BackoffFirst: workload.Duration(time.Second),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return &world{s, t}
}

func (w *world) submit(name string) workload.ID {
	w.Helper()
	published, err := w.Bus.PublishAsync(event.SubmitSubject("default"), event.Envelope{
		SpecVersion: event.SpecVersion, ID: name, Source: w.Pool, Type: event.SubmitType,
		DataContentType: "application/json", Data: json.RawMessage(stack.RayCluster(name, 1, 1)),
	})
	if err == nil {
		err = published.Wait(w.Context())
	}
	if err != nil {
		w.Fatal(err)
	}
	return event.WorkloadID(w.Pool, name)
}

// until polls a workload until it is as wanted.
func (w *world) until(what string, id workload.ID, met func(workload.Record) bool) workload.Record {
	w.Helper()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(patience)
	var last workload.Record
	for {
		if answer, err := w.Queries.Workloads(w.Context(), query.WorkloadsRequest{ID: id}); err == nil && len(answer.Workloads) == 1 {
			if last = answer.Workloads[0]; met(last) {
				return last
			}
		}
		select {
		case <-poll.C:
		case <-deadline:
			w.Fatalf("not within %s: %s; it is %s, attempt %d, because of %+v", patience, what, last.Phase, last.Attempt, last.Reason)
		}
	}
}

func (w *world) running(id workload.ID) workload.Record {
	w.Helper()
	return w.until("it runs", id, func(r workload.Record) bool { return r.Phase == workload.Running })
}

func (w *world) pause(component string) (resume func()) {
	w.Helper()
	resumed, err := shared.Use(w.T).Pause(w.Context(), component)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = resumed() })
	return func() {
		if err := resumed(); err != nil {
			w.Error(err)
		}
	}
}

// away is a part of a cluster that is not there.
type away struct {
	take func(*world) (back func())
	// first: it goes after the submission, which needs it.
	first bool
	// creates: without it the object of a gang cannot be created.
	creates bool
}

func serviceAway(name string) func(*world) func() {
	return func(w *world) func() {
		if err := w.StopService(name); err != nil {
			w.Fatal(err)
		}
		return func() {
			if err := w.StartService(w.Context(), name); err != nil {
				w.Error(err)
			}
		}
	}
}

// lasts takes a part away for three ready deadlines. No attempt ends for it: neither that of
// the gang that runs, nor that of the one that is to start meanwhile.
func (w *world) lasts(part away, deadline time.Duration) {
	w.Helper()
	before := w.submit("before")
	w.running(before)
	var back func()
	if !part.first {
		back = part.take(w)
	}
	during := w.submit("during")
	w.until("it is admitted", during, func(r workload.Record) bool { return r.Phase != workload.Queued })
	if part.first {
		back = part.take(w)
	}
	select {
	case <-time.After(3 * deadline): // how long it is away is what is tested
	case <-w.Context().Done():
	}
	if !part.first { // queries need NATS
		if record := w.running(before); record.Attempt != 1 {
			w.Errorf("meanwhile the running gang is in attempt %d", record.Attempt)
		}
	}
	if part.creates {
		w.until("it is admitted, with a reason", during, func(r workload.Record) bool { return r.Phase == workload.Admitted && r.Reason != nil })
	}
	back()
	for _, id := range []workload.ID{during, before} {
		if record := w.running(id); record.Attempt != 1 {
			w.Errorf("%s is in attempt %d", record.Name, record.Attempt)
		}
	}
}

// awayDeadline is a ready deadline for which parts are away three times. Its two thirds are
// longer than the time after which queue-manager takes a part for silent.
const awayDeadline = 8 * time.Second

func TestAPartIsAwayForThreeReadyDeadlines(t *testing.T) {
	for name, part := range map[string]away{
		"the capacity-watcher": {take: serviceAway(stack.CapacityWatcher)},
		"the dispatcher":       {take: serviceAway(stack.Dispatcher), creates: true},
		"NATS": {take: func(w *world) func() {
			w.StopNATS()
			return func() {
				if err := w.StartNATS(); err != nil {
					w.Error(err)
				}
			}
		}, first: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newWorld(t, awayDeadline).lasts(part, awayDeadline)
		})
	}
}

// While the API server hangs, decisions rest on what was last seen: what ran runs on in
// the same attempt, and what is submitted is admitted and starts afterwards.
func TestTheAPIServerIsAwayForThreeReadyDeadlines(t *testing.T) {
	newWorld(t, awayDeadline).lasts(away{take: func(w *world) func() { return w.pause("apiserver") }, creates: true}, awayDeadline)
}

// While the operator hangs, what runs goes on, and a gang that waits for its pods
// is not failed for it, although its queue forgives nothing.
func TestTheOperatorIsAway(t *testing.T) {
	w := newWorld(t, 2*time.Second)
	before := w.submit("before")
	w.running(before)
	resume := w.pause("kuberay")
	during := w.submit("during")
	again := w.until("it is tried again", during, func(r workload.Record) bool { return r.Attempt > 1 })
	if again.Requeues != 0 {
		t.Errorf("%d requeues are held against it", again.Requeues)
	}
	if record := w.running(before); record.Attempt != 1 {
		t.Errorf("the running gang is in attempt %d", record.Attempt)
	}
	resume()
	w.running(during)
}
