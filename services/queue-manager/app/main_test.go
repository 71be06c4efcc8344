package app_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/services/queue-manager/app"
)

var postgres *pgtest.Server

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	server, err := pgtest.Start(func(ctx context.Context, url string) error {
		return app.Migrate(ctx, url, zap.NewNop())
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Stop()
	postgres = server
	return m.Run()
}
