package reconcile

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"muster.dev/muster/services/dispatcher/internal/gang"
)

// pinsAtOnce bounds the patches of one gang on their way.
const pinsAtOnce = 16

// place sends the pods to their places. Places that were given up are free once no pod
// is, or will be, sent to them.
func (p *pass) place(ctx context.Context) (time.Duration, error) {
	if p.command.Trusted {
		return p.timing.nextLook(p), nil
	}
	displaced, err := p.placer.displace(ctx, p)
	if err != nil {
		return 0, err
	}
	if err := p.placer.pin(ctx, p); err != nil {
		return 0, err
	}
	if displaced {
		return p.timing.soon(), nil
	}
	p.status.Yielded = p.command.Yield
	return sooner(p.timing.nextLook(p), p.placer.starter.nextLook(p)), p.report(ctx)
}

// podWriter is the API server, to place pods.
type podWriter interface {
	podDeleter
	Pin(ctx context.Context, pin gang.Pin) error
}

// placer sends pods to the places that queue-manager reserved. Which pod goes where is
// decided by package gang.
type placer struct {
	cluster podWriter
	starter *starter
	owners  *owners
	reaper  *reaper
	metrics *Metrics
	atOnce  int // writes of one pass on their way
}

// pin sends the pods that may start to their nodes.
func (l *placer) pin(ctx context.Context, p *pass) error {
	pods := l.owners.members(p.workload, p.command)
	sent := p.workload.sentOf(pods)
	var asked error
	early := func(missing []gang.Missing) bool {
		start, err := l.starter.early(ctx, p, missing)
		asked = err
		return start
	}
	if p.command.Whole {
		early = nil
	}
	pins := gang.Pins(p.command, pods, sent, early)
	if asked != nil {
		return asked
	}
	l.starter.keepClaim(p, pods, sent)
	return l.send(ctx, p.workload, pins)
}

// pinCleanup sends the pod that cleans up after the gang to its place. Without it the
// object could not go before KubeRay gives up waiting for it.
func (l *placer) pinCleanup(ctx context.Context, p *pass) error {
	pods := l.owners.members(p.workload, p.command)
	return l.send(ctx, p.workload, gang.CleanupPins(p.command, pods, p.workload.sentOf(pods)))
}

func (l *placer) send(ctx context.Context, workload *tracked, pins []gang.Pin) error {
	err := each(ctx, l.atOnce, pins, func(ctx context.Context, pin gang.Pin) error {
		if err := l.cluster.Pin(ctx, pin); err != nil {
			return err
		}
		workload.noteSent(pin)
		return nil
	})
	if err != nil {
		return err
	}
	l.metrics.pinned.Add(float64(len(pins)))
	return nil
}

// displace deletes the pods that were sent to places that are not the gang's any
// more. It reports whether there are any.
func (l *placer) displace(ctx context.Context, p *pass) (bool, error) {
	pods := l.owners.members(p.workload, p.command)
	displaced := gang.Displaced(p.command, pods, p.workload.sentOf(pods))
	return len(displaced) > 0, l.reaper.deletePods(ctx, p.command, l.reaper.due(p.command, displaced))
}

// each does something for all, a bounded number at once; one by one it starts no goroutine.
func each[T any](ctx context.Context, atOnce int, all []T, do func(context.Context, T) error) error {
	if atOnce == 1 {
		for _, one := range all {
			if err := do(ctx, one); err != nil {
				return err
			}
		}
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, one := range all {
		group.Go(func() error { return do(ctx, one) })
	}
	return group.Wait()
}
