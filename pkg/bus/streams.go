package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

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
//
// A term begins with it, and each stream takes several requests, so it deals with some streams at
// once: configureAtOnce bounds how many.
func (b *Bus) ConfigureStreams(ctx context.Context) (remade []string, err error) {
	all := streams()
	again := make([]bool, len(all))
	var silent atomic.Bool
	group, configuring := errgroup.WithContext(ctx)
	group.SetLimit(configureAtOnce)
	for i, config := range all {
		group.Go(func() (err error) {
			config.Replicas = b.replicas
			if again[i], err = b.configureSound(ctx, configuring, config, &silent); err != nil {
				return fmt.Errorf("create or update stream %s with %d replicas: %w", config.Name, max(config.Replicas, 1), explained(err))
			}
			return nil
		})
	}
	err = group.Wait()
	for i, config := range all {
		if again[i] {
			remade = append(remade, config.Name)
		}
	}
	b.storage.Note(madeStreams, err, time.Now())
	return remade, err
}

// configureAtOnce bounds the requests for streams that are on their way at once. Each is work for
// all of several servers, which have messages to store meanwhile.
const configureAtOnce = 4

// configureSound configures a stream, and makes it again if it has no files any more. A failure of
// another stream ends configuring, but not ctx: a stream that is deleted has to be created. silent
// is set once a question whether a stream can be written has no answer, and none is asked then.
func (b *Bus) configureSound(ctx, configuring context.Context, config jetstream.StreamConfig, silent *atomic.Bool) (remade bool, err error) {
	stream, err := b.configure(configuring, &config)
	if err == nil && config.Replicas <= 1 && !silent.Load() { // of several servers another one leads the stream then
		var answered bool
		answered, err = b.writable(configuring, stream)
		if !answered {
			silent.Store(true)
		}
		if err != nil && !withoutFiles(err) {
			// As on a full disk: the other streams and the leader can go on.
			b.logger.Error("NATS refuses every write to a stream; check its disk and restart NATS", zap.String("stream", config.Name), zap.Error(err))
			err = nil
		}
	}
	if !withoutFiles(err) {
		return false, err
	}
	b.logger.Error("stream has no files any more; recreating it", zap.String("stream", config.Name), zap.Error(err))
	if err = b.js.DeleteStream(ctx, config.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, err
	}
	_, err = b.createStream(ctx, config)
	return true, err
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
