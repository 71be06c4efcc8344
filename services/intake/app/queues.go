package app

import (
	"cmp"
	"context"
	"maps"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/services/intake/internal/queueobjects"
)

// lookForKinds is the default of Config.LookForKinds; lookAgain is when intake looks after a
// failed look, after which nothing is synced.
const (
	lookForKinds = 30 * time.Second
	lookAgain    = 2 * time.Second
)

// queueSync syncs the queues that a cluster has as objects, as long as it has their kinds.
type queueSync struct {
	config  *Config
	cluster *queueobjects.Client
	bus     *bus.Bus
	logger  *zap.Logger

	versions map[string]string // of the kinds that are synced
	stop     func()            // ends their sync
}

// watchQueues syncs the cluster's queues to queue-manager while the cluster has definitions
// of Kueue's objects. Those that are there at the start are synced when it returns.
func watchQueues(ctx context.Context, group *errgroup.Group, config *Config, b *bus.Bus, logger *zap.Logger) error {
	client, err := queueobjects.Connect(config.Kubeconfig)
	if err != nil {
		return err
	}
	s := &queueSync{config: config, cluster: client, bus: b, logger: logger, stop: func() {}}
	err = service.Patiently(ctx, logger, "look for Kueue's kinds in the cluster", anyError, func() error { return s.look(ctx) })
	if err != nil {
		return err
	}
	group.Go(func() error {
		every := cmp.Or(config.LookForKinds, lookForKinds)
		after := every
		for {
			if err := pause.For(ctx, after); err != nil {
				s.stop()
				return err
			}
			after = every
			if err := s.look(ctx); err != nil && ctx.Err() == nil {
				after = lookAgain
				logger.Warn("cannot look for Kueue's kinds in the cluster; retrying", zap.Duration("after", after), zap.Error(err))
			}
		}
	})
	return nil
}

// look begins to sync again if the kinds that the cluster has are others than at the last
// look.
func (s *queueSync) look(ctx context.Context) error {
	versions, err := s.cluster.Kinds(ctx)
	if err != nil || maps.Equal(versions, s.versions) {
		return err
	}
	s.stop()
	s.versions, s.stop = nil, func() {}
	if len(versions) == 0 {
		s.logger.Info("the definitions of Kueue's queues were removed from the cluster", zap.String("cluster", s.config.Cluster))
		return nil
	}
	syncing, stop := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	if err := s.cluster.Watch(syncing, versions, func() {
		select {
		case changed <- struct{}{}:
		default: // a round is pending
		}
	}); err != nil {
		stop()
		return err
	}
	s.logger.Info("syncing queues of the cluster", zap.String("cluster", s.config.Cluster))
	sync := &queueobjects.Sync{Name: s.config.Cluster, Cluster: s.cluster, Requests: s.cluster, Manager: query.NewClient(s.bus.Conn()), Logger: s.logger}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = sync.Run(syncing, changed) // until it is stopped
	}()
	s.versions, s.stop = versions, func() { stop(); <-ended }
	return nil
}
