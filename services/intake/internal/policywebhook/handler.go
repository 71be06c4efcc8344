package policywebhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"muster.dev/muster/deploy/policy"
	"muster.dev/muster/pkg/message/bounds"
	"muster.dev/muster/pkg/service/inflight"
)

// Limits bound what reviews use.
type Limits struct {
	// Bytes and Depth bound a review. The API server takes objects of 3 MiB, and stores
	// 1.5 MiB; a review has two of them.
	Bytes int64
	Depth int
	// Time bounds a review; the API server waits for 5 seconds.
	Time time.Duration
	// Reviews and PerAddress bound the reviews at a time, in total and of one client
	// address.
	Reviews, PerAddress int
}

// DefaultLimits leave room for a second API server beside one that asks all the time.
func DefaultLimits() Limits {
	return Limits{Bytes: 7 << 20, Depth: 128, Time: 4 * time.Second, Reviews: 16, PerAddress: 12}
}

// Handler serves the policies as webhooks, below policy.Path. It may be used concurrently.
type Handler struct {
	Policies   Policies
	Authorizer authorizer.Authorizer
	Limits     Limits
	Logger     *zap.Logger

	once  sync.Once
	slots chan struct{}
	open  *inflight.Limiter // of addresses
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if failure := recover(); failure != nil {
			h.Logger.Error("review of a request failed; refusing it", zap.Any("panic", failure), zap.Stack("stack"))
			http.Error(w, "the review failed", http.StatusInternalServerError)
		}
	}()
	h.once.Do(func() {
		h.slots, h.open = make(chan struct{}, h.Limits.Reviews), inflight.New(h.Limits.PerAddress, math.MaxInt)
	})
	c, known := h.Policies[strings.TrimPrefix(r.URL.Path, policy.Path)]
	switch {
	case !known:
		http.Error(w, fmt.Sprintf("there is no policy at %q", r.URL.Path), http.StatusNotFound)
		return
	case r.Method != http.MethodPost:
		http.Error(w, "want POST with an AdmissionReview", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.Limits.Time)
	defer cancel()
	leave, err := h.enter(ctx, r.RemoteAddr)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	deadline, _ := ctx.Deadline()
	_ = http.NewResponseController(w).SetReadDeadline(deadline) // a recorder of tests has none
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.Limits.Bytes))
	if err != nil {
		code := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(w, fmt.Sprintf("read the review: %v", err), code)
		return
	}
	request, err := readReview(body, h.Limits.Depth)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := admissionv1.AdmissionReview{Response: c.Review(ctx, request, h.Authorizer)}
	answer.APIVersion, answer.Kind = reviewVersion, reviewKind
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		h.Logger.Warn("cannot answer a review", zap.Error(err))
	}
}

// enter waits for a slot; leave gives it back.
func (h *Handler) enter(ctx context.Context, remote string) (leave func(), err error) {
	address := inflight.Host(remote)
	if !h.open.Acquire(address) {
		return nil, fmt.Errorf("%s has %d reviews open, which is the limit", address, h.open.Each())
	}
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots; h.open.Release(address) }, nil
	case <-ctx.Done():
		h.open.Release(address)
		return nil, fmt.Errorf("%d reviews are open, which is the limit", h.Limits.Reviews)
	}
}

const (
	reviewVersion = "admission.k8s.io/v1"
	reviewKind    = "AdmissionReview"
)

// readReview reads a review of bounded depth.
func readReview(body []byte, depth int) (*admissionv1.AdmissionRequest, error) {
	if err := (bounds.JSON{Depth: depth}).Check(body); err != nil {
		return nil, fmt.Errorf("read the review: %w", err)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, fmt.Errorf("read the review: %w", err)
	}
	switch {
	case review.APIVersion != reviewVersion || review.Kind != reviewKind:
		return nil, fmt.Errorf("%s %s: want %s of %s", review.APIVersion, review.Kind, reviewKind, reviewVersion)
	case review.Request == nil || review.Request.UID == "":
		return nil, errors.New("request: is missing, or has no uid")
	}
	return review.Request, nil
}
