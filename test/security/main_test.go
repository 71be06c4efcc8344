// Package security tests how queue-manager and Postgres protect each other: roles
// and encryption. What needs a cluster is tested in
// test/e2e, the users of NATS in deploy/nats/access.
package security

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/pgtest"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// databases is what the tests share; each has one of its own.
var databases *pgtest.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

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
	return m.Run()
}
