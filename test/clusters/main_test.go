// Package clusters tests two clusters under one queue-manager, on real parts: two Kubernetes
// control planes with the KubeRay operator, each with its capacity-watcher and dispatcher.
package clusters

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

// The parts that all tests share.
var (
	first     = clustertest.Shared{Name: "clusters-first"}
	second    = clustertest.Shared{Name: "clusters-second"}
	databases *pgtest.Server
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
	defer second.Stop()
	return first.Run(m)
}
