package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/pkg/kube/lease"
)

// runs runs a holder or standby of the Lease until the test ends.
func runs(t *testing.T, o lease.Options) (acting <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		_ = lease.Run(ctx, o, func(ctx context.Context, _ int64) error { // the test reads Contact
			select {
			case begun <- struct{}{}:
			default:
			}
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return begun
}

// awaitContact waits until Check answers as wanted.
func awaitContact(t *testing.T, contact *lease.Contact, what string, wanted func(error) bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !wanted(contact.Check()) {
		select {
		case <-deadline:
			t.Fatalf("not within 30s: %s; it is %v", what, contact.Check())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A holder whose API server fails, or hangs, is out of contact with the cause, and in
// contact again with the next answer.
func TestAHolderWithoutAnAPIServerIsOutOfContact(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		verb string
		hang bool
		want string
	}{
		"it refuses all":             {"*", false, "rolling"},
		"it refuses to write":        {"update", false, "rolling"},
		"it does not answer to any":  {"*", true, "has not answered"},
		"it does not answer a write": {"update", true, "has not answered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset()
			var broken atomic.Bool
			mended := make(chan struct{})
			client.PrependReactor(test.verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				if !broken.Load() {
					return false, nil, nil
				}
				if test.hang {
					<-mended
					return false, nil, nil
				}
				return true, &coordination.Lease{}, apierrors.NewServiceUnavailable("rolling")
			})
			o := options(client)
			o.Contact = &lease.Contact{}
			if err := o.Contact.Check(); err != nil {
				t.Errorf("before the first request: %v", err)
			}
			<-runs(t, o)
			awaitContact(t, o.Contact, "the holder is in contact", func(err error) bool { return err == nil })
			broken.Store(true)
			awaitContact(t, o.Contact, "the cause is named", func(err error) bool { return err != nil && strings.Contains(err.Error(), test.want) })
			broken.Store(false)
			close(mended)
			awaitContact(t, o.Contact, "contact is back", func(err error) bool { return err == nil })
		})
	}
}

// A standby that sees a live holder is in contact, also when it could not take the Lease
// before.
func TestAStandbyOfALiveHolderIsInContact(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	var refused atomic.Bool
	refused.Store(true)
	forbidden := apierrors.NewForbidden(leases, "l", errors.New("the role is missing"))
	for _, verb := range []string{"create", "update"} {
		client.PrependReactor(verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refused.Load(), &coordination.Lease{}, forbidden
		})
	}
	standby := options(client)
	standby.Contact = &lease.Contact{}
	runs(t, standby)
	awaitContact(t, standby.Contact, "it cannot take the Lease", func(err error) bool { return err != nil })
	refused.Store(false)
	runs(t, options(client))
	awaitContact(t, standby.Contact, "somebody holds it", func(err error) bool { return err == nil })
}
