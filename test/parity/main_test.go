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

	"muster.dev/muster/pkg/localcluster"
)

// startTimeout bounds the start of the dev cluster.
const startTimeout = 3 * time.Minute

// The flags say how many manifests are generated, and from which seed.
var (
	generated = flag.Int("specs", 60, "how many generated manifests to try")
	seed      = flag.Uint64("seed", 1, "what the generated manifests depend on")
)

var (
	cluster   *localcluster.Cluster
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
	cluster, err = localcluster.Start(ctx, localcluster.Options{Name: fmt.Sprintf("parity-%d", os.Getpid()), Fleet: "laptop"})
	switch {
	case errors.Is(err, localcluster.ErrNotBuilt) && os.Getenv("MUSTER_REQUIRE_SERVICES") == "":
		noCluster = err
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	default:
		defer cluster.Stop()
	}
	return m.Run()
}
