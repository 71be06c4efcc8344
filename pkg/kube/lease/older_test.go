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

// TestALeaseOfAnotherPastEndsTheTerm: after a restore of etcd the Lease has the holder's
// name and an earlier renewal. The holder begins another term, with another epoch,
// because objects in its caches may be lost, too.
func TestALeaseOfAnotherPastEndsTheTerm(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	var restored atomic.Bool
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if restored.CompareAndSwap(true, false) { // the version that the holder knows was never there
			return true, &coordination.Lease{}, apierrors.NewConflict(leases, "l", errors.New("the object has been modified"))
		}
		return false, nil, nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var epochs []int64
	err := lease.Run(ctx, options(client), func(acting context.Context, epoch int64) error {
		epochs = append(epochs, epoch)
		if len(epochs) > 1 {
			cancel()
			return acting.Err()
		}
		held, err := client.CoordinationV1().Leases("muster-system").Get(acting, "l", metav1.GetOptions{})
		if err != nil {
			return err
		}
		held.Spec.RenewTime = &metav1.MicroTime{Time: held.Spec.RenewTime.Add(-time.Minute)}
		if err := client.Tracker().Update(coordination.SchemeGroupVersion.WithResource("leases"), held, "muster-system"); err != nil {
			return err
		}
		restored.Store(true)
		<-acting.Done()
		return acting.Err()
	})
	if !errors.Is(err, context.Canceled) || len(epochs) != 2 || epochs[1] <= epochs[0] {
		t.Errorf("Run returned %v after terms with the epochs %v, want two that grow", err, epochs)
	}
}

// TestAConflictOverTheLeaseEndsNoTerm: a conflict alone does not reveal a restore; any
// writer of the Lease can cause one.
func TestAConflictOverTheLeaseEndsNoTerm(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	var acting atomic.Bool
	renewed := make(chan struct{}, 1)
	var updates atomic.Int32
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if !acting.Load() {
			return false, nil, nil
		}
		switch updates.Add(1) {
		case 1:
			return true, &coordination.Lease{}, apierrors.NewConflict(leases, "l", errors.New("the object has been modified"))
		case 3:
			renewed <- struct{}{}
		}
		return false, nil, nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	terms := 0
	err := lease.Run(ctx, options(client), func(term context.Context, _ int64) error {
		terms++
		acting.Store(true)
		select {
		case <-renewed:
			cancel()
		case <-term.Done():
		}
		return term.Err()
	})
	if !errors.Is(err, context.Canceled) || terms != 1 {
		t.Errorf("Run returned %v after %d terms, want one", err, terms)
	}
}
