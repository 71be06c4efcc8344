package kubernetes

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
// quick answers, half as many when the API server reports that there are too many
// or takes long (additive increase, multiplicative decrease). Watches are not
// counted, they last.
type limiter struct {
	mu      sync.Mutex
	limit   float64
	least   float64
	busy    int
	waiting []chan struct{}
	halved  time.Time // answers to requests from before are of the same trouble

	halvings prometheus.Counter
	waits    prometheus.Histogram
}

// newLimiter registers what the limiter does with the metrics.
func newLimiter(registry *prometheus.Registry) *limiter {
	l := &limiter{
		limit: firstAtOnce, least: leastAtOnce,
		halvings: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "muster_dispatcher_api_limit_halvings_total", Help: "Times that the limit was halved, because the API server reported too many requests or was slow.",
		}),
		waits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "muster_dispatcher_api_wait_seconds", Help: "Time that requests to the API server waited for their turn; those that need not wait are not counted.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			l.mu.Lock()
			defer l.mu.Unlock()
			return value()
		})
	}
	registry.MustRegister(l.halvings, l.waits,
		gauge("muster_dispatcher_api_limit", "Limit on concurrent requests to the API server.", func() float64 { return float64(int(l.limit)) }),
		gauge("muster_dispatcher_api_requests", "Requests in flight to the API server, except watches.", func() float64 { return float64(l.busy) }),
		gauge("muster_dispatcher_api_waiting", "Requests to the API server that wait for their turn.", func() float64 { return float64(len(l.waiting)) }),
	)
	return l
}

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
	defer func(began time.Time) { l.waits.Observe(time.Since(began).Seconds()) }(time.Now())
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
		l.limit, l.halved = max(l.least, l.limit/2), time.Now()
		l.halvings.Inc()
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
