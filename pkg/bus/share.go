package bus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// JetStream bounds how many messages of a subject a stream takes, but not their bytes:
// large ones of one subject would leave no room for others, for as long as they come
// faster than they are read. So when a stream of work is nearly full, the oldest messages
// of a subject that has more than its part, and that is not being read down, are dropped,
// but for a quarter of that part. The part is half of the stream, divided by all subjects
// that have messages. When more than that half is taken, one of them at least has more
// than its part.
//
// What has gathered while no reader was there, or while the reader could pass nothing on,
// stays: a backlog that is read down is never dropped.
const (
	// tightNumerator and tightDenominator are the part of a stream from which on it is
	// nearly full.
	tightNumerator, tightDenominator = 3, 4
	// samples are how many messages of a subject tell its mean size. With fewer the mean
	// of small messages and a few large ones is often too small.
	samples = 16
	// keptOfPart is how much of its part a subject keeps.
	keptOfPart = 4
	// sampledMost bounds the subjects that are looked at in one look, and with that its
	// time. They are others each time.
	sampledMost = 8
	// sampleTimeout and dropTimeout bound the wait for NATS, which does not answer a
	// user without the right to ask; after that nothing is asked for roomAgain.
	sampleTimeout = 3 * time.Second
	dropTimeout   = 10 * time.Second
	roomAgain     = 5 * time.Second
	// lookSoon is the pause between looks at a stream that is half full.
	lookSoon = lookEvery / 5
)

// keepRoom makes room in the stream whenever a look shows that there is little, until
// ctx ends. It does not hold up those who look for subjects: NATS may take seconds to
// drop messages.
func (l *lanes) keepRoom(ctx context.Context) {
	levels, tightAt, doneAt := map[string]level{}, time.Time{}, time.Time{}
	for {
		var look look
		select {
		case <-ctx.Done():
			return
		case look = <-l.looks:
		}
		if look.at.Before(doneAt) {
			continue // it may show what has been dropped since
		}
		if !look.halfFull() { // each subject may have that much
			if time.Since(tightAt) > readWithin { // a flood goes on from the level that was left
				clear(levels)
			}
			continue
		}
		tight := int64(look.info.State.Bytes) > look.info.Config.MaxBytes/tightDenominator*tightNumerator
		if tight {
			tightAt = time.Now()
		}
		if err := l.makeRoom(ctx, look, levels, tight); err != nil && ctx.Err() == nil {
			l.bus.logger.Warn("cannot make room in a stream; one subject may keep out all others; retrying", zap.String("stream", l.work.Stream),
				zap.Error(err), zap.Duration("after", roomAgain))
			wait(ctx, roomAgain)
		}
		doneAt = time.Now()
	}
}

// look is what a stream has at a moment.
type look struct {
	at     time.Time // before the question
	stream jetstream.Stream
	info   *jetstream.StreamInfo // with subjects
}

// halfFull reports whether a bounded stream has more than half of its bytes.
func (l look) halfFull() bool {
	most := l.info.Config.MaxBytes
	return most > 0 && int64(l.info.State.Bytes) > most/2
}

// makeRoom notes the levels of subjects above their part and, when the stream is tight,
// drops what floods have above it.
func (l *lanes) makeRoom(ctx context.Context, look look, levels map[string]level, tight bool) error {
	stream, info := look.stream, look.info
	part := uint64(info.Config.MaxBytes) / 2 / uint64(max(1, len(info.State.Subjects)))
	looked := 0
	for subject, messages := range info.State.Subjects { // in an order that differs each time
		if messages*queuedMessage <= part {
			delete(levels, subject)
			continue // however large they are
		}
		now := time.Now()
		settled, last := l.reading.of(subject)
		before, known := levels[subject]
		if !known || messages < before.messages {
			levels[subject] = level{messages, settled, now}
			continue
		}
		if !tight || !before.flooded(messages, settled, last, now, queuedMessage, part) {
			continue
		}
		if looked++; looked > sampledMost {
			return nil
		}
		mean, err := meanSize(ctx, stream, subject, info.State)
		if err != nil {
			return err
		}
		if mean*messages <= part || !before.flooded(messages, settled, last, now, mean, part) {
			continue
		}
		keep := max(1, part/keptOfPart/mean) // 0 would be no bound
		if err := drop(ctx, stream, subject, keep, dropTimeout); err != nil {
			return err
		}
		levels[subject] = level{min(messages, keep), settled, now}
		l.work.Dropped(subject, messages-min(messages, keep)) // or more: some have come since they were counted
	}
	return nil
}

// meanSize is the mean size of some of the subject's messages, wherever in the stream
// they are; 0 when there is none any more.
func meanSize(ctx context.Context, stream jetstream.Stream, subject string, state jetstream.StreamState) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	var sizes [samples]int // 0 for none
	group, ctx := errgroup.WithContext(ctx)
	for i := range sizes {
		from := state.FirstSeq + rand.Uint64N(state.LastSeq-state.FirstSeq+1)
		group.Go(func() error {
			message, err := stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return nil // none behind it, or it was read meanwhile
			}
			if err != nil {
				return fmt.Errorf("read a message of %s from stream %s: %w", subject, stream.CachedInfo().Config.Name, err)
			}
			sizes[i] = max(1, len(message.Data))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	sum, got := 0, 0
	for _, size := range sizes {
		if size > 0 {
			sum, got = sum+size, got+1
		}
	}
	if got == 0 {
		return 0, nil
	}
	return uint64(sum / got), nil
}

// drop leaves the last messages of a subject, or of all that a filter matches, only.
func drop(ctx context.Context, stream jetstream.Stream, subject string, keep uint64, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeKeep(keep)); err != nil {
		return fmt.Errorf("drop messages of %s from stream %s: %w", subject, stream.CachedInfo().Config.Name, err)
	}
	return nil
}
