package publish

import (
	"context"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/tracing"
)

// Bus is the part of bus.Bus that a publisher uses.
type Bus interface {
	bus.ValueServer
	bus.StreamReader
	EnsureStreams(ctx context.Context) error
	Reconnected() (<-chan struct{}, func())
}

// Options are a publisher's dependencies and settings.
type Options struct {
	Bus         Bus
	Cluster     string
	ResyncEvery time.Duration
	Logger      *zap.Logger
	Metrics     *Metrics
	Tracer      tracing.Tracer
	// Synced is called whenever a list of everything has been stored.
	Synced func()
	// Now is the clock, and Later its timer; nil for the machine's.
	Now   func() time.Time
	Later func(time.Duration, func())
	// Epoch is that of the lease.
	Epoch int64
	// Held returns an error that wraps lease.ErrLost while the lease is not held. Nothing is
	// published then, and everything that has changed once it is held again.
	Held func() error
	// Asked are the requests of queue-manager; nil for none.
	Asked <-chan *event.ReportWanted
	// LookEvery is the period of checks for values that the stream has lost; zero for
	// lookEvery.
	LookEvery time.Duration
}
