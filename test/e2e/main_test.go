// Package e2e tests the promises on real parts: the four services as they run
// alone, NATS, Postgres, a Kubernetes API server with its scheduler and
// controllers, and the KubeRay operator.
package e2e

import (
	"os"
	"testing"

	"muster.dev/muster/pkg/testkit/clustertest"
	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/test/stack/stacktest"
)

// The parts that all tests share; each test has a namespace, nodes, a database
// and a NATS server of its own.
var (
	shared     = clustertest.Shared{Name: "e2e", Prepare: stacktest.Install}
	databases  *pgtest.Server
	requireAll = os.Getenv("MUSTER_REQUIRE_SERVICES") != ""
)

func TestMain(m *testing.M) { stacktest.Main(m, &databases, &shared) }
