package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/pkg/testkit/pgtest"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// TestSoak is a short soak; `make soak` is a long one.
func TestSoak(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	databases, err := pgtest.Start(func(ctx context.Context, url string) error { return queuemanager.Migrate(ctx, url, zap.NewNop()) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(databases.Stop) // behind the removal of the database, which is a cleanup too
	cluster, err := devcluster.Start(ctx, devcluster.Options{Name: fmt.Sprintf("soak-test-%d", os.Getpid()), Fleet: "laptop"})
	if errors.Is(err, devcluster.ErrNotBuilt) && os.Getenv("MUSTER_REQUIRE_SERVICES") == "" {
		t.Skipf("no dev cluster: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	s, err := newSoak(ctx, options{lasts: 8 * time.Second, gangs: 15, nodes: 10, seed: 7}, parts{
		cluster: cluster, databaseURL: databases.Database(t), dir: t.TempDir(), logger: zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)),
	})
	if err != nil {
		t.Fatal(err)
	}
	figures, err := s.run(ctx)
	t.Logf("\n%s", figures)
	if err != nil {
		t.Error(err)
	}
}
