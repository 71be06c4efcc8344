package bus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// A stream that several owners (clusters, queues) share must have room for all of them,
// whatever one of them publishes. KeepObserved and KeepHistory look at such streams, and
// drop messages of the owners that have most; they differ in when they do, and in how much
// an owner keeps. Streams of work have a rule of their own: a backlog that is read down
// must stay.
const (
	// roomEvery is the pause between two looks at a stream.
	roomEvery = 2 * time.Second
	// tightNumerator of tightDenominator parts are taken of a stream that is nearly full.
	tightNumerator, tightDenominator = 3, 4
	// samples are how many messages of an owner or subject show its mean size. With fewer
	// the mean of small messages and a few large ones is often too small.
	samples = 16
	// sampleTimeout bounds the wait for NATS, which does not answer a user without the
	// right to ask.
	sampleTimeout = 3 * time.Second
	// cutTimeout bounds the removal of an owner's messages: there may be some 100,000.
	cutTimeout = time.Minute
)

// Cut is what an owner lost of a stream that it filled.
type Cut struct {
	Stream   string
	Owner    string // the cluster or the queue
	Messages uint64 // that were dropped
	Bytes    uint64 // that the owner had, an estimate
}

// keepRoom looks at each stream until ctx ends, and reports what was dropped, or the error
// of a look that failed. A look may ask for a longer pause before the next one.
func (b *Bus) keepRoom(ctx context.Context, streams []string, report func([]Cut, error), look func(ctx context.Context, stream string) ([]Cut, time.Duration, error)) error {
	tick := time.NewTicker(roomEvery)
	defer tick.Stop()
	next := map[string]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		for _, stream := range streams {
			now := time.Now()
			if b.Ready() != nil || now.Before(next[stream]) {
				continue
			}
			cuts, pause, err := look(ctx, stream)
			if len(cuts) > 0 || err != nil && ctx.Err() == nil {
				report(cuts, err)
			}
			next[stream] = now.Add(pause)
		}
	}
}

// nearlyFull reports whether a bounded stream has most of its bytes.
func nearlyFull(info *jetstream.StreamInfo) bool {
	most := info.Config.MaxBytes
	return most > 0 && int64(info.State.Bytes) > most/tightDenominator*tightNumerator
}

// owned is what an owner has in a stream.
type owned struct {
	filter   string // matches all of its subjects
	messages uint64
	subjects uint64
	sample   []string // of the subjects, at random
	mean     uint64   // size of a message; 0 until it is known
}

func (o *owned) bytes() uint64 { return o.messages * o.mean }

func (o *owned) add(subject string, messages uint64) {
	o.messages += messages
	o.subjects++
	if len(o.sample) < samples {
		o.sample = append(o.sample, subject)
	} else if at := rand.Uint64N(o.subjects); at < samples {
		o.sample[at] = subject
	}
}

// owners lists the subjects of a stream by their owners.
func owners(ctx context.Context, stream jetstream.Stream) ([]*owned, *jetstream.StreamInfo, error) {
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, nil, fmt.Errorf("list subjects of stream %s: %w", stream.CachedInfo().Config.Name, err)
	}
	byFilter, all := map[string]*owned{}, []*owned(nil)
	for subject, messages := range info.State.Subjects {
		filter := ownerFilter(subject)
		if byFilter[filter] == nil {
			byFilter[filter] = &owned{filter: filter}
			all = append(all, byFilter[filter])
		}
		byFilter[filter].add(subject, messages)
	}
	return all, info, nil
}

// ownerFilter matches the subjects whose third token, which names the owner, is that of
// the subject.
func ownerFilter(subject string) string {
	parts := strings.SplitN(subject, ".", 4)
	if len(parts) < 4 {
		return subject
	}
	return strings.Join(parts[:3], ".") + ".>"
}

// cut leaves the last messages of an owner; 0 leaves none.
func cut(ctx context.Context, stream jetstream.Stream, o *owned, keep uint64) (Cut, error) {
	if err := drop(ctx, stream, o.filter, keep, cutTimeout); err != nil {
		return Cut{}, err
	}
	return Cut{
		Stream: stream.CachedInfo().Config.Name, Owner: strings.Split(o.filter, ".")[2],
		Messages: o.messages - keep, Bytes: o.bytes(),
	}, nil
}

// meanSize is the mean size of some of the messages that a filter matches, wherever in
// the stream they are; 0 when there is none any more.
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

// drop leaves only the last messages of those that a filter matches; 0 leaves none.
func drop(ctx context.Context, stream jetstream.Stream, subject string, keep uint64, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeKeep(keep)); err != nil {
		return fmt.Errorf("drop messages of %s from stream %s: %w", subject, stream.CachedInfo().Config.Name, err)
	}
	return nil
}
