// Package clienttest has the client for tests that run its command line.
package clienttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// EnvProgram is the environment variable that names the client to use. `make test` sets it,
// because it has just built one.
const EnvProgram = "MUSTER_CLIENT"

// Program returns the path of the client. Without EnvProgram it builds one, so that a test
// by hand never runs an older one.
func Program(t *testing.T) string {
	t.Helper()
	if named := os.Getenv(EnvProgram); named != "" {
		return named
	}
	program := filepath.Join(t.TempDir(), "muster")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", program, "muster.dev/muster/services/muster")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the client: %v: %s", err, output)
	}
	return program
}
