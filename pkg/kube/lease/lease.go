// Package lease lets one of several processes act for a cluster: the holder of a Lease
// object of that cluster. Each term has an epoch larger than all earlier ones, as a fencing
// token: readers use it to refuse late actions of a former holder.
//
//	stand by --> holder --> epoch taken --> work --> work has ended --> lease released
//	   ^                                     |                              |
//	   |                                     +-- renewal fails: ErrLost     |
//	   +--------------------------------------------------------------------+
//
// A Lease that is gone is made again by the election, with the annotations that it had. Its
// holder begins another term, because a restored etcd may have lost other objects, too.
//
// The election is client-go's. The package adds the epoch, which is an annotation of the
// Lease, and the order at the end of a term: the lease is released after the work has ended,
// never before.
//
// Time only decides when to try a take-over, and when a holder that cannot renew stops. It
// proves nothing, so readers compare epochs. The package does not fence the readers.
package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"muster.dev/muster/pkg/service/boottime"
	"muster.dev/muster/pkg/service/pause"
)

// EpochKey is the annotation of a Lease that has the epoch of its holder.
const EpochKey = "muster.dev/epoch"

// ErrLost is wrapped when the lease was lost during the work, and by actions that were
// refused because of that.
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

// renewals is the number of attempts to renew within Duration.
const renewals = 6

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
	first, noted := cmp.Or(o.Pause, firstPause), &notes{}
	next := first
	if o.Contact != nil {
		o.Contact.bound(o.Duration)
		o.Client = contacted{o.Client, o.Contact}
	}
	for {
		began := time.Now()
		err := term(ctx, o, noted, act)
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
func term(ctx context.Context, o Options, noted *notes, act func(context.Context, int64) error) error {
	identity := o.Holder + "/" + uuid.NewString() // of this term alone
	electing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	acted, stopActing := context.WithCancelCause(ctx)
	defer stopActing(nil)
	acting := make(chan struct{})
	finished := make(chan error, 1)
	confirmed := &witness{LeasesGetter: o.Client, identity: identity, end: stopActing, sinceBoot: boottime.Now, notes: noted}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, Client: confirmed,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: o.Duration, RenewDeadline: o.Duration * 3 / 4, RetryPeriod: o.Duration / renewals, ReleaseOnCancel: true, Name: o.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				close(acting)
				finished <- work(acted, leading, o, identity, act)
				confirmed.ended.Store(true)
				end() // releases the lease
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(holder string) {
				if holder != identity && holder != "" {
					o.Standby()
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("lease %s/%s: %w", o.Namespace, o.Name, err)
	}
	if o.Guard != nil {
		o.Guard.term.Store(&guardedTerm{elector, confirmed, o.Duration})
		defer o.Guard.term.Store(nil)
	}
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-acting: // the work ends first
		default:
			confirmed.ended.Store(true)
			end()
		}
	})
	defer stop()
	elector.Run(electing)
	select {
	case <-acting:
		err := <-finished
		if confirmed.refused.Load() {
			release(o, confirmed)
		}
		return err
	default:
		return ctx.Err()
	}
}

// releaseWithin bounds the release of a lease that the election has given up before its work
// had ended.
const releaseWithin = 5 * time.Second

// release gives the Lease up if this term still has it, so that no process waits for its end.
func release(o Options, confirmed *witness) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	leases := confirmed.Leases(o.Namespace)
	lease, err := leases.Get(ctx, o.Name, metav1.GetOptions{})
	if err == nil {
		lease = lease.DeepCopy()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(string), new(int32(1))
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		o.Logger.Info("lease is not released; it expires", zap.String("lease", o.Namespace+"/"+o.Name), zap.Error(err))
	}
}

// work takes an epoch and acts until either context ends.
func work(ctx, leading context.Context, o Options, identity string, act func(context.Context, int64) error) error {
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(leading, cancel)()
	epoch, err := takeEpoch(working, o, identity)
	if err == nil {
		o.Logger.Info("lease acquired", zap.String("lease", o.Namespace+"/"+o.Name), zap.Int64("epoch", epoch))
		err = act(working, epoch)
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errOlder), errors.Is(cause, errGone):
		return cause
	case leading.Err() != nil:
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// Guard reports whether the lease is held now, by the clock of this machine, which runs
// on while the process is paused.
type Guard struct {
	term atomic.Pointer[guardedTerm]
}

// guardedTerm is a term that a Guard looks at.
type guardedTerm struct {
	elector   *leaderelection.LeaderElector
	confirmed *witness
	duration  time.Duration
}

// margin is how long before its end a lease counts as lost.
const margin = time.Second

// Check returns an error that wraps ErrLost unless the lease is held.
func (g *Guard) Check() error {
	term := g.term.Load()
	if term == nil || !term.elector.IsLeader() {
		return ErrLost
	}
	if held := term.confirmed.held(); held > term.duration-margin {
		return fmt.Errorf("%w, or may: the last renewal that the API server confirmed was sent %s ago, and the lease lasts %s",
			ErrLost, held.Truncate(time.Millisecond), term.duration)
	}
	return nil
}
