// Package clustertest gives the tests of a package one dev cluster, a real
// Kubernetes control plane with played nodes, that the first of them to need it
// starts.
//
// It is test support, as package pgtest is for databases, and knows nothing of
// what Muster installs in a cluster: Prepare does.
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

	"muster.dev/muster/pkg/localcluster"
)

// startTimeout bounds the start of the cluster.
const startTimeout = 3 * time.Minute

// Shared is the cluster of a package's tests; each uses nodes and a namespace of
// its own.
type Shared struct {
	// Name keeps it apart from those of other packages.
	Name string
	// Prepare, if set, does what is needed once, before the first test has it.
	Prepare func(ctx context.Context, c *Cluster) error

	mu      sync.Mutex
	cluster *Cluster
	err     error
}

// Cluster is a running cluster, with a directory for the tests' files that goes
// with it.
type Cluster struct {
	*localcluster.Cluster
	Dir string
}

// Run runs the tests of a package, in its TestMain, and takes the cluster down; it
// returns the exit code.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster != nil {
		s.cluster.Stop()
		_ = os.RemoveAll(s.cluster.Dir)
	}
	return code
}

// Use returns the cluster. A test that cannot have it is skipped where the dev
// cluster is not built and nobody requires it, and fails otherwise.
func (s *Shared) Use(t *testing.T) *Cluster {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil && s.err == nil {
		s.err = s.start(context.WithoutCancel(t.Context()))
	}
	if errors.Is(s.err, localcluster.ErrNotBuilt) && os.Getenv("MUSTER_REQUIRE_SERVICES") == "" {
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
	running, err := localcluster.Start(ctx, localcluster.Options{
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

// binary is that of the environment, else the one that the Makefile builds.
func binary() string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.work")); missing == nil {
			return cmp.Or(os.Getenv(localcluster.EnvBinary), filepath.Join(dir, "bin", "devcluster"))
		}
		dir = filepath.Dir(dir)
	}
	return ""
}
