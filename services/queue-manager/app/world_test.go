package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/services/queue-manager/app"
)

const (
	cluster  = "test"
	patience = 20 * time.Second
)

// world is a queue-manager with real NATS and Postgres, seen from outside: the
// test plays intake, the capacity-watcher and the dispatcher.
type world struct {
	t        *testing.T
	ctx      context.Context
	bus      *bus.Bus
	queries  *query.Client
	config   app.Config
	version  uint64
	messages int
	ownerURL string // of the database

	heard    *bustest.Listener // events and commands
	runtime  *service.Runtime  // of the queue-manager that runs
	stopOnce func()
}

func newWorld(t *testing.T, queues ...app.Queue) *world {
	t.Helper()
	return newWorldWith(t, func(c *app.Config) { c.Queues = queues })
}

// newWorldWith is newWorld with other settings.
func newWorldWith(t *testing.T, set func(*app.Config)) *world {
	t.Helper()
	return newWorldOn(t, postgres, set)
}

// newWorldOn is newWorldWith on a given server.
func newWorldOn(t *testing.T, databases *pgtest.Server, set func(*app.Config)) *world {
	t.Helper()
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	b, err := bus.Connect(ctx, bus.Options{URL: server.URL(), Name: t.Name(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.EnsureStreams(ctx); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ctx: ctx, bus: b, queries: query.NewClient(b.Conn()), heard: bustest.New(t)}
	w.ownerURL = databases.Database(t)
	// Nothing repeats what a test publishes once as a capacity-watcher.
	w.config = app.Config{NATS: bus.Settings{URL: server.URL()}, DatabaseURL: databases.As(t, w.ownerURL, "muster_queue_manager"), NodeGrace: time.Hour, ClusterSilence: time.Hour}
	set(&w.config)
	if err := w.config.Validate(); err != nil {
		t.Fatal(err)
	}
	w.heard.Listen(ctx, b, bus.EventsStream, "muster.events.*.*")
	w.heard.Listen(ctx, b, bus.DispatchStream, event.DispatchFilter(cluster))
	w.heard.Listen(ctx, b, bus.DispatchStream, event.CheckFilter("*"))
	w.start()
	return w
}

// start runs a queue-manager; the one before must have been stopped.
func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	runtime := service.NewRuntime(zaptest.NewLogger(w.t, zaptest.Level(zap.WarnLevel)), "queue-manager")
	w.runtime = runtime
	config := w.config
	go func() { ended <- app.Run(ctx, &config, runtime) }()
	w.stopOnce = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	w.t.Cleanup(w.stopOnce)
	waiting, done := context.WithTimeout(ctx, patience)
	defer done()
	if err := runtime.Health.WaitReady(waiting); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stop() { w.stopOnce() }

func (w *world) publish(subject string, payload event.Payload) {
	w.t.Helper()
	w.messages++
	envelope, err := event.New(fmt.Sprintf("%s-%d", w.t.Name(), w.messages), "test", time.Now(), payload)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.bus.Publish(w.ctx, subject, envelope); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) nextVersion() event.Version {
	w.version++
	return event.Version{Session: 1, Seq: w.version}
}

// node reports a node with GPUs and plenty of the rest, and waits until
// queue-manager knows it.
func (w *world) node(name string, gpus int64) {
	w.t.Helper()
	w.publish(event.NodeSubject(cluster, name), &event.NodeObserved{Version: w.nextVersion(), Node: nodeOf(name, gpus)})
	w.nodes("node "+name+" is known", func(nodes []query.Node) bool {
		return slices.ContainsFunc(nodes, func(n query.Node) bool { return n.Name == name })
	})
}

func nodeOf(name string, gpus int64) capacity.Node {
	return capacity.Node{
		Cluster: cluster, Name: name, Ready: true, Created: time.Unix(1_000_000, 0).UTC(), Labels: map[string]string{"kubernetes.io/hostname": name},
		Allocatable: resource.List{"cpu": 64_000, "memory": 256 << 30, "pods": 110, "nvidia.com/gpu": gpus},
	}
}

// nodes waits until what queue-manager knows of the nodes is as wanted. Nothing else shows
// that an observation was applied. The longer it takes the less often it looks.
func (w *world) nodes(what string, wanted func([]query.Node) bool) {
	w.t.Helper()
	deadline := time.After(patience)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		answer, err := w.queries.Nodes(w.ctx)
		if err == nil && wanted(answer.Nodes) {
			return
		}
		select {
		case <-deadline:
			w.t.Fatalf("not within %s: %s; nodes: %+v, %v", patience, what, answer.Nodes, err)
		case <-time.After(pause):
		}
	}
}

// gangOf is a workload of one head and the given number of workers with one GPU each.
func gangOf(name, queue string, workers int) workload.Workload {
	set := func(name, role string, count int, gpus int64) workload.PodSet {
		return workload.PodSet{Name: name, Role: role, Count: count, Template: workload.Template{
			Requests: resource.List{"cpu": 1000, "memory": 1 << 30, "pods": 1, "nvidia.com/gpu": gpus},
		}}
	}
	return workload.Workload{
		ID: event.WorkloadID("test", name), Queue: queue, Kind: "RayCluster", Name: name, Digest: "digest of " + name,
		PodSets: []workload.PodSet{set("headgroup", workload.RoleHead, 1, 0), set("workers", workload.RoleWorker, workers, 1)},
	}
}

func (w *world) submit(gang workload.Workload) workload.ID {
	w.t.Helper()
	w.publish(event.WorkloadSubject(gang.Queue), &event.WorkloadSubmitted{
		Workload: gang, Manifest: json.RawMessage(`{"kind":"RayCluster","metadata":{"name":"` + gang.Name + `"}}`),
	})
	return gang.ID
}

func (w *world) cancel(queue string, id workload.ID) {
	w.t.Helper()
	w.publish(event.WorkloadSubject(queue), &event.WorkloadCancel{Workload: id, Why: "test"})
}

func (w *world) status(s event.GangStatus) {
	w.t.Helper()
	s.Cluster = cluster
	w.publish(event.StatusSubject(cluster, s.Workload), &s)
}

// pods reports all pods of the gang as ready where the command puts them.
func (w *world) pods(command *event.GangCommand) {
	w.t.Helper()
	var pods []event.GangPod
	for _, p := range command.Placements {
		for range p.Pods {
			pods = append(pods, event.GangPod{
				Name: fmt.Sprintf("%s-%d", p.PodSet, len(pods)), Attempt: command.Attempt, PodSet: p.PodSet, Node: p.Node,
				Phase: "Running", Ready: true, Requests: resource.List{"cpu": 1000, "pods": 1},
			})
		}
	}
	w.publish(event.GangSubject(cluster, command.Workload), &event.GangObserved{
		Version: w.nextVersion(), Cluster: cluster, Workload: command.Workload, Pods: pods,
	})
}

// await returns the first event or command, seen or to come, that matches.
func await[P event.Payload](w *world, what string, matches func(P) bool) P {
	w.t.Helper()
	return bustest.Await(w.heard, patience, what, matches, func() string { return "workloads: " + w.dump() })
}

func (w *world) phase(id workload.ID, phase workload.Phase) *event.WorkloadChanged {
	w.t.Helper()
	return await(w, fmt.Sprintf("workload %s %s", id, phase), func(e *event.WorkloadChanged) bool {
		return e.ID == id && e.Phase == phase
	})
}

func (w *world) waits(id workload.ID, kind workload.ReasonKind) *event.WorkloadChanged {
	w.t.Helper()
	return await(w, fmt.Sprintf("workload %s waiting for %s", id, kind), func(e *event.WorkloadChanged) bool {
		return e.ID == id && e.Phase == workload.Queued && e.Reason != nil && isReason(e.Reason, kind)
	})
}

// isReason is whether a reason is of a kind; of places that lack, also where all nodes together
// have fewer than the gang asks for.
func isReason(r *workload.Reason, kind workload.ReasonKind) bool {
	return r.Kind == kind || kind == workload.ReasonFit && r.Kind == workload.ReasonNeverFits && r.Shortage != nil
}

func (w *world) command(id workload.ID, state string, attempt int) *event.GangCommand {
	w.t.Helper()
	return await(w, fmt.Sprintf("command %s for workload %s", state, id), func(e *event.GangCommand) bool {
		return e.Workload == id && e.State == state && e.Attempt == attempt
	})
}

func (w *world) rejected(id workload.ID) *event.WorkloadRejected {
	w.t.Helper()
	return await(w, fmt.Sprintf("rejection of %s", id), func(e *event.WorkloadRejected) bool { return e.Workload == id })
}

func (w *world) dump() string {
	answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{})
	encoded, _ := json.MarshalIndent(answer.Workloads, "", " ")
	return fmt.Sprintf("%s %v", encoded, err)
}
