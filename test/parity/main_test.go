// Package parity holds Muster's prediction of pods against a running KubeRay
// operator: manifests are created directly, not through Muster, and the pods
// that come into being are compared with those predicted, one by one.
package parity

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"muster.dev/muster/pkg/local/devcluster"
)

// startTimeout bounds the start of the dev cluster.
const startTimeout = 3 * time.Minute

// The flags say how many manifests are generated, and from which seed.
var (
	generated = flag.Int("specs", 60, "how many generated manifests to try")
	seed      = flag.Uint64("seed", 1, "what the generated manifests depend on")
)

var (
	cluster   *devcluster.Cluster
	noCluster error // why there is none
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var err error
	cluster, err = devcluster.Start(ctx, devcluster.Options{Name: fmt.Sprintf("parity-%d", os.Getpid()), Fleet: "laptop"})
	switch {
	case errors.Is(err, devcluster.ErrNotBuilt) && os.Getenv("MUSTER_REQUIRE_SERVICES") == "":
		noCluster = err
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	default:
		defer cluster.Stop()
	}
	return m.Run()
}
