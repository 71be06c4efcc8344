package autoscaler

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// look is one look at all pools and requests.
type look struct {
	*scaler
	pools map[string]*pool
	order []string
	live  map[types.UID]*request
	waits bool
	free  *existing // what nodes that exist have free; nil until it is needed
}

// request does the next step for one request.
func (l *look) request(ctx context.Context, r *request) error {
	of := l.answering(r.Spec.Class)
	switch {
	case len(of) == 0 || r.DeletionTimestamp != nil || r.is(Failed) || r.is(CapacityRevoked) || r.is(BookingExpired):
		return nil
	case r.is(Provisioned):
		return l.provisioned(ctx, r, of)
	}
	changed := r.set(Accepted, true, "Accepted", "the request is accepted by the stand-in for an autoscaler")
	changed = r.set(Failed, false, "NotFailed", "the request has not failed") || changed
	sets, why, err := l.podSets(ctx, r)
	if err != nil {
		return err
	}
	if why != "" {
		l.waits = true
		return l.write(ctx, r, r.set(Provisioned, false, "CapacityIsNotFound", why) || changed)
	}
	if r.Spec.Class == checkCapacity {
		return l.check(ctx, r, sets, changed)
	}
	if r.Spec.Class == bestEffortAtomic {
		return l.complete(ctx, r, of, sets, changed)
	}
	return l.provide(ctx, r, of, sets, changed)
}

// provide adds the nodes that the pods of a request need, all or none.
func (l *look) provide(ctx context.Context, r *request, of []*pool, sets []podSet, changed bool) error {
	needs, why := l.needs(r, of, sets)
	if why != "" {
		l.waits = true // a pool may get room
		delete(l.began, r.UID)
		return l.write(ctx, r, r.set(Provisioned, false, "CapacityIsNotFound", why) || changed)
	}
	began, coming := l.began[r.UID]
	if !coming {
		began = l.now()
		l.began[r.UID] = began
	}
	delay := time.Duration(0)
	for p, count := range needs {
		delay = max(delay, p.Delay.Duration)
		p.coming += count
	}
	atOnce := r.Spec.Class == bestEffortAtomic // it is Provisioned before the nodes are there
	if !atOnce && l.now().Sub(began) < delay {
		l.waits = true
		return l.write(ctx, r, r.set(Provisioned, false, "NodesAreComing", "nodes are being created") || changed)
	}
	for p := range needs {
		if p.Fail > 0 {
			return l.fail(ctx, r, p)
		}
	}
	come := order{of: map[string]int{}, due: began.Add(delay)}
	for p, count := range needs {
		come.of[p.Name] = max(0, count-p.Missing)
	}
	if atOnce {
		l.ordered[r.UID], l.waits = come, true
		return l.write(ctx, r, r.set(Provisioned, true, "CapacityIsProvisioned", "all nodes of the request are ordered"))
	}
	if err := l.deliver(ctx, r, come); err != nil {
		return err
	}
	r.setDetails(needs)
	return l.write(ctx, r, r.set(Provisioned, true, "Provisioned", "all nodes of the request are there"))
}

// deliver adds the nodes of a request.
func (l *look) deliver(ctx context.Context, r *request, come order) error {
	for name, count := range come.of {
		if p := l.pools[name]; p != nil { // nil when it has been removed meanwhile
			if err := l.add(ctx, p, count, r.nodeLabels()); err != nil {
				return err
			}
		}
	}
	return nil
}

// provisioned looks after a request that is Provisioned: nodes that were ordered come, and
// its booking ends.
func (l *look) provisioned(ctx context.Context, r *request, of []*pool) error {
	if come, waits := l.ordered[r.UID]; waits {
		l.waits = true
		if l.now().Before(come.due) {
			for name, count := range come.of {
				if p := l.pools[name]; p != nil {
					p.coming += count
				}
			}
			return nil
		}
		if err := l.deliver(ctx, r, come); err != nil {
			return err
		}
		delete(l.ordered, r.UID)
	}
	return l.expire(ctx, r, of)
}

func (l *look) answering(class string) (of []*pool) {
	for _, name := range l.order {
		if p := l.pools[name]; p.answers(class) {
			of = append(of, p)
		}
	}
	return of
}

// expire ends the booking of a request whose time is over.
func (l *look) expire(ctx context.Context, r *request, of []*pool) error {
	booking := time.Duration(0)
	for _, p := range of {
		if r.Spec.Class == checkCapacity || slices.ContainsFunc(p.nodes, func(n corev1.Node) bool { return n.Labels[RequestLabel] == string(r.UID) }) {
			booking = max(booking, p.Booking.Duration)
		}
	}
	if booking == 0 {
		return nil
	}
	if l.now().Sub(r.since(Provisioned)) < booking {
		l.waits = true
		return nil
	}
	return l.write(ctx, r, r.set(BookingExpired, true, "BookingExpired", fmt.Sprintf("the nodes were kept for %s", booking)))
}

// fail fails a request because its pool is set to fail. That counts once it is written.
func (l *look) fail(ctx context.Context, r *request, p *pool) error {
	r.set(Failed, true, "FailedToProvision", fmt.Sprintf("pool %s is set to fail", p.Name))
	written, err := l.store(ctx, r)
	if err != nil || !written {
		return err
	}
	return Set(ctx, l.client, p.Name, func(stored *Pool) { stored.Fail = max(0, stored.Fail-1) })
}

func (l *look) write(ctx context.Context, r *request, changed bool) error {
	if !changed {
		return nil
	}
	_, err := l.store(ctx, r)
	return err
}

// store writes the status of a request; false when the request has changed meanwhile, so
// that the next look sees why.
func (l *look) store(ctx context.Context, r *request) (bool, error) {
	written, err := r.written()
	if err != nil {
		return false, err
	}
	_, err = l.requests.Resource(Requests).Namespace(r.Namespace).UpdateStatus(ctx, written, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		l.waits = true
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("writing the status of request %s/%s: %w", r.Namespace, r.Name, err)
	}
	return true, nil
}
