package localstack

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/service"
	watcher "muster.dev/muster/services/capacity-watcher/app"
	dispatcher "muster.dev/muster/services/dispatcher/app"
	intake "muster.dev/muster/services/intake/app"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// readyTimeout bounds the start of a service, stopTimeout its end.
const (
	readyTimeout = 30 * time.Second
	stopTimeout  = 15 * time.Second
)

// nodeGrace is how long a node may be not ready before gangs on it start again.
const nodeGrace = 30 * time.Second

// estimateInterval lets people see an estimate soon after what changes it.
const estimateInterval = 2 * time.Second

// prepareCluster installs Muster's rights and gets the services' credentials.
func (s *Stack) prepareCluster(ctx context.Context) error {
	admin, err := adminConfig(s.Kubeconfig)
	if err != nil {
		return err
	}
	s.Admin = admin
	if s.options.Kubeconfig != "" {
		emptyDatabase := s.options.DatabaseURL == "" || s.options.FreshDatabase
		if err := guard(ctx, admin, emptyDatabase); err != nil {
			return err
		}
	}
	var namespaces []string
	for _, queue := range s.options.Queues {
		namespaces = append(namespaces, queue.Namespaces...)
	}
	slices.Sort(namespaces)
	if err := install.Install(ctx, admin, []string{ClusterName}, slices.Compact(namespaces)); err != nil {
		return fmt.Errorf("install Muster's rights: %w", err)
	}
	for _, account := range []string{rbac.CapacityWatcher, rbac.Dispatcher, rbac.Intake} {
		content, err := install.Kubeconfig(ctx, admin, account)
		if err != nil {
			return err
		}
		if err := os.WriteFile(s.kubeconfigOf(account), content, 0o600); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", account, err)
		}
	}
	return nil
}

// kubeconfigOf is the file with the credentials of a service account.
func (s *Stack) kubeconfigOf(account string) string {
	return filepath.Join(s.Dir, account+".kubeconfig")
}

// httpAPI returns the settings of the HTTP API, with one caller, an operator, whose token is
// in TokenFile.
func (s *Stack) httpAPI() (intake.HTTPConfig, error) {
	if s.options.HTTPPort == 0 {
		return intake.HTTPConfig{}, nil
	}
	const caller = "operator"
	token := rand.Text()
	s.TokenFile = filepath.Join(s.Dir, caller+".token")
	list := fmt.Sprintf("- {name: %s, sha256: %x}\n", caller, sha256.Sum256([]byte(token)))
	api := intake.HTTPConfig{
		Address: fmt.Sprintf("127.0.0.1:%d", max(s.options.HTTPPort, 0)), TokensFile: filepath.Join(s.Dir, "tokens.yaml"), Operators: caller,
		Listening: func(address net.Addr) { s.listening <- address },
	}
	for file, content := range map[string]string{s.TokenFile: token, api.TokensFile: list} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return api, fmt.Errorf("write the token of the HTTP API: %w", err)
		}
	}
	return api, nil
}

// part is a service of the stack.
type part struct {
	name     string
	validate func() error
	run      func(context.Context, *service.Runtime) error
}

// parts lists the services in the order of their start: who can answer before
// who asks.
func (s *Stack) parts(api intake.HTTPConfig) []part {
	manager := &queuemanager.Config{
		NATS: bus.Settings{URL: s.NATSURL}, DatabaseURL: s.databaseURL, Queues: s.options.Queues, Policy: s.options.Policy, NodeGrace: nodeGrace,
		EstimateInterval: estimateInterval,
	}
	watch := &watcher.Config{
		NATS: bus.Settings{URL: s.NATSURL}, Cluster: ClusterName, Kubeconfig: s.kubeconfigOf(rbac.CapacityWatcher),
		NodeSelector: s.options.NodeSelector, ResyncEvery: time.Minute,
	}
	dispatch := &dispatcher.Config{NATS: bus.Settings{URL: s.NATSURL}, Cluster: ClusterName, Kubeconfig: s.kubeconfigOf(rbac.Dispatcher)}
	intakeConfig := &intake.Config{NATS: bus.Settings{URL: s.NATSURL}, Cluster: ClusterName, Kubeconfig: s.kubeconfigOf(rbac.Intake), HTTP: api}
	return []part{
		{"queue-manager", manager.Validate, func(ctx context.Context, r *service.Runtime) error { return queuemanager.Run(ctx, manager, r) }},
		{"capacity-watcher", watch.Validate, func(ctx context.Context, r *service.Runtime) error { return watcher.Run(ctx, watch, r) }},
		{"dispatcher", dispatch.Validate, func(ctx context.Context, r *service.Runtime) error { return dispatcher.Run(ctx, dispatch, r) }},
		{"intake", intakeConfig.Validate, func(ctx context.Context, r *service.Runtime) error { return intake.Run(ctx, intakeConfig, r) }},
	}
}

// startServices starts all, then waits for all.
func (s *Stack) startServices(ctx context.Context) error {
	started := time.Now()
	var healths []*service.Health
	api, err := s.httpAPI()
	if err != nil {
		return err
	}
	parts := s.parts(api)
	for _, p := range parts {
		if err := p.validate(); err != nil {
			return fmt.Errorf("settings of %s: %w", p.name, err)
		}
	}
	for _, p := range parts {
		runtime := service.NewRuntime(s.options.Logger, p.name)
		healths = append(healths, runtime.Health)
		s.startService(ctx, p, runtime)
	}
	bounded, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for i, health := range healths {
		if err := s.awaitReady(bounded, parts[i].name, health); err != nil {
			return err
		}
	}
	if api.Address != "" {
		s.HTTPURL = "http://" + (<-s.listening).String()
	}
	s.options.Say("services are ready: intake, queue-manager, capacity-watcher, dispatcher (%.1f s)", time.Since(started).Seconds())
	return nil
}

func (s *Stack) startService(ctx context.Context, p part, runtime *service.Runtime) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := p.run(ctx, runtime)
		switch {
		case ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)):
		case err == nil:
			s.fail(fmt.Errorf("%s has ended on its own", p.name))
		default:
			s.fail(fmt.Errorf("%s: %w", p.name, err))
		}
	}()
	s.atStop(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(stopTimeout):
			s.options.Say("%s does not stop; leaving it", p.name)
		}
	})
}

// awaitReady returns when the service is ready, or when any part has failed.
func (s *Stack) awaitReady(ctx context.Context, name string, health *service.Health) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waited := make(chan error, 1)
	go func() { waited <- health.WaitReady(ctx) }()
	select {
	case err := <-waited:
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		return nil
	case err := <-s.failed:
		return err
	}
}

// Trial is for the begin of the program: see the function of intake.
func Trial() { intake.Trial() }
