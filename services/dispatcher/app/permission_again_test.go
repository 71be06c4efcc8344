package app

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/dispatcher/internal/permission"
	"muster.dev/muster/services/dispatcher/internal/reconcile"
)

// remade is a connection that was made again for each value.
type remade chan struct{}

func (r remade) Reconnected() (<-chan struct{}, func()) { return r, func() {} }

// After each new connection a dispatcher asks once, also where nothing needs the permission: gangs
// may have failed over meanwhile, and queue-manager gives the cluster none until it has asked.
func TestADispatcherAsksAfterEachConnection(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked, err := b.Follow(ctx, bus.StatusStream, event.PermissionAskedSubject("c"))
	if err != nil {
		t.Fatal(err)
	}
	keeper := permission.New(storedText{}, permission.MachineClock(), time.Hour)
	if err := keeper.Look(ctx); err != nil {
		t.Fatal(err)
	}
	reconciler := reconcile.New(nil, nil, nil, zap.NewNop(), reconcile.NewMetrics(prometheus.NewRegistry()))
	connection, caughtUp, ended := make(remade), make(chan struct{}), make(chan error, 1)
	close(caughtUp)
	p := &permitted{
		keeper: keeper, reconciler: reconciler, reporter: newReporter(b, "c", 1, lastReported{}, func(error) {}), epoch: 1,
		connection: connection, logger: zap.NewNop(),
	}
	reconciler.Run(ctx, 0) // which ends its queue with ctx
	go func() { ended <- p.renew(ctx, caughtUp) }()
	for number := range int64(3) {
		if number > 0 {
			connection <- struct{}{}
		}
		select {
		case d := <-asked.C:
			_, payload, err := d.Event()
			if question, is := payload.(*event.PermissionAsked); err != nil || !is || question.Number != number+1 {
				t.Fatalf("after connection %d the dispatcher publishes %+v, %v", number, payload, err)
			}
		case err := <-ended:
			t.Fatalf("it asks no more: %v", err)
		}
	}
	cancel()
	<-ended
}
