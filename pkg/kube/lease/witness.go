package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// errOlder and errGone end a term whose Lease lost a renewal that the API server had
// confirmed: etcd was restored, or the Lease was deleted. Other objects in the holder's caches
// may be lost as well.
var (
	errOlder = fmt.Errorf("%w: the API server came back with an older Lease", ErrLost)
	errGone  = fmt.Errorf("%w: the API server has no Lease any more", ErrLost)
)

// witness knows what the API server has confirmed of a term's Lease. It compares each Lease
// that the election reads with the last one that was confirmed. Both times are from the
// holder's own clock. A clock that is set back may end a term once, which only costs a
// take-over.
type witness struct {
	coordinationv1.LeasesGetter
	identity string
	// end ends the term with a cause.
	end context.CancelCauseFunc
	// sinceBoot goes on while the machine is suspended.
	sinceBoot func() time.Duration
	notes     *notes

	mu        sync.Mutex
	confirmed metav1.MicroTime
	sent      instant // of the last request that was confirmed
	holder    string  // of the Lease as the API server has shown it last
	// ended: the work of the term has ended, so the Lease may be released. refused: the
	// election wanted to release it before.
	ended, refused atomic.Bool
}

// notes are the annotations of the Lease as the API server has shown it last, over all terms of
// the process: the epoch, and what others note there.
type notes struct {
	mu  sync.Mutex
	all map[string]string
}

func (n *notes) see(lease *coordination.Lease) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = maps.Clone(lease.Annotations)
}

// on returns the Lease with what was noted on the one before.
func (n *notes) on(lease *coordination.Lease) *coordination.Lease {
	n.mu.Lock()
	defer n.mu.Unlock()
	lease = lease.DeepCopy()
	lease.Annotations = maps.Clone(n.all)
	return lease
}

// errKept refuses the release of a Lease while the work of its term goes on, and of one that
// another process has by now.
var errKept = errors.New("the work of the term goes on, or another process has the lease: it is not released")

// note keeps who has the Lease, and what is noted on it.
func (w *witness) note(lease *coordination.Lease) {
	w.notes.see(lease)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder = ""; lease.Spec.HolderIdentity != nil {
		w.holder = *lease.Spec.HolderIdentity
	}
}

// mayRelease reports whether the Lease may be given up.
func (w *witness) mayRelease() bool {
	if !w.ended.Load() {
		w.refused.Store(true)
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holder == w.identity
}

// instant is a time by the clock of package time and by that of a witness.
type instant struct {
	at        time.Time
	sinceBoot time.Duration
}

func (w *witness) now() instant { return instant{time.Now(), w.sinceBoot()} }

// held returns for how long the Lease has been held without a renewal. It counts from when
// the last renewal was sent: a process that is paused reads the answer late, and others count
// from when the API server stored it. The election counts from when it has read the answer.
func (w *witness) held() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(time.Since(w.sent.at), w.sinceBoot()-w.sent.sinceBoot)
}

// Leases implements coordinationv1.LeasesGetter.
func (w *witness) Leases(namespace string) coordinationv1.LeaseInterface {
	return witnessed{w.LeasesGetter.Leases(namespace), w}
}

type witnessed struct {
	coordinationv1.LeaseInterface
	witness *witness
}

// Create implements coordinationv1.LeaseInterface. A Lease that was there before is made again
// with what was noted on it.
func (l witnessed) Create(ctx context.Context, lease *coordination.Lease, o metav1.CreateOptions) (*coordination.Lease, error) {
	sent := l.witness.now()
	made, err := l.LeaseInterface.Create(ctx, l.witness.notes.on(lease), o)
	if err == nil {
		l.witness.note(made)
		l.witness.confirm(made, sent)
	}
	return made, err
}

// Update implements coordinationv1.LeaseInterface. The election releases the Lease also when it
// could not renew it, before it reports it, and when it has not seen yet that another process has
// the Lease.
func (l witnessed) Update(ctx context.Context, lease *coordination.Lease, o metav1.UpdateOptions) (*coordination.Lease, error) {
	if holder := lease.Spec.HolderIdentity; (holder == nil || *holder == "") && !l.witness.mayRelease() {
		return nil, errKept
	}
	sent := l.witness.now()
	updated, err := l.LeaseInterface.Update(ctx, lease, o)
	if err == nil {
		l.witness.note(updated)
		l.witness.confirm(updated, sent)
	}
	return updated, err
}

// Get implements coordinationv1.LeaseInterface.
func (l witnessed) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordination.Lease, error) {
	lease, err := l.LeaseInterface.Get(ctx, name, o)
	if apierrors.IsNotFound(err) && l.witness.holds() {
		l.witness.end(errGone)
	}
	if err != nil {
		return lease, err
	}
	l.witness.note(lease)
	if l.witness.older(lease) {
		l.witness.end(errOlder)
	}
	return lease, nil
}

// ours returns the renewal time if the holder of this term has the Lease, else nil.
func (w *witness) ours(lease *coordination.Lease) *metav1.MicroTime {
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != w.identity {
		return nil
	}
	return lease.Spec.RenewTime
}

func (w *witness) confirm(lease *coordination.Lease, sent instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if renewed := w.ours(lease); renewed != nil {
		w.confirmed, w.sent = *renewed, sent
	}
}

// holds reports whether a renewal of this term was ever confirmed.
func (w *witness) holds() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.confirmed.IsZero()
}

func (w *witness) older(lease *coordination.Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	renewed := w.ours(lease)
	return renewed != nil && renewed.Before(&w.confirmed)
}
