package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/logging"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// openMuster starts Muster's services in this process, with Postgres (with fsync) and NATS
// beside it.
func openMuster(ctx context.Context, o options, of kind, queues, gpus int) (*site, error) {
	s, _, err := startMuster(ctx, o, of, queues, gpus)
	return s, err
}

func startMuster(ctx context.Context, o options, of kind, queues, gpus int) (_ *site, _ *stack.Stack, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s, err := openCluster(ctx, o, of, "muster")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	database, err := postgres.Start(ctx, postgres.Options{})
	if err != nil {
		return nil, nil, err
	}
	s.stops = append(s.stops, database.Stop)
	dir, err := os.MkdirTemp("", "muster-peers-")
	if err != nil {
		return nil, nil, err
	}
	s.stops = append(s.stops, func() { _ = os.RemoveAll(dir) })
	logger, err := logging.New("error", "console")
	if err != nil {
		return nil, nil, err
	}
	var policy quota.Config
	if err := json.Unmarshal([]byte(policyOf(queues, gpus)), &policy); err != nil {
		return nil, nil, fmt.Errorf("read the policy: %w", err)
	}
	var names []queuemanager.Queue
	for i := range queues {
		names = append(names, queuemanager.Queue{Name: queueName(i), Namespaces: []string{namespace}})
	}
	running, err := stack.Start(ctx, stack.Options{
		Cluster: s.cluster, DatabaseURL: database.URL(), Dir: dir, Logger: logger, AllNodes: true, Queues: names, Policy: policy,
	})
	if err != nil {
		return nil, nil, err
	}
	s.stops = append(s.stops, running.Stop)
	s.label, s.used = appwrapper.QueueLabel, ownTime
	if of.wraps {
		s.watched = rayClusters
	}
	s.waiting = func(ctx context.Context) (waiting int, err error) {
		answer, err := running.Queries.Queues(ctx)
		for _, q := range answer.Queues {
			waiting += q.Waiting
		}
		return waiting, err
	}
	return s, running, awaitNodes(ctx, running, s.cluster.Nodes)
}

// policyOf gives each queue the same quota as Kueue's.
func policyOf(queues, gpus int) string {
	clusterQueues := ""
	for i := range queues {
		if i > 0 {
			clusterQueues += ","
		}
		clusterQueues += fmt.Sprintf(`{"name":%q,"resourceGroups":[{"coveredResources":["cpu","memory","nvidia.com/gpu"],"flavors":[{"name":"default-flavor",
			"resources":[{"name":"cpu","nominalQuota":"100000"},{"name":"memory","nominalQuota":"1000Ti"},{"name":"nvidia.com/gpu","nominalQuota":"%d"}]}]}]}`, queueName(i), gpus)
	}
	return `{"resourceFlavors":[{"name":"default-flavor"}],"clusterQueues":[` + clusterQueues + `]}`
}

// awaitNodes waits until queue-manager knows all nodes.
func awaitNodes(ctx context.Context, s *stack.Stack, count int) error {
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		answer, err := s.Queries.Nodes(ctx)
		if err != nil {
			return err
		}
		if len(answer.Nodes) >= count {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d nodes are known: %w", len(answer.Nodes), count, ctx.Err())
		case <-poll.C:
		}
	}
}

// ownTime is the processor time of this process: Muster's services and what creates the
// load, without Postgres and NATS' own process.
func ownTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// submission is a RayCluster on its way over NATS.
func submission(name string) event.Envelope {
	return event.Envelope{
		SpecVersion: event.SpecVersion, ID: name, Source: "peers", Type: event.SubmitType,
		DataContentType: "application/json", Data: json.RawMessage(stack.RayCluster(name, 1, 1)),
	}
}
