package reconcile

import (
	"context"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// pinsAtOnce bounds the patches of one gang on their way.
const pinsAtOnce = 16

// pin sends the pods that may start to their nodes.
func (r *Reconciler) pin(ctx context.Context, command *event.GangDesired) error {
	pods := r.members(command)
	return r.send(ctx, command, gang.Pins(command, pods, r.sentOf(command, pods)))
}

// pinCleanup sends what comes after the gang to its place. Without it the object
// could not go before KubeRay loses its patience.
func (r *Reconciler) pinCleanup(ctx context.Context, command *event.GangDesired) error {
	pods := r.members(command)
	return r.send(ctx, command, gang.CleanupPins(command, pods, r.sentOf(command, pods)))
}

func (r *Reconciler) send(ctx context.Context, command *event.GangDesired, pins []gang.Pin) error {
	err := each(ctx, r.atOnce, pins, func(ctx context.Context, pin gang.Pin) error {
		if err := r.cluster.Pin(ctx, pin); err != nil {
			return err
		}
		r.noteSent(command, pin)
		return nil
	})
	if err != nil {
		return err
	}
	r.metrics.pinned.Add(float64(len(pins)))
	return nil
}

// each does something for all, so many at once; one by one it starts no goroutine.
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

// sentOf returns where pods were sent that the cache shows at their gate yet,
// and forgets the others. The cache is behind the API server's answer to a pin;
// without this the next pod would be sent to the same place.
func (r *Reconciler) sentOf(command *event.GangDesired, pods []gang.Pod) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.sent[command.Workload]
	if len(sent) == 0 {
		return nil
	}
	gated := make(map[string]bool, len(pods))
	for _, p := range pods {
		gated[p.UID] = p.Gated
	}
	maps.DeleteFunc(sent, func(uid, _ string) bool { return !gated[uid] })
	return maps.Clone(sent)
}

func (r *Reconciler) noteSent(command *event.GangDesired, pin gang.Pin) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent[command.Workload] == nil {
		r.sent[command.Workload] = map[string]string{}
	}
	r.sent[command.Workload][pin.Pod.UID] = pin.Hostname
}

// holding reports whether a pod of the workload is seen that takes room or will.
func (r *Reconciler) holding(command *event.GangDesired) bool {
	return slices.ContainsFunc(r.cache.Pods(command.Workload), func(p gang.Pod) bool {
		return p.Namespace == command.Namespace && p.Holds()
	})
}
