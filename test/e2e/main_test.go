// Package e2e tests the promises on real parts: the four services as they run
// alone, NATS, Postgres, a Kubernetes API server with its scheduler and
// controllers, and the KubeRay operator.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/localcluster"
	"muster.dev/muster/pkg/pgtest"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// startTimeout bounds the start of the dev cluster.
const startTimeout = 3 * time.Minute

// The parts that all tests share; each test has a namespace, nodes, a database
// and a NATS server of its own.
var (
	cluster    *localcluster.Cluster
	noCluster  error // why there is none
	databases  *pgtest.Server
	requireAll = os.Getenv("MUSTER_REQUIRE_SERVICES") != ""
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var err error
	databases, err = pgtest.Start(func(ctx context.Context, url string) error {
		return queuemanager.Migrate(ctx, url, zap.NewNop())
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer databases.Stop()
	cluster, err = localcluster.Start(ctx, localcluster.Options{Name: fmt.Sprintf("e2e-%d", os.Getpid()), Fleet: "laptop"})
	switch {
	case errors.Is(err, localcluster.ErrNotBuilt):
		noCluster = err
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	default:
		defer cluster.Stop()
	}
	return m.Run()
}
