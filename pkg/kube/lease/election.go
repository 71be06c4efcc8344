package lease

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"muster.dev/muster/pkg/kube/lease/rules"
	"muster.dev/muster/pkg/service/boottime"
)

// errOlder and errGone end a term whose Lease lost a renewal that the API server had
// confirmed: etcd was restored, or the Lease was deleted. Other objects in the holder's caches
// may be lost as well.
var (
	errOlder = fmt.Errorf("%w: the API server came back with an older Lease", ErrLost)
	errGone  = fmt.Errorf("%w: the API server has no Lease any more", ErrLost)
)

// past is what a process keeps from one term to the next.
type past struct {
	mu sync.Mutex
	// notes are the annotations of the Lease as the API server has shown it last: the epoch, and
	// what others note there.
	notes map[string]string
	// ended is the identity of the last term of this process, whose work has ended.
	ended string
}

func (p *past) see(lease *coordination.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = maps.Clone(lease.Annotations)
}

// noted returns the annotations of the Lease before.
func (p *past) noted() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.notes)
}

// election takes the Lease for one term and keeps it.
//
// Each write of the Lease names the version that this process has read (resourceVersion), so the
// API server stores it only if no other process has written since.
type election struct {
	Options
	identity string // of this term alone
	leases   coordinationv1.LeaseInterface
	past     *past
	// sinceBoot goes on while the machine is suspended.
	sinceBoot func() time.Duration

	// writing has what is being written: the renewals and the epoch come one after the other.
	writing chan struct{}
	lease   *coordination.Lease // as it was confirmed last

	mu    sync.Mutex
	holds bool
	sent  instant // of the last write that was confirmed
}

// instant is a time by the clock of package time and by that of an election.
type instant struct {
	at        time.Time
	sinceBoot time.Duration
}

func newElection(o Options, p *past) *election {
	return &election{
		Options: o, identity: o.Holder + "/" + uuid.NewString(), leases: o.Client.Leases(o.Namespace), past: p, sinceBoot: boottime.Now, writing: make(chan struct{}, 1),
	}
}

func (e *election) times() rules.Times { return rules.Times{Duration: e.Duration} }

func (e *election) now() instant { return instant{time.Now(), e.sinceBoot()} }

// named is the field of the log for the Lease.
func (e *election) named() zap.Field { return zap.String("lease", e.Namespace+"/"+e.Name) }

// held returns for how long the Lease has been held without a renewal. It counts from when
// the last confirmed one was sent: a process that is paused reads the answer late, and others
// count from a time after the API server stored it.
func (e *election) held() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(time.Since(e.sent.at), e.sinceBoot()-e.sent.sinceBoot)
}

// check returns an error that wraps ErrLost unless this term may act.
func (e *election) check() error {
	e.mu.Lock()
	holds := e.holds
	e.mu.Unlock()
	if !holds {
		return ErrLost
	}
	if held := e.held(); !e.times().Acts(held) {
		return fmt.Errorf("%w, or may: the last renewal that the API server confirmed was sent %s ago, and the lease lasts %s",
			ErrLost, held.Truncate(time.Millisecond), e.Duration)
	}
	return nil
}

// write stores a change of the Lease, and a renewal with it, if this term has the Lease. Others
// write notes on it, so a conflict alone does not show that it is lost.
func (e *election) write(ctx context.Context, change func(*coordination.Lease)) error {
	select {
	case e.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.writing }()
	err := e.update(ctx, e.lease, change)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		var found *coordination.Lease
		if found, err = e.ours(ctx); err == nil {
			err = e.update(ctx, found, change)
		}
	}
	return err
}

// ours reads the Lease, and returns an error that wraps ErrLost if this term does not have it
// any more. Both times of renewal are from the holder's own clock. A clock that is set back may
// end a term once, which only costs a take-over.
func (e *election) ours(ctx context.Context) (*coordination.Lease, error) {
	found, err := e.read(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil, errGone
	case err != nil:
		return nil, err
	case rules.HolderOf(found) != e.identity:
		return nil, fmt.Errorf("%w: %q has it", ErrLost, rules.HolderOf(found))
	case found.Spec.RenewTime.Before(e.lease.Spec.RenewTime):
		return nil, errOlder
	}
	return found, nil
}

// read reads the Lease.
func (e *election) read(ctx context.Context) (*coordination.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Duration)
	defer cancel()
	found, err := e.leases.Get(ctx, e.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read lease %s/%s: %w", e.Namespace, e.Name, err)
	}
	e.past.see(found)
	return found, nil
}

// update stores a Lease that was read before, changed, as that of this term. An answer that
// comes after the lease's duration has no worth, so the request ends then.
func (e *election) update(ctx context.Context, read *coordination.Lease, change func(*coordination.Lease)) error {
	ctx, cancel := context.WithTimeout(ctx, e.Duration)
	defer cancel()
	lease, sent := read.DeepCopy(), e.now()
	e.sign(lease)
	change(lease)
	stored, err := e.leases.Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write lease %s/%s: %w", e.Namespace, e.Name, err)
	}
	e.confirm(stored, sent)
	return nil
}

// create makes a Lease that is missing. One that was there before gets what was noted on it.
func (e *election) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.Duration)
	defer cancel()
	lease := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, Annotations: e.past.noted()}}
	sent := e.now()
	e.sign(lease)
	lease.Spec.AcquireTime, lease.Spec.LeaseTransitions = lease.Spec.RenewTime, new(int32)
	made, err := e.leases.Create(ctx, lease, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create lease %s/%s: %w", e.Namespace, e.Name, err)
	}
	e.confirm(made, sent)
	return nil
}

// sign makes the Lease that of this term, renewed now. Its duration is in whole seconds, never
// fewer than those for which this term may act.
func (e *election) sign(lease *coordination.Lease) {
	seconds := int32((e.Duration + time.Second - 1) / time.Second)
	renewed := metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &e.identity, &seconds, &renewed
}

// confirm notes what the API server has stored.
func (e *election) confirm(stored *coordination.Lease, sent instant) {
	e.lease = stored
	e.past.see(stored)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.holds, e.sent = true, sent
}

// lose notes that another process may act from now on.
func (e *election) lose() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.holds = false
}

// releaseWithin bounds the release of a lease.
const releaseWithin = 5 * time.Second

// release gives the Lease up if this term still has it, so that no process waits for its end. It
// must not be called before the work of the term has ended: another process acts at once.
func (e *election) release() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	e.writing <- struct{}{} // nothing else is written any more
	defer func() { <-e.writing }()
	found, err := e.read(ctx)
	if apierrors.IsNotFound(err) || err == nil && rules.HolderOf(found) != e.identity {
		return
	}
	if err == nil {
		lease, now := found.DeepCopy(), metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(string), new(int32(1))
		lease.Spec.RenewTime, lease.Spec.AcquireTime = &now, &now
		_, err = e.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		e.Logger.Info("lease is not released; it expires", e.named(), zap.Error(err))
	}
}
