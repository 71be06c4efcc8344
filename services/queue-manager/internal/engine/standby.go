package engine

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/settings"
	"muster.dev/muster/services/queue-manager/internal/store"
)

const (
	// followEvery is how often a standby asks for what the leader has committed.
	followEvery = 100 * time.Millisecond
	// refollowAfter is the pause before a standby loads the state again.
	refollowAfter = time.Second
)

// standby keeps a state current while another queue-manager leads, so that taking
// over does not take the time to read everything.
type standby struct {
	Options
	ctx      context.Context
	cancel   context.CancelFunc
	started  bool
	ended    chan struct{}
	state    *state.State // nil while there is none; for the owner once ended is closed
	follower *store.Follower
}

func newStandby(ctx context.Context, o Options) *standby {
	s := &standby{Options: o, ended: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// start follows the leader until stop.
func (s *standby) start() {
	s.started = true
	go func() {
		defer close(s.ended)
		current := false
		for s.ctx.Err() == nil {
			err := s.follow(func() {
				if !current {
					current = true
					s.ready(true)
				}
			})
			if s.ctx.Err() != nil {
				return
			}
			s.state = nil
			s.Logger.Warn("standby cannot follow; loading the state again", zap.Error(err), zap.Duration("after", refollowAfter))
			_ = pause.For(s.ctx, refollowAfter) // the loop looks at the context
		}
	}()
}

// follow reads everything, then what is committed, until something fails.
func (s *standby) follow(current func()) error {
	s.follower = s.Store.Follower()
	loaded, err := s.follower.Load(s.ctx, s.Bus.MaxEvent())
	if err != nil {
		return err
	}
	s.state = loaded
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		if err := s.catchUp(s.ctx); err != nil {
			return err
		}
		current()
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-tick.C:
		}
	}
}

// catchUp brings the state to the last commit.
func (s *standby) catchUp(ctx context.Context) error {
	for {
		delta, more, err := s.follower.Next(ctx, s.state.Version())
		if err != nil {
			return err
		}
		if delta.Version != s.state.Version() {
			s.state.Follow(delta)
		}
		if !more {
			return nil
		}
	}
}

// stop ends the following and waits for it.
func (s *standby) stop() {
	s.cancel()
	if s.started {
		<-s.ended
	}
}

// takeOver returns the state of the term that begins: the followed one, brought up
// to date, if there is one and the settings are the same; else one loaded again. The
// objects that were applied count in addition to the file.
func (s *standby) takeOver(ctx context.Context, epoch int64) (*state.State, settings.Set, error) {
	s.stop()
	applied, err := s.applyConfiguration(ctx, epoch)
	if err != nil {
		return nil, nil, err
	}
	if s.state != nil {
		warm, err := s.warm(ctx, epoch)
		if warm || err != nil {
			return s.state, applied, err
		}
	}
	s.state = nil
	loaded, err := s.Store.LoadState(ctx, epoch, s.Bus.MaxEvent())
	return loaded, applied, err
}

// applyConfiguration stores what governs from now on: the file and what was applied. While an
// applied object cannot be read, as after the return to an earlier version of Muster, what is
// stored goes on to count.
func (s *standby) applyConfiguration(ctx context.Context, epoch int64) (settings.Set, error) {
	stored, err := s.Store.Applied(ctx)
	if err != nil {
		return nil, err
	}
	applied := ParseApplied(stored.Objects)
	if err := applied.Unread(); err != nil {
		s.Metrics.notStorable.WithLabelValues("configuration").Inc()
		s.Logger.Error("cannot read an applied object; the queues in the database count, and no change of the configuration is applied until it is deleted or applied again", zap.Error(err))
		return applied, nil
	}
	all, overridden, err := s.File.Combine(applied)
	if err != nil {
		return nil, fmt.Errorf("queues file conflicts with applied objects: %w; restore the previous file, delete the conflicting objects with `muster delete`, then change the file", err)
	}
	for _, key := range overridden {
		s.Logger.Warn("ignoring an applied object whose name is in the queues file", zap.Stringer("object", key))
	}
	err = s.Store.SetQueues(ctx, epoch, all.Queues, all.Policy)
	if store.Suspect(err) { // what is stored goes on to count
		s.Metrics.notStorable.WithLabelValues("configuration").Inc()
		s.Logger.Error("cannot store the queues; keeping those in the database", zap.Error(err))
		return applied, nil
	}
	return applied, err
}

// ParseApplied reads applied objects as they are stored. See settings.Set.Unread.
func ParseApplied(stored []query.Applied) settings.Set {
	applied := settings.Set{}
	for _, a := range stored {
		object, err := kueue.ParseOne(a.Manifest)
		if err != nil {
			object = kueue.Object{Key: a.Key, Manifest: a.Manifest}
		}
		applied[a.Key] = settings.Applied{Object: object, Origin: a.Origin, Version: a.Version, Unread: err}
	}
	return applied
}

// warm makes the followed state that of the term, if it can be.
func (s *standby) warm(ctx context.Context, epoch int64) (bool, error) {
	stored, err := s.Store.Settings(ctx)
	if err != nil {
		return false, err
	}
	if !s.state.HasConfiguration(stored.Queues, stored.Policy) || len(s.state.Unread()) > 0 {
		return false, nil
	}
	if err := s.catchUp(ctx); err != nil {
		return false, nil // load again; if Postgres is away that fails
	}
	last, err := s.Store.LastOrder(ctx)
	if store.Suspect(err) {
		return false, nil // a live workload cannot be read, which is left out when all is loaded
	}
	if err != nil {
		return false, err
	}
	past, err := s.Store.PastUsage(ctx)
	if err != nil {
		return false, err
	}
	learned, err := s.Store.Learned(ctx)
	if err != nil {
		return false, err
	}
	s.state.Follow(state.Delta{Version: s.state.Version(), LastOrder: last, PastUsage: past, Learned: learned})
	s.state.Lead(epoch, s.Bus.MaxEvent())
	return true, nil
}
