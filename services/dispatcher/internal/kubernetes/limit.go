package kubernetes

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Bounds of the requests that are on their way to the API server at once. The
// limit begins in the middle.
const (
	leastAtOnce = 4
	firstAtOnce = 64
	mostAtOnce  = 256
	// slowAnswer is what a loaded API server takes.
	slowAnswer = 2 * time.Second
)

// limiter bounds how many requests are on their way: one more for each round of
// quick answers, half as many when the API server says that there are too many
// or takes long (additive increase, multiplicative decrease). Watches are not
// counted, they last.
type limiter struct {
	mu      sync.Mutex
	limit   float64
	busy    int
	waiting []chan struct{}
	halved  time.Time // answers to requests from before are of the same trouble
}

func newLimiter() *limiter { return &limiter{limit: firstAtOnce} }

// limited is a transport under a limiter, which may have several.
type limited struct {
	*limiter
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("watch") {
		return l.next.RoundTrip(r)
	}
	if err := l.enter(r.Context()); err != nil {
		return nil, err
	}
	began := time.Now()
	response, err := l.next.RoundTrip(r)
	loaded := time.Since(began) > slowAnswer
	if response != nil {
		loaded = loaded || response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable
	}
	l.leave(began, loaded)
	return response, err
}

// enter waits, first come first served, until the request may go.
func (l *limiter) enter(ctx context.Context) error {
	l.mu.Lock()
	if float64(l.busy) < l.limit && len(l.waiting) == 0 {
		l.busy++
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting {
		if w == turn {
			l.waiting = append(l.waiting[:i:i], l.waiting[i+1:]...)
			return ctx.Err()
		}
	}
	l.busy-- // its turn came in the same moment
	l.admit()
	return ctx.Err()
}

// leave takes an answer into account.
func (l *limiter) leave(began time.Time, loaded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := float64(l.busy) >= l.limit-1
	l.busy--
	switch {
	case loaded && began.After(l.halved):
		l.limit, l.halved = max(leastAtOnce, l.limit/2), time.Now()
	case !loaded && full:
		l.limit = min(mostAtOnce, l.limit+1/l.limit)
	}
	l.admit()
}

// admit lets as many go as may.
func (l *limiter) admit() {
	for len(l.waiting) > 0 && float64(l.busy) < l.limit {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		l.busy++
	}
}
