// Package lease lets one of several processes act for a cluster: the holder of a Lease
// object of that cluster. Each term has an epoch larger than all earlier ones, as a fencing
// token: readers use it to refuse late actions of a former holder.
//
//	stand by --> holder --> epoch taken --> work --> work has ended --> lease released
//	   ^                                     |  ^                           |
//	   |               no renewal confirmed: |  | renewed                   |
//	   |                   it does not act (lapsed) --> ErrLost             |
//	   +--------------------------------------------------------------------+
//
// What holds at any time, by clocks that only measure lengths of time:
//
//   - A holder acts while its own clock says that the lease lasts, counted from when it sent the
//     last renewal that was confirmed, and less by a margin (Guard).
//   - A standby takes the Lease when it has seen the same renewal for the duration of the lease, or
//     at once after a release (election.acquire). So a holder that is killed is replaced after the
//     duration of the lease and two requests.
//   - The lease is released after the work has ended, never before.
//
// A Lease that is gone is made again by a standby, with the annotations that it had. Its
// holder begins another term, because a restored etcd may have lost other objects, too.
//
// The election is not client-go's, whose standbys poll, with pauses of up to 2.2 times the period
// in which the holder renews, and whose terms end at once when a lease lapses.
//
// Time proves nothing to the readers of what a holder sends, so these compare epochs. The package
// does not fence them.
package lease

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"muster.dev/muster/pkg/kube/lease/rules"
	"muster.dev/muster/pkg/service/pause"
)

// EpochKey is the annotation of a Lease that has the epoch of its holder.
const EpochKey = rules.EpochKey

// ErrLost is wrapped when the lease was lost during the work, and by actions that were
// refused because of that, or because it has lapsed.
var ErrLost = errors.New("the lease is lost: another process acts")

// Options are the lease and its settings.
type Options struct {
	Client          coordinationv1.LeasesGetter
	Namespace, Name string
	// Holder is the readable name of this process.
	Holder string
	// Duration is how long a holder that does not renew keeps the lease.
	Duration time.Duration
	Logger   *zap.Logger
	// Guard, if given, reports whether the lease is held.
	Guard *Guard
	// Contact, if given, notes the results of the requests for the Lease.
	Contact *Contact
	// AtLeast returns the last epoch known from elsewhere, because a Lease may be
	// deleted.
	AtLeast func(context.Context) (int64, error)
	// Standby is called when another process holds the lease.
	Standby func()
	// Failed, if given, is called for each term that ended with an error other than
	// the loss of the lease.
	Failed func()
	// Pause is the wait after such a term; it doubles up to longestPause. Zero is
	// one second.
	Pause time.Duration
}

const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// lastedLong is the length of a term after which the pause starts over.
	lastedLong = time.Minute
)

// Run acts term after term until ctx ends: it waits for the lease, calls act with the
// epoch of the term, and ends act's context when the lease is lost.
//
// An error of act ends the term, never Run: the next term may succeed. Run releases the
// lease in between, so that another process may try.
func Run(ctx context.Context, o Options, act func(ctx context.Context, epoch int64) error) error {
	first, before := cmp.Or(o.Pause, firstPause), &past{}
	next := first
	if o.Contact != nil {
		o.Contact.bound(o.Duration)
		o.Client = contacted{o.Client, o.Contact}
	}
	for {
		began := time.Now()
		err := term(ctx, o, before, act)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil || errors.Is(err, ErrLost) {
			o.Logger.Warn("lease lost; standing by", zap.String("lease", o.Namespace+"/"+o.Name), zap.Error(err))
			o.Standby()
			continue
		}
		if time.Since(began) > lastedLong {
			next = first
		}
		o.Logger.Error("term failed; releasing the lease",
			zap.String("lease", o.Namespace+"/"+o.Name), zap.Duration("after", next), zap.Error(err))
		if o.Failed != nil {
			o.Failed()
		}
		if err := pause.For(ctx, next); err != nil {
			return err
		}
		next = min(2*next, longestPause)
	}
}

// term runs one term, from waiting for the lease to the end of the work.
func term(ctx context.Context, o Options, before *past, act func(context.Context, int64) error) error {
	e := newElection(o, before)
	if err := e.acquire(ctx); err != nil {
		return err
	}
	if o.Guard != nil {
		o.Guard.term.Store(e)
	}
	acting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	keeping, ended := context.WithCancel(context.WithoutCancel(ctx)) // also while the work ends
	defer ended()
	kept := make(chan error, 1)
	go func() {
		err := e.keep(keeping)
		stop(err)
		kept <- err
	}()
	err := e.work(acting, act)
	if o.Guard != nil {
		o.Guard.term.Store(nil)
	}
	ended()
	lost := <-kept
	e.release()
	before.ended = e.identity
	if errors.Is(lost, ErrLost) {
		return lost
	}
	return err
}

// work takes an epoch and acts until ctx ends.
func (e *election) work(ctx context.Context, act func(context.Context, int64) error) error {
	epoch, err := e.takeEpoch(ctx)
	if err != nil {
		return err
	}
	e.Logger.Info("lease acquired", e.named(), zap.Int64("epoch", epoch))
	return act(ctx, epoch)
}
