package app_test

import (
	"context"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/queue-manager/app"
)

// TestDatabaseAwayAtTheStart: queue-manager waits for a database that refuses its
// connections instead of exiting.
func TestDatabaseAwayAtTheStart(t *testing.T) {
	t.Parallel()
	config := &app.Config{NATS: bus.Settings{URL: "nats://127.0.0.1:1"}, DatabaseURL: "postgres://login@127.0.0.1:1/none"}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tries := 0
	core, _ := observer.New(zapcore.DebugLevel)
	logger := zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if e.Message == "cannot complete a step of the start; retrying" {
			if tries++; tries == 2 {
				cancel()
			}
		}
		return nil
	}))
	if err := app.Run(ctx, config, service.NewRuntime(logger, "queue-manager")); tries != 2 {
		t.Errorf("it ended after %d tries with %v, want it to try until it is stopped", tries, err)
	}
}
