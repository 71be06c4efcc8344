package lease

import (
	"context"
	"time"

	"go.uber.org/zap"
	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"muster.dev/muster/pkg/kube/lease/rules"
	"muster.dev/muster/pkg/service/pause"
)

// sighting is what a standby has seen of the holder, and has logged of that.
type sighting struct {
	rules.Standby
	blind     bool   // the last watch was refused
	announced string // the holder that Standby was called for
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
	s := &sighting{Standby: rules.Standby{Times: e.times(), Identity: e.identity, Ended: e.past.ended}}
	for {
		taken, err := e.look(ctx, s)
		switch {
		case taken:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err): // another process was faster
			err = pause.For(ctx, s.Retry())
		case err != nil:
			if s.Failed() {
				e.Logger.Warn("cannot read or take the lease; retrying", e.named(), zap.Error(err))
			}
			err = pause.For(ctx, s.Every())
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
	s.Read(found, began, now)
	e.announce(s)
	if now.Before(s.FreeAt()) {
		return false, nil
	}
	before := rules.HolderOf(found)
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
	if holder := rules.HolderOf(s.Lease); holder != "" && holder != e.identity && holder != s.announced {
		s.announced = holder
		e.Standby()
	}
}

// watch follows the Lease from where it was read, until it is to be read again.
func (e *election) watch(ctx context.Context, s *sighting) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	look := time.AfterFunc(time.Until(s.LookAt(time.Now())), cancel)
	defer look.Stop()
	began := time.Now()
	watching, err := e.leases.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + e.Name, ResourceVersion: s.Lease.ResourceVersion,
	})
	if err != nil {
		if !s.blind && ctx.Err() == nil {
			s.blind = true
			e.Logger.Warn("cannot watch the lease; reading it once for each renewal", e.named(), zap.Error(err))
		}
		_ = pause.For(ctx, s.Every()) // it is read then; the end of ctx is the caller's
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
				_ = pause.For(ctx, max(s.Retry(), s.Every()-time.Since(began))) // likewise
				return
			}
			if lease.Name != e.Name {
				continue
			}
			now := time.Now()
			s.Watched(lease, now)
			e.past.see(lease) // with its annotations, should it be deleted
			if e.Contact != nil {
				e.Contact.shown(lease)
			}
			e.announce(s)
			if shown.Type == watch.Deleted || s.FreeAt().IsZero() {
				return
			}
			look.Reset(s.LookAt(now).Sub(now))
		}
	}
}
