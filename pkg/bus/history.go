package bus

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The streams of history (events, and submissions that were taken) drop their oldest
// messages when they are full. A queue that submits and cancels without end would push
// out the messages of all others. So before such a stream is full, the queues that have
// most in it lose their oldest messages, down to a level that is the same for all: what
// a queue has below that level stays.
const (
	historyEvery = 2 * time.Second
	// cutNumerator of cutDenominator parts of a stream are left when it is cut, which
	// is done when it is nearly full (tightNumerator).
	cutNumerator, cutDenominator = 5, 8
	// cutTimeout bounds the removal of a queue's messages: there may be some 100,000.
	cutTimeout = time.Minute
)

// Cut is a queue whose oldest messages were dropped from a stream of history.
type Cut struct {
	Stream, Queue string
	Messages      uint64
}

// KeepHistory makes room in the streams of history until ctx ends, and reports what was
// dropped, or the error of a look that failed.
func (b *Bus) KeepHistory(ctx context.Context, report func([]Cut, error)) error {
	tick := time.NewTicker(historyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		for _, stream := range []string{EventsStream, KeptStream} {
			if b.Ready() != nil {
				continue
			}
			cuts, err := b.cutHistory(ctx, stream)
			if len(cuts) > 0 || err != nil && ctx.Err() == nil {
				report(cuts, err)
			}
		}
	}
}

// cutHistory cuts the queues that have most in a stream, if it is nearly full. It looks
// at the subjects only then.
func (b *Bus) cutHistory(ctx context.Context, name string) (cuts []Cut, err error) {
	stream, err := b.js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", name, err)
	}
	most := stream.CachedInfo().Config.MaxBytes
	if most <= 0 || int64(stream.CachedInfo().State.Bytes) <= most/tightDenominator*tightNumerator {
		return nil, nil
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, fmt.Errorf("list subjects of stream %s: %w", name, err)
	}
	queues := map[string]*ofQueue{} // by the filter of their subjects
	for subject, messages := range info.State.Subjects {
		filter := queueFilter(subject)
		if queues[filter] == nil {
			queues[filter] = &ofQueue{}
		}
		queues[filter].messages += messages
	}
	var sizes []uint64
	for filter, q := range queues {
		if q.mean, err = meanSize(ctx, stream, filter, info.State); err != nil {
			return nil, err
		}
		sizes = append(sizes, q.bytes())
	}
	level := levelOf(sizes, uint64(most)/cutDenominator*cutNumerator)
	for filter, q := range queues {
		if q.bytes() <= level {
			continue
		}
		keep := max(1, level/q.mean) // 0 would be no bound
		if keep >= q.messages {
			continue
		}
		if err := drop(ctx, stream, filter, keep, cutTimeout); err != nil {
			return cuts, err
		}
		cuts = append(cuts, Cut{Stream: name, Queue: strings.Split(filter, ".")[2], Messages: q.messages - keep})
	}
	return cuts, nil
}

// ofQueue is what a queue has in a stream.
type ofQueue struct{ messages, mean uint64 }

func (q ofQueue) bytes() uint64 { return q.messages * q.mean }

// queueFilter matches all subjects of a stream of history that are of the same queue.
func queueFilter(subject string) string {
	parts := strings.SplitN(subject, ".", 4)
	if len(parts) < 4 {
		return subject
	}
	return strings.Join(parts[:3], ".") + ".*"
}

// levelOf is the level to which sizes have to be cut so that their sum is at most the
// bound.
func levelOf(sizes []uint64, bound uint64) uint64 {
	slices.Sort(sizes)
	for i, size := range sizes {
		part := bound / uint64(len(sizes)-i)
		if size > part {
			return part
		}
		bound -= size
	}
	return ^uint64(0)
}
