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

	"muster.dev/muster/pkg/service/pause"
)

// ErrNoStream is wrapped by Publish and Follow when the server has no stream for
// the subject: no part of Muster has ever run there, or its data was lost.
var ErrNoStream = errors.New("this NATS server has no such stream of Muster")

// Bus is a connection to NATS. Its methods may be called concurrently.
type Bus struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	logger *zap.Logger
	// replicas of the streams that this connection makes; 0 is the server's default.
	replicas int
	storage  Storage

	mu          sync.Mutex
	reconnected map[chan struct{}]struct{} // notified of each reconnection
}

// Options is how to connect.
type Options struct {
	URL    string
	Name   string      // of the client, shown by the server
	Logger *zap.Logger // nil logs nothing
	// CredentialsFile is a NATS .creds file or holds the seed of an nkey; empty
	// for none.
	CredentialsFile string
	TLS             TLS
	// Replicas is on how many servers a stream is kept, at most maxReplicas; 0
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

// connectAgain is the pause between two tries to connect.
const connectAgain = 200 * time.Millisecond

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
		if pause.For(ctx, connectAgain) != nil {
			return nil, err
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
	for notify := range b.reconnected {
		select {
		case notify <- struct{}{}:
		default: // one is already waiting to be read
		}
	}
}

// Reconnected returns a channel that gets a value after each reconnection, and
// a function that ends it. After a reconnection the server may have lost its
// data: the service that can rebuild a stream does it then.
func (b *Bus) Reconnected() (<-chan struct{}, func()) {
	notify := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reconnected[notify] = struct{}{}
	return notify, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.reconnected, notify)
	}
}
