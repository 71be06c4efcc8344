package suite

import (
	"context"
	"fmt"
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
	run   int  // of a fault
	grown bool // of those that grow: it was asked for larger
	// released: a gang that stays may be cancelled.
	released bool
	phase    workload.Phase // empty: never heard of
	// tried is when it was last submitted or cancelled: without an answer that is
	// done again, as any submitter must.
	tried time.Time
	// older: it was there when Postgres was restored to an older state, and what it was may be
	// otherwise once. ended: it had ended by then, and the ledger has no record of it.
	older, ended bool
	// preempted: it was evicted for another gang. grew: it got the places that it asked for
	// while it ran.
	preempted, grew bool
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
	files := w.access.TLS
	checked, err := checker.Connect(checker.Login{
		URL: w.access.NATSURL, Seed: w.access.Credentials, CA: files.CA, Certificate: files.Certificate, Key: files.Key,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.checker = &checker.Checker{DatabaseURL: w.access.DatabaseURL, NATS: checked, Kube: w.kube, Cluster: w.access.Cluster}
	var watching sync.WaitGroup
	t.Cleanup(func() { cancel(); watching.Wait(); w.bus.Close(); checked.Close() })
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
	return w.submitAs(t, plain, "default")
}

// submitAs makes a gang of a kind, which drive sees to.
func (w *world) submitAs(t *testing.T, k kind, queue string) workload.ID {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprintf("gang-%d", len(w.submitted))
	id := event.WorkloadID(source, name)
	if k == byHand { // its id is the object's, which is known when it was created
		id = workload.ID(name)
	}
	w.submitted[id] = &gang{name: name, kind: k, queue: queue, run: w.run}
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
