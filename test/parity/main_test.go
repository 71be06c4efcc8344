// Package parity holds Muster's prediction of pods against a running KubeRay
// operator: manifests are created directly, not through Muster, and the pods
// that come into being are compared with those predicted, one by one.
package parity

import (
	"flag"
	"os"
	"testing"

	"muster.dev/muster/pkg/testkit/clustertest"
)

// The flags say how many manifests are generated, and from which seed. The first 30 of seed 1
// have all kinds and submission modes, and submitters with devices, node selectors and the
// overhead of a runtime class.
var (
	generated = flag.Int("specs", 30, "how many generated manifests to try")
	seed      = flag.Uint64("seed", 1, "what the generated manifests depend on")
)

var shared = clustertest.Shared{Name: "parity"}

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
