package reconcile

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// namespace looks at the pods of a namespace. A pod that a workload's object made
// without our labels is that workload's, which is looked at.
func (r *strayRound) namespace(ctx context.Context, namespace, rule string) {
	number, delayed := 0, 0
	for _, pod := range r.candidates(namespace, rule) {
		above, err := r.controllerOfController(ctx, pod)
		switch {
		case errors.Is(err, errLater):
			delayed++
			continue
		case err != nil:
			r.logger.Warn("cannot look up the owner of a pod", zap.String("namespace", namespace), zap.String("pod", pod.Name), zap.Error(err))
			continue
		}
		if id, is := ownerAmong(r.owned(), pod.UID, pod.Controller.UID, above); is {
			if pod.Cluster == "" {
				r.look(id)
			}
			continue
		}
		number++
		r.stray(ctx, pod, rule)
	}
	if delayed > 0 {
		r.logger.Warn("too many unknown pods for one round; looking up the others in the next one", zap.String("namespace", namespace), zap.Int("pods", delayed))
	}
	if rule == workload.WarnOfStrays || rule == workload.EvictStrays {
		r.numbers[namespace] = number
	}
}

// candidates are the pods of a namespace that may not be of Muster. One at our gate, or without
// a scheduler, waits for ever, and one of a Node is made from a file of the node.
func (r *strayRound) candidates(namespace, rule string) []gang.Pod {
	ours, others := r.cache.PodsIn(namespace)
	ours = slices.DeleteFunc(ours, func(p gang.Pod) bool { return rule == "" || !r.isDecidable(p) })
	return slices.DeleteFunc(slices.Concat(others, ours), func(p gang.Pod) bool { return p.Gated || p.Placeholder || p.Controller.Kind == "Node" })
}

// controllerOfController returns the UID of the controller of a pod's controller; empty for
// none. A controller keeps its owner, so that is read once.
func (r *strayRound) controllerOfController(ctx context.Context, pod gang.Pod) (uid string, err error) {
	of := pod.Controller.UID
	if of == "" {
		return "", nil
	}
	uid, known := r.owners.controllers.lookUp(of)
	if !known {
		if r.asks--; r.asks < 0 {
			return "", errLater
		}
		if uid, err = r.cluster.ControllerOf(ctx, pod.Namespace, pod.Controller); err != nil {
			return "", err
		}
		r.owners.controllers.note(of, uid)
	}
	r.controllerOf[of] = uid
	return uid, nil
}

func ownerAmong(owned map[string]workload.ID, uids ...string) (workload.ID, bool) {
	for _, uid := range uids {
		if id, is := owned[uid]; is && uid != "" {
			return id, true
		}
	}
	return "", false
}

// stray deals with one pod that is not of Muster.
func (r *strayRound) stray(ctx context.Context, pod gang.Pod, rule string) {
	now := r.now()
	since, known := r.since[pod.UID]
	if !known {
		since = now
	}
	r.found[pod.UID] = since
	where := []zap.Field{zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name), zap.String("node", pod.Node)}
	switch {
	case rule == workload.WarnOfStrays && !known:
		r.logger.Warn("stray pod found", where...)
	case rule == workload.EvictStrays && now.Sub(since) >= strayAfter && !pod.Deleting:
		if err := r.cluster.DeletePod(ctx, pod, false); err != nil {
			r.logger.Warn("cannot delete a stray pod", append(where, zap.Error(err))...)
			return
		}
		r.metrics.evicted.Inc()
		r.logger.Warn("stray pod deleted", where...)
	}
}
