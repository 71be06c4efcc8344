// Package mistakes holds what Muster answers to wrong input: over NATS, over HTTP and on the
// command line. docs/mistakes.md lists each answer as it is given.
package mistakes

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/testkit/pgtest"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

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
