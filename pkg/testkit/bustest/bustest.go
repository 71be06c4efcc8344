// Package bustest gives a test a bus, and a Listener that keeps the messages of streams
// and waits for those that match.
//
// It is for tests only, not for services, which must not keep all messages.
package bustest

import (
	"context"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
)

// Listener keeps received messages, in order.
type Listener struct {
	t       *testing.T
	mu      sync.Mutex
	heard   []event.Payload
	arrived chan struct{}
}

// New returns a Listener of the test.
func New(t *testing.T) *Listener { return &Listener{t: t, arrived: make(chan struct{}, 1)} }

// Listen keeps the stream's present values and all later ones, until ctx ends.
func (l *Listener) Listen(ctx context.Context, b *bus.Bus, stream, filter string) {
	l.t.Helper()
	following, err := b.Follow(ctx, stream, filter)
	if err != nil {
		l.t.Fatal(err)
	}
	go func() {
		for d := range following.C {
			_, payload, err := d.Event()
			if err != nil {
				l.t.Errorf("unreadable message: %v", err)
				continue
			}
			l.mu.Lock()
			l.heard = append(l.heard, payload)
			l.mu.Unlock()
			select {
			case l.arrived <- struct{}{}:
			default:
			}
		}
	}()
}

// Heard returns all received messages of the type.
func Heard[P event.Payload](l *Listener) []P {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []P
	for _, payload := range l.heard {
		if p, is := payload.(P); is {
			all = append(all, p)
		}
	}
	return all
}

// Await returns the first message, received or to come, that matches. Only one goroutine
// of a test may wait at a time. dump, unless nil, adds to the message of a failure.
func Await[P event.Payload](l *Listener, patience time.Duration, what string, matches func(P) bool, dump func() string) P {
	l.t.Helper()
	deadline := time.After(patience)
	for {
		for _, p := range Heard[P](l) {
			if matches(p) {
				return p
			}
		}
		select {
		case <-l.arrived:
		case <-deadline:
			if dump != nil {
				what += "; " + dump()
			}
			l.t.Fatalf("no message within %s: %s", patience, what)
		}
	}
}
