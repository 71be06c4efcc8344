package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// From is where reading a stream begins: at a sequence or, if that is zero, at a time.
type From struct {
	Sequence uint64
	Time     time.Time
}

// Since calls each with what a stream has now of the subjects that match, from a
// place on, in order. The error wraps ErrNoStream when there is no such stream.
func (b *Bus) Since(ctx context.Context, stream, filter string, from From, each func(Delivery) error) error {
	config := jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{filter}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from.Sequence,
	}
	if from.Sequence == 0 {
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &from.Time
	}
	consumer, err := b.js.OrderedConsumer(ctx, stream, config)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("read %s of stream %s: %w: %w", filter, stream, ErrNoStream, err)
	}
	var left uint64
	if err == nil {
		var info *jetstream.ConsumerInfo
		if info, err = consumer.Info(ctx); err == nil {
			left = info.NumPending
		}
	}
	for err == nil && left > 0 {
		var batch jetstream.MessageBatch
		if batch, err = consumer.Fetch(int(min(left, fetched)), jetstream.FetchMaxWait(sinceWait)); err != nil {
			break
		}
		got := false
		for msg := range batch.Messages() {
			got = true
			left = min(left-1, pendingBehind(msg))
			if err = each(newDelivery(msg, false)); err != nil {
				return err
			}
		}
		if err = batch.Error(); err == nil && !got {
			err = fmt.Errorf("%d more were announced and did not come within %s", left, sinceWait)
		}
	}
	if err != nil {
		return fmt.Errorf("read %s of stream %s: %w", filter, stream, err)
	}
	return nil
}

// fetched is how many messages are asked for at once. Together they may be large: the
// server closes a connection for which too much waits.
const fetched = 64

// sinceWait bounds the wait for messages that a stream has.
const sinceWait = 10 * time.Second

// pendingBehind is how many messages come after one: some may have expired, or have
// been replaced, since they were counted.
func pendingBehind(msg jetstream.Msg) uint64 {
	metadata, err := msg.Metadata()
	if err != nil {
		return 0
	}
	return metadata.NumPending
}
