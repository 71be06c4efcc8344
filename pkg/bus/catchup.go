package bus

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// lookAgain is how often a subscription that is not done looks what it still misses.
const lookAgain = time.Second

// infoWithin bounds the question what a consumer has. An ordered consumer delivers nothing, and
// cannot be stopped, while it waits for the answer.
const infoWithin = 5 * time.Second

func infoOf(ctx context.Context, consumer jetstream.Consumer) (*jetstream.ConsumerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, infoWithin)
	defer cancel()
	return consumer.Info(ctx)
}

// catchUp counts what is missing of the values that existed when a subscription
// began. A reconnection restarts it: the stream may have other values then. Values
// that expire, or are purged, before they are delivered never come: each message has
// how many are behind it, and while nothing comes the server is asked.
type catchUp struct {
	mu       sync.Mutex
	consumer jetstream.Consumer
	missing  uint64
	handling int // messages that are being handled
	reached  bool
	done     chan struct{}
	// of is the consumer on the server from which the last message came, and number that
	// message's among those that it has delivered.
	of     string
	number uint64
}

func newCatchUp() *catchUp { return &catchUp{done: make(chan struct{})} }

func (c *catchUp) begin(consumer jetstream.Consumer, missing uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.consumer, c.missing, c.of, c.number = consumer, missing, "", 0
	c.check()
}

// startHandling notes that a message is being handled.
func (c *catchUp) startHandling() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handling++
}

// advance counts a message that was handled.
func (c *catchUp) advance(msg jetstream.Msg) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handling--; c.reached {
		return
	}
	c.missing--
	if metadata, err := msg.Metadata(); err == nil {
		c.of, c.number = metadata.Consumer, metadata.Sequence.Consumer
		c.missing = min(c.missing, metadata.NumPending)
	}
	c.check()
}

// check closes done once nothing is missing; the caller holds mu.
func (c *catchUp) check() {
	if c.missing == 0 && !c.reached {
		c.reached = true
		close(c.done)
	}
}

// look asks the server what is missing, until nothing is or ctx ends.
func (c *catchUp) look(ctx context.Context) {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.done:
			return
		case <-ticker.C:
		}
		c.mu.Lock()
		consumer := c.consumer
		c.mu.Unlock()
		if info, err := infoOf(ctx, consumer); err == nil { // without an answer it asks again
			c.learn(consumer, info)
		}
	}
}

// learn takes an answer in: nothing is missing when the server has delivered all that it has,
// and the last of that was handled.
func (c *catchUp) learn(consumer jetstream.Consumer, info *jetstream.ConsumerInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	handled := info.Delivered.Consumer == 0 || info.Name == c.of && c.number >= info.Delivered.Consumer
	if consumer == c.consumer && info.NumPending == 0 && handled && c.handling == 0 {
		c.missing = 0
		c.check()
	}
}
