package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/pkg/local/devcluster"
	intake "muster.dev/muster/services/intake/app"
	"muster.dev/muster/services/muster-dev/inprocess"
)

// Member is another cluster of a stack: it has a capacity-watcher and a dispatcher of its
// own, and the stack's queue-manager decides for it, too.
type Member struct {
	Name    string               // what the stack calls the cluster
	Kube    kubernetes.Interface // as administrator
	Dynamic dynamic.Interface    // as administrator

	stack    *Stack
	names    []string // of its services
	services *inprocess.Services
	link     *link
}

// Join adds a cluster to the stack, under a name after the stack's own, and returns when its
// services are ready; Stop of the member ends them. The cluster gets the stack's namespaces. With
// queues it has an intake, for objects that users make there with kubectl.
func (s *Stack) Join(ctx context.Context, cluster *devcluster.Cluster, name string, queues ...string) (*Member, error) {
	admin, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", cluster.Kubeconfig, err)
	}
	admin.QPS = -1
	m := &Member{Name: s.Pool + "-" + name, stack: s, names: []string{CapacityWatcher, Dispatcher}} // in the order of their start
	if len(queues) > 0 {
		m.names = append(m.names, Intake)
	}
	if m.Kube, err = kubernetes.NewForConfig(admin); err != nil {
		return nil, err
	}
	if m.Dynamic, err = dynamic.NewForConfig(admin); err != nil {
		return nil, err
	}
	if err := s.install(ctx, admin, m.Name); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.options.Dir, m.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for the kubeconfigs of cluster %s: %w", m.Name, err)
	}
	config := s.configuration()
	config.Cluster, config.MemberQueues, config.HTTP = m.Name, strings.Join(queues, ","), intake.HTTPConfig{}
	if m.link, config.NATSURL, err = newLink(ctx, s.NATSURL); err != nil {
		return nil, err
	}
	if config.Kubeconfigs, err = inprocess.Kubeconfigs(ctx, admin, dir); err != nil {
		return nil, err
	}
	m.services = inprocess.New(s.options.Logger, config)
	starting, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := m.services.Start(starting, m.names...); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

// AddNodes adds nodes to the member as Stack.AddNodes does to the stack's first cluster.
func (m *Member) AddNodes(ctx context.Context, group string, count int, resources ...string) error {
	return addNodes(ctx, m.Kube, m.Name, m.stack.Pool, group, count, resources)
}

// StartService starts a service of the member and waits until it is ready.
func (m *Member) StartService(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return m.services.Start(ctx, name)
}

// StopService stops a service of the member and returns how it ended; a clean stop is nil.
func (m *Member) StopService(name string) error { return m.services.Stop(name, stopTimeout) }

// Stop stops all services of the member. What runs in the cluster stays.
func (m *Member) Stop() error {
	var failed []error
	for _, name := range m.names {
		failed = append(failed, m.StopService(name))
	}
	return errors.Join(append(failed, m.link.listener.Close())...)
}
