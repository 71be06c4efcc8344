// Package e2e tests the promises on real parts: the four services as they run
// alone, NATS, Postgres, a Kubernetes API server with its scheduler and
// controllers, and the KubeRay operator.
package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/testkit/clustertest"
	"muster.dev/muster/pkg/testkit/pgtest"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// The parts that all tests share; each test has a namespace, nodes, a database
// and a NATS server of its own.
var (
	shared     = clustertest.Shared{Name: "e2e"}
	databases  *pgtest.Server
	requireAll = os.Getenv("MUSTER_REQUIRE_SERVICES") != ""
)

func TestMain(m *testing.M) {
	stack.Trial()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	databases, err = pgtest.Start(func(ctx context.Context, url string) error {
		return queuemanager.Migrate(ctx, url, zap.NewNop())
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer databases.Stop()
	return shared.Run(m)
}
