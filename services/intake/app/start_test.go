package app

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/intake/internal/budget"
)

// TestReadingBeginsLate: intake retries, and logs it, while it cannot read at its start,
// here because a stream is missing.
func TestReadingBeginsLate(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	js, err := jetstream.New(b.Conn())
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), bus.SubmitStream); err != nil {
		t.Fatal(err)
	}
	refused := make(chan struct{}, 100)
	core, _ := observer.New(zapcore.WarnLevel)
	logger := zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if e.Message == "cannot complete a step of the start; retrying" {
			refused <- struct{}{}
		}
		return nil
	}))
	in := newIntake(ray.Shipped(), b, budget.New(budget.Default()), service.NewRuntime(logger, "intake"))
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- in.run(ctx, func() { close(ready) }) }()
	select {
	case <-refused:
	case err := <-ended:
		t.Fatalf("it ends with %v; want it to try again", err)
	}
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ready:
	case <-time.After(soon):
		t.Fatal("it does not begin")
	}
	cancel()
	if err := within(t, ended, "the end"); err != nil {
		t.Error(err)
	}
}
