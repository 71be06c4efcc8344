// Package throttle bounds the output that clients can cause: lines of a log, or answers
// to refused messages.
//
// Each key, such as a queue, has its own allowance, so that one cannot use up another's.
// The package is not for output that must not get lost.
package throttle

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// keysMost bounds the remembered keys. Beyond it, all start with a full allowance again.
const keysMost = 10_000

// Throttle allows a burst for each key, and then one in each interval. Its methods may be
// called concurrently.
type Throttle struct {
	every time.Duration
	burst int

	mu   sync.Mutex
	keys map[string]*allowance
}

type allowance struct {
	limiter *rate.Limiter
	refused int // since the last allowed one
}

// New returns a Throttle that allows each key a burst, and one in each interval every.
func New(every time.Duration, burst int) *Throttle {
	return &Throttle{every: every, burst: burst, keys: map[string]*allowance{}}
}

// Allows reports whether the key is within its allowance, and how often it was refused
// before that.
func (t *Throttle) Allows(key string) (allowed bool, refused int) { return t.allows(key, time.Now()) }

func (t *Throttle) allows(key string, now time.Time) (allowed bool, refused int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.keys[key]
	if a == nil {
		if len(t.keys) >= keysMost {
			clear(t.keys)
		}
		a = &allowance{limiter: rate.NewLimiter(rate.Every(t.every), t.burst)}
		t.keys[key] = a
	}
	if !a.limiter.AllowN(now, 1) {
		a.refused++
		return false, 0
	}
	refused, a.refused = a.refused, 0
	return true, refused
}
