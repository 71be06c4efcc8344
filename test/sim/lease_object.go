package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/kube/lease/rules"
)

// The requests of an election, and the API server's side of them.

const (
	// unbounded is the bound of a write that waits for as long as the lease is held.
	unbounded = time.Hour
	// slotEvery is how often an election looks whether what it writes has been written.
	slotEvery = 20 * time.Millisecond
)

func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "muster-system", Name: name}
}

// read reads the Lease.
func (e *election) read(within time.Duration) (found *coordination.Lease, err error) {
	err = e.w.callWithin(within, apiServer, "elect", func() error {
		if found = e.w.cluster.leases[e.name]; found == nil {
			return apierrors.NewNotFound(leaseResource(), e.name)
		}
		return nil
	})
	return found, err
}

// update stores a Lease that was read before, changed, as that of this term; one without a version
// is created.
func (e *election) update(op string, within time.Duration, read *coordination.Lease, change func(*coordination.Lease)) error {
	next, sent := read.DeepCopy(), e.w.now
	seconds, renewed := int32(leaseDuration/time.Second), metav1.NewMicroTime(e.m.now())
	next.Spec.HolderIdentity, next.Spec.LeaseDurationSeconds, next.Spec.RenewTime = &e.identity, &seconds, &renewed
	change(next)
	var stored *coordination.Lease
	err := e.w.callWithin(within, apiServer, op, func() (err error) {
		stored, err = e.w.cluster.putLease(next)
		return err
	})
	if err == nil {
		e.lease, e.sent, e.holds = stored, sent, true
	}
	return err
}

// write stores a change of the Lease, and a renewal with it, if this term has the Lease.
func (e *election) write(op string, within time.Duration, change func(*coordination.Lease)) error {
	until := e.w.now.Add(within)
	for e.writing {
		if !e.w.now.Before(until) {
			return errLost
		}
		e.w.cur.sleep(slotEvery)
	}
	e.writing = true
	defer func() { e.writing = false }()
	left := func() time.Duration { return min(leaseDuration, until.Sub(e.w.now)) }
	err := e.update(op, left(), e.lease, change)
	if isConflict(err) || isNotFound(err) {
		var found *coordination.Lease
		if found, err = e.ours(left()); err == nil {
			err = e.update(op, left(), found, change)
		}
	}
	return err
}

// ours reads the Lease, and returns an error that wraps lease.ErrLost if this term does not have it
// any more.
func (e *election) ours(within time.Duration) (*coordination.Lease, error) {
	found, err := e.read(within)
	switch {
	case isNotFound(err):
		return nil, lease.ErrLost
	case err != nil:
		return nil, err
	case rules.HolderOf(found) != e.identity:
		return nil, fmt.Errorf("%w: %s has it", lease.ErrLost, rules.HolderOf(found))
	case found.Spec.RenewTime.Before(e.lease.Spec.RenewTime):
		return nil, fmt.Errorf("%w: it is an older one", lease.ErrLost)
	}
	return found, nil
}

// release gives the Lease up if this term still has it. Others take it at once.
func (e *election) release() {
	w := e.w
	if !w.reaches(e.m, apiServer) || w.nemesis.draw(e.m.name+" release", LostRequest) != "" {
		return // it expires
	}
	if found := w.cluster.leases[e.name]; found != nil && rules.HolderOf(found) == e.identity {
		released, now := found.DeepCopy(), metav1.NewMicroTime(e.m.now())
		released.Spec.HolderIdentity, released.Spec.LeaseDurationSeconds = new(string), new(int32(1))
		released.Spec.RenewTime, released.Spec.AcquireTime = &now, &now
		_, _ = w.cluster.putLease(released) // it was read a moment ago
		w.check.made[madeReleased]++
	}
}

func leaseResource() schema.GroupResource {
	return schema.GroupResource{Group: coordination.GroupName, Resource: "leases"}
}

// putLease stores a Lease that names the version that is there, and shows it to those who watch it.
func (c *cluster) putLease(l *coordination.Lease) (*coordination.Lease, error) {
	there := c.leases[l.Name]
	switch {
	case there == nil && l.ResourceVersion != "":
		return nil, apierrors.NewNotFound(leaseResource(), l.Name)
	case there != nil && l.ResourceVersion == "":
		return nil, apierrors.NewAlreadyExists(leaseResource(), l.Name)
	case there != nil && there.ResourceVersion != l.ResourceVersion:
		return nil, apierrors.NewConflict(leaseResource(), l.Name, fmt.Errorf("it is version %s", there.ResourceVersion))
	}
	stored := l.DeepCopy()
	c.leaseVersion++
	stored.ResourceVersion = strconv.Itoa(c.leaseVersion)
	c.leases[l.Name] = stored
	c.leaseWatches = slices.DeleteFunc(c.leaseWatches, func(i *leaseWatch) bool { return i.over || !i.e.current() })
	for _, i := range c.leaseWatches {
		if i.e.name == l.Name {
			i.offer(stored)
		}
	}
	return stored, nil
}
