package app_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/kube/relist"
)

// way is the way of one process to the API server.
type way struct {
	next http.RoundTripper

	mu       sync.Mutex
	requests map[string]int // by method, with WATCH, and what the API server answered

	open sync.RWMutex // for writing: until all answers have come, and no request passes
}

// RoundTrip implements http.RoundTripper.
func (y *way) RoundTrip(r *http.Request) (*http.Response, error) {
	y.open.RLock()
	defer y.open.RUnlock()
	answer, err := y.next.RoundTrip(r)
	if err == nil {
		method := r.Method
		if r.URL.Query().Has("watch") {
			method = "WATCH"
		}
		y.mu.Lock()
		defer y.mu.Unlock()
		y.requests[method+" "+answer.Status]++
	}
	return answer, err
}

func (y *way) count(what string) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.requests[what]
}

// elected is a holder or standby of the Lease with the rights of the service.
type elected struct {
	*way
	guard  lease.Guard
	acts   chan int64
	ended  chan error
	stands chan struct{}
}

func (w *world) elect(name string, lasts time.Duration) *elected {
	w.t.Helper()
	e := &elected{way: &way{requests: map[string]int{}}, acts: make(chan int64, 10), ended: make(chan error, 10), stands: make(chan struct{}, 10)}
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		e.next = next
		return e.way
	})
	config.Wrap(relist.Wrap) // as apiserver.Config does; what it asks for goes by the same way
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	over := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-over })
	go func() {
		defer close(over)
		_ = lease.Run(ctx, lease.Options{ // it ends with ctx
			Client: client.CoordinationV1(), Namespace: rbac.Namespace, Name: "muster-dispatcher-" + w.namespace, Holder: name,
			Duration: lasts, Logger: zap.NewNop(), Guard: &e.guard, Standby: func() { e.stands <- struct{}{} },
			AtLeast: func(context.Context) (int64, error) { return 0, nil },
		}, func(ctx context.Context, epoch int64) error {
			e.acts <- epoch
			<-ctx.Done()
			e.ended <- context.Cause(ctx)
			return ctx.Err()
		})
	}()
	return e
}

func (w *world) lease() *coordination.Lease {
	w.t.Helper()
	held, err := w.core.CoordinationV1().Leases(rbac.Namespace).Get(w.t.Context(), "muster-dispatcher-"+w.namespace, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return held
}

// TestAStandbyTakesALeaseThatHasEnded: with a real API server and the rights of the service, a
// standby watches the Lease. It does not take it while it is renewed, and takes it when the holder
// is cut off and must not act any more.
func TestAStandbyTakesALeaseThatHasEnded(t *testing.T) {
	t.Parallel()
	const lasts, renewed = 4 * time.Second, 10
	w := newWorld(t, "standby", 0)
	holder := w.elect("holder", lasts)
	first := <-holder.acts
	standby := w.elect("standby", lasts)
	<-standby.stands
	w.await("a watch of the Lease", func() bool { return standby.count("WATCH 200 OK") > 0 })
	before, read := holder.count("PUT 200 OK"), standby.count("GET 200 OK")
	w.await("renewals", func() bool { return holder.count("PUT 200 OK") >= before+renewed })
	if reads := standby.count("GET 200 OK") - read; reads > renewed/2 { // some, where renewals are late
		t.Errorf("the standby has read the Lease %d times in %d renewals that it was shown", reads, renewed)
	}
	if len(standby.acts) > 0 {
		t.Fatal("the standby has taken the Lease of a holder that renews it")
	}

	holder.open.Lock()
	connect := sync.OnceFunc(holder.open.Unlock)
	defer connect()
	last := w.lease()
	second := <-standby.acts
	if err := holder.guard.Check(); !errors.Is(err, lease.ErrLost) {
		t.Errorf("two act: the guard of the one that is cut off returns %v", err)
	}
	taken := w.lease()
	if waited := taken.Spec.AcquireTime.Sub(last.Spec.RenewTime.Time); waited < lasts {
		t.Errorf("the standby has taken the Lease %s after its last renewal, which is good for %s", waited, lasts)
	}
	if name := *taken.Spec.HolderIdentity; second <= first || !strings.HasPrefix(name, "standby/") {
		t.Errorf("epoch %d of %q after %d, want a larger one of the standby", second, name, first)
	}
	connect()
	if err := <-holder.ended; !errors.Is(err, lease.ErrLost) {
		t.Errorf("the term of the one that was cut off has ended with %v", err)
	}
}
