// Package mistakes holds what Muster answers to wrong input: over NATS, over HTTP and on the
// command line. docs/mistakes.md lists each answer as it is given.
package mistakes

import (
	"testing"

	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/test/stack/stacktest"
)

var databases *pgtest.Server

func TestMain(m *testing.M) { stacktest.Main(m, &databases) }
