// Package inflight bounds what each client of a server has open at a time: requests, streams
// and connections.
package inflight

import "sync"

// Limiter counts what each owner, a caller or an address, has open. Its methods may be called
// concurrently.
type Limiter struct {
	each, all int

	mu   sync.Mutex
	open map[string]int
	sum  int
}

// New returns a limiter that lets one owner have each open, and all owners together all.
func New(each, all int) *Limiter { return &Limiter{each: each, all: all, open: map[string]int{}} }

// Each is the limit of one owner.
func (l *Limiter) Each() int { return l.each }

// Acquire counts one more for the owner; it reports false at a limit.
func (l *Limiter) Acquire(owner string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[owner] >= l.each || l.sum >= l.all {
		return false
	}
	l.open[owner]++
	l.sum++
	return true
}

// Release counts one less, after an Acquire that reported true.
func (l *Limiter) Release(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum--
	if l.open[owner]--; l.open[owner] == 0 {
		delete(l.open, owner)
	}
}
