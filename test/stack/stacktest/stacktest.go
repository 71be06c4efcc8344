// Package stacktest is the TestMain of packages whose tests start stacks. What such tests do
// with a stack is in package stack.
package stacktest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/zap"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/pkg/testkit/clustertest"
	"muster.dev/muster/pkg/testkit/pgtest"
	intake "muster.dev/muster/services/intake/app"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// MovingQueue is the name of a queue whose objects move, for the admission policies that Install
// installs.
const MovingQueue = "moving"

// Install prepares a cluster that stacks share, which have Options.Installed.
func Install(ctx context.Context, c *clustertest.Cluster) error {
	admin, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig %q: %w", c.Kubeconfig, err)
	}
	admin.QPS = -1
	_, err = install.InstallWith(ctx, admin, install.Options{Moving: []string{MovingQueue}})
	return err
}

// Main runs the tests of a package, in its TestMain, and exits. They find a server whose
// databases have the ledger's schema in databases. It ends afterwards, as do the clusters that
// a test has used.
func Main(m *testing.M, databases **pgtest.Server, clusters ...*clustertest.Shared) {
	intake.Trial() // intake reads a message that has come before in another process of this program
	code := pgtest.Run(m, databases, func(ctx context.Context, url string) error {
		return queuemanager.Migrate(ctx, url, zap.NewNop())
	})
	for _, cluster := range clusters {
		cluster.Stop()
	}
	os.Exit(code)
}
