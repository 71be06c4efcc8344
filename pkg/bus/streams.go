package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/service/pause"
)

// EnsureStreams creates the streams that are missing and leaves the others as
// they are. Any number of services may do it at once.
func (b *Bus) EnsureStreams(ctx context.Context) error {
	for _, config := range streams() {
		config.Replicas = b.replicas
		_, err := b.createStream(ctx, config)
		if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			b.storage.Note(madeStreams, err, time.Now())
			return fmt.Errorf("create stream %s: %w", config.Name, explained(err))
		}
	}
	b.storage.Note(madeStreams, nil, time.Now())
	return nil
}

// AwaitStreams is EnsureStreams for a service that starts: NATS servers that have
// just started, or lost one of them, cannot create streams until they agree on a
// leader. That, room on the server (see Storage), and every other refusal, as of a
// user whose rights are yet to come, is waited for as long as it takes, and logged.
// The error is that of the last try when ctx ends.
func (b *Bus) AwaitStreams(ctx context.Context) error {
	refused := awaitAgain
	for {
		err := b.EnsureStreams(ctx)
		again := awaitAgain
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case withoutRoom(err):
			again = awaitRoom
		case !withoutLeader(err):
			again = refused
			refused = min(2*refused, awaitMost)
		}
		b.logger.Warn("cannot create streams; retrying", zap.Error(err), zap.Duration("after", again))
		if pause.For(ctx, again) != nil {
			return err
		}
	}
}

const (
	awaitAgain = 250 * time.Millisecond
	awaitRoom  = 5 * time.Second
	awaitMost  = 30 * time.Second
	// madeStreams names the making of streams among what NATS stores.
	madeStreams = "the streams"
	// notAvailable is the server's JSClusterNotAvailErr.
	notAvailable jetstream.ErrorCode = 10008
)

// explained returns what to do about a server without room for the streams.
func explained(err error) error {
	if tooSmall(err) {
		return fmt.Errorf("NATS' max_file_store, or max_file of the account, is smaller than what Muster's streams may take: set max_file_store to %d GiB or more on each server, on a disk that has as much, max_file to that for each replica, and restart NATS: %w",
			(storeNeeded()+1<<30-1)>>30, err)
	}
	return err
}

// withoutLeader recognizes the errors of servers that have not agreed on a leader.
func withoutLeader(err error) bool {
	var refused *jetstream.APIError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) ||
		errors.As(err, &refused) && refused.ErrorCode == notAvailable
}

// ConfigureStreams creates the streams that are missing and brings the others to
// the configuration of this version. Only the leader does it: two versions that
// run side by side would otherwise undo each other's configuration.
//
// A stream whose files are gone, after a deletion under load or by hand, is deleted and
// created again: the server takes messages for it for a while, but no consumer and no
// change, or it refuses all messages, and after a restart the stream is not there. It
// returns the names of those; their messages have to be published again.
func (b *Bus) ConfigureStreams(ctx context.Context) (remade []string, err error) {
	asks := true // until a question has no answer
	for _, config := range streams() {
		config.Replicas = b.replicas
		stream, err := b.configure(ctx, &config)
		if err == nil && config.Replicas <= 1 && asks { // of several servers another one leads the stream then
			asks, err = b.writable(ctx, stream)
			if err != nil && !withoutFiles(err) {
				// As on a full disk: the other streams and the leader can go on.
				b.logger.Error("NATS refuses every write to a stream; check its disk and restart NATS", zap.String("stream", config.Name), zap.Error(err))
				err = nil
			}
		}
		if withoutFiles(err) {
			b.logger.Error("stream has no files any more; recreating it", zap.String("stream", config.Name), zap.Error(err))
			if err = b.js.DeleteStream(ctx, config.Name); err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
				_, err = b.createStream(ctx, config)
				remade = append(remade, config.Name)
			}
		}
		if err != nil {
			b.storage.Note(madeStreams, err, time.Now())
			return remade, fmt.Errorf("create or update stream %s with %d replicas: %w", config.Name, max(config.Replicas, 1), explained(err))
		}
	}
	b.storage.Note(madeStreams, nil, time.Now())
	return remade, nil
}

// configure brings a stream to a configuration, which gets what the stream keeps of its own:
// notes, replicas, and where it begins. A server that gets another beginning removes the
// messages before it. It creates a stream that is missing.
func (b *Bus) configure(ctx context.Context, config *jetstream.StreamConfig) (stream jetstream.Stream, err error) {
	for range 2 { // another process may create or delete the stream meanwhile
		var present jetstream.Stream
		present, err = b.js.Stream(ctx, config.Name)
		switch {
		case err == nil:
			kept := present.CachedInfo().Config
			config.Metadata, config.FirstSeq = notesOf(kept.Metadata), kept.FirstSeq
			config.Replicas = cmp.Or(config.Replicas, kept.Replicas)
			stream, err = b.js.UpdateStream(ctx, *config)
		case errors.Is(err, jetstream.ErrStreamNotFound):
			stream, err = b.createStream(ctx, *config)
		}
		if !errors.Is(err, jetstream.ErrStreamNotFound) && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return stream, err
		}
	}
	return stream, err
}
