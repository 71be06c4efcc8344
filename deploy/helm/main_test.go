package helm_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/pkg/local/devcluster"
)

// cluster is the dev cluster that the tests share; noCluster is why there is none.
var (
	cluster   *devcluster.Cluster
	noCluster error
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cluster, noCluster = devcluster.Start(ctx, devcluster.Options{
		Binary: cmp.Or(os.Getenv(devcluster.EnvBinary), filepath.Join("..", "..", "bin", "devcluster")),
		Name:   fmt.Sprintf("helm-test-%d", os.Getpid()), Fleet: "laptop",
	})
	if noCluster == nil {
		defer cluster.Stop()
	}
	return m.Run()
}

// kubeconfig is the administrator's of the dev cluster.
func kubeconfig(t *testing.T) string {
	t.Helper()
	if errors.Is(noCluster, devcluster.ErrNotBuilt) && os.Getenv("MUSTER_REQUIRE_SERVICES") == "" {
		t.Skip(noCluster)
	}
	if noCluster != nil {
		t.Fatal(noCluster)
	}
	return cluster.Kubeconfig
}
