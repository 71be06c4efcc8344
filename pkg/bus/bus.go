// Package bus is Muster's use of NATS JetStream: which streams and subjects
// exist, publishing events, and the two ways of reading them.
//
// Work is for things that must be done once: durable consumers, one for each
// subject, whose messages are settled one by one with Ack, Retry or Reject. Follow is for things that
// are true: the last value of each subject, then every change, in order and
// without acknowledgement; after a lost connection everything is read again, so
// a reader must take the same value twice.
//
// No other package of Muster imports nats.go, but for the request-reply queries
// of queue-manager and the command line, which use Conn.
package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/tracing"
)

// ErrTooLarge is wrapped by Publish for an event above the server's limit.
var ErrTooLarge = errors.New("event is larger than the server takes")

// ErrNoStream is wrapped by Publish and Follow when the server has no stream for
// the subject: no part of Muster has ever run there, or its data was lost.
var ErrNoStream = errors.New("this NATS server has no such stream of Muster")

// ErrFull is wrapped by Publish when the server takes no more of the subject or
// the stream, or has no room at all. What is published later may be taken.
var ErrFull = errors.New("NATS has no room for it: try again later")

// Bus is a connection to NATS. Its methods may be called concurrently.
type Bus struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	logger *zap.Logger
	// replicas of the streams that this connection makes; 0 is the server's default.
	replicas int
	storage  storage

	mu          sync.Mutex
	reconnected map[chan struct{}]struct{} // told of each reconnection
}

// Options says how to connect.
type Options struct {
	URL    string
	Name   string      // of the client, shown by the server
	Logger *zap.Logger // nil logs nothing
	// CredentialsFile is a NATS .creds file or holds the seed of an nkey; empty
	// for none.
	CredentialsFile string
	TLS             TLS
	// Replicas is on how many servers a stream is kept, at most MaxReplicas; 0
	// leaves it as it is, and makes new ones with 1.
	Replicas int
	// ConnectTimeout bounds the first connection; zero means 10 s.
	ConnectTimeout time.Duration
	// Patient is for services: the first connection is tried until the context ends.
	// The log names the error.
	Patient bool
	// AnswerTimeout bounds the wait for the server's answer to a message that is
	// published; zero means 20 s. A server whose stream has lost its files does not
	// answer at all.
	AnswerTimeout time.Duration
	// Refused, unless nil, is called with an error that wraps ErrRefused each time
	// that the server refuses something for want of a right. What was refused gets no
	// other answer. It must not block.
	Refused func(error)
}

// maxPublishPending bounds events published but not yet acknowledged; publishing
// more waits, at most stallTimeout.
const (
	maxPublishPending = 4096
	stallTimeout      = 10 * time.Second
)

// answerTimeout is longer than callers wait that have a bound of their own.
const answerTimeout = 20 * time.Second

// closeTimeout bounds each step of Close.
const closeTimeout = 2 * time.Second

// pingEvery and pingsMissed bound the time until a server that is cut off, and
// so neither answers nor closes the connection, is given up.
const (
	pingEvery   = 3 * time.Second
	pingsMissed = 2
)

// Connect connects and keeps reconnecting for ever afterwards.
func Connect(ctx context.Context, o Options) (*Bus, error) {
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = 10 * time.Second
	}
	if o.AnswerTimeout == 0 {
		o.AnswerTimeout = answerTimeout
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	b := &Bus{logger: o.Logger, replicas: o.Replicas, reconnected: map[chan struct{}]struct{}{}}
	options := []nats.Option{
		nats.Name(o.Name), nats.MaxReconnects(-1), nats.ReconnectWait(200 * time.Millisecond),
		nats.IgnoreAuthErrorAbort(), // credentials may be on their way to the server, or from it
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsMissed),
		nats.ReconnectHandler(func(*nats.Conn) { b.onReconnect() }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.Logger.Warn("connection to NATS lost", zap.Error(err))
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if o.Refused != nil && errors.Is(err, nats.ErrPermissionViolation) {
				o.Refused(fmt.Errorf("%w: %w", ErrRefused, err))
				return
			}
			o.Logger.Warn("NATS reports an error", zap.Error(err))
		}),
	}
	credentials, err := credentialOptions(o.CredentialsFile)
	if err != nil {
		return nil, err
	}
	if err := o.TLS.Validate(); err != nil {
		return nil, err
	}
	options = slices.Concat(options, credentials, o.TLS.options())
	nc, err := connectWithin(ctx, o, options)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %q: %w", o.URL, err)
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(maxPublishPending), jetstream.WithPublishAsyncTimeout(o.AnswerTimeout))
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("open JetStream at %q: %w", o.URL, err)
	}
	b.nc, b.js = nc, js
	return b, nil
}

// connectWithin tries until the server answers, so that services may be started
// in any order.
func connectWithin(ctx context.Context, o Options, options []nats.Option) (*nats.Conn, error) {
	if !o.Patient {
		limited, cancel := context.WithTimeout(ctx, o.ConnectTimeout)
		defer cancel()
		ctx = limited
	}
	var logged time.Time
	for {
		nc, err := nats.Connect(o.URL, options...)
		if err == nil {
			return nc, nil
		}
		if o.Patient && time.Since(logged) >= o.ConnectTimeout {
			o.Logger.Warn("cannot connect to NATS; retrying", zap.Error(err))
			logged = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Close flushes what was published and disconnects.
func (b *Bus) Close() {
	select {
	case <-b.js.PublishAsyncComplete():
	case <-time.After(closeTimeout):
	}
	_ = b.nc.FlushTimeout(closeTimeout) // acknowledgements; lost ones are repeated
	b.nc.Close()
}

// Conn is the connection, for request-reply.
func (b *Bus) Conn() *nats.Conn { return b.nc }

// MaxEvent is the size of the largest event that the server takes, in bytes.
func (b *Bus) MaxEvent() int64 { return b.nc.MaxPayload() }

// Ready returns an error while there is no connection.
func (b *Bus) Ready() error {
	if status := b.nc.Status(); status != nats.CONNECTED {
		return fmt.Errorf("NATS connection is %s", status)
	}
	return nil
}

func (b *Bus) onReconnect() {
	b.logger.Info("connection to NATS restored", zap.String("url", b.nc.ConnectedUrlRedacted()))
	b.mu.Lock()
	defer b.mu.Unlock()
	for told := range b.reconnected {
		select {
		case told <- struct{}{}:
		default: // one is already waiting to be read
		}
	}
}

// Reconnected returns a channel that gets a value after each reconnection, and
// a function that ends it. After a reconnection the server may have lost its
// data: the service that can rebuild a stream does it then.
func (b *Bus) Reconnected() (<-chan struct{}, func()) {
	told := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reconnected[told] = struct{}{}
	return told, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.reconnected, told)
	}
}

// Publish stores the event and waits until the server has it. The event's id is
// the message id, so a repetition within the dedupe window is dropped by the
// server.
func (b *Bus) Publish(ctx context.Context, subject string, e event.Envelope) error {
	published, err := b.PublishAsync(subject, e)
	if err != nil {
		return err
	}
	return published.Wait(ctx)
}

// Published is an event on its way to the server.
type Published struct {
	subject, id string
	future      jetstream.PubAckFuture
	storage     *storage                              // where it is noted whether it was stored
	told        func(context.Context) (uint64, error) // instead of future
}

// PublishedBy returns an event whose storage another party than NATS confirms, when it is
// stored: for simulations.
func PublishedBy(told func(context.Context) (sequence uint64, err error)) Published {
	return Published{told: told}
}

// Wait returns nil when the server has stored the event.
func (p Published) Wait(ctx context.Context) error {
	_, err := p.Stored(ctx)
	return err
}

// Stored waits until the server has stored the event and returns its place in
// the stream, at most for Options.AnswerTimeout. Errors may wrap ErrNoStream,
// ErrOvertaken or context.DeadlineExceeded.
func (p Published) Stored(ctx context.Context) (sequence uint64, err error) {
	if p.told != nil {
		return p.told(ctx)
	}
	select {
	case ack := <-p.future.Ok():
		p.storage.note(kindOf(p.subject), nil, time.Now())
		return ack.Sequence, nil
	case err = <-p.future.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	if errors.Is(err, jetstream.ErrAsyncPublishTimeout) {
		err = fmt.Errorf("NATS does not say that it has stored it: %w: %w", context.DeadlineExceeded, err)
	}
	p.storage.note(kindOf(p.subject), err, time.Now())
	var refused *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders):
		err = fmt.Errorf("%w, or too few of its servers are there to store anything; try again: %w", ErrNoStream, err)
	case errors.As(err, &refused) && slices.Contains(overtaken(), refused.ErrorCode):
		err = fmt.Errorf("%w: %w", ErrOvertaken, err)
	case errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		err = fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.As(err, &refused) && slices.Contains(full(), refused.ErrorCode):
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return 0, fmt.Errorf("publish event %q on %s: %w", p.id, p.subject, err)
}

// overtaken are the server's errors that say that something else is last.
func overtaken() []jetstream.ErrorCode {
	const wrongLastID = 10070 // JSStreamWrongLastMsgIDErrF in its errors.json
	return []jetstream.ErrorCode{jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant, wrongLastID}
}

// Errors of the server that has no room, by their numbers in its errors.json.
const (
	accountResources      jetstream.ErrorCode = 10002
	insufficientResources jetstream.ErrorCode = 10023
	memoryResources       jetstream.ErrorCode = 10028
)

// full are the server's errors that say that there is no room, by their numbers in
// its errors.json.
func full() []jetstream.ErrorCode {
	const (
		storeFailed     = 10077 // the limits of a stream, among others
		tooManyRequests = 10167 // messages come faster than the stream stores them
	)
	return []jetstream.ErrorCode{accountResources, insufficientResources, memoryResources, storageResources, storeFailed, tooManyRequests}
}

// PublishAsync sends the event without waiting for the server. Events are
// stored in the order of the calls.
func (b *Bus) PublishAsync(subject string, e event.Envelope) (Published, error) {
	data, err := e.Encode()
	if err != nil {
		return Published{}, err
	}
	return b.PublishEncoded(subject, e.ID, data, 0)
}

// PublishEncoded sends an event that is encoded already. With a ttl the message
// vanishes from the stream after it; at least a second.
func (b *Bus) PublishEncoded(subject, id string, encoded []byte, ttl time.Duration) (Published, error) {
	return b.publish(subject, id, encoded, ttl)
}

// PublishAfter is PublishEncoded of a message that the server takes only if the
// subject's last one is that of the given sequence; 0 means that it has none.
func (b *Bus) PublishAfter(subject, id string, encoded []byte, ttl time.Duration, last uint64) (Published, error) {
	return b.publish(subject, id, encoded, ttl, jetstream.WithExpectLastSequencePerSubject(last))
}

// End is the last message that a stream has ever had.
type End struct {
	Sequence uint64 // 0 when it has had none
	// ID under which it was published; empty when that is not known. A publisher that
	// does not wait for the answers needs it: others may have brought the stream to
	// the sequence that it expects.
	ID string
}

// PublishNext is PublishEncoded of a message that the server takes only if the
// stream ends there.
func (b *Bus) PublishNext(subject, id string, encoded []byte, ttl time.Duration, end End) (Published, error) {
	options := []jetstream.PublishOpt{jetstream.WithExpectLastSequence(end.Sequence)}
	if end.ID != "" {
		options = append(options, jetstream.WithExpectLastMsgID(end.ID))
	}
	return b.publish(subject, id, encoded, ttl, options...)
}

func (b *Bus) publish(subject, id string, encoded []byte, ttl time.Duration, options ...jetstream.PublishOpt) (Published, error) {
	options = append(options, jetstream.WithMsgID(id), jetstream.WithStallWait(stallTimeout))
	if ttl > 0 {
		options = append(options, jetstream.WithMsgTTL(ttl))
	}
	message := &nats.Msg{Subject: subject, Data: encoded}
	if parent := event.TraceparentOf(encoded); parent != "" {
		message.Header = nats.Header{tracing.Header: {parent}}
	}
	future, err := b.js.PublishMsgAsync(message, options...)
	if errors.Is(err, nats.ErrMaxPayload) {
		return Published{}, fmt.Errorf("publish event %q of %d bytes on %s: %w", id, len(encoded), subject, ErrTooLarge)
	}
	if err != nil {
		return Published{}, fmt.Errorf("publish event %q on %s: %w", id, subject, err)
	}
	return Published{subject: subject, id: id, future: future, storage: &b.storage}, nil
}
