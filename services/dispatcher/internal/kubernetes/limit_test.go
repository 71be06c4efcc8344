package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// server answers when the test lets it, and notes how many requests it has at once.
type server struct {
	mu            sync.Mutex
	at, most      int
	status        int
	arrived, next chan struct{}
}

func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.at++
	s.most = max(s.most, s.at)
	s.mu.Unlock()
	s.arrived <- struct{}{}
	<-s.next
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at--
	return &http.Response{StatusCode: s.status}, nil
}

func send(t *testing.T, l limited, requests int) *sync.WaitGroup {
	t.Helper()
	var sent sync.WaitGroup
	for range requests {
		sent.Go(func() {
			if _, err := l.RoundTrip(httptest.NewRequest(http.MethodPatch, "http://api/pods", nil)); err != nil {
				t.Error(err)
			}
		})
	}
	return &sent
}

// The limit halves once for a round of refusals, never below its least, and grows
// while answers are quick and it is used.
func TestTheLimitFollowsTheServer(t *testing.T) {
	t.Parallel()
	s := &server{status: http.StatusTooManyRequests, arrived: make(chan struct{}), next: make(chan struct{})}
	l := limited{newLimiter(prometheus.NewRegistry()), s}
	want := float64(firstAtOnce)
	for want > leastAtOnce {
		requests := int(want)
		sent := send(t, l, requests)
		for range requests {
			<-s.arrived // all of them are on their way when the first answer comes
		}
		for range requests {
			s.next <- struct{}{}
		}
		sent.Wait()
		if want /= 2; l.limit != want {
			t.Fatalf("after a round of refusals the limit is %g, want %g", l.limit, want)
		}
	}
	s.most, s.status = 0, http.StatusOK
	const requests = 500
	sent := send(t, l, requests)
	go func() {
		for range requests {
			s.next <- struct{}{}
		}
	}()
	for range requests {
		<-s.arrived
	}
	sent.Wait()
	if l.limit <= leastAtOnce || l.limit > leastAtOnce+40 || s.most > int(l.limit)+1 {
		t.Errorf("after %d quick answers the limit is %g, at most %d were on their way", requests, l.limit, s.most)
	}
	if l.busy != 0 || len(l.waiting) != 0 {
		t.Errorf("left: %d on their way, %d waiting", l.busy, len(l.waiting))
	}
}

// A request that gives up waiting takes no turn; a watch never waits.
func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	s := &server{status: http.StatusOK, arrived: make(chan struct{}), next: make(chan struct{})}
	l := limited{newLimiter(prometheus.NewRegistry()), s}
	l.limit = 1
	first := send(t, l, 1)
	<-s.arrived
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := l.RoundTrip(httptest.NewRequest(http.MethodGet, "http://api/pods", nil).WithContext(ctx))
		gone <- err
	}()
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up got %v", err)
	}
	watching := make(chan struct{})
	go func() {
		_, _ = l.RoundTrip(httptest.NewRequest(http.MethodGet, "http://api/pods?watch=true", nil))
		close(watching)
	}()
	<-s.arrived
	s.next <- struct{}{}
	s.next <- struct{}{}
	<-watching
	first.Wait()
	if l.busy != 0 || len(l.waiting) != 0 {
		t.Errorf("left: %d on their way, %d waiting", l.busy, len(l.waiting))
	}
}

// What stops objects in time keeps its requests up when the API server is slow.
func TestALimitMayHaveAHigherLeast(t *testing.T) {
	t.Parallel()
	l := newLimiter(prometheus.NewRegistry())
	l.least = stopLeastAtOnce
	for range 10 {
		if err := l.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.leave(time.Now(), true)
	}
	if l.limit < stopLeastAtOnce {
		t.Errorf("%v requests at once, want %d", l.limit, stopLeastAtOnce)
	}
}
