package httpserver

import (
	"net/http"
	"sync"
	"time"
)

// Limits bound what one caller uses.
type Limits struct {
	// Requests and Streams bound what one caller has open at a time.
	Requests, Streams int
	// Write bounds the time in which a client receives an answer, or each write of a
	// stream.
	Write time.Duration
}

// DefaultLimits are for callers that are the programs of a team.
func DefaultLimits() Limits { return Limits{Requests: 64, Streams: 32, Write: 30 * time.Second} }

// shares counts what each owner, a caller or an address, has open. Its methods may be
// called concurrently.
type shares struct {
	most int

	mu   sync.Mutex
	open map[string]int
}

func newShares(most int) shares { return shares{most: most, open: map[string]int{}} }

// acquire counts one more for the owner; it reports false if the owner is at the limit.
func (s *shares) acquire(owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[owner] >= s.most {
		return false
	}
	s.open[owner]++
	return true
}

func (s *shares) release(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[owner]--; s.open[owner] == 0 {
		delete(s.open, owner)
	}
}

// limited refuses a caller that is at its limit.
func (s *Server) limited(open *shares, what string, handle handler) handler {
	return func(w http.ResponseWriter, r *http.Request, caller string) error {
		if !open.acquire(caller) {
			return fail(http.StatusTooManyRequests, "%s has %d %s open, which is the limit: wait until one has ended", caller, open.most, what)
		}
		defer open.release(caller)
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
