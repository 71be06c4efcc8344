package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/spec/workload"
)

const (
	consumerBroken    jetstream.ErrorCode = 10012 // JSConsumerCreateErrF
	consumerStore     jetstream.ErrorCode = 10104 // JSConsumerStoreFailedErrF
	consumerNotUnique jetstream.ErrorCode = 10100 // JSConsumerWQConsumerNotUniqueErr
)

// spareNames is how many names the consumer of a subject may have.
const spareNames = 3

// laneNames gives the consumer of a subject its name.
//
// A server that lost power may have half of the file that records how far a consumer has
// read. It then knows no such consumer, so that none can be deleted, and refuses to
// create one of that name. The reader goes on under a spare name. Its messages that were
// not settled come again.
type laneNames struct {
	bus     *Bus
	work    Work
	subject string

	spare int      // number of the name in use
	drop  []string // consumers to delete before the next one is created
}

// use deletes what is in the way and returns the name for the consumer.
func (n *laneNames) use(ctx context.Context) (string, error) {
	for _, name := range n.drop {
		err := n.bus.js.DeleteConsumer(ctx, n.work.Stream, name)
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return "", fmt.Errorf("delete consumer %s of stream %s: %w", name, n.work.Stream, err)
		}
	}
	n.drop = nil
	return n.name(n.spare), nil
}

// failed chooses the name for the next try.
func (n *laneNames) failed(err error) {
	var refused *jetstream.APIError
	if !errors.As(err, &refused) {
		return
	}
	switch {
	case torn(refused):
		n.drop = append(n.drop, n.name(n.spare))
		n.next()
	case refused.ErrorCode == consumerNotUnique:
		// Another reader has found this name torn before.
		n.next()
	case n.work.TakeOver && refused.ErrorCode == consumerBroken:
		// The server may keep a consumer whose files are gone, and which cannot be
		// updated (see subscribe.go): it has to go first.
		n.drop = append(n.drop, n.name(n.spare))
	}
}

func (n *laneNames) next() {
	n.spare = (n.spare + 1) % spareNames
	if n.work.TakeOver {
		n.drop = append(n.drop, n.name(n.spare))
	}
}

func (n *laneNames) name(spare int) string {
	if spare == 0 {
		return laneName(n.work.Durable, n.subject)
	}
	return laneName(n.work.Durable, fmt.Sprintf("%s#%d", n.subject, spare))
}

// torn recognizes the errors of a server that cannot read the file of a consumer.
func torn(refused *jetstream.APIError) bool {
	return refused.ErrorCode == consumerStore ||
		refused.ErrorCode == consumerBroken && strings.Contains(refused.Description, "error creating store for consumer")
}

// laneName names the consumer of a subject: by what follows the stream's prefix of
// two tokens, or by the subject's digest when that is more than one name.
func laneName(durable, subject string) string {
	if parts := strings.SplitN(subject, ".", 3); len(parts) == 3 && workload.ValidName(parts[2]) {
		return durable + "-" + parts[2]
	}
	sum := sha256.Sum256([]byte(subject))
	return durable + "_" + hex.EncodeToString(sum[:8])
}
