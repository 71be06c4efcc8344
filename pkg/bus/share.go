package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
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
	// keptOfPart is how much of its part a subject keeps.
	keptOfPart = 4
	// sampledMost bounds the subjects that are looked at in one look, and with that its
	// time. They are others each time.
	sampledMost = 8
	// dropTimeout bounds the wait for NATS, which does not answer a user without the
	// right to ask; after that nothing is asked for roomAgain.
	dropTimeout = 10 * time.Second
	roomAgain   = 5 * time.Second
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
		tight := nearlyFull(look.info)
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
