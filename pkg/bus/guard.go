package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/bounds"
)

// GuardSubject begins the subjects to which the accounts of services lead their
// requests for streams and consumers, instead of to JetStream; what follows is the
// request's subject without "$JS.API.". Those for last events, which persons may make,
// are led there too.
const GuardSubject = "muster.jetstream."

const (
	jetstreamAPI = "$JS.API."
	// guards bounds the requests that are forwarded at once; more wait, up to buffered.
	guards = 64
	// guardTimeout bounds one of them.
	guardTimeout = 10 * time.Second
	// guardCreates and guardStreams are the requests that are answered.
	guardCreates = "CONSUMER.CREATE."
	guardStreams = "STREAM.CREATE."
	// followerKept bounds how long a consumer of a stream that is followed stays after its
	// follower has gone.
	followerKept = time.Hour
	// guardForbids and guardBusy are codes of our own, outside those of JetStream.
	guardForbids = 403
	guardBusy    = 429
)

// consumerFields are what a service may say of a consumer. Above all it may not say
// deliver_subject: the server delivers there whatever the rights of the user are, so
// one could publish on every subject.
var consumerFields = []string{
	"name", "durable_name", "description", "deliver_policy", "opt_start_seq", "opt_start_time", "ack_policy", "ack_wait", "max_deliver",
	"filter_subject", "filter_subjects", "replay_policy", "max_waiting", "max_ack_pending", "headers_only", "max_batch", "max_expires",
	"max_bytes", "inactive_threshold", "num_replicas", "mem_storage", "metadata",
}

// GuardJetStream answers the requests of services whose account lets them make no
// stream and no consumer themselves, until ctx ends: it makes streams as this version
// has them, and consumers that are asked for messages one by one. Any number of
// processes may do it at once. That the sender has a right to the stream and the
// filter is what its account's imports say, which have both in the subject.
func (b *Bus) GuardJetStream(ctx context.Context) error {
	requests := make(chan *nats.Msg, buffered)
	turns := &guardTurns{}
	var subscriptions []*nats.Subscription
	for _, asked := range []string{guardCreates, guardStreams} {
		subscription, err := b.nc.QueueSubscribe(GuardSubject+asked+">", "jetstream", func(request *nats.Msg) { b.enqueue(request, turns, requests) })
		if err != nil {
			return fmt.Errorf("answer requests for streams and consumers: %w", err)
		}
		subscriptions = append(subscriptions, subscription)
	}
	last, err := b.guardLastEvents(ctx)
	if err != nil {
		return err
	}
	subscriptions = append(subscriptions, last)
	for range guards {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case request := <-requests:
					b.guard(ctx, request)
					turns.end(guardKey(request.Subject))
				}
			}
		}()
	}
	context.AfterFunc(ctx, func() {
		for _, subscription := range subscriptions {
			_ = subscription.Unsubscribe() // it ends with the connection anyway
		}
	})
	return nil
}

func (b *Bus) guard(ctx context.Context, request *nats.Msg) {
	subject := strings.TrimPrefix(request.Subject, GuardSubject)
	body, err := b.guarded(subject, request.Data)
	if err != nil {
		b.refuse(request, guardForbids, err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	answer, err := b.nc.RequestWithContext(ctx, jetstreamAPI+subject, body)
	if err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			b.logger.Warn("cannot forward a request for a stream or consumer", zap.String("subject", subject), zap.Error(err))
		}
		return // the requester's own time ends
	}
	b.reply(request, answer.Data)
}

// enqueue has a request forwarded once it is its turn. It is called with one after the other, and
// must be quick.
func (b *Bus) enqueue(request *nats.Msg, turns *guardTurns, to chan<- *nats.Msg) {
	key := guardKey(request.Subject)
	if !turns.begin(key) {
		b.refuse(request, guardBusy, fmt.Errorf("%d requests for %s are open; try again", mostOpen(key), key))
		return
	}
	select {
	case to <- request:
	default: // the requester's own time ends
		turns.end(key)
	}
}

func (b *Bus) refuse(request *nats.Msg, code int, why error) {
	answer, _ := json.Marshal(map[string]any{"error": jetstream.APIError{Code: code, Description: why.Error()}}) // a struct of texts and numbers
	b.reply(request, answer)
}

func (b *Bus) reply(request *nats.Msg, answer []byte) {
	if err := request.Respond(answer); err != nil {
		b.logger.Warn("cannot answer a request for a stream or consumer", zap.String("subject", request.Subject), zap.Error(err))
	}
}

// guarded returns what may be asked of JetStream instead of what was asked.
func (b *Bus) guarded(subject string, data []byte) ([]byte, error) {
	if stream, is := strings.CutPrefix(subject, guardStreams); is {
		for _, config := range streams() {
			if config.Name == stream {
				config.Replicas = b.replicas
				return json.Marshal(begun(config))
			}
		}
		return nil, fmt.Errorf("stream %q is none of Muster's", stream)
	}
	if !strings.HasPrefix(subject, guardCreates) {
		return nil, fmt.Errorf("%s is no request for a stream or a consumer", subject)
	}
	if err := (bounds.JSON{Bytes: 16 << 10, Depth: 8, Values: 1000}).Check(data); err != nil {
		return nil, fmt.Errorf("the request for a consumer %w", err)
	}
	stream, _, _ := strings.Cut(strings.TrimPrefix(subject, guardCreates), ".")
	return guardedConsumer(stream, data)
}

// ofWork reports whether services share the messages of a stream by durable consumers.
func ofWork(stream string) bool {
	return slices.ContainsFunc(streams(), func(c jetstream.StreamConfig) bool {
		return c.Name == stream && c.Retention == jetstream.WorkQueuePolicy
	})
}

// guardedConsumer reads a request for a consumer and writes it again: JetStream would
// merge duplicates. A consumer of a stream that is followed goes with its follower.
func guardedConsumer(stream string, data []byte) ([]byte, error) {
	var request struct {
		Stream string                     `json:"stream_name"`
		Config map[string]json.RawMessage `json:"config"`
		Action string                     `json:"action"`
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		return nil, fmt.Errorf("read the request for a consumer: %w", err)
	}
	for field := range request.Config {
		if !slices.Contains(consumerFields, field) {
			return nil, fmt.Errorf("config.%s: a service may not ask for it; want a consumer without it", field)
		}
	}
	if ofWork(stream) {
		return json.Marshal(request)
	}
	if _, durable := request.Config["durable_name"]; durable {
		return nil, fmt.Errorf("config.durable_name: stream %q has no durable consumers; want one without it", stream)
	}
	if given, is := request.Config["inactive_threshold"]; is {
		var kept time.Duration
		if err := json.Unmarshal(given, &kept); err != nil || kept < 0 || kept > followerKept {
			return nil, fmt.Errorf("config.inactive_threshold %.40s: want nanoseconds of at most %s", given, followerKept)
		}
	}
	return json.Marshal(request)
}
