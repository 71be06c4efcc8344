package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/test/suite"
)

// binaries is where make build puts them.
const binaries = "../../../bin"

// TestPromisesWhenPartsFail runs the suites in processes where no Docker engine
// answers; where one does, test/containers runs them there.
func TestPromisesWhenPartsFail(t *testing.T) {
	required := os.Getenv("MUSTER_REQUIRE_SERVICES") != ""
	if exec.Command("docker", "version").Run() == nil && os.Getenv("MUSTER_TEST_PROVIDER") != "local" {
		t.Skip("a Docker engine answers: test/containers runs the suites there (MUSTER_TEST_PROVIDER=local runs them here too)")
	}
	if missing := Missing(binaries); len(missing) > 0 {
		if required {
			t.Fatalf("%v are not built: run `make build`", missing)
		}
		t.Skipf("%v are not built: run `make build`", missing)
	}
	cluster, err := devcluster.Start(t.Context(), devcluster.Options{Name: fmt.Sprintf("suite-%d", os.Getpid()), Fleet: "p3"})
	if errors.Is(err, devcluster.ErrNotBuilt) && !required {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	suite.Run(t, &Provider{Binaries: binaries, Cluster: cluster})
}
