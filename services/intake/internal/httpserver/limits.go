package httpserver

import (
	"math"
	"net/http"
	"time"

	"muster.dev/muster/pkg/service/inflight"
)

// Limits bound what one caller uses.
type Limits struct {
	// Requests and Streams bound what one caller has open at a time.
	Requests, Streams int
	// Write bounds the time in which a client receives an answer, or each write of a
	// stream.
	Write time.Duration
}

// mostOfAll is how many streams of the events of all its queues a caller has open at a time.
const mostOfAll = 4

// DefaultLimits are for callers that are the programs of a team.
func DefaultLimits() Limits { return Limits{Requests: 64, Streams: 32, Write: 30 * time.Second} }

// ofEach limits each caller, and not all together: operators choose how many callers there are.
func ofEach(most int) *inflight.Limiter { return inflight.New(most, math.MaxInt) }

// limited refuses a caller that is at its limit.
func (s *Server) limited(open *inflight.Limiter, what string, handle handler) handler {
	return func(w http.ResponseWriter, r *http.Request, caller string) error {
		if !open.Acquire(caller) {
			return fail(http.StatusTooManyRequests, "%s has %d %s open, which is the limit: wait until one has ended", caller, open.Each(), what)
		}
		defer open.Release(caller)
		return handle(w, r, caller)
	}
}

// timed bounds the time until the client has received the answer.
func (s *Server) timed(handle handler) handler {
	return func(w http.ResponseWriter, r *http.Request, caller string) error {
		err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(requestTimeout + s.Limits.Write))
		if err != nil {
			return err
		}
		return handle(w, r, caller)
	}
}
