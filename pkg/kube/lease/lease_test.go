package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/pkg/kube/lease"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// passing are temporary errors of an API server.
var passing = map[string]error{
	"unauthorized":     apierrors.NewUnauthorized("token has expired"),
	"forbidden":        apierrors.NewForbidden(leases, "l", errors.New("the role is a moment old")),
	"not found":        apierrors.NewNotFound(leases, "l"),
	"conflict":         apierrors.NewConflict(leases, "l", errors.New("was changed")),
	"too many":         apierrors.NewTooManyRequestsError("later"),
	"internal":         apierrors.NewInternalError(errors.New("etcd has no leader")),
	"unavailable":      apierrors.NewServiceUnavailable("rolling"),
	"timeout":          apierrors.NewTimeoutError("etcd", 1),
	"connection reset": errors.New("connection reset by peer"),
}

func options(client *fake.Clientset) lease.Options {
	return lease.Options{
		Client: client.CoordinationV1(), Namespace: "muster-system", Name: "l", Duration: 3 * time.Second,
		Holder: "test", Logger: zap.NewNop(), Standby: func() {}, Pause: time.Millisecond,
		AtLeast: func(context.Context) (int64, error) { return 0, nil },
	}
}

// TestRunSurvivesLeaseRequests: a single failed request for the Lease, from the election
// or for the epoch, ends neither the process nor the term.
func TestRunSurvivesLeaseRequests(t *testing.T) {
	t.Parallel()
	for name, answer := range passing {
		for _, verb := range []string{"get", "create", "update"} {
			for nth := range int32(3) {
				t.Run(name+"/"+verb, func(t *testing.T) {
					t.Parallel()
					client := fake.NewClientset()
					var seen atomic.Int32
					client.PrependReactor(verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
						if seen.Add(1) == nth+1 {
							return true, &coordination.Lease{}, answer
						}
						return false, nil, nil
					})
					acted(t, options(client))
				})
			}
		}
	}
}

// TestRunSurvivesOtherAnswers: a temporary failure of AtLeast or of the work does not end
// the process.
func TestRunSurvivesOtherAnswers(t *testing.T) {
	t.Parallel()
	t.Run("epochs", func(t *testing.T) {
		t.Parallel()
		o, tries := options(fake.NewClientset()), 0
		o.AtLeast = func(context.Context) (int64, error) {
			if tries++; tries < 3 {
				return 0, errors.New("no responders")
			}
			return 0, nil
		}
		acted(t, o)
	})
	t.Run("work", func(t *testing.T) {
		t.Parallel()
		o, failed, terms, last := options(fake.NewClientset()), 0, 0, int64(0)
		o.Failed = func() { failed++ }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := lease.Run(ctx, o, func(_ context.Context, epoch int64) error {
			if epoch <= last {
				t.Errorf("epoch %d after %d", epoch, last)
			}
			last = epoch
			if terms++; terms == 3 {
				cancel()
			}
			return errors.New("stream not found")
		})
		if !errors.Is(err, context.Canceled) || terms != 3 || failed != 2 {
			t.Errorf("Run returned %v after %d terms, of which %d are counted as failed; want 3 terms and 2", err, terms, failed)
		}
	})
}

// acted fails unless the work begins with an epoch.
func acted(t *testing.T, o lease.Options) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := false
	err := lease.Run(ctx, o, func(ctx context.Context, epoch int64) error {
		began = epoch > 0
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if !began || !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v, the work has begun: %v; want it to act", err, began)
	}
}
