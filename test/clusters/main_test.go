// Package clusters tests two and three clusters under one queue-manager, on real parts: Kubernetes
// control planes with the KubeRay operator, each with its capacity-watcher and dispatcher.
package clusters

import (
	"testing"

	"muster.dev/muster/pkg/testkit/clustertest"
	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/test/stack/stacktest"
)

// The parts that all tests share.
var (
	first     = clustertest.Shared{Name: "clusters-first", Prepare: stacktest.Install}
	second    = clustertest.Shared{Name: "clusters-second", Prepare: stacktest.Install}
	third     = clustertest.Shared{Name: "clusters-third", Prepare: stacktest.Install}
	databases *pgtest.Server
)

func TestMain(m *testing.M) { stacktest.Main(m, &databases, &first, &second, &third) }
