package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/pkg/kube/lease"
)

// TestAClockThatIsOff: a holder with a wrong clock keeps the lease while it renews, and
// loses it when it stops: the time in the Lease decides nothing.
func TestAClockThatIsOff(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"an hour behind": -time.Hour, "an hour ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset()
			var dead, counting atomic.Bool
			var looked atomic.Int32
			long := make(chan struct{}, 1)
			// Before anything runs: the fake reads its reactors without a lock.
			client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				if counting.Load() && looked.Add(1) == looks {
					long <- struct{}{}
				}
				return false, nil, nil
			})
			client.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
				changing, ok := action.(interface{ GetObject() runtime.Object })
				if !ok {
					return false, nil, nil
				}
				spec := &changing.GetObject().(*coordination.Lease).Spec
				if spec.HolderIdentity != nil && strings.HasPrefix(*spec.HolderIdentity, "other/") {
					return false, nil, nil
				}
				if dead.Load() {
					return true, &coordination.Lease{}, errors.New("it is cut off")
				}
				if spec.RenewTime != nil {
					spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(off)}
				}
				return false, nil, nil
			})
			ctx, end := context.WithTimeout(t.Context(), time.Minute)
			defer end()
			var runs sync.WaitGroup
			defer runs.Wait()
			defer end()
			run := func(holder string) <-chan struct{} {
				o, acts := options(client), make(chan struct{}, 1)
				o.Holder = holder
				runs.Go(func() {
					_ = lease.Run(ctx, o, func(ctx context.Context, _ int64) error { // it ends with ctx
						acts <- struct{}{}
						<-ctx.Done()
						return ctx.Err()
					})
				})
				return acts
			}
			wait := func(acts <-chan struct{}, what string) {
				t.Helper()
				select {
				case <-acts:
				case <-ctx.Done():
					t.Fatal(what)
				}
			}
			wait(run("off"), "the first one does not act")
			counting.Store(true)
			other := run("other")
			select {
			case <-other:
				t.Fatal("the lease of a live holder was taken")
			case <-long:
			}
			dead.Store(true)
			wait(other, "the lease of one who shows no life is not taken")
		})
	}
}

// looks of a standby take twice as long as a lease lasts.
const looks = 13
