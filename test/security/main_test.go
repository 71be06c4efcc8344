package security

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/testkit/clustertest"
	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/test/stack/stacktest"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// What the tests share: each has a database, a namespace and nodes of its own.
var (
	databases *pgtest.Server
	shared    = clustertest.Shared{Name: "security", Prepare: stacktest.Install}
)

func TestMain(m *testing.M) { stacktest.Main(m, &databases, &shared) }
