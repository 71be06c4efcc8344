package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/dispatcher/internal/permission"
)

// awayServer is an API server that does not answer.
type awayServer struct{ permission.Cluster }

func (awayServer) Permission(context.Context) (permission.Record, error) {
	return permission.Record{}, errors.New("connection refused")
}

// A process that reaches neither NATS nor the API server goes on: once the API server answers
// it may have to stop something. One that knows of no permission ends with the error.
func TestAProcessGoesOnWhileItCannotReadThePermission(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server permission.Cluster
		goesOn bool
	}{
		"the API server is away": {awayServer{}, true},
		"none is stored":         {storedText{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			d := &dispatcher{
				config: &Config{Cluster: "c", NATS: bus.Settings{URL: "nats://127.0.0.1:1", Credentials: "no/such/file"}},
				logger: zap.NewNop(), permission: permission.New(c.server, permission.MachineClock(), time.Minute),
			}
			_, err := d.connect(ctx)
			if goesOn := ctx.Err() != nil; err == nil || goesOn != c.goesOn {
				t.Errorf("it goes on: %t, want %t; %v", goesOn, c.goesOn, err)
			}
		})
	}
}
