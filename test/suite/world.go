package suite

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/recorder"
	"muster.dev/muster/test/suite/checker"
)

const (
	// patience is how long a test waits for what must happen; with the load of Chaos
	// it is patienceMost.
	patience     = 90 * time.Second
	patienceMost = 3 * time.Minute
	// source names the submitter.
	source = "suite"
	// gangs is the load of one fault: before it, while it lasts, and after it.
	gangs = 3
	// lookEvery is how often the world is looked at.
	lookEvery = 150 * time.Millisecond
	// askTimeout bounds one question; parts that should answer are broken.
	askTimeout = 2 * time.Second
)

// world is an installation under load.
type world struct {
	Installation
	access Access
	ctx    context.Context // until the end of the installation
	bus    *bus.Bus
	kube   dynamic.Interface

	mu        sync.Mutex
	submitted map[workload.ID]*gang
	breaches  []string // of the promises, seen on the way
	checker   *checker.Checker
	alias     map[workload.ID]workload.ID // of gangs by kubectl, by their names
	random    *rand.Rand                  // of what kinds gangs are, in Chaos
	run       int                         // of a fault, in Chaos
	cluster   bool                        // of NATS servers, in Chaos
	// unseen: the API server is restored to an older state. Objects go with that, and others
	// are there and gone before a watch of them begins again.
	unseen bool

	recorder   *recorder.Recorder // of Chaos only
	violations int                // of the recorder, that have been reported
}

// gang is a submission as its submitter sees it.
type gang struct {
	name  string
	kind  kind
	queue string
	run   int            // of a fault
	grown bool           // of those that grow: it was made larger
	phase workload.Phase // empty: never heard of
	// tried is when it was last submitted or cancelled: without an answer that is
	// done again, as any submitter must.
	tried time.Time
	// older: it was there when Postgres was restored to an older state, and what it was may be
	// otherwise once. ended: it had ended by then, and the ledger has no record of it.
	older, ended bool
}

func newWorld(t *testing.T, p Provider, shape Shape) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &world{
		Installation: p.Start(t, shape), ctx: ctx,
		submitted: map[workload.ID]*gang{}, alias: map[workload.ID]workload.ID{},
	}
	w.access = w.Access()
	var err error
	w.bus, err = bus.Connect(ctx, bus.Options{
		URL: w.access.NATSURL, Name: source, CredentialsFile: w.access.Credentials, TLS: w.access.TLS, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", w.access.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if w.kube, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	w.checker = &checker.Checker{DatabaseURL: w.access.DatabaseURL, NATS: w.bus.Conn(), Kube: w.kube, Cluster: w.access.Cluster}
	var watching sync.WaitGroup
	t.Cleanup(func() { cancel(); watching.Wait(); w.bus.Close() })
	watching.Go(w.drive)
	watching.Go(func() { w.checker.Watch(ctx) })
	return w
}

// load runs gangs through the installation, some before the fault, some beside
// it and some after it, and waits until all of them have come to their end.
func (w *world) load(t *testing.T, fault func()) {
	t.Helper()
	var ids []workload.ID
	submit := func() {
		for range gangs {
			ids = append(ids, w.submit(t))
		}
	}
	submit()
	submit() // a backlog for the fault to fall into
	fault()
	submit()
	w.until(t, "all gangs are at their end", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !slices.ContainsFunc(ids, func(id workload.ID) bool { return !w.submitted[id].phase.Final() })
	})
}

// submit makes a gang of a head and a worker with a GPU, which drive sees to.
func (w *world) submit(t *testing.T) workload.ID {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprintf("gang-%d", len(w.submitted))
	id := event.WorkloadID(source, name)
	w.submitted[id] = &gang{name: name, queue: "default", run: w.run}
	return id
}

// running waits until a gang has run.
func (w *world) running(t *testing.T, id workload.ID) {
	t.Helper()
	w.until(t, "gang "+string(id)+" has run", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		phase := w.gangOf(id).phase
		return phase == workload.Running || phase == workload.Cancelling || phase.Final()
	})
}

// drive is the submitter: it submits what is new, cancels what runs, and does
// both again when Muster has not answered.
func (w *world) drive() {
	queries := query.NewClient(w.bus.Conn())
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		w.look(queries)
		w.mu.Lock()
		for id, g := range w.submitted {
			w.act(id, g)
		}
		w.mu.Unlock()
	}
}

// look asks for what lives, and for each gang of which no answer tells. There may be
// no answer for a while.
func (w *world) look(queries *query.Client) {
	live, answered := w.ask(queries, query.WorkloadsRequest{Phases: livePhases()})
	if !answered {
		return
	}
	seen := map[workload.ID]bool{}
	for _, record := range live {
		seen[record.ID] = true
	}
	for _, name := range w.silent(seen) {
		if _, answered := w.ask(queries, query.WorkloadsRequest{Name: name, Namespace: w.access.Namespace}); !answered {
			return
		}
	}
}

func livePhases() []workload.Phase {
	return []workload.Phase{workload.Queued, workload.Admitted, workload.Dispatched, workload.Running, workload.Evicting, workload.Cancelling}
}

// ask takes in one answer.
func (w *world) ask(queries *query.Client, request query.WorkloadsRequest) (records []workload.Record, answered bool) {
	ctx, cancel := context.WithTimeout(w.ctx, askTimeout)
	defer cancel()
	answer, err := queries.Workloads(ctx, request)
	if err != nil {
		return nil, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, record := range answer.Workloads {
		g := w.known(record)
		switch {
		case g == nil:
			w.breach("workload %s was never submitted", record.ID)
		case g.older && g.phase.Final() && !record.Phase.Final(): // its end is lost
			g.phase, g.older, g.tried = record.Phase, false, time.Time{}
		case g.phase.Final() && record.Phase != g.phase:
			w.breach("gang %s was %s and is %s", g.name, g.phase, record.Phase)
		case g.phase != record.Phase:
			g.phase, g.tried = record.Phase, time.Time{}
		}
	}
	return answer.Workloads, true
}

// silent lists the names of the gangs that are not among those that live: they have
// ended, or have had no answer for so long that they are to be submitted again.
func (w *world) silent(live map[workload.ID]bool) (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, g := range w.submitted {
		overdue := g.phase == "" && !g.tried.IsZero() && time.Since(g.tried) >= againAfter
		if !live[id] && !g.phase.Final() && (g.phase != "" || overdue) {
			names = append(names, g.name)
		}
	}
	return names
}

// againAfter is how long a submitter waits for an answer.
const againAfter = 3 * time.Second

func (w *world) act(id workload.ID, g *gang) {
	if time.Since(g.tried) < againAfter {
		return
	}
	switch g.phase {
	case "":
		w.submitGang(g)
	case workload.Running:
		if !w.mayEnd(g) {
			break
		}
		cancel, err := event.New(event.NewID(), source, time.Now(), &event.WorkloadCancel{Workload: id, Why: "it has run"})
		if err != nil {
			w.breach("cancel %s: %v", g.name, err)
			return
		}
		w.publish(event.WorkloadSubject(g.queue), cancel)
	default:
		return
	}
	g.tried = time.Now()
}

// publish sends without waiting: the answer is what look sees.
func (w *world) publish(subject string, e event.Envelope) {
	encoded, err := e.Encode()
	if err != nil {
		w.breach("encode %s: %v", e.ID, err)
		return
	}
	// An id of its own: a repetition must reach Muster, not NATS' memory.
	_, _ = w.bus.PublishEncoded(subject, event.NewID(), encoded, 0)
}

// leader returns which queue-manager leads, and its epoch. Postgres may be slow to
// answer while parts of its machine are broken.
func (w *world) leader(t *testing.T) (part string, epoch int64) {
	t.Helper()
	w.until(t, "Postgres tells who leads", func() bool {
		var err error
		if part, epoch, err = w.leads(); err != nil {
			t.Logf("asked who leads: %v", err)
		}
		return err == nil
	})
	return part, epoch
}

func (w *world) leads() (part string, epoch int64, err error) {
	ctx, cancel := context.WithTimeout(w.ctx, askTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, w.access.DatabaseURL)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = conn.Close(ctx) }()
	var holder string
	if err := conn.QueryRow(ctx, `SELECT holder, epoch FROM leader`).Scan(&holder, &epoch); err != nil {
		return "", 0, err
	}
	for i := range QueueManagers {
		if name := QueueManager(i + 1); strings.Contains(holder+"\n", w.Holder(name)) {
			return name, epoch, nil
		}
	}
	return "", 0, fmt.Errorf("the leader calls itself %q, which is no queue-manager of this installation", holder)
}

// until polls a condition that no event tells of.
func (w *world) until(t *testing.T, what string, met func() bool) {
	t.Helper()
	patience := patience
	if w.random != nil {
		patience = patienceMost
	}
	deadline := time.After(patience)
	for !met() {
		select {
		case <-time.After(lookEvery):
		case <-deadline:
			t.Fatalf("not within %s: %s; gangs: %s", patience, what, w.unfinished())
		}
	}
}

// unfinished lists what has not come to its end.
func (w *world) unfinished() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(w.submitted)) {
		if g := w.submitted[id]; !g.phase.Final() {
			lines = append(lines, fmt.Sprintf("%s %s %q", g.name, id, g.phase))
		}
	}
	return strings.Join(lines, ", ")
}

// breach notes a broken promise; the caller holds mu.
func (w *world) breach(format string, args ...any) {
	w.breaches = append(w.breaches, fmt.Sprintf(format, args...))
}

// check proves at the end what the promises say, from Postgres, the streams and
// the cluster.
func (w *world) check(t *testing.T) {
	t.Helper()
	w.until(t, "nothing is left in Kubernetes", func() bool { return w.checker.NothingLeft(w.ctx) })
	found := w.verify()
	for _, each := range found {
		t.Error(each)
	}
	if len(found) == 0 {
		t.Logf("%d gangs: none lost, none twice", len(w.submitted))
	}
}

// verify has the checker prove everything, when all gangs are at their end, and
// returns what is wrong.
func (w *world) verify() []string {
	w.mu.Lock()
	var gangs []checker.Gang
	for id, g := range w.submitted {
		if !g.ended {
			gangs = append(gangs, checker.Gang{ID: string(id), Name: strings.TrimSpace(g.name + " " + string(g.kind)), Ends: g.kind.ends(), Unseen: w.unseen})
		}
	}
	w.mu.Unlock()
	found := w.checker.Verify(w.ctx, gangs, patience/3)
	w.mu.Lock()
	defer w.mu.Unlock()
	found = append(found, w.breaches...)
	w.breaches = nil
	if w.recorder != nil {
		violations := w.recorder.Report().Violations
		found = append(found, violations[min(w.violations, len(violations)):]...)
		w.violations = len(violations)
	}
	return found
}
