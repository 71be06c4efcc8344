package containers

import (
	"context"
	"os"
	"strings"
	"testing"

	"muster.dev/muster/test/containers/docker"
	"muster.dev/muster/test/suite"
)

// TestPromisesWhenPartsFail runs the suites in containers when a Docker engine
// answers. MUSTER_REQUIRE_SERVICES makes missing images a failure: an engine that
// is there is used.
func TestPromisesWhenPartsFail(t *testing.T) {
	if os.Getenv("MUSTER_TEST_PROVIDER") == "local" {
		t.Skip("MUSTER_TEST_PROVIDER=local: test/suite/local runs the suites")
	}
	engine, err := docker.Connect(t.Context())
	if err != nil {
		t.Skipf("%v", err)
	}
	swept, err := docker.Sweep(t.Context(), engine)
	if err != nil {
		t.Fatal(err)
	}
	if len(swept) > 0 {
		t.Logf("removed what an aborted run has left: %s", strings.Join(swept, ", "))
	}
	missing := docker.MissingImages(t.Context(), engine, docker.MusterImage(), docker.NATSImage(), docker.PostgresImage(), docker.DevclusterImage())
	if len(missing) > 0 {
		if os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
			t.Fatalf("the engine has no images %v: run `make images`", missing)
		}
		t.Skipf("the engine has no images %v: run `make images`", missing)
	}
	// No container removes what is left over, sweep does.
	t.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	p, err := newProvider(t.Context(), engine, t.TempDir())
	t.Cleanup(func() {
		if err := p.stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	suite.Run(t, p)
}
