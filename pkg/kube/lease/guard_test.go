package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/pkg/kube/lease"
)

// TestARenewalCountsFromWhenItWasSent: a holder that is paused during a renewal reads the
// answer when others may have taken the lease for long. It holds nothing then.
func TestARenewalCountsFromWhenItWasSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		paused time.Duration
		held   bool
	}{
		{"for less than the lease lasts", 8 * time.Second, true},
		{"until shortly before its end", 9500 * time.Millisecond, false},
		{"for longer", time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				var acting atomic.Bool
				answered := make(chan struct{})
				client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
					if acting.CompareAndSwap(true, false) {
						time.Sleep(c.paused) // of synctest's clock
						close(answered)
					}
					return false, nil, nil
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				o := options(client)
				o.Duration, o.Guard = 10*time.Second, &lease.Guard{}
				err := lease.Run(ctx, o, func(ctx context.Context, _ int64) error {
					acting.Store(true)
					<-answered
					synctest.Wait() // the election has read the answer
					if err := o.Guard.Check(); (err == nil) != c.held || err != nil && !errors.Is(err, lease.ErrLost) {
						t.Errorf("after a pause of %s the guard says %v, held: want %t", c.paused, err, c.held)
					}
					cancel()
					return ctx.Err()
				})
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		})
	}
}

// TestALeaseIsNotReleasedDuringTheWork: the election gives the Lease up when it could not renew
// it, before the work has heard of that. Then it expires: an empty Lease is taken at once.
func TestALeaseIsNotReleasedDuringTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var acting, failing, released atomic.Bool
		client.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
			holder := action.(clienttesting.UpdateAction).GetObject().(*coordination.Lease).Spec.HolderIdentity
			switch empty := holder == nil || *holder == ""; {
			case empty && acting.Load():
				released.Store(true)
			case !empty && failing.Load():
				return true, &coordination.Lease{}, errors.New("etcd has no leader")
			}
			return false, nil, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := options(client)
		o.Duration = time.Minute
		err := lease.Run(ctx, o, func(leading context.Context, _ int64) error {
			acting.Store(true)
			failing.Store(true)
			<-leading.Done()
			acting.Store(false)
			failing.Store(false)
			cancel()
			return leading.Err()
		})
		if !errors.Is(err, context.Canceled) || released.Load() {
			t.Errorf("Run returned %v; the Lease was released during the work: %t", err, released.Load())
		}
		if holder := holderOf(t, client); holder != "" {
			t.Errorf("behind the work the Lease is that of %q, want it released", holder)
		}
	})
}

func holderOf(t *testing.T, client *fake.Clientset) string {
	t.Helper()
	held, err := client.CoordinationV1().Leases("muster-system").Get(context.Background(), "l", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if held.Spec.HolderIdentity == nil {
		return ""
	}
	return *held.Spec.HolderIdentity
}

// TestTheLeaseOfAnotherIsNotReleased: a process whose work ends has not read yet that another
// one has the Lease.
func TestTheLeaseOfAnotherIsNotReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := options(client)
		o.Duration = time.Minute
		err := lease.Run(ctx, o, func(acting context.Context, _ int64) error {
			held, err := client.CoordinationV1().Leases("muster-system").Get(acting, "l", metav1.GetOptions{})
			if err != nil {
				return err
			}
			held.Spec.HolderIdentity = new("another")
			if err := client.Tracker().Update(coordination.SchemeGroupVersion.WithResource("leases"), held, "muster-system"); err != nil {
				return err
			}
			cancel()
			return acting.Err()
		})
		if holder := holderOf(t, client); !errors.Is(err, context.Canceled) || holder != "another" {
			t.Errorf("Run returned %v, and the Lease is that of %q", err, holder)
		}
	})
}
