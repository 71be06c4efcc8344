package localstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/services/muster-dev/inprocess"
)

// Member is a further dev cluster of the stack, with a capacity-watcher and a dispatcher of
// its own.
type Member struct {
	Name  string
	Admin *rest.Config

	services *inprocess.Services
}

// Join starts a further dev cluster with its services; Stop of the stack ends it.
func (s *Stack) Join(ctx context.Context, name, fleet string) (*Member, error) {
	s.options.Progress("starting a dev cluster %q with fleet %q", name, fleet)
	cluster, err := devcluster.Start(ctx, devcluster.Options{
		Binary: s.options.Devcluster, Name: fmt.Sprintf("muster-dev-%s-%d", name, os.Getpid()), Fleet: fleet, Progress: s.options.ClusterOutput,
	})
	if err != nil {
		return nil, err
	}
	s.atStop(cluster.Stop)
	m := &Member{Name: name}
	if m.Admin, err = adminConfig(cluster.Kubeconfig); err != nil {
		return nil, err
	}
	if err := install.Install(ctx, m.Admin, []string{name}, s.namespaces()); err != nil {
		return nil, fmt.Errorf("install Muster's rights in cluster %s: %w", name, err)
	}
	dir := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for the kubeconfigs of cluster %s: %w", name, err)
	}
	config := inprocess.Config{NATSURL: s.NATSURL, Cluster: name}
	if config.Kubeconfigs, err = inprocess.Kubeconfigs(ctx, m.Admin, dir); err != nil {
		return nil, err
	}
	m.services = inprocess.New(s.options.Logger, config)
	s.atStop(func() {
		if err := m.CutOff(); errors.Is(err, inprocess.ErrStillRuns) {
			s.options.Progress("the services of cluster %s do not stop; leaving them", name)
		}
	})
	return m, m.Return(ctx)
}

// CutOff stops the services of the cluster. What runs in it goes on.
func (m *Member) CutOff() error {
	return errors.Join(m.services.Stop(inprocess.CapacityWatcher, stopTimeout), m.services.Stop(inprocess.Dispatcher, stopTimeout))
}

// Return starts the services of the cluster, and returns when they are ready.
func (m *Member) Return(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return m.services.Start(ctx, inprocess.CapacityWatcher, inprocess.Dispatcher)
}
