package security

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/testkit/clustertest"
	"muster.dev/muster/pkg/testkit/pgtest"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// What the tests share: each has a database, a namespace and nodes of its own.
var (
	databases *pgtest.Server
	shared    = clustertest.Shared{Name: "security"}
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
