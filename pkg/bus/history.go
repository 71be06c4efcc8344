package bus

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// The streams of history (events, and submissions that were taken) drop their oldest
// messages when they are full. A queue that submits and cancels without end would push
// out the messages of all others. So before such a stream is full, the queues that have
// most in it lose their oldest messages, down to a level that is the same for all: what
// a queue has below that level stays.
// cutNumerator of cutDenominator parts of a stream are left when it is cut, which is done
// when it is nearly full.
const cutNumerator, cutDenominator = 5, 8

// KeepHistory makes room in the streams of history until ctx ends, and reports the queues
// that lost messages, or the error of a look that failed.
func (b *Bus) KeepHistory(ctx context.Context, report func([]Cut, error)) error {
	return b.keepRoom(ctx, []string{EventsStream, KeptStream}, report, func(ctx context.Context, stream string) ([]Cut, time.Duration, error) {
		cuts, err := b.cutHistory(ctx, stream)
		return cuts, 0, err
	})
}

// cutHistory cuts the queues that have most in a stream, if it is nearly full. It looks
// at the subjects only then.
func (b *Bus) cutHistory(ctx context.Context, name string) (cuts []Cut, err error) {
	stream, err := b.js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read the state of stream %s: %w", name, err)
	}
	if !nearlyFull(stream.CachedInfo()) {
		return nil, nil
	}
	queues, info, err := owners(ctx, stream)
	if err != nil {
		return nil, err
	}
	var sizes []uint64
	for _, q := range queues {
		if q.mean, err = meanSize(ctx, stream, q.filter, info.State); err != nil {
			return nil, err
		}
		sizes = append(sizes, q.bytes())
	}
	level := levelOf(sizes, uint64(info.Config.MaxBytes)/cutDenominator*cutNumerator)
	for _, q := range queues {
		if q.bytes() <= level {
			continue
		}
		keep := max(1, level/q.mean)
		if keep >= q.messages {
			continue
		}
		lost, err := cut(ctx, stream, q, keep)
		if err != nil {
			return cuts, err
		}
		cuts = append(cuts, lost)
	}
	return cuts, nil
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
