package outage

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/test/stack"
	"muster.dev/muster/test/suite/checker"
)

type unstructuredObject = unstructured.Unstructured

const (
	lookEvery = 150 * time.Millisecond
	// atOnce bounds the gangs that are not at their end, and againAfter is how long an
	// answer is waited for.
	atOnce     = 12
	againAfter = 3 * time.Second
	// longPatience is for a machine on which much else runs.
	longPatience = 3 * time.Minute
)

// load submits gangs, one after the other, and cancels those that run.
type load struct {
	*world
	// insists sends a submission again of which nothing was heard: NATS has taken it,
	// and the ledger may have lost it without a word. Otherwise each is sent once.
	insists bool
	heard   *bustest.Listener // events
	stop    context.CancelFunc
	ended   chan struct{}

	mu    sync.Mutex
	gangs map[workload.ID]*gang
}

// gang is one of the load.
type gang struct {
	name  string
	phase workload.Phase // empty until Muster knows it
	acted time.Time
}

func newLoad(w *world, insists bool) *load {
	l := &load{world: w, insists: insists, heard: bustest.New(w.T), gangs: map[workload.ID]*gang{}, ended: make(chan struct{})}
	l.heard.Listen(w.Context(), w.Bus, bus.EventsStream, event.EventsFilter())
	return l
}

// drive works until finish, or ctx ends. There is one gang more with each look.
func (l *load) drive(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	submitting, stop := context.WithCancel(ctx)
	l.stop = stop
	go func() {
		defer close(l.ended)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for len(l.unfinished()) > 0 || submitting.Err() == nil {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			l.look(ctx)
			if submitting.Err() == nil && len(l.unfinished()) < atOnce {
				l.add(ctx)
			}
			l.act(ctx)
		}
	}()
	l.Cleanup(func() { cancel(); <-l.ended })
}

// finish submits nothing more and waits until all gangs are at their end.
func (l *load) finish() {
	l.Helper()
	l.stop()
	select {
	case <-l.ended:
	case <-time.After(longPatience):
		l.Fatalf("not within %s: all gangs are at their end; unfinished: %v", longPatience, l.unfinished())
	}
}

func (l *load) add(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := fmt.Sprintf("gang-%d", len(l.gangs))
	l.gangs[event.WorkloadID(l.Pool, name)] = &gang{name: name, acted: time.Now()}
	l.send(ctx, name)
}

// send publishes a submission and waits until NATS has it.
func (l *load) send(ctx context.Context, name string) {
	published, err := l.Bus.PublishAsync(event.SubmitSubject("default"), event.Envelope{
		SpecVersion: event.SpecVersion, ID: name, Source: l.Pool, Type: event.SubmitType,
		DataContentType: "application/json", Data: json.RawMessage(stack.RayCluster(name, 1, 1)),
	})
	if err == nil {
		err = published.Wait(ctx)
	}
	if err != nil && ctx.Err() == nil {
		l.Errorf("submit %s: %v", name, err)
	}
}

// look asks for the phases. While Postgres is away there is no answer.
func (l *load) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, againAfter)
	defer cancel()
	answer, err := l.Queries.Workloads(ctx, query.WorkloadsRequest{})
	if err != nil {
		return
	}
	ended := map[workload.ID]workload.Phase{} // as was told
	for _, heard := range bustest.Heard[*event.WorkloadChanged](l.heard) {
		if heard.Phase.Final() {
			ended[heard.ID] = heard.Phase
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	missing := maps.Clone(l.gangs)
	for _, record := range answer.Workloads {
		delete(missing, record.ID)
		if g := l.gangs[record.ID]; g == nil {
			l.Errorf("workload %s was never submitted", record.ID)
		} else if g.phase != record.Phase {
			g.phase, g.acted = record.Phase, time.Time{}
		}
	}
	for id, g := range missing { // not stored yet, or forgotten
		if !g.phase.Final() {
			g.phase = ended[id]
		}
	}
}

// act cancels what runs, and sends what was not heard of.
func (l *load) act(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, g := range l.gangs {
		if time.Since(g.acted) < againAfter {
			continue
		}
		switch {
		case g.phase == "" && l.insists:
			l.send(ctx, g.name)
		case g.phase == workload.Running:
			cancel, err := event.New(event.NewID(), "test", time.Now(), &event.WorkloadCancel{Workload: id, Why: "it has run"})
			if err == nil {
				err = l.Bus.Publish(ctx, event.WorkloadSubject("default"), cancel)
			}
			if err != nil && ctx.Err() == nil {
				l.Errorf("cancel %s: %v", g.name, err)
			}
		default:
			continue
		}
		g.acted = time.Now()
	}
}

// named are the gangs that the dead-letter stream names, by name.
func (l *load) named() map[string]bool {
	named := map[string]bool{}
	dead, err := l.Bus.DeadLetters(l.Context())
	if err != nil {
		l.Errorf("read the dead letters: %v", err)
	}
	for _, d := range dead {
		for word := range strings.FieldsSeq(d.Reason) {
			if name, ours := strings.CutPrefix(strings.Trim(word, ","), l.Namespace+"/"); ours {
				named[name] = true
			}
		}
	}
	return named
}

// unfinished are the gangs that are not at their end, by name.
func (l *load) unfinished() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.gangs {
		if !g.phase.Final() {
			names = append(names, fmt.Sprintf("%s %q", g.name, g.phase))
		}
	}
	return names
}

// expected are the gangs that the ledger must have: all but those whose records are
// named as lost.
func (l *load) expected() (gangs []checker.Gang) {
	named := l.named()
	for id, g := range l.gangs {
		if !named[g.name] {
			gangs = append(gangs, checker.Gang{ID: string(id), Name: g.name, Ends: []string{string(workload.Cancelled)}})
		}
	}
	return gangs
}

// meanwhile polls a condition that no event tells of.
func (l *load) meanwhile(what string, met func() bool) {
	l.Helper()
	deadline := time.After(longPatience)
	for !met() {
		select {
		case <-time.After(lookEvery):
		case <-deadline:
			l.Fatalf("not within %s: %s; unfinished: %v", longPatience, what, l.unfinished())
		}
	}
}
