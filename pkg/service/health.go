package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Health collects the conditions of a service's readiness. Its methods may be called
// concurrently.
type Health struct {
	mu     sync.Mutex
	checks map[string]func() error
	marks  map[string]bool
}

// newHealth returns a Health without conditions, which is not ready: a service without
// conditions has not started yet.
func newHealth() *Health {
	return &Health{checks: map[string]func() error{}, marks: map[string]bool{}}
}

// Check adds a condition that is evaluated each time; nil means ready.
func (h *Health) Check(name string, check func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks[name] = check
}

// Await adds a condition that is not met until the returned function is called.
func (h *Health) Await(name string) (met func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks[name] = false
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.marks[name] = true
	}
}

// Ready returns the errors of unmet conditions by name; it is empty if the service is
// ready.
func (h *Health) Ready() map[string]error {
	h.mu.Lock()
	defer h.mu.Unlock()
	unmet := map[string]error{}
	if len(h.marks)+len(h.checks) == 0 {
		unmet["service"] = errors.New("not started yet")
	}
	for name, met := range h.marks {
		if !met {
			unmet[name] = errors.New("not yet")
		}
	}
	for name, check := range h.checks {
		if err := check(); err != nil {
			unmet[name] = err
		}
	}
	return unmet
}

// WaitReady waits until the service is ready; if ctx ends first, the error names the
// unmet conditions.
func (h *Health) WaitReady(ctx context.Context) error {
	for {
		unmet := h.Ready()
		if len(unmet) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %v: %w", unmet, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Endpoint serves /healthz, /readyz and /metrics.
type Endpoint struct {
	listener net.Listener
	server   *http.Server
}

// ListenHealth binds the address and serves at once.
func ListenHealth(address string, health *Health, metrics *prometheus.Registry) (*Endpoint, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for health checks on %q: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { writeReady(w, health) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	return &Endpoint{listener: listener, server: server}, nil
}

// URL returns the base URL of the endpoint.
func (e *Endpoint) URL() string { return "http://" + e.listener.Addr().String() }

// Close stops serving at once, without waiting for open requests.
func (e *Endpoint) Close() { _ = e.server.Close() }

func writeReady(w http.ResponseWriter, health *Health) {
	unmet := map[string]string{}
	for name, err := range health.Ready() {
		unmet[name] = err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	if len(unmet) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"ready": len(unmet) == 0, "waitingFor": unmet})
}
