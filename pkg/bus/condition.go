package bus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Condition is how the NATS servers and Muster's streams on them are.
type Condition struct {
	Version, Server, Cluster string
	// Servers are those that a client may connect to.
	Servers int
	// Stored and Limit are bytes of JetStream's account; a Limit of 0 is none.
	Stored, Limit uint64
	// Failed is why JetStream does not report what it stores, nil when it does.
	Failed  error
	Streams []StreamCondition
}

// StreamCondition is the fill of a stream, or why it is not known.
type StreamCondition struct {
	Name            string
	Failed          error
	Messages, Bytes uint64
	Limit           uint64    // in bytes; 0 where subjects bound it
	Oldest          time.Time // when the first message was stored; zero without one
	Copies          int
	Leader          string   // empty for a single server
	Away            []string // servers with a copy that are offline
}

// Condition asks the server and each stream at once, and waits until all have answered
// or ctx ends. What has not answered has the error.
func (b *Bus) Condition(ctx context.Context) Condition {
	c := Condition{
		Version: b.nc.ConnectedServerVersion(), Server: b.nc.ConnectedServerName(), Cluster: b.nc.ConnectedClusterName(),
		Servers: len(b.nc.Servers()), Streams: make([]StreamCondition, len(Streams())),
	}
	if c.Failed = b.Ready(); c.Failed != nil {
		c.Streams = nil
		return c
	}
	var answers sync.WaitGroup
	answers.Go(func() {
		account, err := b.js.AccountInfo(ctx)
		if err != nil {
			c.Failed = err
			return
		}
		c.Stored, c.Limit = account.Store, uint64(max(0, account.Limits.MaxStore))
	})
	for i, name := range Streams() {
		answers.Go(func() { c.Streams[i] = b.streamCondition(ctx, name) })
	}
	answers.Wait()
	return c
}

func (b *Bus) streamCondition(ctx context.Context, name string) StreamCondition {
	c := StreamCondition{Name: name}
	stream, err := b.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = ErrNoStream
	}
	if err != nil {
		c.Failed = err
		return c
	}
	info := stream.CachedInfo()
	c.Messages, c.Bytes, c.Limit = info.State.Msgs, info.State.Bytes, uint64(max(0, info.Config.MaxBytes))
	if c.Messages > 0 {
		c.Oldest = info.State.FirstTime
	}
	c.Copies = max(1, info.Config.Replicas)
	if info.Cluster != nil {
		c.Leader = info.Cluster.Leader
		for _, peer := range info.Cluster.Replicas {
			if peer.Offline {
				c.Away = append(c.Away, peer.Name)
			}
		}
	}
	return c
}
