package lease

import (
	"context"
	"time"

	"go.uber.org/zap"
	coordination "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"muster.dev/muster/pkg/service/pause"
)

// sighting is what a standby has seen of the holder, by the standby's own clock.
type sighting struct {
	lease *coordination.Lease // as it was seen last
	since time.Time           // when its spec was seen first
	// notBefore gives the holder time for a renewal after the API server was away.
	notBefore time.Time
	away      bool
	blind     bool   // the last watch was refused
	announced string // the holder that Standby was called for
}

// see notes the Lease. Its spec is another one after each renewal; others only write notes on it.
func (s *sighting) see(lease *coordination.Lease, now time.Time) {
	if s.lease == nil || !equality.Semantic.DeepEqual(s.lease.Spec, lease.Spec) {
		s.since = now
	}
	s.lease = lease
}

// acquire waits until this term has the Lease, or ctx ends.
//
// It takes the Lease of another process only when it has seen the same renewal for as long as
// that process has asked for, by the clock of this machine, and by an update of the version that
// it has read. The holder sent that renewal before it was seen here, and stops earlier (margin).
//
// It watches the Lease, and does not poll it. A take-over begins as soon as the lease has lasted,
// because the watch shows each renewal at once: a standby that polls would see it later by up to
// one period, and had to read several times a second to be as fast. A healthy holder's standby
// sends no requests at all. Where the watch shows nothing for two renewals, the standby reads the
// Lease once for each renewal: the watch may be broken, or the right to watch be missing.
func (e *election) acquire(ctx context.Context) error {
	s := &sighting{}
	for {
		taken, err := e.look(ctx, s)
		switch {
		case taken:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err): // another process was faster
			err = pause.For(ctx, e.retry())
		case err != nil:
			if !s.away {
				e.Logger.Warn("cannot read or take the lease; retrying", e.named(), zap.Error(err))
			}
			s.away = true
			err = pause.For(ctx, e.every())
		default:
			e.watch(ctx, s)
		}
		if err != nil {
			return err
		}
	}
}

// look reads the Lease, and takes it if it is free.
func (e *election) look(ctx context.Context, s *sighting) (taken bool, err error) {
	began := time.Now()
	found, err := e.read(ctx)
	if apierrors.IsNotFound(err) {
		err = e.create(ctx)
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	now := time.Now()
	s.see(found, now)
	if s.away || now.Sub(began) > e.every() {
		s.notBefore, s.away = now.Add(e.every()+e.retry()), false // bounded in freeAt
	}
	e.announce(s)
	if now.Before(e.freeAt(s)) {
		return false, nil
	}
	before := holderOf(found)
	err = e.update(ctx, found, func(lease *coordination.Lease) {
		lease.Spec.AcquireTime = lease.Spec.RenewTime
		if transitions := lease.Spec.LeaseTransitions; before != e.identity && transitions != nil {
			lease.Spec.LeaseTransitions = new(*transitions + 1)
		}
	})
	return err == nil, err
}

// announce calls Standby for each other holder.
func (e *election) announce(s *sighting) {
	if holder := holderOf(s.lease); holder != "" && holder != e.identity && holder != s.announced {
		s.announced = holder
		e.Standby()
	}
}

// freeAt is when the Lease may be taken; the zero time if no work is done under it. That is so
// after a release, for the last term of this process, and when this term's own request was stored
// without an answer.
func (e *election) freeAt(s *sighting) time.Time {
	switch holderOf(s.lease) {
	case "", e.past.ended, e.identity:
		return time.Time{}
	}
	lasts := e.Duration
	if seconds := s.lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		// what the holder acts by, which may be of another version
		lasts = min(time.Duration(*seconds)*time.Second, max(mostDuration, e.Duration))
	}
	free := s.since.Add(lasts)
	if late := free.Add(e.Duration); s.notBefore.After(late) {
		return late // where each request is slow, the time for one more renewal must come to an end
	}
	if free.Before(s.notBefore) {
		return s.notBefore
	}
	return free
}

// lookAt is when the Lease is read although the watch shows nothing.
func (e *election) lookAt(s *sighting, now time.Time) time.Time {
	free, look := e.freeAt(s), s.since.Add(2*e.every())
	if !look.After(now) {
		look = now.Add(e.every())
	}
	if free.Before(look) {
		return free
	}
	return look
}

// watch follows the Lease from where it was read, until it is to be read again.
func (e *election) watch(ctx context.Context, s *sighting) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	look := time.AfterFunc(time.Until(e.lookAt(s, time.Now())), cancel)
	defer look.Stop()
	began := time.Now()
	watching, err := e.leases.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + e.Name, ResourceVersion: s.lease.ResourceVersion,
	})
	if err != nil {
		if !s.blind && ctx.Err() == nil {
			s.blind = true
			e.Logger.Warn("cannot watch the lease; reading it once for each renewal", e.named(), zap.Error(err))
		}
		_ = pause.For(ctx, e.every()) // it is read then; the end of ctx is the caller's
		return
	}
	s.blind = false
	defer watching.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case shown, open := <-watching.ResultChan():
			lease, is := shown.Object.(*coordination.Lease)
			if !open || !is {
				// A watch that closes at once, as through a proxy, shows nothing.
				_ = pause.For(ctx, max(e.retry(), e.every()-time.Since(began))) // likewise
				return
			}
			if lease.Name != e.Name {
				continue
			}
			now := time.Now()
			s.see(lease, now)
			e.past.see(lease) // with its annotations, should it be deleted
			if e.Contact != nil {
				e.Contact.shown(lease)
			}
			e.announce(s)
			if shown.Type == watch.Deleted || e.freeAt(s).IsZero() {
				return
			}
			look.Reset(e.lookAt(s, now).Sub(now))
		}
	}
}
