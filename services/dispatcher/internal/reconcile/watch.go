package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// watch follows what has been created: it reports how the objects are, and has their
// pods sent to their places.
func (p *pass) watch(ctx context.Context, seen observation) (time.Duration, error) {
	switch seen.standing {
	case delayed:
		return pollAfter, p.report(ctx)
	case gone:
		if err := p.noteGone(ctx); err != nil {
			return 0, err
		}
		p.status.Message = cmp.Or(seen.message, p.status.Message)
		return p.afterGone(ctx)
	case ended:
		p.status.Outcome, p.status.Message = seen.outcome, seen.message
		p.status.Yielded = p.command.Yield // no pod is sent anywhere
		return p.awaitRelease(ctx)
	case foreign:
		if p.makesRoom(seen.object) {
			return p.replace(ctx, seen.object)
		}
		return p.refuse(ctx, fmt.Errorf("%s %w", p.name(), foreignError(p.creation.parts()[0].identity())))
	case later:
		return p.outdated(ctx, seen.object)
	case earlier:
		return p.replace(ctx, seen.object)
	}
	return p.follow(ctx, seen)
}

// follow reports the objects that are ours and places their pods.
func (p *pass) follow(ctx context.Context, seen observation) (time.Duration, error) {
	seen.write(&p.status)
	message, again, err := p.unplanned.remove(ctx, p)
	if err != nil {
		return 0, err
	}
	extra, err := p.unplanned.removeExtra(ctx, p)
	if err != nil {
		return 0, err
	}
	p.status.Message = cmp.Or(p.status.Message, message, extra)
	if why := p.placer.starter.waitsFor(p); why != "" && seen.outcome == "" {
		p.status.Message = why // KubeRay's own error may name one pod
	}
	if p.command.Yield == "" || p.command.Trusted || seen.outcome != "" || seen.deleting {
		p.status.Yielded = p.command.Yield // no pod is sent anywhere
	}
	if seen.outcome != "" {
		return p.awaitRelease(ctx)
	}
	if err := p.report(ctx); err != nil {
		return 0, err
	}
	if seen.deleting { // the pods of an object that is on its way out start nowhere
		return 0, p.placer.pinCleanup(ctx, p)
	}
	for _, object := range seen.announced {
		if err := p.announce(ctx, object); err != nil {
			return 0, err
		}
	}
	if err := p.giveUp(ctx, seen); err != nil {
		return 0, err
	}
	next, err := p.place(ctx)
	return sooner(next, again), err
}

// afterGone deals with objects of which one was deleted by another party. Creating it
// again, or adopting another one of its name and labels, would be a second incarnation.
func (p *pass) afterGone(ctx context.Context) (time.Duration, error) {
	if isBundle(p.command) {
		return p.remove(ctx) // the others go, too
	}
	return p.awaitRelease(ctx)
}

// outdated leaves an object of a later attempt alone: the command is not the last one,
// whatever the stream has. Unless the object is older than the command: then Postgres
// was restored to a state older than that attempt, and queue-manager is to know.
func (p *pass) outdated(ctx context.Context, object *kubernetes.Object) (time.Duration, error) {
	if object.Epoch > 0 && object.Epoch < p.command.Epoch {
		p.status.Later = object.Attempt
		return pollAfter, p.report(ctx)
	}
	p.logger.Warn("object is of a later attempt; ignoring the command", zap.String("workload", string(p.command.Workload)),
		zap.Int("attempt", p.command.Attempt), zap.Int("object attempt", object.Attempt))
	return 0, nil
}

// announce writes the time of the eviction into the object, or that there will be none.
func (p *pass) announce(ctx context.Context, object *kubernetes.Object) error {
	wanted := ""
	if !p.command.EvictAt.IsZero() {
		wanted = p.command.EvictAt.UTC().Format(time.RFC3339)
	}
	if object.EvictingAt == wanted {
		return nil
	}
	return p.cluster.Announce(ctx, *object, p.command.EvictAt)
}

// clusters are the RayClusters of the attempt that are to stay.
func (p *pass) clusters() []kubernetes.Object {
	return clustersOf(p.cache, p.command, func(o kubernetes.Object) bool {
		return o.Attempt == p.command.Attempt && !o.Deleting
	})
}

// clustersOf returns the RayClusters of the workload in its namespace that are wanted.
func clustersOf(cache Cache, command *event.GangCommand, want func(kubernetes.Object) bool) (some []kubernetes.Object) {
	for _, o := range cache.Clusters(command.Workload) {
		if o.Namespace == command.Namespace && want(o) {
			some = append(some, o)
		}
	}
	return some
}
