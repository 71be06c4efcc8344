package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

const (
	// laneMessages and laneBytes bound what waits of one subject before it is taken;
	// a message has to be smaller than that (queuedMessage).
	laneMessages = 128
	laneBytes    = 2 * queuedMessage
	// lanesMost bounds the subjects that are read at once, and with that the memory.
	// Others wait for their turn of laneTurn.
	lanesMost = 128
	laneTurn  = time.Second
	// laneIdle is when a subject is not waited on any more; it is looked for.
	laneIdle = time.Minute
	// laneForgotten is when the server drops the consumer of a subject that no process
	// reads.
	laneForgotten = 10 * time.Minute
	// lookEvery and lookEach, in messages, are how often subjects are looked for that
	// are not read yet.
	lookEvery = 100 * time.Millisecond
	lookEach  = 128
)

// lanes are the consumers of a stream's subjects.
type lanes struct {
	bus     *Bus
	work    Work
	deliver func(context.Context, Delivery) bool // called by one goroutine for each subject
	handed  atomic.Int64
	reading reading
	look    chan chan<- struct{} // asks for a look, and is closed when it is done
	looks   chan look            // what was seen, for keepRoom
	stream  jetstream.Stream     // nil until it was found
	open    map[string]*lane
	turns   turns // of the subjects that wait for a lane
	running sync.WaitGroup
}

// lane is the consumer of one subject.
type lane struct {
	opened time.Time
	last   atomic.Int64 // when it had a message, in Unix nanoseconds
	close  context.CancelFunc
}

// run begins with the subjects that have messages.
func (l *lanes) run(ctx context.Context, first look) {
	defer l.running.Wait()
	if l.work.Dropped != nil {
		l.running.Go(func() { l.keepRoom(ctx) })
	}
	l.arrange(ctx, first.info.State.Subjects)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		var done chan<- struct{}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case done = <-l.look:
		}
		tick.Reset(l.lookAround(ctx))
		if done != nil {
			close(done)
		}
	}
}

// lookOnce asks the server, with one request, what the stream has.
func (l *lanes) lookOnce(ctx context.Context) (look, error) {
	if l.stream == nil {
		stream, err := l.bus.js.Stream(ctx, l.work.Stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = fmt.Errorf("%w: %w", ErrNoStream, err)
		}
		if err != nil {
			return look{}, fmt.Errorf("read the state of stream %s: %w", l.work.Stream, err)
		}
		l.stream = stream
	}
	at := time.Now()
	info, err := l.stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return look{}, fmt.Errorf("list subjects of stream %s: %w", l.work.Stream, err)
	}
	return look{at, l.stream, info}, nil
}

// lookAround looks which subjects have messages, and returns when to look again.
func (l *lanes) lookAround(ctx context.Context) time.Duration {
	seen, err := l.lookOnce(ctx)
	if err == nil {
		l.arrange(ctx, seen.info.State.Subjects)
		if l.work.Dropped == nil {
			return lookEvery
		}
		select {
		case l.looks <- seen:
		default: // keepRoom makes room now, and has the next one
		}
		if seen.halfFull() {
			return lookSoon
		}
		return lookEvery
	}
	if ctx.Err() == nil && l.bus.Ready() == nil {
		l.bus.logger.Warn("cannot list the subjects of a stream; retrying", zap.Error(err), zap.Duration("after", resubscribeAfter))
		l.bus.restoreStreams(ctx, err)
	}
	wait(ctx, resubscribeAfter)
	return lookEvery
}

// arrange opens lanes for subjects that have messages, those first that have waited for
// longest, and closes others: idle ones, and, when there are too many, those that have
// been open for longest.
func (l *lanes) arrange(ctx context.Context, subjects map[string]uint64) {
	var waiting []string
	for subject := range subjects {
		if l.open[subject] == nil {
			waiting = append(waiting, subject)
		}
	}
	waiting = l.turns.line(waiting)
	now := time.Now()
	for subject, lane := range l.open {
		if subjects[subject] == 0 && now.Sub(time.Unix(0, lane.last.Load())) > laneIdle {
			l.end(subject)
		}
	}
	for len(l.open)+len(waiting) > lanesMost {
		oldest := ""
		for subject, lane := range l.open {
			if now.Sub(lane.opened) > laneTurn && (oldest == "" || lane.opened.Before(l.open[oldest].opened)) {
				oldest = subject
			}
		}
		if oldest == "" || len(l.open) == 0 {
			break
		}
		l.end(oldest)
	}
	// Before others go on, so that their messages come at once.
	var beginning sync.WaitGroup
	for _, subject := range waiting[:min(len(waiting), max(0, lanesMost-len(l.open)))] {
		beginning.Go(l.begin(ctx, subject))
	}
	beginning.Wait()
}

func (l *lanes) end(subject string) {
	l.open[subject].close()
	delete(l.open, subject)
	l.reading.forget(subject)
}

// begin opens a lane and returns what has to be done for it.
func (l *lanes) begin(ctx context.Context, subject string) (subscribed func()) {
	ctx, cancel := context.WithCancel(ctx)
	opened := &lane{opened: time.Now(), close: cancel}
	opened.last.Store(opened.opened.UnixNano())
	l.open[subject] = opened
	named := laneNames{bus: l.bus, work: l.work, subject: subject}
	if l.work.TakeOver {
		named.drop = []string{laneName(l.work.Durable, subject)}
	}
	subscribe := func(ctx context.Context) (jetstream.Consumer, error) {
		name, err := named.use(ctx)
		if err != nil {
			return nil, err
		}
		consumer, err := l.bus.js.CreateOrUpdateConsumer(ctx, l.work.Stream, jetstream.ConsumerConfig{
			Durable: name, FilterSubject: subject, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: l.work.AckWait, MaxAckPending: l.work.MaxPending, MaxDeliver: -1, InactiveThreshold: laneForgotten,
		})
		if err != nil {
			named.failed(err)
			return nil, fmt.Errorf("create consumer %s of stream %s: %w", name, l.work.Stream, err)
		}
		return consumer, nil
	}
	read := func(consumer jetstream.Consumer) {
		defer cancel()
		handle := func(msg jetstream.Msg) {
			d := newDelivery(msg, false).SettledBy(counted{msg, &l.reading, subject})
			opened.last.Store(time.Now().UnixNano())
			if !l.deliver(ctx, d) {
				d.Retry(0)
				return
			}
			l.count(ctx)
		}
		l.bus.keepConsuming(ctx, consumer, subscription{
			subscribe: subscribe, handle: handle, passing: durablePassing,
			options: []jetstream.PullConsumeOpt{
				jetstream.PullMaxMessagesWithBytesLimit(laneMessages, laneBytes), jetstream.PullHeartbeat(heartbeatEvery),
			},
		})
	}
	return func() {
		consumer, err := subscribe(ctx)
		if err != nil {
			consumer = nil // it is tried again
		}
		l.running.Go(func() { read(consumer) })
	}
}
