package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// guardLast begins requests for the last event of a workload; what follows is the
	// event's subject.
	guardLast = "DIRECT.GET." + EventsStream + "."
	// lastAtOnce bounds how many of them wait for JetStream at a time: it puts all
	// answers into its memory before it sends the first.
	lastAtOnce = 16
	// Of one queue lastPerQueue may wait, and one is asked every lastEvery, so that all
	// have their answer well before `muster submit` gives up. Those beyond are refused.
	lastPerQueue = 64
	lastEvery    = 20 * time.Millisecond
)

// lastEvents answers requests for last events with JetStream's answers, a few at a
// time. Its methods may be called concurrently.
type lastEvents struct {
	bus  *Bus
	slot chan struct{}

	mu     sync.Mutex
	queues map[string]*lastTurns // those that were ever asked about
}

// tooMany is the answer to who asks too often.
var tooMany = nats.Header{"Status": {"429"}, "Description": {"Too Many Requests"}}

// lastTurns are those of one queue.
type lastTurns struct {
	waiting int
	next    time.Time
}

// guardLastEvents begins to answer. A request is small and its answer may be large: of
// one who asked JetStream itself as fast as a connection goes, the server would run out
// of memory for all.
func (b *Bus) guardLastEvents(ctx context.Context) (*nats.Subscription, error) {
	l := &lastEvents{bus: b, slot: make(chan struct{}, lastAtOnce), queues: map[string]*lastTurns{}}
	subscription, err := b.nc.QueueSubscribe(GuardSubject+guardLast+">", "jetstream", func(request *nats.Msg) { l.enqueue(ctx, request) })
	if err != nil {
		return nil, fmt.Errorf("answer requests for last events: %w", err)
	}
	return subscription, nil
}

// enqueue is called with one request after the other, and must be quick.
func (l *lastEvents) enqueue(ctx context.Context, request *nats.Msg) {
	subject := strings.TrimPrefix(request.Subject, GuardSubject+guardLast)
	parts := strings.Split(subject, ".") // of EventsSubject
	if len(parts) != 4 || request.Reply == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	turns := l.queues[parts[2]]
	if turns == nil {
		turns = &lastTurns{}
		l.queues[parts[2]] = turns
	}
	if turns.waiting == lastPerQueue {
		// Not left without an answer: until there is one the server remembers who asked,
		// for two minutes.
		_ = request.RespondMsg(&nats.Msg{Header: tooMany})
		return
	}
	now := time.Now()
	if turns.next.Before(now) {
		turns.next = now
	}
	turn := time.NewTimer(turns.next.Sub(now))
	turns.next = turns.next.Add(lastEvery)
	turns.waiting++
	go func() {
		l.answer(ctx, request, subject, turn.C)
		l.mu.Lock()
		defer l.mu.Unlock()
		turns.waiting--
	}()
}

func (l *lastEvents) answer(ctx context.Context, request *nats.Msg, subject string, turn <-chan time.Time) {
	ctx, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	select {
	case <-turn:
	case <-ctx.Done():
		return
	}
	select {
	case l.slot <- struct{}{}:
		defer func() { <-l.slot }()
	case <-ctx.Done():
		return
	}
	// The body is not passed on: it could ask for more than the subject has.
	answer, err := l.bus.nc.RequestWithContext(ctx, jetstreamAPI+guardLast+subject, nil)
	if errors.Is(err, nats.ErrNoResponders) {
		answer = &nats.Msg{Header: nats.Header{"Status": {"503"}}} // which means the same to the client
	} else if err != nil {
		return // who asked asks again
	}
	_ = request.RespondMsg(&nats.Msg{Header: answer.Header, Data: answer.Data}) // the same
}
