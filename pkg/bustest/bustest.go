// Package bustest gives a test a bus, and lets it hear what is said there: it keeps
// the messages of the streams that it listens to, and waits for those that matter.
//
// It is test support and not for services, which must forget what they have read.
package bustest

import (
	"context"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
)

// Listener keeps what was heard, in order.
type Listener struct {
	t       *testing.T
	mu      sync.Mutex
	heard   []event.Payload
	arrived chan struct{}
}

// New returns a Listener of the test.
func New(t *testing.T) *Listener { return &Listener{t: t, arrived: make(chan struct{}, 1)} }

// Listen hears the stream's present values and all that follow, until ctx ends.
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

// Heard returns all messages of the type so far.
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

// Await returns the first message, heard or to come, that matches. Only one
// goroutine of a test waits at a time. Before the test fails, dump, if it is not
// nil, tells what else is known.
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
			l.t.Fatalf("not heard within %s: %s", patience, what)
		}
	}
}
