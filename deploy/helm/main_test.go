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

	"muster.dev/muster/pkg/localcluster"
)

// cluster is the dev cluster that the tests share; noCluster is why there is none.
var (
	cluster   *localcluster.Cluster
	noCluster error
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cluster, noCluster = localcluster.Start(ctx, localcluster.Options{
		Binary: cmp.Or(os.Getenv(localcluster.EnvBinary), filepath.Join("..", "..", "bin", "devcluster")),
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
	if errors.Is(noCluster, localcluster.ErrNotBuilt) && os.Getenv("MUSTER_REQUIRE_SERVICES") == "" {
		t.Skip(noCluster)
	}
	if noCluster != nil {
		t.Fatal(noCluster)
	}
	return cluster.Kubeconfig
}
