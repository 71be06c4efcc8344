package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/dispatcher/internal/permission"
)

// awayServer is an API server that does not answer. asked is called with each question's number.
type awayServer struct {
	permission.Cluster
	questions *atomic.Int32
	asked     func(int32)
}

func (s awayServer) Permission(context.Context) (permission.Record, error) {
	s.asked(s.questions.Add(1))
	return permission.Record{}, errors.New("connection refused")
}

// A process that reaches neither NATS nor the API server goes on: once the API server answers
// it may have to stop something. One that knows of no permission ends with the error.
func TestAProcessGoesOnWhileItCannotReadThePermission(t *testing.T) {
	t.Parallel()
	for name, goesOn := range map[string]bool{"the API server is away": true, "none is stored": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var server permission.Cluster = storedText{}
			if goesOn {
				server = awayServer{questions: &atomic.Int32{}, asked: func(number int32) {
					if number == 2 { // it has gone on after the first
						cancel()
					}
				}}
			}
			d := &dispatcher{
				config: &Config{Cluster: "c", NATS: bus.Settings{URL: "nats://127.0.0.1:1", Credentials: "no/such/file"}},
				logger: zap.NewNop(), permission: permission.New(server, permission.MachineClock(), time.Minute),
			}
			_, err := d.connect(ctx)
			if went := ctx.Err() != nil; err == nil || went != goesOn {
				t.Errorf("it goes on: %t, want %t; %v", went, goesOn, err)
			}
		})
	}
}
