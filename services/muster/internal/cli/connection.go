package cli

import (
	"context"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/overhttp"
	"muster.dev/muster/services/internal/client/submission"
)

// life is the life of a workload, step by step.
type life interface {
	Next(ctx context.Context) (follow.Step, error)
}

// actor asks for changes of a workload, over either transport. by names who asks, where the
// transport does not.
type actor interface {
	ender
	queuer
	holder
}

// ender ends a workload, or what it has.
type ender interface {
	cancel(ctx context.Context, r workload.Record, why string) error
	release(ctx context.Context, r workload.Record, by, why string) error
}

// queuer changes the place of a workload in a queue.
type queuer interface {
	move(ctx context.Context, r workload.Record, queue, by, why string) error
	requeue(ctx context.Context, r workload.Record, by, why string) error
	setPriority(ctx context.Context, r workload.Record, priority int32, by, why string) error
}

// holder holds or resumes a workload, and notes that its work is saved.
type holder interface {
	hold(ctx context.Context, r workload.Record, resume bool, by, why string) error
	checkpoint(ctx context.Context, r workload.Record, at time.Time, by string) error
}

// connection reaches Muster over NATS or HTTP, whichever the flags and variables choose.
type connection struct {
	actor
	queries *query.Client
	// follow returns the steps of a workload after its known state.
	follow func(ctx context.Context, known workload.Record) (life, error)
	close  func()
}

// open returns a connection, which the caller closes.
func (s *server) open(ctx context.Context) (*connection, error) {
	if web, err := s.overHTTP(); err != nil {
		return nil, err
	} else if web != nil {
		return &connection{
			actor: webActor{web}, queries: query.NewClientOver(web).Patient(), close: func() {},
			follow: func(ctx context.Context, known workload.Record) (life, error) { return web.Follow(ctx, known), nil },
		}, nil
	}
	b, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{
		actor: busActor{b}, queries: query.NewClient(b.Conn()).Patient(), close: b.Close,
		follow: func(ctx context.Context, known workload.Record) (life, error) {
			return follow.Start(ctx, b, known.Queue, known.ID)
		},
	}, nil
}

// find returns the workload that a person means.
func (c *connection) find(ctx context.Context, name, namespace string) (record workload.Record, err error) {
	err = answered(ctx, func(ctx context.Context) error {
		record, err = findWorkload(ctx, c.queries, name, namespace)
		return err
	})
	return record, err
}

// busActor asks over NATS.
type busActor struct{ bus *bus.Bus }

func (a busActor) cancel(ctx context.Context, r workload.Record, why string) error {
	return submission.Cancel(ctx, a.bus, r, why, time.Now())
}

func (a busActor) move(ctx context.Context, r workload.Record, queue, by, why string) error {
	return submission.Move(ctx, a.bus, r, queue, by, why, time.Now())
}

func (a busActor) release(ctx context.Context, r workload.Record, by, why string) error {
	return submission.Release(ctx, a.bus, r, by, why, time.Now())
}

func (a busActor) hold(ctx context.Context, r workload.Record, resume bool, by, why string) error {
	return submission.Hold(ctx, a.bus, r, resume, by, why, time.Now())
}

func (a busActor) requeue(ctx context.Context, r workload.Record, by, why string) error {
	return submission.Requeue(ctx, a.bus, r, by, why, time.Now())
}

func (a busActor) setPriority(ctx context.Context, r workload.Record, priority int32, by, why string) error {
	return submission.SetPriority(ctx, a.bus, r, priority, by, why, time.Now())
}

func (a busActor) checkpoint(ctx context.Context, r workload.Record, at time.Time, by string) error {
	return submission.Checkpoint(ctx, a.bus, r, at, by, time.Now())
}

// webActor asks over HTTP, where the caller is known.
type webActor struct{ web *overhttp.Client }

func (a webActor) cancel(ctx context.Context, r workload.Record, why string) error {
	return a.web.Cancel(ctx, r.ID, why)
}

func (a webActor) move(ctx context.Context, r workload.Record, queue, _, why string) error {
	return a.web.Move(ctx, r.ID, queue, why)
}

func (a webActor) release(ctx context.Context, r workload.Record, _, why string) error {
	return a.web.Release(ctx, r.ID, why)
}

func (a webActor) hold(ctx context.Context, r workload.Record, resume bool, _, why string) error {
	return a.web.HoldWorkload(ctx, r.ID, resume, why)
}

func (a webActor) requeue(ctx context.Context, r workload.Record, _, why string) error {
	return a.web.Requeue(ctx, r.ID, why)
}

func (a webActor) setPriority(ctx context.Context, r workload.Record, priority int32, _, why string) error {
	return a.web.SetPriority(ctx, r.ID, priority, why)
}

func (a webActor) checkpoint(ctx context.Context, r workload.Record, at time.Time, _ string) error {
	return a.web.Checkpoint(ctx, r.ID, at)
}
