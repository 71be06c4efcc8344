package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// awaitEarlier removes what is left of earlier attempts and reports what is waited for.
// Nothing of the attempt is created meanwhile. The deadline of queue-manager for the
// creation bounds it: then the attempt is evicted, and its removal waits for all pods.
func (p *pass) awaitEarlier(ctx context.Context) (waits bool, err error) {
	there, err := p.earlierIsThere(ctx)
	if err != nil || !there {
		return false, err
	}
	command := *p.command
	command.Attempt--
	before := *p
	before.command = &command
	for _, cluster := range clustersOf(p.cache, &command, func(o kubernetes.Object) bool {
		return !o.Deleting && o.Attempt != 0 && o.Attempt <= command.Attempt
	}) {
		if err := p.cluster.Delete(ctx, cluster); err != nil {
			return true, err
		}
	}
	if isBundle(p.command) {
		var later *laterError // those of this attempt stay
		if _, err := p.presence.remove(ctx, &before); err != nil && !errors.As(err, &later) {
			return true, err
		}
	}
	if err := p.reaper.reap(ctx, p.workload, &command); err != nil {
		return true, err
	}
	p.status.Message = fmt.Sprintf("attempt %d waits for the removal of pods or RayClusters of an earlier attempt", p.command.Attempt)
	before.left = nil
	if before.lookForClusters(); len(before.left) > 0 {
		p.status.Message += ": " + stuck(before.left, nil)
	}
	return true, p.report(ctx)
}

// earlierIsThere reports whether pods or RayClusters of an earlier attempt are still
// in the cluster. queue-manager admits an attempt after all before it are gone; it may
// have lost what it knew of them, with Postgres or with its leader. The API server is
// asked, uncached, when the cache shows nothing.
func (p *pass) earlierIsThere(ctx context.Context) (bool, error) {
	if p.command.Attempt <= 1 {
		return false, nil
	}
	for _, pod := range p.owners.cache.Pods(p.command.Workload) {
		if pod.Namespace == p.command.Namespace && isEarlier(pod, p.command.Attempt) {
			return true, nil
		}
	}
	left, err := p.cluster.Remaining(ctx, p.command.Workload, p.command.Namespace)
	if err != nil {
		return false, err
	}
	return left.Earliest > 0 && left.Earliest < p.command.Attempt, nil
}

func isEarlier(pod gang.Pod, attempt int) bool {
	return pod.Holds() && pod.Attempt > 0 && pod.Attempt < attempt
}

// makesRoom reports whether the object of another workload that has the name leaves it to
// this one: it is on its way out, or it is a finished job of Muster's, kept to be read, whose
// workload has ended. That the name was given to this workload proves it, because queue-manager
// has one live workload for a name. What a user created and Muster released stays the user's.
func (p *pass) makesRoom(object *kubernetes.Object) bool {
	if object.Deleting {
		return true
	}
	if object.Outcome == "" || !object.Stamped || object.Resumed || object.Owned {
		return false
	}
	cached := p.cache.Object(object.Kind, object.Namespace, object.Name) // has those of this Muster alone
	if cached == nil || cached.UID != object.UID {
		return false
	}
	before := p.workloads.get(object.Workload).wanted()
	return before == nil || before.State == event.Ended || before.State == event.Forgotten
}

// another is how far another workload is that has the name of an object.
type another int

const (
	over    another = iota // nothing of it will run
	leaving                // its objects are being removed
	live
)

// standingOf returns how far another workload is. queue-manager is asked about one that this
// dispatcher has no command for; without an answer nothing is known.
func (p *pass) standingOf(ctx context.Context, id workload.ID) (another, error) {
	if command := p.workloads.get(id).wanted(); command != nil {
		switch command.State {
		case event.Ended, event.Forgotten:
			return over, nil
		case event.Absent:
			return leaving, nil
		}
		return live, nil
	}
	if p.truth == nil {
		return live, nil
	}
	record, err := p.truth.ask(ctx, id)
	switch {
	case err != nil:
		return live, fmt.Errorf("ask queue-manager about workload %s, whose object has the name: %w", id, err)
	case record == nil || record.Phase.Final():
		return over, nil
	case record.Phase == workload.Evicting || record.Phase == workload.Cancelling:
		return leaving, nil
	}
	return live, nil
}

// replace removes the Ray object of an earlier attempt, or of an ended workload of the same
// name, for which removeWithin is enough.
func (p *pass) replace(ctx context.Context, object *kubernetes.Object) (time.Duration, error) {
	if p.now().Sub(p.workload.creatingSince(p.command.Attempt, p.now())) > removeWithin {
		return p.refuse(ctx, fmt.Errorf("%s of attempt %d still exists after %s and %s; remove what blocks its deletion",
			p.name(), object.Attempt, removeWithin, finalizersOf(*object)))
	}
	if object.Deleting {
		p.status.Message = fmt.Sprintf("attempt %d waits for the removal of %s", p.command.Attempt, stuck([]kubernetes.Object{*object}, nil))
		return pollAfter, p.report(ctx)
	}
	if object.Workload != p.command.Workload {
		p.logger.Info("object of an ended workload of the same name is replaced", append(p.fields(), zap.String("ended", string(object.Workload)))...)
	}
	return pollAfter, p.cluster.Delete(ctx, *object)
}
