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
	console "muster.dev/muster/services/console/app"
	intake "muster.dev/muster/services/intake/app"
	"muster.dev/muster/services/muster-dev/inprocess"
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

// rackLabel is that of the dev cluster's nodes.
const rackLabel = "topology.muster.dev/rack"

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
	if err := install.Install(ctx, admin, []string{ClusterName}, s.namespaces()); err != nil {
		return fmt.Errorf("install Muster's rights: %w", err)
	}
	s.kubeconfigs, err = inprocess.Kubeconfigs(ctx, admin, s.Dir)
	return err
}

// namespaces are those of the queues.
func (s *Stack) namespaces() []string {
	var namespaces []string
	for _, queue := range s.options.Queues {
		namespaces = append(namespaces, queue.Namespaces...)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
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

// startServices starts all, then waits for all.
func (s *Stack) startServices(ctx context.Context) error {
	started := time.Now()
	api, err := s.httpAPI()
	if err != nil {
		return err
	}
	config := inprocess.Config{
		NATSURL: s.NATSURL, DatabaseURL: s.databaseURL, Cluster: ClusterName, Kubeconfigs: s.kubeconfigs,
		Queues: s.options.Queues, Policy: s.options.Policy, NodeSelector: s.options.NodeSelector, NodeGrace: nodeGrace, ClusterSilence: s.options.ClusterSilence,
		EstimateInterval: estimateInterval, HTTP: api,
	}
	services := inprocess.New(s.options.Logger, config)
	services.Ended = s.fail
	for _, name := range append(inprocess.Names(), inprocess.Console) {
		s.atStop(func() {
			if err := services.Stop(name, stopTimeout); errors.Is(err, inprocess.ErrStillRuns) {
				s.options.Progress("%s does not stop; leaving it", name)
			}
		})
	}
	if err := s.untilFailed(ctx, func(ctx context.Context) error { return services.Start(ctx, inprocess.Names()...) }); err != nil {
		return err
	}
	if api.Address != "" {
		s.HTTPURL = "http://" + (<-s.listening).String()
	}
	if s.HTTPURL != "" && s.options.ConsolePort != 0 {
		if err := s.startConsole(ctx, services, config); err != nil {
			return err
		}
	}
	s.options.Progress("services are ready: intake, queue-manager, capacity-watcher, dispatcher (%.1f s)", time.Since(started).Seconds())
	return nil
}

// startConsole starts the console on the HTTP API. Its callers may change what their tokens may:
// the stack is of one user.
func (s *Stack) startConsole(ctx context.Context, services *inprocess.Services, config inprocess.Config) error {
	config.Console = console.Config{
		Address: fmt.Sprintf("127.0.0.1:%d", max(s.options.ConsolePort, 0)), Server: s.HTTPURL, Actions: true, RackLabel: rackLabel,
		Listening: func(address net.Addr) { s.listening <- address },
	}
	services.Configure(config)
	if err := s.untilFailed(ctx, func(ctx context.Context) error { return services.Start(ctx, inprocess.Console) }); err != nil {
		return err
	}
	s.ConsoleURL = "http://" + (<-s.listening).String()
	return nil
}

// untilFailed returns when the start has ended, is late, or any part of the stack has failed.
func (s *Stack) untilFailed(ctx context.Context, start func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- start(ctx) }()
	select {
	case err := <-started:
		return err
	case err := <-s.failed:
		cancel()
		<-started
		return err
	}
}

// Trial is for the beginning of the program: see the function of intake.
func Trial() { intake.Trial() }
