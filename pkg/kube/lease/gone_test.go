package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/pkg/kube/lease"
)

// TestALeaseThatIsGoneIsMadeAgain: a Lease is deleted, or etcd is restored to before it. The
// holder makes it again with what was noted on it, and begins another term.
func TestALeaseThatIsGoneIsMadeAgain(t *testing.T) {
	t.Parallel()
	const key, noted = "example.com/noted", "until noon"
	client := fake.NewClientset()
	objects := client.CoordinationV1().Leases("muster-system")
	var noting, read atomic.Bool
	renewed := make(chan struct{}, 1)
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		switch {
		case noting.CompareAndSwap(true, false): // the election reads the Lease for this
			read.Store(true)
			return true, &coordination.Lease{}, apierrors.NewConflict(leases, "l", errors.New("the object has been modified"))
		case read.CompareAndSwap(true, false):
			renewed <- struct{}{}
		}
		return false, nil, nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var epochs []int64
	err := lease.Run(ctx, options(client), func(acting context.Context, epoch int64) error {
		epochs = append(epochs, epoch)
		held, err := objects.Get(acting, "l", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(epochs) > 1 {
			if held.Annotations[key] != noted {
				t.Errorf("the Lease is there again with the annotations %v, want %s", held.Annotations, noted)
			}
			cancel()
			return acting.Err()
		}
		held.Annotations[key] = noted
		if err := client.Tracker().Update(coordination.SchemeGroupVersion.WithResource("leases"), held, "muster-system"); err != nil {
			return err
		}
		noting.Store(true)
		select {
		case <-renewed:
		case <-acting.Done():
			return acting.Err()
		}
		if err := objects.Delete(acting, "l", metav1.DeleteOptions{}); err != nil {
			return err
		}
		<-acting.Done()
		return acting.Err()
	})
	if !errors.Is(err, context.Canceled) || len(epochs) != 2 || epochs[1] <= epochs[0] {
		t.Errorf("Run returned %v after terms with the epochs %v, want two that grow", err, epochs)
	}
}
