package app_test

import (
	"context"
	"os"
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/services/queue-manager/app"
)

var postgres *pgtest.Server

func TestMain(m *testing.M) {
	os.Exit(pgtest.Run(m, &postgres, func(ctx context.Context, url string) error {
		return app.Migrate(ctx, url, zap.NewNop())
	}))
}
