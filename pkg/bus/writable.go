package bus

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// nothing is the last token of a subject on which no message is ever published.
const nothing = "-nothing-"

// writableTimeout bounds the question whether a stream is written.
const writableTimeout = 2 * time.Second

// writable asks whether NATS still writes a stream, and returns the error that ended
// the writes. It reports false when there is no answer: a user without the right to
// purge the stream gets none.
//
// A server keeps the first error of a write to a stream's files and refuses all later
// writes, but it still answers questions about the stream. It returns that error to a
// purge as well. The purge here matches no message.
func (b *Bus) writable(ctx context.Context, stream jetstream.Stream) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, writableTimeout)
	defer cancel()
	config := stream.CachedInfo().Config
	subject := strings.NewReplacer("*", nothing, ">", nothing).Replace(config.Subjects[0])
	err = stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
	var refused *jetstream.APIError
	if err != nil && !errors.As(err, &refused) {
		b.logger.Warn("cannot check that NATS writes a stream",
			zap.String("stream", config.Name), zap.String("hint", "NATS is busy, or accounts.conf gives no right to $JS.API.STREAM.PURGE"), zap.Error(err))
		return false, nil
	}
	return true, err
}
