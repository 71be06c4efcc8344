package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/workload"
)

// Work names a stream of work and who reads it.
type Work struct {
	Stream, Durable string
	// AckWait is the time until an unsettled message comes again; zero for 5 s.
	// It is also how long a message may be delayed that was on its way to a
	// reader that died.
	AckWait time.Duration
	// MaxPending bounds delivered but unsettled messages of a subject; zero for
	// 4096.
	MaxPending int
	// TakeOver makes the consumers anew, so that what their last reader has not
	// settled comes at once, and nothing more goes to that one: it may stand still
	// with its connection open.
	TakeOver bool
}

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
	// laneForgotten is when the server drops the consumer of a subject that nobody
	// reads.
	laneForgotten = 10 * time.Minute
	// lookEvery and lookEach, in messages, are how often subjects are looked for that
	// are not read yet.
	lookEvery = 100 * time.Millisecond
	lookEach  = 128
	// consumerBroken is the server's JSConsumerCreateErrF.
	consumerBroken jetstream.ErrorCode = 10012
)

// Work delivers the messages of a stream of work to the returned channel until
// ctx ends; the channel is then closed, and what was not taken from it is given
// back. Each delivery must be settled.
//
// Each subject has a durable consumer of its own, and they take turns, message by
// message: however many messages one has, those of another wait for as many as
// there are subjects, and for what is in the channel. The order within a subject is
// the stream's. Consumers are created when missing, also later when the server
// lost them.
func (b *Bus) Work(ctx context.Context, w Work) (<-chan Delivery, error) {
	out := make(chan Delivery, buffered)
	begin, err := b.work(ctx, w, func(ctx context.Context, d Delivery) bool {
		select {
		case <-ctx.Done():
			return false
		case out <- d:
			return true
		}
	})
	if err != nil {
		return nil, err
	}
	go func() {
		begin()
		close(out)
		giveBack(out)
	}()
	return out, nil
}

// Handle is Work for readers whose messages may take long: handle is called for
// each message, one after the other for a subject, and for different subjects at
// the same time. A subject whose handler does not return delays no other. The
// returned function reads: it returns when ctx has ended and no handler runs. The
// context that a handler gets may end before.
func (b *Bus) Handle(ctx context.Context, w Work, handle func(context.Context, Delivery)) (read func(), err error) {
	return b.work(ctx, w, func(ctx context.Context, d Delivery) bool {
		if ctx.Err() != nil {
			return false
		}
		handle(ctx, d)
		return true
	})
}

// work returns what reads until ctx ends. take reports whether it has taken the
// message.
func (b *Bus) work(ctx context.Context, w Work, take func(context.Context, Delivery) bool) (begin func(), err error) {
	if w.AckWait == 0 {
		w.AckWait = 5 * time.Second
	}
	if w.MaxPending == 0 {
		w.MaxPending = 4096
	}
	// Before subjects had consumers of their own there was one for all.
	err = b.js.DeleteConsumer(ctx, w.Stream, w.Durable)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, fmt.Errorf("read stream %s: %w", w.Stream, err)
	}
	l := &lanes{bus: b, work: w, take: take, look: make(chan chan<- struct{}), open: map[string]*lane{}}
	subjects, err := b.Subjects(ctx, w.Stream, ">")
	if err != nil {
		return nil, err
	}
	return func() { l.run(ctx, subjects) }, nil
}

// lanes are the consumers of a stream's subjects.
type lanes struct {
	bus     *Bus
	work    Work
	take    func(context.Context, Delivery) bool // called by one goroutine for each subject
	handed  atomic.Int64
	look    chan chan<- struct{} // asks for a look, and is told when it is done
	open    map[string]*lane
	running sync.WaitGroup
}

// lane is the consumer of one subject.
type lane struct {
	opened time.Time
	last   atomic.Int64 // when it had a message, in Unix nanoseconds
	close  context.CancelFunc
}

// run begins with the subjects that have messages.
func (l *lanes) run(ctx context.Context, subjects map[string]bool) {
	defer l.running.Wait()
	l.arrange(ctx, subjects)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		var told chan<- struct{}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case told = <-l.look:
		}
		l.lookAround(ctx)
		if told != nil {
			close(told)
		}
	}
}

// lookAround looks which subjects have messages.
func (l *lanes) lookAround(ctx context.Context) {
	subjects, err := l.bus.Subjects(ctx, l.work.Stream, ">")
	if err == nil {
		l.arrange(ctx, subjects)
		return
	}
	if ctx.Err() == nil && l.bus.Ready() == nil {
		l.bus.logger.Warn("cannot look for subjects; trying again", zap.Error(err), zap.Duration("after", resubscribeAfter))
		l.bus.restoreStreams(ctx, err)
	}
	wait(ctx, resubscribeAfter)
}

// arrange opens lanes for subjects that have messages, and closes others: idle
// ones, and, when there are too many, those that have been open for longest.
func (l *lanes) arrange(ctx context.Context, subjects map[string]bool) {
	var waiting []string
	for subject := range subjects {
		if l.open[subject] == nil {
			waiting = append(waiting, subject)
		}
	}
	slices.Sort(waiting)
	now := time.Now()
	for subject, lane := range l.open {
		if !subjects[subject] && now.Sub(time.Unix(0, lane.last.Load())) > laneIdle {
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
}

// begin opens a lane and returns what has to be done for it.
func (l *lanes) begin(ctx context.Context, subject string) (subscribed func()) {
	ctx, cancel := context.WithCancel(ctx)
	opened := &lane{opened: time.Now(), close: cancel}
	opened.last.Store(opened.opened.UnixNano())
	l.open[subject] = opened
	takeOver := l.work.TakeOver
	subscribe := func(ctx context.Context) (jetstream.Consumer, error) {
		name := laneName(l.work.Durable, subject)
		if takeOver {
			err := l.bus.js.DeleteConsumer(ctx, l.work.Stream, name)
			if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) && !errors.Is(err, jetstream.ErrStreamNotFound) {
				return nil, fmt.Errorf("take over consumer %s of stream %s: %w", name, l.work.Stream, err)
			}
			takeOver = false
		}
		consumer, err := l.bus.js.CreateOrUpdateConsumer(ctx, l.work.Stream, jetstream.ConsumerConfig{
			Durable: name, FilterSubject: subject, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: l.work.AckWait, MaxAckPending: l.work.MaxPending, MaxDeliver: -1, InactiveThreshold: laneForgotten,
		})
		if err != nil {
			// The server may keep a consumer whose files are gone, and which cannot be
			// updated (subscribe.go says how): it has to go first.
			var refused *jetstream.APIError
			takeOver = l.work.TakeOver && errors.As(err, &refused) && refused.ErrorCode == consumerBroken
			return nil, fmt.Errorf("create consumer %s of stream %s: %w", name, l.work.Stream, err)
		}
		return consumer, nil
	}
	read := func(consumer jetstream.Consumer) {
		defer cancel()
		handle := func(msg jetstream.Msg) {
			d := newDelivery(msg, true)
			opened.last.Store(time.Now().UnixNano())
			if !l.take(ctx, d) {
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

// count has subjects looked for each so many messages, and waits for it: however
// fast those that are known bring messages, another one is found after as many.
func (l *lanes) count(ctx context.Context) {
	if l.handed.Add(1)%lookEach != 0 {
		return
	}
	done := make(chan struct{})
	select {
	case l.look <- done:
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// laneName names the consumer of a subject: by what follows the stream's prefix of
// two tokens, or by the subject's digest when that is more than one name.
func laneName(durable, subject string) string {
	if parts := strings.SplitN(subject, ".", 3); len(parts) == 3 && workload.ValidName(parts[2]) {
		return durable + "-" + parts[2]
	}
	sum := sha256.Sum256([]byte(subject))
	return durable + "_" + hex.EncodeToString(sum[:8])
}

// giveBack returns what nobody took any more, so that the next reader has it at
// once and not only after the AckWait.
func giveBack(out <-chan Delivery) {
	for d := range out {
		d.Retry(0)
	}
}

// Redelivered returns how many messages of a stream of work have been delivered
// more than once and are not settled yet.
func (b *Bus) Redelivered(ctx context.Context, stream string) (redelivered int, err error) {
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return 0, fmt.Errorf("look at stream %s: %w", stream, err)
	}
	consumers := s.ListConsumers(ctx)
	for info := range consumers.Info() {
		redelivered += info.NumRedelivered
	}
	if err := consumers.Err(); err != nil {
		return 0, fmt.Errorf("list consumers of stream %s: %w", stream, err)
	}
	return redelivered, nil
}
