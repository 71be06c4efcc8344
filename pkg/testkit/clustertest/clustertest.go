// Package clustertest gives the tests of a package one dev cluster, a real Kubernetes
// control plane with simulated nodes, which starts with the first test that needs it.
//
// It is for tests only, and not for installing Muster in the cluster: Prepare does that.
package clustertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/pkg/local/devcluster"
)

// startTimeout bounds the start of the cluster.
const startTimeout = 3 * time.Minute

// Shared is the cluster of a package's tests; each test uses its own nodes and namespace.
type Shared struct {
	// Name distinguishes it from those of other packages.
	Name string
	// Prepare, if set, prepares the cluster once, before the first test uses it.
	Prepare func(ctx context.Context, c *Cluster) error

	mu      sync.Mutex
	cluster *Cluster
	err     error
}

// Cluster is a running cluster, with a directory for the tests' files that ends with it.
type Cluster struct {
	*devcluster.Cluster
	Dir string
}

// Run runs the tests of a package, in its TestMain, stops the cluster and returns the
// exit code.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	s.Stop()
	return code
}

// Stop stops the cluster, if it has started. Run does it for the cluster of a package that
// has one.
func (s *Shared) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster != nil {
		s.cluster.Stop()
		_ = os.RemoveAll(s.cluster.Dir)
	}
}

// Start starts the cluster unless it has been started, and waits for that. Use returns what
// came of it. A test that uses several clusters starts them at the same time.
func (s *Shared) Start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil && s.err == nil {
		s.err = s.start(context.WithoutCancel(ctx))
	}
}

// Use returns the cluster. It skips the test if the dev cluster is not built and not
// required by MUSTER_REQUIRE_SERVICES; every other failure fails the test.
func (s *Shared) Use(t *testing.T) *Cluster {
	t.Helper()
	s.Start(t.Context())
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.err, devcluster.ErrNotBuilt) && os.Getenv("MUSTER_REQUIRE_SERVICES") == "" {
		t.Skip(s.err)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}

func (s *Shared) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	running, err := devcluster.Start(ctx, devcluster.Options{
		Binary: binary(), Name: fmt.Sprintf("%s-%d", s.Name, os.Getpid()), Fleet: "laptop",
	})
	if err != nil {
		return err
	}
	s.cluster = &Cluster{Cluster: running}
	if s.cluster.Dir, err = os.MkdirTemp("", "muster-"+s.Name+"-"); err != nil {
		return err
	}
	if s.Prepare == nil {
		return nil
	}
	return s.Prepare(ctx, s.cluster)
}

// binary returns the path in the environment, else that of the Makefile's build.
func binary() string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.work")); missing == nil {
			return cmp.Or(os.Getenv(devcluster.EnvBinary), filepath.Join(dir, "bin", "devcluster"))
		}
		dir = filepath.Dir(dir)
	}
	return ""
}
