package engine

import (
	"fmt"
	"sync"
	"time"
)

// failedTerms is how many terms of a process fail one after the other until it is not ready.
const failedTerms = 3

// Terms reports whether the terms of a process fail one after the other. Its methods may be
// called concurrently.
type Terms struct {
	mu      sync.Mutex
	failed  int
	last    error
	at      time.Time // of the last failure
	standby bool      // another leads, and this one is current
	decides time.Time // since when it stands by, or its term decides; zero while neither
	now     func() time.Time
}

// NewTerms is for a process that has had no term.
func NewTerms() *Terms { return &Terms{now: time.Now} }

// begun notes that the process stands by, or that its term decides.
func (t *Terms) begun(standby bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lasts() {
		t.failed = 0
	}
	t.standby, t.decides = standby, t.now()
}

// ended notes the end of a term, with the error that it failed with; nil when it was over. A
// term that lasted begins the count again.
func (t *Terms) ended(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil || t.lasts() {
		t.failed = 0
	}
	t.standby, t.decides = false, time.Time{}
	if err != nil {
		t.failed++
		t.last, t.at = err, t.now()
	}
}

func (t *Terms) lasts() bool { return !t.decides.IsZero() && t.now().Sub(t.decides) > longTerm }

// Failing returns why the process is not ready: its terms fail one after the other. A standby
// that follows the leader is ready, and so is a leader once its term has lasted.
func (t *Terms) Failing() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed < failedTerms || t.standby || t.lasts() {
		return nil
	}
	return fmt.Errorf("%d terms failed one after the other, the last at %s: %w", t.failed, t.at.UTC().Format(time.RFC3339), t.last)
}
