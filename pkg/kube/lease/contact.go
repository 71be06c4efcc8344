package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// Contact records whether the API server grants the requests for the Lease. A standby that
// sees the holder renew it is in contact; a process that has lost the Lease, or cannot take
// it, because of errors is not. The zero value is in contact. Its methods may be called
// concurrently.
type Contact struct {
	mu     sync.Mutex
	most   time.Duration
	reads  requests
	writes requests
	// renewed is the last renewal that was seen.
	renewed metav1.MicroTime
}

// requests are those of one kind.
type requests struct {
	open    map[*time.Time]bool // when those began that have no answer yet
	failing time.Time           // when the first began of those that failed; zero after a success
	cause   error               // of the last failure
}

// bound sets for how long requests may be without success.
func (c *Contact) bound(most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = most
}

// Check returns an error once requests for the Lease have been without success for the
// duration of the lease.
func (c *Contact) Check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.reads.check(c.most); err != nil {
		return err
	}
	return c.writes.check(c.most)
}

func (r *requests) check(most time.Duration) error {
	since := r.failing
	for began := range r.open {
		if since.IsZero() || began.Before(since) {
			since = *began
		}
	}
	silent := time.Since(since)
	switch {
	case since.IsZero() || silent < most:
		return nil
	case r.cause == nil:
		return fmt.Errorf("the API server has not answered a request for the Lease for %s", silent.Truncate(time.Second))
	default:
		return fmt.Errorf("no request for the Lease has succeeded for %s: %w", silent.Truncate(time.Second), r.cause)
	}
}

// begin notes a request, and returns what notes its end. A conflict is an answer: another
// process was faster. So is that there is no Lease: it is created then.
func (c *Contact) begin(r *requests) (end func(lease *coordination.Lease, err error)) {
	began := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.open == nil {
		r.open = map[*time.Time]bool{}
	}
	r.open[&began] = true
	return func(lease *coordination.Lease, err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(r.open, &began)
		switch {
		case err == nil:
			r.failing, r.cause = time.Time{}, nil
			if r == &c.writes { // the holder reads the Lease only when a write fails
				c.reads.failing, c.reads.cause = time.Time{}, nil
			}
			c.see(lease)
		case apierrors.IsConflict(err), apierrors.IsNotFound(err) && r == &c.reads: // answers
		case r.failing.IsZero():
			r.failing, r.cause = began, err
		default:
			r.cause = err
		}
	}
}

// see notes the renewal of the Lease. While a process renews it, it does not matter that this
// process could not take it.
func (c *Contact) see(lease *coordination.Lease) {
	renewed := lease.Spec.RenewTime
	if renewed == nil || renewed.Equal(&c.renewed) {
		return
	}
	if !c.renewed.IsZero() {
		c.writes.failing, c.writes.cause = time.Time{}, nil
	}
	c.renewed = *renewed
}

// shown notes a renewal that a watch has shown.
func (c *Contact) shown(lease *coordination.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.see(lease)
}

// contacted notes the requests of others.
type contacted struct {
	coordinationv1.LeasesGetter
	contact *Contact
}

// Leases implements coordinationv1.LeasesGetter.
func (c contacted) Leases(namespace string) coordinationv1.LeaseInterface {
	return contactedLeases{c.LeasesGetter.Leases(namespace), c.contact}
}

type contactedLeases struct {
	coordinationv1.LeaseInterface
	contact *Contact
}

// Get implements coordinationv1.LeaseInterface.
func (l contactedLeases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordination.Lease, error) {
	end := l.contact.begin(&l.contact.reads)
	lease, err := l.LeaseInterface.Get(ctx, name, o)
	end(lease, err)
	return lease, err
}

// Create implements coordinationv1.LeaseInterface.
func (l contactedLeases) Create(ctx context.Context, lease *coordination.Lease, o metav1.CreateOptions) (*coordination.Lease, error) {
	end := l.contact.begin(&l.contact.writes)
	made, err := l.LeaseInterface.Create(ctx, lease, o)
	end(made, err)
	return made, err
}

// Update implements coordinationv1.LeaseInterface.
func (l contactedLeases) Update(ctx context.Context, lease *coordination.Lease, o metav1.UpdateOptions) (*coordination.Lease, error) {
	end := l.contact.begin(&l.contact.writes)
	updated, err := l.LeaseInterface.Update(ctx, lease, o)
	end(updated, err)
	return updated, err
}
