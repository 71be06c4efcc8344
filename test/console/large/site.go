package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	console "muster.dev/muster/services/console/app"
	intake "muster.dev/muster/services/intake/app"
	"muster.dev/muster/services/muster-dev/inprocess"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/services/queue-manager/ledgerbench/waiting"
)

const (
	// patience bounds each step of the start.
	patience = 10 * time.Minute
	// operator is the caller, and its token.
	operator = "olga"
	cluster  = "bench"
)

// site is the stack.
type site struct {
	dir       string
	console   string // its URL
	closes    []func()
	processes *inprocess.Services
}

func (s *site) close() {
	for i := len(s.closes) - 1; i >= 0; i-- {
		s.closes[i]()
	}
}

// open starts everything and returns when the queue-manager has all nodes.
func (s *site) open(ctx context.Context, nodes, waits int) error {
	url, err := s.ledger(ctx, waits)
	if err != nil {
		return err
	}
	server, err := natsserver.Start(filepath.Join(s.dir, "nats"), -1)
	if err != nil {
		return err
	}
	s.closes = append(s.closes, server.Stop)
	tokens := filepath.Join(s.dir, "tokens.yaml")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "- {name: %s, sha256: %x}\n", operator, sha256.Sum256([]byte(operator))), 0o600); err != nil {
		return err
	}
	listening := make(chan net.Addr, 1)
	config := inprocess.Config{
		NATSURL: server.URL(), DatabaseURL: url, NodeGrace: time.Hour, ClusterSilence: 24 * time.Hour, EstimateInterval: 10 * time.Second,
		Queues: []queuemanager.Queue{{Name: waiting.Queue, Namespaces: []string{waiting.Queue}}},
		HTTP:   intake.HTTPConfig{Address: "127.0.0.1:0", TokensFile: tokens, Operators: operator, Listening: func(a net.Addr) { listening <- a }},
	}
	logger, err := zap.Config{
		Level: zap.NewAtomicLevelAt(zap.WarnLevel), Encoding: "console", EncoderConfig: zap.NewDevelopmentEncoderConfig(), OutputPaths: []string{"stderr"},
	}.Build()
	if err != nil {
		return err
	}
	s.processes = inprocess.New(logger, config)
	starting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.start(starting, inprocess.QueueManager, inprocess.Intake); err != nil {
		return err
	}
	config.Console = console.Config{
		Address: "127.0.0.1:0", Server: "http://" + (<-listening).String(), Actions: true, RackLabel: "rack", Listening: func(a net.Addr) { listening <- a },
	}
	s.processes.Configure(config)
	if err := s.start(starting, inprocess.Console); err != nil {
		return err
	}
	s.console = "http://" + (<-listening).String()
	return report(starting, server.URL(), nodes)
}

func (s *site) start(ctx context.Context, names ...string) error {
	for _, name := range names {
		s.closes = append(s.closes, func() { _ = s.processes.Stop(name, time.Minute) }) // it ends with the program
		if err := s.processes.Start(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// ledger makes a database with the waiting workloads, and a login for queue-manager.
func (s *site) ledger(ctx context.Context, waits int) (string, error) {
	server, err := postgres.Start(ctx, postgres.Options{Settings: map[string]string{"shared_buffers": "'512MB'", "max_wal_size": "'4GB'"}})
	if err != nil {
		return "", err
	}
	s.closes = append(s.closes, server.Stop)
	url, err := server.CreateDatabase(ctx, "muster", "")
	if err != nil {
		return "", err
	}
	if err := queuemanager.Migrate(ctx, url, zap.NewNop()); err != nil {
		return "", err
	}
	if err := waiting.Seed(ctx, url, 0, waits); err != nil {
		return "", fmt.Errorf("fill the ledger: %w", err)
	}
	login, _, err := postgres.Login(ctx, url, queuemanager.DatabaseRole) // it goes with the server
	return login, err
}

// report publishes nodes, as a watcher does, and waits until queue-manager has them.
func report(ctx context.Context, url string, nodes int) error {
	b, err := bus.Connect(ctx, bus.Options{URL: url, Name: "large", Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer b.Close()
	session := time.Now().UnixNano()
	var published []bus.Published
	for i := range nodes {
		name := fmt.Sprintf("gpu-%05d", i)
		envelope, err := event.New(event.NewID(), "large", time.Now(), &event.NodeObserved{Version: event.Version{Session: session, Seq: uint64(i + 1)}, Node: capacity.Node{
			Cluster: cluster, Name: name, Ready: i%100 > 0, Labels: map[string]string{"rack": fmt.Sprintf("rack-%03d", i/16)},
			Allocatable: resource.List{"cpu": 96_000, "memory": 1 << 40, "pods": 110, "nvidia.com/gpu": 8},
		}})
		if err != nil {
			return err
		}
		p, err := b.PublishAsync(event.NodeSubject(cluster, name), envelope)
		if err != nil {
			return err
		}
		if published = append(published, p); len(published) == 500 || i == nodes-1 {
			for _, p := range published {
				if err := p.Wait(ctx); err != nil {
					return err
				}
			}
			published = nil
		}
	}
	client := query.NewClient(b.Conn())
	for ticker := time.NewTicker(time.Second); ; {
		answer, err := client.Nodes(ctx)
		if err == nil && len(answer.Nodes) == nodes {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("queue-manager has %d of %d nodes", len(answer.Nodes), nodes), err)
		case <-ticker.C:
		}
	}
}
